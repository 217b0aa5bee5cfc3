//! Which compilers and linters apply: those that somebody named, else those for which a project has a file.

mod go;
mod javascript;
mod jvm;
mod native;
mod others;
mod python;
mod rust;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use super::install::with_advice;
use super::reader::{Recognising, tool_of_command};
use super::{CheckRequest, Stage};
use crate::detect::{FIXTURES, Tree};
use crate::plan::Planner;
use crate::{
    Candidate, Confidence, DiagnosticParser, Evidence, Framework, Machine, RunPlan, Wish, parser_for,
};

/// More are not run: nobody waits for so many.
const MOST_CHECKS: usize = 100;
/// So many bytes of file names fit on a command line everywhere.
const MOST_NAMES: usize = 100 << 10;

/// A tool that applies, and how it is run.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// Which part of the check it is.
    pub stage: Stage,
    /// The tool.
    pub tool: String,
    /// Where it runs, relative to the repository; empty for its root.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub root: Utf8PathBuf,
    /// What speaks for it.
    pub evidence: Vec<Evidence>,
    /// What is run.
    pub plan: RunPlan,
    /// How its output is read.
    #[serde(skip)]
    output: Output,
    /// A directory for it alone.
    #[serde(skip)]
    pub(super) scratch: Utf8PathBuf,
}

#[derive(Debug, Clone)]
enum Output {
    /// In a form that we asked for, by the name of its parser.
    Known(&'static str),
    /// In the form that it shows, else as the tool with this name writes.
    Shown(String),
}

impl Check {
    pub(super) fn parser(&self) -> Box<dyn DiagnosticParser> {
        match &self.output {
            Output::Known(name) => parser_for(name),
            Output::Shown(name) => Box::new(Recognising::new(name.clone())),
        }
    }
}

/// All that applies, in the order in which it is to run.
pub(super) fn find(request: &CheckRequest, scratch: &Utf8Path) -> (Vec<Check>, Vec<String>) {
    let wants = |stage| request.stages.contains(&stage) && request.commands(stage).is_none();
    let looks = wants(Stage::Build) || wants(Stage::Lint);
    let tree = if looks { Tree::walk(&request.root) } else { Tree::none(&request.root) };
    let mut finder = Finder {
        tree: &tree,
        machine: &request.machine,
        repository: &request.root,
        scratch,
        checks: Vec::new(),
        notes: Vec::new(),
    };
    for stage in [Stage::Build, Stage::Lint].into_iter().filter(|stage| request.stages.contains(stage)) {
        for command in request.commands(stage).unwrap_or_default() {
            finder.add_command(stage, command);
        }
    }
    if looks {
        rust::find(&mut finder);
        go::find(&mut finder);
        javascript::find(&mut finder);
        python::find(&mut finder);
        jvm::find(&mut finder);
        native::find(&mut finder);
        others::find(&mut finder);
    }
    let Finder { mut checks, mut notes, .. } = finder;
    let named = |check: &Check| matches!(check.output, Output::Shown(_));
    checks.retain(|check| named(check) || wants(check.stage));
    if tree.cut {
        notes.push("the repository is very large or deep: only its upper part was looked at".to_owned());
    }
    if checks.len() > MOST_CHECKS {
        notes.push(format!("{} more tools are not run", checks.len() - MOST_CHECKS));
        checks.truncate(MOST_CHECKS);
    }
    (checks, notes)
}

/// What was found up to now.
struct Finder<'a> {
    tree: &'a Tree,
    machine: &'a Machine,
    repository: &'a Utf8Path,
    scratch: &'a Utf8Path,
    checks: Vec<Check>,
    notes: Vec<String>,
}

impl Finder<'_> {
    /// Adds a tool that runs in `root` as `plan` says. `output` is the name of its parser.
    fn add(
        &mut self,
        stage: Stage,
        tool: &str,
        output: &'static str,
        (root, file): (&Utf8Path, &str),
        plan: impl FnOnce(&Planner<'_>) -> RunPlan,
    ) {
        let evidence = vec![Evidence { file: root.join(file), what: String::new() }];
        let mut plan = self.plan(root, plan);
        plan.missing = plan.missing.map(|missing| with_advice(&missing, tool));
        let scratch = self.own_scratch();
        let output = Output::Known(output);
        self.checks.push(Check {
            stage,
            tool: tool.to_owned(),
            root: root.to_owned(),
            evidence,
            plan,
            output,
            scratch,
        });
    }

    /// Adds a command that somebody gave.
    fn add_command(&mut self, stage: Stage, command: &str) {
        let tool = tool_of_command(command);
        let plan = self.plan(Utf8Path::new(""), |planner| {
            let mut plan = planner.start(planner.find("sh"), "sh");
            plan.args(["-c", command]);
            plan
        });
        let scratch = self.own_scratch();
        let file = Utf8PathBuf::from(".rehearsal/config.yaml");
        let evidence = vec![Evidence { file, what: format!("check.{}", stage.name()) }];
        let output = Output::Shown(tool.clone());
        self.checks.push(Check { stage, tool, root: Utf8PathBuf::new(), evidence, plan, output, scratch });
    }

    fn own_scratch(&self) -> Utf8PathBuf {
        self.scratch.join(self.checks.len().to_string())
    }

    fn plan(&self, root: &Utf8Path, plan: impl FnOnce(&Planner<'_>) -> RunPlan) -> RunPlan {
        let candidate = Candidate::new(Framework::Generic, root, Confidence::Certain);
        let wish = Wish::default();
        plan(&Planner {
            machine: self.machine,
            repository: self.repository,
            scratch: &self.own_scratch(),
            wish: &wish,
            candidate: &candidate,
            root: if root.as_str().is_empty() {
                self.repository.to_owned()
            } else {
                self.repository.join(root)
            },
        })
    }

    /// The directories with one of these files that are not below another of them, each with its file.
    fn outermost<'n>(&self, names: &[&'n str]) -> Vec<(Utf8PathBuf, &'n str)> {
        let mut found: Vec<(Utf8PathBuf, &'n str)> = Vec::new();
        for (directory, _) in self.own_directories() {
            if found.iter().any(|(above, _)| directory.starts_with(above)) {
                continue;
            }
            if let Some(name) = self.tree.first_of(directory, names) {
                found.push((directory.to_owned(), name));
            }
        }
        found
    }

    /// Directories that are not the material of tests.
    fn own_directories(&self) -> impl Iterator<Item = (&Utf8Path, &[String])> {
        let is_fixture = |path: &Utf8Path| path.components().any(|part| FIXTURES.contains(&part.as_str()));
        self.tree.directories().filter(move |(path, _)| !is_fixture(path))
    }

    /// The files below with one of these endings, relative to `root`.
    fn files_below(&self, root: &Utf8Path, endings: &[&str]) -> Vec<String> {
        let below = self.own_directories().filter(|(path, _)| path.starts_with(root));
        let ends = |name: &&String| endings.iter().any(|ending| name.ends_with(ending));
        let named = below.flat_map(|(path, files)| {
            let directory = path.strip_prefix(root).unwrap_or(path);
            files.iter().filter(ends).map(|name| directory.join(name).into_string()).collect::<Vec<_>>()
        });
        // No line of a list and no option is to come out of a name.
        let plain = |name: String| if name.starts_with('-') { format!("./{name}") } else { name };
        named.filter(|name| !name.contains('\n')).map(plain).collect()
    }

    /// As many of these files as fit on a command line.
    fn on_a_line(&mut self, tool: &str, mut files: Vec<String>) -> Vec<String> {
        let mut room = MOST_NAMES;
        let fits = files.iter().take_while(|name| {
            room = room.saturating_sub(name.len() + 1);
            room > 0
        });
        let fits = fits.count();
        if fits < files.len() {
            self.notes.push(format!("{tool} looks at the first {fits} of {} files", files.len()));
            files.truncate(fits);
        }
        files
    }
}
