//! From a project and a wish to a command: which program, with which arguments, and where its results will be.
//!
//! Runners are called themselves, not through scripts (`lint && jest` would give our options to the linter), and with
//! the most telling output that they have. A plan can be shown before it is run.

mod cargo;
mod command;
mod coverage;
mod dotnet;
mod go;
mod javascript;
mod jvm;
mod machine;
mod native;
mod php;
mod python;
mod ruby;
mod select;
mod shell;

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

pub(crate) use cargo::cargo;
pub(crate) use coverage::{CoverageFile, CoverageFormat};
pub(crate) use javascript::{linked, program as node_program, version as node_version};
pub(crate) use jvm::start as jvm_start;
pub use machine::Machine;
pub(crate) use python::{start as python, tool as python_tool};
pub(crate) use ruby::bundled;
pub use select::Pattern;
pub(crate) use select::Selection;

use crate::reporters::{EnvChange, Injection};
use crate::{Candidate, Framework};

/// What to run, and how to understand it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunPlan {
    /// The runner.
    pub framework: Framework,
    /// Where it runs.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub root: Utf8PathBuf,
    /// What is run before it; if one of these fails, the tests are not built.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<CommandLine>,
    /// What is run.
    pub command: CommandLine,
    /// Variables that it gets beside those of the machine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Files of ours that it is given (our reporters), in the scratch directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PlannedFile>,
    /// A file that grows while it runs and tells what happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub events: Option<Utf8PathBuf>,
    /// Reports that it leaves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<ReportFiles>,
    /// Whether both of its streams go into one: its text makes sense only in the order in which it was printed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merge_stderr: bool,
    /// The first signal when its time is over.
    pub first_signal: FirstSignal,
    /// Directories outside of the scratch that must be writable: caches and build output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub writable: Vec<Utf8PathBuf>,
    /// Directories outside of the repository that must be readable: environments and modules that it refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub readable: Vec<Utf8PathBuf>,
    /// Where coverage will be, if it was asked for and can be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<CoverageFile>,
    /// Why it cannot run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Whether only some of the tests are wanted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub selected: bool,
    /// Whether it is no fault if there is nothing to run (doctests beside tests).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_empty: bool,
    /// What the reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandLine {
    /// A path, or a name that could not be found.
    pub program: String,
    /// As they are; no shell reads them.
    pub args: Vec<String>,
}

impl CommandLine {
    pub(crate) fn new<A: Into<String>>(
        program: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self { program: program.into(), args: args.into_iter().map(Into::into).collect() }
    }
}

/// As a shell would take it.
impl std::fmt::Display for CommandLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&quoted(&self.program))?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

fn quoted(word: &str) -> std::borrow::Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "_-+=:,./@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''")).into()
}

/// A file that is written before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedFile {
    /// Where.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: Utf8PathBuf,
    /// What is in it.
    #[serde(skip)]
    pub content: String,
}

/// Reports that a run leaves; those older than its start are not its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportFiles {
    /// A file, or a directory to look in.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: Utf8PathBuf,
    /// In a directory: which files, at any depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
}

/// The signal that makes a runner say most before it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FirstSignal {
    /// Go prints the stacks of all goroutines.
    Quit,
    /// pytest writes its reports.
    Interrupt,
    /// Everybody else.
    Terminate,
}

/// What is wanted of a run.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Which tests.
    pub selection: Selection,
    /// How many at a time.
    pub parallel: Option<u32>,
    /// Whether to measure coverage.
    pub coverage: bool,
}

/// All that planning looks at.
pub(crate) struct Planner<'a> {
    /// Programs and variables.
    pub machine: &'a Machine,
    /// The repository.
    pub repository: &'a Utf8Path,
    /// A directory for this run alone; it need not exist while planning.
    pub scratch: &'a Utf8Path,
    pub wish: &'a Wish,
    pub candidate: &'a Candidate,
    /// The candidate's root, absolute.
    pub root: Utf8PathBuf,
}

/// The commands that run a project's tests, in their order. There is always one, even if it cannot run.
pub fn plan(
    candidate: &Candidate,
    wish: &Wish,
    machine: &Machine,
    repository: &Utf8Path,
    scratch: &Utf8Path,
) -> Vec<RunPlan> {
    let root = if candidate.root.as_str().is_empty() {
        repository.to_owned()
    } else {
        repository.join(&candidate.root)
    };
    let planner = Planner { machine, repository, scratch, wish, candidate, root };
    let mut plans = match candidate.framework {
        _ if candidate.invocation.shell.is_some() => vec![command::plan(&planner)],
        Framework::Go => vec![go::plan(&planner)],
        Framework::Jest => vec![javascript::jest(&planner)],
        Framework::Vitest => vec![javascript::vitest(&planner)],
        Framework::Mocha => vec![javascript::mocha(&planner)],
        Framework::NodeTest => vec![javascript::node_test(&planner)],
        Framework::Ava => vec![javascript::ava(&planner)],
        Framework::Bun => vec![javascript::bun(&planner)],
        Framework::Deno => vec![javascript::deno(&planner)],
        Framework::Pytest => vec![python::pytest(&planner)],
        Framework::Unittest => vec![python::unittest(&planner)],
        Framework::CargoTest => vec![cargo::cargo_test(&planner)],
        Framework::Nextest => cargo::nextest(&planner),
        Framework::Maven => vec![jvm::maven(&planner)],
        Framework::Gradle => vec![jvm::gradle(&planner)],
        Framework::Rspec => vec![ruby::rspec(&planner)],
        Framework::Minitest => vec![ruby::minitest(&planner)],
        Framework::Phpunit => vec![php::phpunit(&planner)],
        Framework::Dotnet => vec![dotnet::plan(&planner)],
        Framework::Ctest => vec![native::ctest(&planner)],
        Framework::Bats => vec![shell::bats(&planner)],
        Framework::Tap => vec![shell::prove(&planner)],
        Framework::Exunit => vec![shell::mix(&planner)],
        Framework::Busted => vec![shell::busted(&planner)],
        Framework::Junit | Framework::Gtest | Framework::Catch2 | Framework::Generic | Framework::Several => {
            vec![command::plan(&planner)]
        }
    };
    for plan in &mut plans {
        for (name, value) in &candidate.invocation.env {
            plan.env.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    plans
}

impl Planner<'_> {
    /// A plan with a program that may not be there; `name` is what people call it.
    pub(crate) fn start(&self, program: Option<Utf8PathBuf>, name: &str) -> RunPlan {
        let missing = program.is_none().then(|| format!("`{name}` is not installed"));
        let program = program.map_or_else(|| name.to_owned(), Utf8PathBuf::into_string);
        RunPlan {
            framework: self.candidate.framework,
            root: self.root.clone(),
            prepare: Vec::new(),
            command: CommandLine { program, args: Vec::new() },
            env: BTreeMap::new(),
            files: Vec::new(),
            events: None,
            reports: Vec::new(),
            merge_stderr: false,
            first_signal: FirstSignal::Terminate,
            writable: Vec::new(),
            readable: Vec::new(),
            coverage: None,
            missing,
            selected: !self.selection().is_everything(),
            may_be_empty: false,
            notes: Vec::new(),
        }
    }

    pub(crate) fn find(&self, program: &str) -> Option<Utf8PathBuf> {
        self.machine.find(program, &self.root)
    }

    /// The arguments that the project itself gives its runner.
    fn own_args(&self) -> impl Iterator<Item = String> + '_ {
        self.candidate.invocation.args.iter().cloned()
    }

    fn targets(&self) -> &[String] {
        &self.candidate.invocation.targets
    }

    fn selection(&self) -> &Selection {
        &self.wish.selection
    }

    /// Says that coverage was asked for in vain.
    fn no_coverage(&self, plan: &mut RunPlan, name: &str) {
        if self.wish.coverage {
            plan.note(format!("no coverage: {name} has none that can be asked for from outside"));
        }
    }

    /// Says that tests were excluded in vain.
    fn cannot_leave_out(&self, plan: &mut RunPlan, name: &str) {
        if !self.selection().exclude.is_empty() {
            plan.note(format!("{name} cannot leave tests out by name: the excluded ones are run too"));
        }
    }

    /// A file in the scratch directory.
    fn scratch(&self, name: &str) -> Utf8PathBuf {
        self.scratch.join(name)
    }
}

impl RunPlan {
    pub(crate) fn arg(&mut self, arg: impl Into<String>) {
        self.command.args.push(arg.into());
    }

    pub(crate) fn args<A: Into<String>>(&mut self, args: impl IntoIterator<Item = A>) {
        self.command.args.extend(args.into_iter().map(Into::into));
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.env.insert(name.to_owned(), value.into());
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    fn reads(&mut self, path: Utf8PathBuf) {
        self.reports.push(ReportFiles { path, glob: None });
    }

    /// Puts our reporter into the runner.
    fn inject(&mut self, planner: &Planner<'_>, version: Option<&str>) {
        let events = planner.scratch("events.jsonl");
        let Some(injection) = Injection::of(self.framework, version, planner.scratch, &events) else {
            return;
        };
        for (name, content) in injection.files {
            self.files.push(PlannedFile { path: planner.scratch.join(name), content: content.to_owned() });
        }
        for (name, change) in injection.env {
            let value = match change {
                EnvChange::Set(value) => value,
                EnvChange::PrependPath(path) => match planner.machine.variable(name) {
                    Some(rest) if !rest.is_empty() => format!("{path}:{rest}"),
                    _ => path,
                },
            };
            self.env.insert(name.to_owned(), value);
        }
        self.args(injection.args);
        self.events = Some(events);
    }
}

#[cfg(test)]
mod tests;
