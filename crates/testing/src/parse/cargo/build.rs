//! Builds by cargo that fail: what rustc says, in text or JSON, and what cargo says itself.

use crate::diagnostics::{Diagnostic, RustcText, Severity, compiler_message};
use crate::{Event, FailureKind, Problem, ProblemScope, Sink};

/// More errors than this help nobody.
const MOST_ERRORS: usize = 200;
/// Lines that go with one error of cargo's own.
const MOST_CAUSES: usize = 30;

/// Collects errors of a build until it is known that it failed: a test may print what looks like one.
#[derive(Debug, Default)]
pub(in crate::parse) struct Build {
    text: RustcText,
    errors: Vec<Diagnostic>,
    /// Whether an error of cargo's own stands last, so that what follows are its causes.
    causes: Option<usize>,
    phase: Phase,
    /// Whether cargo said that something could not be compiled.
    failed: bool,
    package: String,
}

#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
enum Phase {
    #[default]
    Building,
    Built,
}

impl Build {
    /// Takes a line that stands outside of any test.
    pub(in crate::parse) fn line(&mut self, line: &str) {
        let begins = ["Compiling ", "Checking ", "Updating ", "Blocking "];
        let ends = ["Finished ", "Running ", "Doc-tests ", "Nextest run ID ", "Starting "];
        let word = line.trim_start();
        if line.starts_with("  ") && begins.iter().any(|begin| word.starts_with(begin)) {
            self.phase = Phase::Building;
        } else if line.starts_with(' ') && ends.iter().any(|end| word.starts_with(end)) {
            self.tests_begin();
        }
        if self.phase == Phase::Built {
            return;
        }
        if let Some(rest) = line.strip_prefix("error: could not compile `") {
            self.failed = true;
            rest.split('`').next().unwrap_or_default().clone_into(&mut self.package);
        }
        self.cause(line);
        if let Some(diagnostic) = self.text.line(line) {
            self.keep(diagnostic);
        }
    }

    /// Takes a line of `--message-format=json`.
    pub(in crate::parse) fn json(&mut self, line: &str) {
        if let Some(diagnostic) = compiler_message(line) {
            self.failed |= diagnostic.severity == Severity::Error;
            self.keep(diagnostic);
        }
    }

    /// Tests run: what could be built is built.
    pub(in crate::parse) fn tests_begin(&mut self) {
        if let Some(diagnostic) = self.text.end() {
            self.keep(diagnostic);
        }
        self.phase = Phase::Built;
    }

    /// Tells the errors if the build failed, or if nothing else came.
    pub(in crate::parse) fn end(&mut self, tests_ran: bool, sink: &mut dyn Sink) {
        if let Some(diagnostic) = self.text.end() {
            self.keep(diagnostic);
        }
        let errors = std::mem::take(&mut self.errors);
        if tests_ran && !self.failed {
            return;
        }
        if errors.is_empty() && self.failed {
            let message = format!("could not compile `{}`", self.package);
            let kind = Some(FailureKind::Compile);
            let name = self.package.clone();
            let problem = Problem::new(ProblemScope::Build, name, kind, message);
            sink.event(Event::Problem(problem));
        }
        for error in errors {
            sink.event(Event::Problem(self.problem(error)));
        }
    }

    fn keep(&mut self, diagnostic: Diagnostic) {
        self.causes = None;
        if diagnostic.severity != Severity::Error || is_summary(&diagnostic.message) {
            return;
        }
        if self.errors.len() < MOST_ERRORS && !self.errors.contains(&diagnostic) {
            if diagnostic.file.is_none() {
                self.causes = Some(0);
            }
            self.errors.push(diagnostic);
        }
    }

    /// Cargo's own errors tell their reasons below, after an empty line.
    fn cause(&mut self, line: &str) {
        let (Some(count), Some(error)) = (&mut self.causes, self.errors.last_mut()) else { return };
        if *count < MOST_CAUSES && !line.trim().is_empty() && !line.starts_with("error") {
            *count += 1;
            error.message.push('\n');
            error.message.push_str(line.trim_end());
        }
    }

    fn problem(&self, error: Diagnostic) -> Problem {
        let (scope, kind) = if error.file.is_some() || self.failed {
            (ProblemScope::Build, FailureKind::Compile)
        } else {
            kind_of(&error.message)
        };
        let file = error.file.or_else(|| manifest_of(&error.message));
        let message = match error.code {
            Some(code) => format!("{}\n[{code}]", error.message),
            None => error.message,
        };
        Problem::new(scope, self.package.clone(), Some(kind), message).placed(file, error.line)
    }
}

/// What only sums up other errors, or tells that tests failed.
fn is_summary(message: &str) -> bool {
    let beginnings = [
        "aborting due to",
        "could not compile",
        "test failed, to rerun",
        "doctest failed",
        "test run failed",
    ];
    beginnings.iter().any(|begin| message.starts_with(begin))
        || message.ends_with("targets failed:")
        || message.ends_with("target failed:")
}

fn kind_of(message: &str) -> (ProblemScope, FailureKind) {
    let has = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
    let dependency = [
        "no matching package",
        "failed to select a version",
        "failed to get `",
        "failed to load source",
        "failed to download",
        "nable to update",
        "failed to fetch",
        "failed to resolve",
        "cyclic package dependency",
    ];
    if has(&dependency) {
        (ProblemScope::Build, FailureKind::Dependency)
    } else if has(&["manifest", "Cargo.toml", "lock file"]) {
        (ProblemScope::Build, FailureKind::Config)
    } else {
        (ProblemScope::Run, FailureKind::Config)
    }
}

/// The manifest that a message is about: `` failed to parse manifest at `/x/Cargo.toml` ``.
fn manifest_of(message: &str) -> Option<String> {
    message.split('`').find(|quoted| quoted.ends_with("/Cargo.toml")).map(str::to_owned)
}
