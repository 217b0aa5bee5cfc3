//! Which tests a change can reach. When it is not sure, more are run, and it is said why.
//!
//! **Invariant:** pure. What a graph is made of (the answers of `go list` and `cargo metadata`, Python's sources) is handed in.

mod cargo;
mod go;
mod graph;
mod javascript;
mod project_files;
mod python;

use camino::Utf8Path;
use rehearsal_core::TestResult;
use serde::{Deserialize, Serialize};

pub(crate) use python::PythonImports;

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
    /// Who knows was asked in vain; this is why.
    NotTold(&'a str),
    /// The runner finds out itself, or nobody does.
    Unknown,
}

/// The tests to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// How many are left out, as far as that is known: a runner that selects by itself does not tell.
    pub skipped_by_selection: u64,
}

/// Some tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Selector {
    /// All tests of a file.
    File(String),
    /// All tests of a Go package, by its directory within the project.
    Directory(String),
    /// All tests of a cargo package.
    Package(String),
    /// The tests that the runner itself finds to be related to this source file.
    RelatedTo(String),
    /// One test, as its runner calls it.
    Test {
        /// What its name is unique in.
        package: String,
        /// Its name.
        name: String,
    },
}

/// The tests that a change can reach, of the project at this place in the repository that changed. Tests that failed
/// before are always among them: they are what one wants to see.
pub fn affected(
    framework: Framework,
    changes: &Changes,
    place: &Utf8Path,
    dependencies: Dependencies<'_>,
    failed_before: &[TestResult],
) -> Affected {
    let reached = changed_in(changes, place)
        .and_then(|changed| reached(framework, &changed, dependencies, failed_before));
    match reached {
        Err(reason) => Affected::everything(framework, reason),
        Ok(reach) if reach.selectors.len() > MOST_SELECTORS => {
            Affected::everything(framework, "too much is reached to be named".to_owned())
        }
        Ok(reach) => reach.told(framework),
    }
}

/// More do not fit on a command line.
const MOST_SELECTORS: usize = 2000;

/// Whether the answer depends on who depends on whom: that takes time to find out.
pub fn needs_dependencies(
    framework: Framework,
    changes: &Changes,
    place: &Utf8Path,
    failed_before: &[TestResult],
) -> bool {
    let has_graph = matches!(
        framework,
        Framework::Go | Framework::CargoTest | Framework::Nextest | Framework::Pytest | Framework::Unittest
    );
    let changed = changed_in(changes, place);
    has_graph && changed.is_ok_and(|changed| !changed.files.is_empty() || !failed_before.is_empty())
}

struct Changed {
    /// Named within the project.
    changes: Changes,
    /// Those that tests can depend on.
    files: Vec<String>,
    /// How many others there are.
    documents: usize,
}

/// Sorts the changed files; an error if any of them may concern every test.
fn changed_in(changes: &Changes, place: &Utf8Path) -> Result<Changed, String> {
    if changes.is_cut() {
        return Err("the change is too large to be looked through".to_owned());
    }
    let below = changes.below(place);
    let is_build = |file: &&str| role(file) == Role::Build;
    if let Some(file) = below.files().find(is_build).or_else(|| changes.files().find(is_build)) {
        return Err(format!("`{file}` changed, on which everything may depend"));
    }
    let outside = |file: &&str| Utf8Path::new(file).strip_prefix(place).is_err();
    if let Some(file) = changes.files().find(|file| outside(file) && role(file) != Role::Document) {
        return Err(format!("`{file}` changed outside of this project, which may depend on it"));
    }
    let (documents, files): (Vec<&str>, Vec<&str>) =
        below.files().partition(|file| role(file) == Role::Document);
    let (documents, files) = (documents.len(), files.into_iter().map(str::to_owned).collect());
    Ok(Changed { changes: below, files, documents })
}

/// What a change reaches, or why that is not known.
type Reached = Result<Reach, String>;

#[derive(Debug, Default)]
struct Reach {
    selectors: Vec<Selector>,
    reasons: Vec<String>,
    skipped: Vec<String>,
    /// How many tests that failed before are among them for that alone.
    failed_before: usize,
}

fn reached(
    framework: Framework,
    changed: &Changed,
    dependencies: Dependencies<'_>,
    failed_before: &[TestResult],
) -> Reached {
    let files: Vec<&str> = changed.files.iter().map(String::as_str).collect();
    let mut reach = match (framework, dependencies) {
        _ if files.is_empty() && failed_before.is_empty() => Reach::default(),
        (_, Dependencies::NotTold(why)) => return Err(why.to_owned()),
        (Framework::Go, Dependencies::GoList { json, root }) => go::reach(&files, failed_before, json, root)?,
        (Framework::CargoTest | Framework::Nextest, Dependencies::CargoMetadata { json, root }) => {
            cargo::reach(framework, &files, failed_before, json, root)?
        }
        (Framework::Pytest | Framework::Unittest, Dependencies::Python(imports)) => {
            python::reach(framework, &files, failed_before, imports)?
        }
        (Framework::Jest | Framework::Vitest, _) => {
            javascript::reach(&files, failed_before, &changed.changes)?
        }
        _ if files.is_empty() => Reach::of_failed(failed_before),
        _ => return Err(format!("which tests a change reaches is not known of {framework}")),
    };
    let when = changed.changes.since_words();
    let told = match (files.len(), changed.documents) {
        (0, 0) => format!("nothing changed {when}"),
        (0, _) => format!("only documents changed {when}"),
        (files, _) => format!("{} changed {when}", count(files as u64, "file", "files")),
    };
    reach.reasons.insert(0, told);
    if reach.selectors.is_empty() && !files.is_empty() {
        reach.reasons.push("and no test depends on it".to_owned());
    }
    Ok(reach)
}

/// So many of those that are left out are named.
const NAMED: usize = 50;

impl Reach {
    /// Nothing but the tests that failed before, one by one.
    fn of_failed(failed_before: &[TestResult]) -> Self {
        let selectors = failed_before.iter().map(Selector::of).collect();
        Self { selectors, failed_before: failed_before.len(), ..Self::default() }
    }

    fn told(mut self, framework: Framework) -> Affected {
        if self.failed_before > 0 {
            let (one, many) = ("test that failed before", "tests that failed before");
            self.reasons.push(format!("and {}", count(self.failed_before as u64, one, many)));
        }
        self.selectors.sort();
        self.selectors.dedup();
        self.skipped.sort();
        let skipped_by_selection = self.skipped.len() as u64;
        self.skipped.truncate(NAMED);
        Affected {
            framework,
            all: false,
            selectors: self.selectors,
            reasons: self.reasons,
            skipped: self.skipped,
            skipped_by_selection,
        }
    }
}

impl Selector {
    fn of(test: &TestResult) -> Self {
        Self::Test { package: test.package.clone(), name: test.name.clone() }
    }
}

impl Affected {
    /// All tests, and why.
    pub fn everything(framework: Framework, reason: String) -> Self {
        let (selectors, skipped) = (Vec::new(), Vec::new());
        Self { framework, all: true, selectors, reasons: vec![reason], skipped, skipped_by_selection: 0 }
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
            return format!("no tests: {why}");
        }
        let is_single = |selector: &&Selector| matches!(selector, Selector::Test { .. });
        let of_graph: Vec<&Selector> = self.selectors.iter().filter(|it| !is_single(it)).collect();
        let (one, many) = match of_graph.last() {
            None => return format!("{}: {why}", count(self.selectors.len() as u64, "test", "tests")),
            Some(Selector::RelatedTo(_)) => {
                return format!("what {} finds related: {why}", self.framework);
            }
            Some(Selector::Directory(_) | Selector::Package(_)) => ("package", "packages"),
            Some(_) => ("test file", "test files"),
        };
        let selected = of_graph.len() as u64;
        let known = count(selected + self.skipped_by_selection, one, many);
        format!("{selected} of {known}: {why}")
    }

    /// For people: what is not run; nothing if that is not known.
    pub fn skipped_words(&self) -> Option<String> {
        const SHOWN: usize = 5;
        let shown = self.skipped.get(..SHOWN.min(self.skipped.len())).unwrap_or_default().join(", ");
        match self.skipped_by_selection.saturating_sub(SHOWN as u64) {
            _ if shown.is_empty() => None,
            0 => Some(shown),
            more => Some(format!("{shown} and {more} more")),
        }
    }
}

#[cfg(test)]
mod tests;
