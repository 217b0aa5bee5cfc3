//! What came instead: the part of a text that is most like the one that was looked for.

use std::collections::BTreeSet;
use std::fmt::Write as _;

const LINES_AROUND: usize = 2;
const LONGEST_LINE: usize = 160;

/// The lines of `text` nearest to `wanted`, with their numbers; its beginning when nothing is like it.
pub(crate) fn nearest_part(text: &str, wanted: &str) -> String {
    if text.trim().is_empty() {
        return "  (it is empty)\n".to_owned();
    }
    let wanted = words(wanted);
    let lines: Vec<&str> = text.lines().collect();
    let score = |line: &str| words(line).intersection(&wanted).count();
    // `max_by_key` would take the last of equals; people read from the top.
    let best = (0..lines.len()).rev().max_by_key(|&at| score(lines[at])).unwrap_or(0);
    let first = best.saturating_sub(LINES_AROUND);
    let last = (best + LINES_AROUND).min(lines.len() - 1);
    let mut part = String::new();
    for (at, line) in lines.iter().enumerate().take(last + 1).skip(first) {
        let _ = writeln!(part, "{:>5} | {}", at + 1, cut(line));
    }
    part
}

/// The first part of a text, in one line.
pub(crate) fn beginning(text: &str) -> String {
    cut(text.lines().find(|line| !line.trim().is_empty()).unwrap_or("(empty)"))
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn cut(line: &str) -> String {
    if line.chars().count() <= LONGEST_LINE {
        return line.to_owned();
    }
    let mut cut: String = line.chars().take(LONGEST_LINE).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_shares_most_words_is_shown_with_its_neighbours() {
        let text = "# Task\n\nAdd a greeting\n\n## Criteria\n- greets the whole world\n- has a test\n- is short\n- is kind";
        assert_eq!(
            nearest_part(text, "it greets the world"),
            "    4 | \n    5 | ## Criteria\n    6 | - greets the whole world\n    7 | - has a test\n    8 | - is short\n"
        );
    }

    #[test]
    fn a_text_that_is_not_like_it_at_all_is_shown_from_its_beginning() {
        assert_eq!(
            nearest_part("one\ntwo\nthree\nfour", "zebra"),
            "    1 | one\n    2 | two\n    3 | three\n"
        );
        assert_eq!(nearest_part(" \n", "zebra"), "  (it is empty)\n");
    }

    #[test]
    fn long_lines_are_cut() {
        let shown = nearest_part(&"é".repeat(1000), "é");
        assert!(shown.ends_with("…\n") && shown.chars().count() < 200, "{shown}");
    }
}
