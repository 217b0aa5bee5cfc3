//! What was expected beside what came.

use super::styled::{Mark, StyledText};
use crate::text::strip_ansi;
use crate::words::plain_line;

/// Lines around a difference that are shown with it.
const AROUND: usize = 2;
/// Lines shown of each side.
const SHOWN: usize = 10;
const LINE: usize = 200;

/// Both values; of long ones only where they differ: equal lines at both ends are left out.
pub(super) fn difference(text: &mut StyledText, expected: &str, actual: &str) {
    let (expected, actual) = (strip_ansi(expected), strip_ansi(actual));
    let (left, right): (Vec<&str>, Vec<&str>) = (lines(&expected), lines(&actual));
    let same_start = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
    let rest = left.len().min(right.len()) - same_start;
    let same_end = left.iter().rev().zip(right.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    for line in &left[same_start.saturating_sub(AROUND)..same_start] {
        text.line(Mark::Quiet, &format!("       {}", plain_line(line, LINE)));
    }
    side(text, Mark::Expected, "expected -", &left[same_start..left.len() - same_end]);
    side(text, Mark::Actual, "actual   +", &right[same_start..right.len() - same_end]);
    let end = left.len() - same_end;
    for line in &left[end..left.len().min(end + AROUND)] {
        text.line(Mark::Quiet, &format!("       {}", plain_line(line, LINE)));
    }
}

fn lines(text: &str) -> Vec<&str> {
    if text.is_empty() { vec![""] } else { text.lines().collect() }
}

fn side(text: &mut StyledText, mark: Mark, label: &str, lines: &[&str]) {
    for line in lines.iter().take(SHOWN) {
        text.line(mark, format!("     {label} {}", plain_line(line, LINE)).trim_end());
    }
    if lines.len() > SHOWN {
        text.line(Mark::Quiet, &format!("     … {} more", lines.len() - SHOWN));
    }
}
