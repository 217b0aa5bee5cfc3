//! Which files are the project's own, and how they are called within it.

use super::frames::frames;
use crate::parse::frames::is_source;
use crate::{TestReport, is_foreign};

/// The project's root, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// With its last slash.
    root: Option<String>,
}

impl Tree {
    /// With a known root, or with what a report's stacks tell of it: they name absolutely what the report names
    /// relative to the root.
    pub(crate) fn of(report: &TestReport, root: Option<&str>) -> Self {
        let known = root.map(|root| format!("{}/", root.trim_end_matches('/')));
        let learnt = || {
            let failures =
                report.tests.iter().filter(|test| !test.stack_trace.is_empty() && test.file.is_some());
            failures.take(50).find_map(|test| {
                let file = test.file.as_deref()?;
                let stack = frames(&test.stack_trace);
                let absolute = stack.iter().find(|frame| ends_with_name(frame.file, file))?;
                Some(absolute.file[..absolute.file.len() - file.len()].to_owned())
            })
        };
        Self { root: known.or_else(learnt) }
    }

    /// The name within the project, if it is below its root.
    pub(crate) fn relative(&self, file: &str) -> String {
        let file = file.strip_prefix("file://").unwrap_or(file);
        let below = self.root.as_deref().and_then(|root| file.strip_prefix(root));
        let file = below.unwrap_or(file);
        file.strip_prefix("./").unwrap_or(file).to_owned()
    }

    /// The name within the project, if it is one of the project's files.
    pub(crate) fn own(&self, file: &str) -> Option<String> {
        if is_foreign(file) || !is_source(file) {
            return None;
        }
        let relative = self.relative(file);
        let outside = relative.starts_with('/') && self.root.is_some();
        (!outside).then_some(relative)
    }
}

fn ends_with_name(absolute: &str, relative: &str) -> bool {
    absolute.starts_with('/') && absolute.strip_suffix(relative).is_some_and(|root| root.ends_with('/'))
}

/// Whether a file holds tests, by the customs of all runners.
pub fn is_test_file(file: &str) -> bool {
    let (directory, name) = file.rsplit_once('/').unwrap_or(("", file));
    let stem = name.split('.').next().unwrap_or(name);
    let in_directory = directory
        .split('/')
        .any(|part| matches!(part, "test" | "tests" | "spec" | "specs" | "__tests__" | "t" | "e2e"));
    in_directory
        || stem.starts_with("test_")
        || ["_test", "_spec", "Test", "Tests", "Spec"].iter().any(|end| stem.ends_with(end))
        || name.contains(".test.")
        || name.contains(".spec.")
        || name.ends_with(".bats")
        || name == "conftest.py"
}

/// What a test file is about, by its name: `tests/test_cart.py`, `cart.test.ts` and `CartTest.java` are of `cart`.
pub(crate) fn subject_of(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    let mut stem = name.split('.').next().unwrap_or(name);
    stem = stem.strip_prefix("test_").unwrap_or(stem);
    for end in ["_test", "_spec", "_tests", "Tests", "Test", "Spec"] {
        stem = stem.strip_suffix(end).filter(|rest| !rest.is_empty()).unwrap_or(stem);
    }
    stem.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("tests/test_cart.py", true)]
    #[case("calc/calc_test.go", true)]
    #[case("src/cart.test.ts", true)]
    #[case("src/test/java/shop/CartTest.java", true)]
    #[case("spec/cart_spec.rb", true)]
    #[case("src/contest.rs", false)]
    #[case("src/latest/cart.js", false)]
    fn a_test_file_is_known_by_its_name(#[case] file: &str, #[case] is: bool) {
        assert_eq!(is_test_file(file), is);
    }

    #[rstest]
    #[case("tests/test_cart.py", "cart")]
    #[case("src/cart.test.ts", "cart")]
    #[case("CartTest.java", "cart")]
    #[case("calc/calc_test.go", "calc")]
    #[case("src/cart.py", "cart")]
    fn a_test_is_about_what_it_is_named_after(#[case] file: &str, #[case] subject: &str) {
        assert_eq!(subject_of(file), subject);
    }
}
