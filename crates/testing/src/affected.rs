//! Which tests a change can reach. When it is not sure, more are run, and it is said why.
//!
//! **Invariant:** pure. What a graph is made of (the answers of `go list` and `cargo metadata`, Python's sources) is handed in.

mod cargo;
mod go;
mod graph;
mod javascript;
mod project_files;
mod python;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use python::PythonImports;

use crate::words::count;
use crate::{Changes, Framework};
use project_files::{Role, role};

/// How it is known what depends on what.
#[derive(Debug, Clone, Copy)]
pub enum Dependencies<'a> {
    /// What `go list -json -deps -test ./...` printed, and the directory it ran in.
    GoList {
        /// Its output.
        json: &'a str,
        /// Absolute.
        root: &'a str,
    },
    /// What `cargo metadata --format-version 1` printed.
    CargoMetadata {
        /// Its output.
        json: &'a str,
        /// The project's directory, absolute.
        root: &'a str,
    },
    /// The imports of all Python files.
    Python(&'a PythonImports),
    /// The runner finds out itself, or nobody does.
    Unknown,
}

/// The tests to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Affected {
    /// The runner.
    pub framework: Framework,
    /// Whether all tests are to be run; `selectors` is empty then.
    pub all: bool,
    /// Which ones otherwise.
    pub selectors: Vec<Selector>,
    /// Why these, or why all.
    pub reasons: Vec<String>,
    /// What is left out: test files or packages; not all of them if they are many.
    pub skipped: Vec<String>,
    /// How many are left out.
    pub skipped_count: u64,
}

/// Some tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Selector {
    /// All tests of a file.
    File(String),
    /// All tests of a Go package, by its directory within the project.
    Directory(String),
    /// All tests of a cargo package.
    Package(String),
    /// A nextest filter expression.
    Filter(String),
    /// The tests that the runner itself finds to be related to this source file.
    RelatedTo(String),
    /// One test, by the name that its runner calls it.
    Test(String),
}

/// The tests that a change can reach. Tests that failed before are always among them: they are what one wants to see.
pub fn affected(
    framework: Framework,
    changes: &Changes,
    dependencies: Dependencies<'_>,
    failed_before: &[String],
) -> Affected {
    let reached = if changes.is_cut() {
        Err("the change is too large to be looked through".to_owned())
    } else {
        reached(framework, changes, dependencies)
    };
    match reached {
        Err(reason) => Affected::everything(framework, reason),
        Ok(reach) => reach.with_failed(framework, failed_before),
    }
}

/// What a change reaches, or why that is not known.
type Reached = Result<Reach, String>;

#[derive(Debug, Default)]
struct Reach {
    selectors: Vec<Selector>,
    reasons: Vec<String>,
    skipped: Vec<String>,
}

fn reached(framework: Framework, changes: &Changes, dependencies: Dependencies<'_>) -> Reached {
    let mut files = Vec::new();
    let mut documents = 0;
    for file in changes.files() {
        match role(file) {
            Role::Build => return Err(format!("`{file}` changed, on which everything may depend")),
            Role::Document => documents += 1,
            Role::Other => files.push(file),
        }
    }
    let mut reach = match (framework, dependencies) {
        _ if files.is_empty() => Reach::default(),
        (Framework::Go, Dependencies::GoList { json, root }) => go::reach(&files, json, root)?,
        (Framework::CargoTest | Framework::Nextest, Dependencies::CargoMetadata { json, root }) => {
            cargo::reach(framework, &files, json, root)?
        }
        (Framework::Pytest | Framework::Unittest, Dependencies::Python(imports)) => {
            python::reach(&files, imports)?
        }
        (Framework::Jest | Framework::Vitest, _) => javascript::reach(&files, changes)?,
        _ => return Err(format!("which tests a change reaches is not known of {framework}")),
    };
    let told = match (files.len(), documents) {
        (0, 0) => "nothing changed".to_owned(),
        (0, _) => "only documents changed".to_owned(),
        (files, _) => count(files as u64, "file changed", "files changed"),
    };
    reach.reasons.insert(0, told);
    Ok(reach)
}

/// So many of those that are left out are named.
const NAMED: usize = 50;

impl Reach {
    fn with_failed(mut self, framework: Framework, failed_before: &[String]) -> Affected {
        if !failed_before.is_empty() {
            let failed =
                count(failed_before.len() as u64, "test that failed before", "tests that failed before");
            self.reasons.push(format!("and {failed}"));
        }
        match framework {
            // A filter is one expression.
            Framework::Nextest => {
                let tests = failed_before.iter().map(|name| Selector::Filter(format!("test(={name})")));
                self.selectors.extend(tests);
            }
            _ => self.selectors.extend(failed_before.iter().cloned().map(Selector::Test)),
        }
        self.selectors.sort();
        self.selectors.dedup();
        self.skipped.sort();
        let skipped_count = self.skipped.len() as u64;
        self.skipped.truncate(NAMED);
        Affected {
            framework,
            all: false,
            selectors: self.selectors,
            reasons: self.reasons,
            skipped: self.skipped,
            skipped_count,
        }
    }
}

impl Affected {
    fn everything(framework: Framework, reason: String) -> Self {
        let (selectors, skipped) = (Vec::new(), Vec::new());
        Self { framework, all: true, selectors, reasons: vec![reason], skipped, skipped_count: 0 }
    }

    /// Whether there is nothing to run.
    pub fn is_nothing(&self) -> bool {
        !self.all && self.selectors.is_empty()
    }

    /// For people: what is run, and why.
    pub fn words(&self) -> String {
        let why = self.reasons.join(", ");
        if self.all {
            return format!("all tests: {why}");
        }
        if self.selectors.is_empty() {
            return format!("no tests: {why}, and no test depends on it");
        }
        let of_graph = self.selectors.iter().filter(|selector| !matches!(selector, Selector::Test(_)));
        let (one, many) = match self.selectors.first() {
            Some(Selector::Directory(_) | Selector::Package(_)) => ("package", "packages"),
            Some(Selector::File(_)) => ("test file", "test files"),
            _ => return why,
        };
        let selected = of_graph.count() as u64;
        let known = selected + self.skipped_count;
        format!("{selected} of {}: {why}", count(known, one, many))
    }
}

#[cfg(test)]
mod tests;
