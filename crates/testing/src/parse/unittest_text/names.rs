//! How unittest writes the names of tests, and their status.

use super::Word;
use crate::TestStatus;

const FIXTURES: [&str; 4] = ["setUpClass", "tearDownClass", "setUpModule", "tearDownModule"];

/// `test_x (tests.test_a.T.test_x)`, and before Python 3.11 `test_x (tests.test_a.T)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    method: String,
    within: String,
}

impl Header {
    /// Reads a header that ends with `...` or its line, and what follows it.
    pub(super) fn read(line: &str) -> Option<(Self, &str)> {
        let (header, rest) = Self::begins(line.trim_start())?;
        // Below it stands its first line of documentation, and the status after that.
        let rest = rest.trim_start();
        if rest.is_empty() {
            return Some((header, ""));
        }
        match rest.strip_prefix("...") {
            Some(after) => Some((header, after.strip_prefix(' ').unwrap_or(after))),
            None => {
                // Parameters of a subtest stand between.
                let subtest = rest.starts_with('(') || rest.starts_with('[');
                let (_, after) = rest.split_once(" ... ").filter(|_| subtest)?;
                Some((header, after))
            }
        }
    }

    fn begins(line: &str) -> Option<(Self, &str)> {
        let (method, rest) = line.split_once(" (")?;
        let (within, rest) = rest.split_once(')')?;
        let name = |part: &str| {
            !part.is_empty()
                && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '<' | '>'))
        };
        (name(method) && name(within))
            .then(|| (Self { method: method.to_owned(), within: within.to_owned() }, rest))
    }

    /// A test's class stands in a module.
    pub(super) fn is_dotted(&self) -> bool {
        self.within.contains('.') && self.method.starts_with("test")
    }

    /// Whether this stands for a module that could not be loaded.
    pub(super) fn is_placeholder(&self) -> bool {
        self.within.contains("unittest.loader._FailedTest")
            || self.within.contains("unittest.loader.ModuleImportFailure")
    }

    /// Whether this is of a class or module as a whole.
    pub(super) fn is_fixture(&self) -> bool {
        FIXTURES.contains(&self.method.as_str())
    }

    pub(super) fn name(&self) -> String {
        if self.has_method() { self.within.clone() } else { format!("{}.{}", self.within, self.method) }
    }

    pub(super) fn class(&self) -> String {
        match self.within.strip_suffix(&self.method).and_then(|class| class.strip_suffix('.')) {
            Some(class) if self.has_method() => class.to_owned(),
            _ => self.within.clone(),
        }
    }

    fn has_method(&self) -> bool {
        self.within.strip_suffix(&self.method).is_some_and(|class| class.ends_with('.'))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Test(Header),
    /// `setUpClass (tests.test_a.T)`, `setUpModule (tests.test_a)` and their counterparts.
    Fixture {
        name: String,
        of: String,
    },
    /// A module that could not be loaded.
    Placeholder(String),
}

/// `FAIL: test_x (tests.test_a.T.test_x) (i=1)`.
pub(super) fn title(line: &str) -> Option<(Word, Subject)> {
    let words =
        [("ERROR: ", Word::Error), ("FAIL: ", Word::Fail), ("UNEXPECTED SUCCESS: ", Word::UnexpectedSuccess)];
    let (rest, word) = words.iter().find_map(|(prefix, word)| Some((line.strip_prefix(prefix)?, *word)))?;
    let (header, _) = Header::begins(rest)?;
    let subject = if header.is_placeholder() {
        Subject::Placeholder(header.method)
    } else if header.is_fixture() {
        Subject::Fixture { name: header.method, of: header.within }
    } else {
        Subject::Test(header)
    };
    Some((word, subject))
}

/// What stands after `...`, perhaps behind what the test printed.
pub(super) fn status(text: &str) -> Option<(TestStatus, &str)> {
    if let Some(at) = text.find("skipped ") {
        let reason = text[at + "skipped ".len()..].trim_matches(['\'', '"']);
        return Some((TestStatus::Skip, reason));
    }
    let words = [
        ("expected failure", TestStatus::Xfail),
        ("unexpected success", TestStatus::Fail),
        ("FAIL", TestStatus::Fail),
        ("ERROR", TestStatus::Error),
        ("ok", TestStatus::Pass),
    ];
    words.iter().find(|(word, _)| text.ends_with(word)).map(|(_, status)| (*status, ""))
}
