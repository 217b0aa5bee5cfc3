//! Names that can be names of files, each once.

use std::collections::BTreeMap;

/// Leaves room for a number behind it: names have up to 80 letters.
const LONGEST: usize = 60;

#[derive(Debug, Default)]
pub(super) struct Names {
    /// The highest number behind each; letters of both cases are the same, as they are for some file systems.
    given: BTreeMap<String, u32>,
}

impl Names {
    /// The name nearest to what is wanted, unlike all that were given before.
    pub(super) fn give(&mut self, wanted: &str, otherwise: &str) -> String {
        let safe = safe(wanted).unwrap_or_else(|| otherwise.to_owned());
        let mut name = safe.clone();
        while self.given.contains_key(&name.to_ascii_lowercase()) {
            let count = self.given.entry(safe.to_ascii_lowercase()).or_insert(1);
            *count += 1;
            name = format!("{safe}-{count}");
        }
        self.given.insert(name.to_ascii_lowercase(), 1);
        name
    }
}

/// What of a text can be a name: letters, digits, `-`, `_` and `.`; none if nothing of it can stay.
pub fn safe(wanted: &str) -> Option<String> {
    let mut name = String::new();
    for letter in wanted.trim().chars() {
        let letter = if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.') { letter } else { '-' };
        if !(letter == '-' && (name.is_empty() || name.ends_with('-'))) {
            name.push(letter);
        }
        if name.len() == LONGEST {
            break;
        }
    }
    let name = name.trim_matches(['-', '.']).to_owned();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_a_file_and_is_given_once() {
        let mut names = Names::default();
        let mut given = |wanted: &str| names.give(wanted, "case-1");
        assert_eq!(given("Search routing: where?"), "Search-routing-where");
        assert_eq!(given("search routing – where"), "search-routing-where-2");
        assert_eq!(given("../../etc/passwd"), "etc-passwd");
        assert_eq!(given("…"), "case-1");
        assert_eq!(given("\0"), "case-1-2");
        assert_eq!(given("case-1-2"), "case-1-2-2");
        assert_eq!(given(&"long".repeat(100)).len(), LONGEST);
    }
}
