//! The part of a file that is most like a text which is not in it.

use std::collections::HashSet;
use std::fmt::Write as _;

/// Lines of the text that are compared: enough to tell places apart, few enough for any file.
const ANCHORS: usize = 6;
/// What is shown.
const SHOWN_LINES: usize = 12;
const SHOWN_LINE: usize = 160;

/// The lines nearest to `wanted`, with their numbers; the beginning of the file when nothing is like it.
pub(super) fn nearest(content: &str, wanted: &str) -> String {
    if content.trim().is_empty() {
        return "(the file is empty)".to_owned();
    }
    let anchors: Vec<(usize, HashSet<&str>)> = wanted
        .lines()
        .enumerate()
        .map(|(at, line)| (at, words(line)))
        .filter(|(_, words)| !words.is_empty())
        .take(ANCHORS)
        .collect();
    let lines: Vec<&str> = content.lines().collect();
    // Each line of the file votes for the place at which the text would begin if it were this line of it.
    let mut votes = vec![0_usize; lines.len()];
    for (at, line) in lines.iter().enumerate() {
        let here = words(line);
        for (offset, anchor) in &anchors {
            let likeness = 2 * here.intersection(anchor).count();
            if let Some(start) = at.checked_sub(*offset).filter(|_| 2 * likeness > anchor.len()) {
                votes[start] += likeness;
            }
        }
    }
    // `max_by_key` would take the last of equals; people read from the top.
    let best = (0..lines.len()).rev().max_by_key(|at| votes[*at]).unwrap_or(0);
    let count = wanted.lines().count().clamp(3, SHOWN_LINES);
    let mut shown = String::new();
    for (at, line) in lines.iter().enumerate().skip(best).take(count) {
        let _ = writeln!(shown, "{:>6}\t{}", at + 1, &line[..line.floor_char_boundary(SHOWN_LINE)]);
    }
    shown
}

fn words(line: &str) -> HashSet<&str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
}
