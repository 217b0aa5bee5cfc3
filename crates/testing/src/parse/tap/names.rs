//! What a result is called, and what it is a result of, by dialect.

use super::dialect::Dialect;
use super::failure::Told;
use super::line::{Directive, Point};
use super::reader::{Held, problem};
use crate::parse::frames::{Deepest, is_source, place_in};
use crate::{FailureKind, Place, Problem, ProblemScope, TestId, TestStatus};

#[derive(Debug)]
pub(super) struct Names {
    dialect: Dialect,
    /// The file that the results are of, where it is told.
    pub suite: String,
    /// The groups in braces that are open.
    groups: Vec<Group>,
    /// The tests and suites that were announced, by depth.
    announced: Vec<String>,
    /// Whether results end with the time they took; the first one tells.
    timed: Option<bool>,
}

#[derive(Debug)]
pub(super) struct Group {
    pub name: String,
    pub ok: bool,
}

/// A test's identity, in words of our own keeping.
#[derive(Debug)]
pub(super) struct Named {
    suite: String,
    name: String,
}

impl Named {
    pub(super) fn id(&self) -> TestId<'_> {
        TestId { suite: &self.suite, name: &self.name }
    }
}

impl Names {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, suite: String::new(), groups: Vec::new(), announced: Vec::new(), timed: None }
    }

    /// Whether the results at the top are the tests, and those inside only parts of them.
    pub(super) fn top_results_are_tests(&self) -> bool {
        !matches!(self.dialect, Dialect::NodeTest | Dialect::Vitest)
    }

    /// A result's name, why it is as it is, its status, and how long it took.
    pub(super) fn describe(&mut self, point: &Point<'_>, number: u64) -> (String, String, TestStatus, u64) {
        let mut name = point.name;
        let mut ms = point.ms.unwrap_or(0);
        if self.dialect == Dialect::Bats {
            let timed = name.strip_suffix("ms").and_then(|name| name.rsplit_once(" in "));
            let timed = timed.and_then(|(name, ms)| Some((name, ms.parse::<u64>().ok()?)));
            if let Some((before, took)) = timed.filter(|_| *self.timed.get_or_insert(true)) {
                (name, ms) = (before, took);
            }
            self.timed.get_or_insert(false);
        }
        let (mut status, mut reason) = self.status(point);
        if self.dialect == Dialect::Pytest
            && let Some((before, why)) = name.split_once(" # ")
        {
            (name, reason) = (before, why.to_owned());
        }
        // What busted left out has its name where the reason belongs.
        if name.is_empty() && self.dialect == Dialect::Busted {
            return (reason, String::new(), status, ms);
        }
        if name.is_empty() {
            return (format!("test {number}"), reason, status, ms);
        }
        if status == TestStatus::Fail && point.ok {
            status = TestStatus::Pass;
        }
        (self.unescaped(name), reason, status, ms)
    }

    fn status(&self, point: &Point<'_>) -> (TestStatus, String) {
        let plain = if point.ok { TestStatus::Pass } else { TestStatus::Fail };
        match point.directive {
            Directive::None => (plain, String::new()),
            Directive::Skip(why) => (TestStatus::Skip, why.trim_matches('-').trim().to_owned()),
            Directive::Todo(why) if self.dialect == Dialect::Pytest => {
                let status = if point.ok { TestStatus::Pass } else { TestStatus::Xfail };
                (status, why.to_owned())
            }
            Directive::Todo(why) => (TestStatus::Skip, format!("TODO {why}").trim_end().to_owned()),
        }
    }

    fn unescaped(&self, name: &str) -> String {
        match self.dialect {
            Dialect::NodeTest | Dialect::Vitest => {
                name.replace("\\#", "#").replace("\\\\", "\\").replace("\\n", "\n").replace("\\t", "\t")
            }
            Dialect::Pytest => of_pytest(name),
            _ => name.replace("\\#", "#"),
        }
    }

    /// Something was announced: it is running now.
    pub(super) fn begin(&mut self, name: &str, depth: usize) -> Option<Named> {
        if self.dialect != Dialect::NodeTest {
            return None;
        }
        let name = self.unescaped(name);
        self.announced.truncate(depth);
        self.announced.resize(depth, String::new());
        self.announced.push(name.clone());
        Some(self.of(&name, depth, Place::default()))
    }

    /// The identity of a result.
    pub(super) fn of(&self, name: &str, depth: usize, at: Place<'_>) -> Named {
        match self.dialect {
            Dialect::NodeTest => {
                let above = self.announced.iter().take(depth);
                let (files, groups): (Vec<_>, Vec<_>) = above.partition(|name| is_file(name));
                let path = groups.into_iter().map(String::as_str).chain([name]).collect::<Vec<_>>();
                let suite = files.first().map_or(String::new(), |file| (*file).clone());
                Named { suite, name: path.join(" > ") }
            }
            Dialect::Vitest => self.of_vitest(name),
            Dialect::Pytest => {
                let suite = name.split("::").next().unwrap_or_default().to_owned();
                Named { suite, name: name.to_owned() }
            }
            Dialect::Bats => Named { suite: at.file.unwrap_or_default().to_owned(), name: name.to_owned() },
            _ => Named { suite: self.suite.clone(), name: name.to_owned() },
        }
    }

    fn of_vitest(&self, name: &str) -> Named {
        let inner = self.groups.iter().skip(1).map(|group| group.name.as_str());
        let path = match name.split_once(" > ").filter(|(file, _)| self.groups.is_empty() && is_source(file))
        {
            Some((file, path)) => return Named { suite: file.to_owned(), name: path.replace(" > ", " ") },
            None => inner.chain([name]).collect::<Vec<_>>().join(" "),
        };
        Named { suite: self.suite.clone(), name: path }
    }

    pub(super) fn open(&mut self, name: &str, ok: bool) {
        let name = self.unescaped(name);
        if self.groups.is_empty() {
            self.suite.clone_from(&name);
        }
        self.groups.push(Group { name, ok });
    }

    pub(super) fn close(&mut self) -> Option<Group> {
        self.groups.pop()
    }

    pub(super) fn open_groups(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn all_closed(&self) -> bool {
        self.groups.is_empty()
    }

    /// The file that a test's name tells.
    pub(super) fn file_of(&self, name: &str) -> Option<String> {
        let file = name.split_once("::").filter(|_| self.dialect == Dialect::Pytest)?.0;
        Some(file.to_owned())
    }

    /// Deno names each file before its tests.
    pub(super) fn is_file_heading(&self, comment: &str) -> bool {
        self.dialect == Dialect::Deno && comment.starts_with(['.', '/', 'f']) && is_source(comment)
    }

    /// What is wrong with a file or a hook, if the result is of one.
    pub(super) fn problem_of(&self, held: &Held, told: &Told) -> Option<Problem> {
        match self.dialect {
            Dialect::NodeTest if is_file(&held.name) => Some(of_node_file(held)),
            Dialect::Vitest
                if self.groups.is_empty() && is_source(&held.name) && !held.name.contains(" > ") =>
            {
                Some(placed(ProblemScope::Suite, held, told, FailureKind::Import))
            }
            Dialect::Bats if held.name == "setup_file failed" || held.name == "teardown_file failed" => {
                let kind =
                    if held.name.starts_with("setup") { FailureKind::Setup } else { FailureKind::Teardown };
                let mut problem = placed(ProblemScope::Suite, held, told, kind);
                problem.message = format!("{}\n{}", held.name, told.message);
                problem.name = told.file.clone().unwrap_or_else(|| held.name.clone());
                Some(problem)
            }
            Dialect::Ava if held.name.contains(" exited with a non-zero exit code") => {
                Some(placed(ProblemScope::Suite, held, told, FailureKind::Crash))
            }
            _ => None,
        }
    }
}

/// Whether this names a file and not a test.
pub(super) fn is_file(name: &str) -> bool {
    is_source(name) && !name.contains(' ') && (name.contains('/') || name.contains(".test."))
}

fn placed(scope: ProblemScope, held: &Held, told: &Told, kind: FailureKind) -> Problem {
    let message = if told.message.is_empty() { "it could not be run" } else { &told.message };
    let mut problem = problem(scope, held.name.clone(), kind, message.to_owned());
    let named = Some(held.name.clone()).filter(|name| is_source(name));
    (problem.file, problem.line) = (told.file.clone().or(named), told.line);
    problem
}

/// Node runs each file in a process of its own, and tells what it printed before its result.
fn of_node_file(held: &Held) -> Problem {
    let said = held.before.trim();
    let how = match (held.yaml.get(&["exitCode"]), held.yaml.get(&["signal"])) {
        (_, Some(signal)) => format!("the file was ended by {signal}"),
        (Some(code), None) => format!("the file ended with exit code {code}"),
        (None, None) => held.yaml.get(&["error"]).unwrap_or("the file failed").to_owned(),
    };
    let kind = if said.contains("SyntaxError") {
        FailureKind::Compile
    } else if said.contains("Cannot find ") || said.contains("ERR_MODULE_NOT_FOUND") {
        FailureKind::Import
    } else {
        FailureKind::Crash
    };
    let message = if said.is_empty() { how } else { format!("{said}\n{how}") };
    let mut problem = problem(ProblemScope::Suite, held.name.clone(), kind, message);
    let at = place_in(said, Deepest::First);
    problem.file =
        at.and_then(|at| at.file).map_or_else(|| Some(held.name.clone()), |file| Some(file.to_owned()));
    problem.line = at.and_then(|at| at.line);
    problem
}

/// pytest's plug-in writes `TestGroup.test_key` where pytest itself writes `TestGroup::test_key`.
fn of_pytest(name: &str) -> String {
    let Some((file, rest)) = name.split_once(".py::") else { return name.to_owned() };
    let (path, parameters) = rest.split_at(rest.find('[').unwrap_or(rest.len()));
    format!("{file}.py::{}{parameters}", path.replace('.', "::"))
}
