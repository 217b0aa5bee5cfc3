//! Which tests: patterns as people write them, turned into what each runner understands.

use std::fmt::Write;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use crate::{Affected, Selector, TestCase};

/// Which tests to run; without anything, all.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only what one of these fits.
    pub patterns: Vec<Pattern>,
    /// Not what one of these fits.
    pub exclude: Vec<Pattern>,
    /// Only these tests, as an earlier run named them.
    pub tests: Vec<TestCase>,
    /// Only these, beside `tests`, since a change reaches no others.
    pub reached: Vec<Selector>,
}

/// A part of a name, or with `*` the shape of a whole one (`Test*`); or a file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Pattern(pub String);

/// The test files of runners end like this.
const SOURCES: [&str; 21] = [
    ".go", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".py", ".rs", ".java", ".kt", ".rb",
    ".php", ".cs", ".fs", ".bats", ".t", ".exs", ".lua",
];

impl Pattern {
    /// As it was written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether it names a file or a directory of the project, and not a test.
    pub fn is_file(&self, root: &Utf8Path) -> bool {
        let path = self.0.split("::").next().unwrap_or_default();
        SOURCES.iter().any(|end| path.ends_with(end))
            || (path.contains('/') || path == ".") && root.join(path).exists()
    }

    /// Whether it is the shape of a whole name.
    pub fn has_wildcard(&self) -> bool {
        self.0.contains(['*', '?'])
    }

    /// As a regular expression that every runner's engine understands.
    pub fn regex(&self) -> String {
        if self.has_wildcard() { format!("^{}$", glob_body(&self.0)) } else { escaped(&self.0) }
    }

    /// The longest parts of it that stand in a name as they are.
    pub fn literals(&self) -> Vec<&str> {
        self.0.split(['*', '?']).filter(|part| !part.is_empty()).collect()
    }
}

/// A glob as the inside of a regular expression.
pub(super) fn glob_body(glob: &str) -> String {
    let mut regex = String::new();
    for character in glob.chars() {
        match character {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            other => regex.push_str(&escaped(other.encode_utf8(&mut [0; 4]))),
        }
    }
    regex
}

/// A text that stands for itself. Only what is special in all dialects is escaped: some refuse an escape that they do
/// not know.
pub(super) fn escaped(text: &str) -> String {
    let mut regex = String::new();
    for character in text.chars() {
        if "\\^$.|?*+()[]{}".contains(character) {
            regex.push('\\');
        }
        regex.push(character);
    }
    regex
}

/// One of several regular expressions.
pub(super) fn any_of(alternatives: impl IntoIterator<Item = String>) -> Option<String> {
    let mut joined = String::new();
    for alternative in alternatives {
        let _ = write!(joined, "{}{alternative}", if joined.is_empty() { "" } else { "|" });
    }
    (!joined.is_empty()).then_some(joined)
}

impl Selection {
    /// Whether all tests are wanted.
    pub fn is_everything(&self) -> bool {
        self.patterns.is_empty()
            && self.exclude.is_empty()
            && self.tests.is_empty()
            && self.reached.is_empty()
    }

    /// Leaves only what a change reaches.
    pub(crate) fn narrow(&mut self, affected: &Affected) {
        for selector in &affected.selectors {
            match selector {
                Selector::Test { package, name } => self.tests.push(TestCase {
                    package: package.clone(),
                    name: name.clone(),
                    ..TestCase::default()
                }),
                other => self.reached.push(other.clone()),
            }
        }
    }

    pub(super) fn reached_packages(&self) -> Vec<&str> {
        self.reached
            .iter()
            .filter_map(|selector| match selector {
                Selector::Package(name) => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The files that a change reaches, or that were changed; only those that are there.
    pub(super) fn reached_files(&self, root: &Utf8Path) -> Vec<String> {
        let files = self.reached.iter().filter_map(|selector| match selector {
            Selector::File(file) | Selector::RelatedTo(file) => Some(file.as_str()),
            _ => None,
        });
        // A name that begins with a dash would be an option.
        let harmless = |file: &str| if file.starts_with('-') { format!("./{file}") } else { file.to_owned() };
        files.filter(|file| root.join(file).is_file()).map(harmless).collect()
    }

    /// The patterns that are files, and those that are names.
    pub(super) fn wanted(&self, root: &Utf8Path) -> (Vec<&Pattern>, Vec<&Pattern>) {
        self.patterns.iter().partition(|pattern| pattern.is_file(root))
    }

    pub(super) fn unwanted(&self, root: &Utf8Path) -> (Vec<&Pattern>, Vec<&Pattern>) {
        self.exclude.iter().partition(|pattern| pattern.is_file(root))
    }

    /// A regular expression of the names that are wanted.
    pub(super) fn names_regex(&self, root: &Utf8Path) -> Option<String> {
        any_of(self.wanted(root).1.iter().map(|pattern| pattern.regex()))
    }

    /// The same for JavaScript, where those that are not wanted can be named in it too.
    pub(super) fn names_regex_with_lookahead(&self, root: &Utf8Path) -> Option<String> {
        let exact = any_of(self.tests.iter().map(|test| format!("^{}$", escaped(&test.name))));
        let wanted = exact.or_else(|| self.names_regex(root));
        let unwanted = any_of(self.unwanted(root).1.iter().map(|pattern| {
            if pattern.has_wildcard() { pattern.regex() } else { format!(".*{}", pattern.regex()) }
        }));
        match (wanted, unwanted) {
            (wanted, None) => wanted,
            (None, Some(unwanted)) => Some(format!("^(?!{unwanted})")),
            (Some(wanted), Some(unwanted)) => Some(format!("^(?!{unwanted})(?=.*(?:{wanted}))")),
        }
    }

    /// The files of the tests that are wanted by name, each once.
    pub(super) fn test_files(&self) -> Vec<String> {
        let mut files: Vec<String> =
            self.tests.iter().map(|test| test.package.clone()).filter(|it| !it.is_empty()).collect();
        files.sort();
        files.dedup();
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern(text.to_owned())
    }

    #[test]
    fn a_word_is_a_part_of_a_name_and_a_wildcard_makes_it_the_whole() {
        assert_eq!(pattern("Cart").regex(), "Cart");
        assert_eq!(pattern("Test*").regex(), "^Test.*$");
        assert_eq!(pattern("adds (1.5)").regex(), r"adds \(1\.5\)");
        assert_eq!(pattern("a*b?c").literals(), ["a", "b", "c"]);
    }

    #[test]
    fn a_file_is_told_from_a_name() {
        let root = Utf8Path::new("/");
        assert!(pattern("tests/test_cart.py").is_file(root));
        assert!(pattern("tests/test_cart.py::TestCart::test_x").is_file(root));
        assert!(pattern("usr/bin").is_file(root));
        assert!(!pattern("TestCart/sub").is_file(root));
        assert!(!pattern("Cart").is_file(root));
    }

    #[test]
    fn what_is_not_wanted_is_looked_ahead_for() {
        let selection = |patterns: &[&str], exclude: &[&str]| Selection {
            patterns: patterns.iter().map(|it| pattern(it)).collect(),
            exclude: exclude.iter().map(|it| pattern(it)).collect(),
            ..Selection::default()
        };
        let regex = |selection: Selection| selection.names_regex_with_lookahead(Utf8Path::new("/"));
        assert_eq!(regex(selection(&[], &[])), None);
        assert_eq!(regex(selection(&["a"], &[])).unwrap(), "a");
        assert_eq!(regex(selection(&[], &["slow", "Int*"])).unwrap(), "^(?!.*slow|^Int.*$)");
        assert_eq!(regex(selection(&["a"], &["slow"])).unwrap(), "^(?!.*slow)(?=.*(?:a))");
        assert_eq!(regex(selection(&["a*"], &["slow"])).unwrap(), "^(?!.*slow)(?=.*(?:^a.*$))");
    }
}
