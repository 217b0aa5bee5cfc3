//! Errors in what people wrote, with the place where they wrote it.

use std::fmt;

/// A place in a text: both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Something in a file that a person wrote is not right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    /// What is wrong: one lowercase sentence.
    pub message: String,
    /// Where, if it can be told.
    pub place: Option<Place>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl SourceError {
    /// An error at a place.
    pub fn at(place: Option<Place>, message: impl Into<String>) -> Self {
        Self { message: message.into(), place, hint: None }
    }

    /// The same with advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The name nearest to what was written, if one is near enough to be meant.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = ((written.chars().count() + 1) / 3).max(1);
    known
        .into_iter()
        .map(|name| (edit_distance(written, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// How many letters have to be put in, left out, replaced, or swapped with their neighbours.
fn edit_distance(a: &str, b: &str) -> usize {
    let [a, b]: [Vec<char>; 2] = [a, b].map(|text| text.chars().collect());
    let mut above: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(above[j - 1] + 1);
            }
            row.push(least);
        }
        above = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood_and_a_stranger_is_not() {
        let known = ["implementer", "gatekeeper"];
        assert_eq!(nearest("implementor", known), Some("implementer"));
        assert_eq!(nearest("gatekeepr", known), Some("gatekeeper"));
        assert_eq!(nearest("planner", known), None);
    }

    #[test]
    fn two_letters_that_changed_places_are_one_slip() {
        assert_eq!(nearest("doen", ["todo", "done", "failed"]), Some("done"));
        assert_eq!(nearest("odne", ["todo", "done", "failed"]), Some("done"));
        assert_eq!(nearest("enod", ["todo", "done", "failed"]), None);
    }
}
