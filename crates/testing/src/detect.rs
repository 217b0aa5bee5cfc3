//! Which tests a repository has: found by the files with which projects describe themselves.
//!
//! Every project is a [`Candidate`] with the evidence for it. One that is not to be run (another runner of the same
//! project decides, or a project above runs its tests too) stays in the list, with the reason.

mod candidate;
mod cargo;
mod cmake;
mod dotnet;
pub(crate) mod file;
mod go;
mod jvm;
mod node;
mod perl;
mod php;
mod python;
mod ruby;
mod script;
mod shell;
mod tasks;
mod tree;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

pub use candidate::Candidate;
pub(crate) use candidate::{Confidence, Evidence, Invocation};
pub(crate) use cmake::BUILD_DIRECTORIES;
pub(crate) use tree::Tree;

use crate::Framework;

/// Projects in such directories are the material of other projects' tests.
pub(crate) const FIXTURES: [&str; 4] = ["testdata", "fixtures", "__fixtures__", "test-fixtures"];
/// More are not listed: nobody runs the tests of so many projects at once.
const MOST_CANDIDATES: usize = 1000;

/// What was found in a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Detection {
    /// What can be run, and what was passed over and why, upper directories first.
    pub candidates: Vec<Candidate>,
    /// What was odd on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Detection {
    /// What to run when nobody says otherwise.
    pub fn chosen(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(|candidate| candidate.passed_over.is_none())
    }

    /// What to run with a runner that somebody chose: everything found for it, whatever was preferred; if there is
    /// nothing, the whole repository, on that word alone.
    pub fn chosen_by(&self, framework: Framework) -> Vec<Candidate> {
        let of_framework = |it: &&Candidate| it.framework == framework;
        let chosen: Vec<_> = self.chosen().filter(of_framework).cloned().collect();
        if !chosen.is_empty() {
            return chosen;
        }
        match self.candidates.iter().find(of_framework) {
            Some(passed_over) => vec![Candidate { passed_over: None, ..passed_over.clone() }],
            None => vec![Candidate::new(framework, Utf8Path::new(""), Confidence::Certain)],
        }
    }
}

/// Looks for tests. `has_program` says whether a program is installed.
pub fn detect(root: &Utf8Path, has_program: &dyn Fn(&str) -> bool) -> Detection {
    let tree = Tree::walk(root);
    let mut found = Found { tree: &tree, candidates: Vec::new(), notes: Vec::new() };
    go::detect(&mut found);
    node::detect(&mut found);
    python::detect(&mut found);
    cargo::detect(&mut found, has_program);
    jvm::detect(&mut found);
    ruby::detect(&mut found);
    php::detect(&mut found);
    dotnet::detect(&mut found);
    cmake::detect(&mut found);
    shell::detect(&mut found);
    perl::detect(&mut found);
    tasks::detect(&mut found);
    found.settle()
}

/// Where cargo is called: packages and workspaces that are no members of another.
pub(crate) fn cargo_roots(tree: &Tree) -> Vec<Utf8PathBuf> {
    let mut found = Found { tree, candidates: Vec::new(), notes: Vec::new() };
    cargo::detect(&mut found, &|_| false);
    found.settle().chosen().map(|candidate| candidate.root.clone()).collect()
}

/// What the detectors have found so far.
struct Found<'a> {
    tree: &'a Tree,
    candidates: Vec<Candidate>,
    notes: Vec<String>,
}

impl Found<'_> {
    fn add(&mut self, candidate: Candidate) {
        self.candidates.push(candidate);
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MOST_CANDIDATES {
            self.notes.push(note);
        }
    }

    /// Whether something is run in this directory already.
    fn is_run(&self, directory: &Utf8Path) -> bool {
        self.candidates.iter().any(|it| it.root == directory && it.passed_over.is_none())
    }

    /// A command of the project most likely calls the runner that was found beside it.
    fn runners_before_commands(&mut self) {
        let is_runner = |it: &Candidate| it.framework != Framework::Generic && it.passed_over.is_none();
        let runners: Vec<_> =
            self.candidates.iter().filter(|it| is_runner(it)).map(|it| it.root.clone()).collect();
        for candidate in &mut self.candidates {
            let is_command = candidate.framework == Framework::Generic && candidate.passed_over.is_none();
            if is_command && runners.contains(&candidate.root) {
                candidate.passed_over =
                    Some("a runner was found in the same directory, and tells more".to_owned());
            }
        }
    }

    fn settle(mut self) -> Detection {
        for candidate in &mut self.candidates {
            let fixture = candidate.root.components().find(|part| FIXTURES.contains(&part.as_str()));
            if let (Some(part), None) = (fixture, &candidate.passed_over) {
                candidate.passed_over = Some(format!("it is in a directory of fixtures (`{part}`)"));
            }
        }
        self.runners_before_commands();
        // The sort is stable: what is run of a directory comes first, then as the detectors found it.
        self.candidates
            .sort_by(|a, b| (&a.root, a.passed_over.is_some()).cmp(&(&b.root, b.passed_over.is_some())));
        if self.tree.cut {
            self.notes
                .push("the repository is very large or deep: only its upper part was looked at".to_owned());
        }
        if self.candidates.len() > MOST_CANDIDATES {
            let more = self.candidates.len() - MOST_CANDIDATES;
            self.notes.push(format!("{more} more projects are not listed"));
            self.candidates.truncate(MOST_CANDIDATES);
        }
        Detection { candidates: self.candidates, notes: self.notes }
    }
}

#[cfg(test)]
mod tests;
