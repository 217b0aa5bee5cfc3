//! What to think of a run: one pure function that refuses to be green without proof.

use rehearsal_core::Exit;
use serde::{Deserialize, Serialize};

use crate::collect::{Collected, Ending, Stopped};
use crate::{FailureKind, ProblemScope};

/// What to think of a run. Only `passed` is green, and `unaffected`, of which nothing had to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The runner came to its end, said so, exited with 0, and every test it ran (at least one) was good.
    Passed,
    /// No test can tell anything about the change that was asked about: none was run.
    Unaffected,
    /// Tests failed, or the runner reported an error of its own.
    Failed,
    /// Something does not compile.
    BuildFailed,
    /// Tests could not be loaded or set up.
    CollectFailed,
    /// The process died before its end.
    Crashed,
    /// The time limit ended it.
    TimedOut,
    /// The memory limit ended it.
    OutOfMemory,
    /// Another limit stood in the way: processes, files, disk.
    Limit,
    /// What failed needs something that the sandbox does not allow.
    SandboxBlocked,
    /// There was nothing to run.
    NoTests,
    /// Exit status, counts and output contradict each other.
    Inconsistent,
    /// The runner is not installed, or could not be started.
    RunnerMissing,
}

impl Verdict {
    /// Every one.
    pub const ALL: [Self; 13] = [
        Self::Passed,
        Self::Unaffected,
        Self::Failed,
        Self::BuildFailed,
        Self::CollectFailed,
        Self::Crashed,
        Self::TimedOut,
        Self::OutOfMemory,
        Self::Limit,
        Self::SandboxBlocked,
        Self::NoTests,
        Self::Inconsistent,
        Self::RunnerMissing,
    ];

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == name)
    }

    /// As JSON has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Unaffected => "unaffected",
            Self::Failed => "failed",
            Self::BuildFailed => "build_failed",
            Self::CollectFailed => "collect_failed",
            Self::Crashed => "crashed",
            Self::TimedOut => "timed_out",
            Self::OutOfMemory => "out_of_memory",
            Self::Limit => "limit",
            Self::SandboxBlocked => "sandbox_blocked",
            Self::NoTests => "no_tests",
            Self::Inconsistent => "inconsistent",
            Self::RunnerMissing => "runner_missing",
        }
    }
}

impl Verdict {
    /// Of several, the heaviest is that of all together.
    pub const fn weight(self) -> u8 {
        match self {
            Self::Unaffected => 0,
            Self::Passed => 1,
            Self::NoTests => 2,
            Self::RunnerMissing => 3,
            Self::Inconsistent => 4,
            Self::SandboxBlocked => 5,
            Self::Failed => 6,
            Self::CollectFailed => 7,
            Self::BuildFailed => 8,
            Self::Limit => 9,
            Self::OutOfMemory => 10,
            Self::TimedOut => 11,
            Self::Crashed => 12,
        }
    }

    /// Whether nothing speaks against what was tested.
    pub const fn is_green(self) -> bool {
        matches!(self, Self::Passed | Self::Unaffected)
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

type Check = fn(&Collected, &Ending) -> Option<(Verdict, String)>;

/// The verdict and everything that speaks against a better one, the decisive reason first.
pub(crate) fn judge(run: &Collected, ending: &Ending) -> (Verdict, Vec<String>) {
    let mut reasons = Vec::new();
    // From the most telling to the least: the first that applies is the verdict, all are told.
    let checks: [Check; 11] = [
        missing,
        stopped,
        died,
        build,
        collection,
        failures,
        run_errors,
        incomplete,
        only_the_exit,
        nothing,
        exit_disagrees,
    ];
    for check in checks {
        reasons.extend(check(run, ending));
    }
    match reasons.first() {
        None => (Verdict::Passed, Vec::new()),
        Some((verdict, _)) => (*verdict, reasons.into_iter().map(|(_, reason)| reason).collect()),
    }
}

fn missing(_: &Collected, ending: &Ending) -> Option<(Verdict, String)> {
    let why = ending.runner_missing.as_ref()?;
    Some((Verdict::RunnerMissing, why.clone()))
}

fn stopped(_: &Collected, ending: &Ending) -> Option<(Verdict, String)> {
    if ending.out_of_memory {
        return Some((
            Verdict::OutOfMemory,
            "the memory limit was reached and the run was killed".to_owned(),
        ));
    }
    if let Some(limit) = &ending.limit {
        return Some((Verdict::Limit, limit.clone()));
    }
    match ending.stopped? {
        Stopped::TimeLimit => Some((Verdict::TimedOut, "the time limit ended the run".to_owned())),
        Stopped::Cancelled => Some((Verdict::Crashed, "the run was cancelled".to_owned())),
    }
}

fn died(run: &Collected, ending: &Ending) -> Option<(Verdict, String)> {
    if ending.runner_missing.is_some() || ending.stopped.is_some() {
        return None;
    }
    if let Some(Exit::Signal(signal)) = ending.exit {
        return Some((Verdict::Crashed, format!("signal {signal} ended the runner")));
    }
    let crashed = run.summary.crashed;
    if crashed > 0 {
        return Some((Verdict::Crashed, format!("the process died while {} ran", tests(crashed))));
    }
    let problem = run.problems.iter().find(|problem| problem.kind == Some(FailureKind::Crash))?;
    Some((Verdict::Crashed, first_line(&problem.message)))
}

fn build(run: &Collected, _: &Ending) -> Option<(Verdict, String)> {
    let errors = run.problems.iter().filter(|problem| {
        problem.scope == ProblemScope::Build || problem.kind == Some(FailureKind::Dependency)
    });
    let count = errors.count();
    (count > 0).then(|| (Verdict::BuildFailed, format!("{count} build {}", plural(count, "error", "errors"))))
}

fn collection(run: &Collected, _: &Ending) -> Option<(Verdict, String)> {
    let of_suites = run.problems.iter().filter(|problem| problem.scope == ProblemScope::Suite).count();
    if of_suites > 0 {
        let suites = plural(of_suites, "file or group", "files or groups");
        return Some((Verdict::CollectFailed, format!("{of_suites} {suites} could not be loaded or set up")));
    }
    let of_run = run.problems.iter().any(|problem| problem.scope == ProblemScope::Run);
    (of_run && run.summary.total == 0 && !run.exit_decides)
        .then(|| (Verdict::CollectFailed, "the runner gave up before any test ran".to_owned()))
}

/// Failed tests in a run that calls itself good are a contradiction, and not a plain failure: something swallows
/// the exit status, and will do so again where nobody reads the output.
fn failures(run: &Collected, ending: &Ending) -> Option<(Verdict, String)> {
    let failed = run.summary.failed;
    if failed == 0 {
        return None;
    }
    let told = format!("{} failed", tests(failed));
    if ending.exit.is_some_and(Exit::is_success) && run.summary.crashed == 0 {
        return Some((Verdict::Inconsistent, format!("{told}, but the runner exited with 0")));
    }
    Some((Verdict::Failed, told))
}

fn run_errors(run: &Collected, _: &Ending) -> Option<(Verdict, String)> {
    let error = run.problems.iter().find(|problem| problem.scope == ProblemScope::Run)?;
    Some((Verdict::Failed, first_line(&error.message)))
}

fn incomplete(run: &Collected, ending: &Ending) -> Option<(Verdict, String)> {
    if ending.runner_missing.is_some() {
        return None;
    }
    let (seen, declared) = (run.seen(), run.declared.unwrap_or(0));
    if declared > seen {
        let reason = format!("{seen} of {declared} declared tests were seen");
        return Some((Verdict::Inconsistent, reason));
    }
    if let Some(counted) = run.counted.filter(|counted| *counted != seen) {
        return Some((
            Verdict::Inconsistent,
            format!("the runner counted {counted} tests, {seen} were seen"),
        ));
    }
    if let Some(complaint) = run.complaints.first() {
        return Some((Verdict::Inconsistent, complaint.clone()));
    }
    let stopped = ending.stopped.is_some() || ending.out_of_memory;
    (!run.ended && !stopped && (run.summary.total > 0 || ending.exit.is_some_and(Exit::is_success)))
        .then(|| (Verdict::Inconsistent, "the output ends without the runner's own end".to_owned()))
}

/// Of a command whose output we cannot read, only a good exit status is proof.
fn only_the_exit(run: &Collected, ending: &Ending) -> Option<(Verdict, String)> {
    if !run.exit_decides || ending.runner_missing.is_some() || ending.stopped.is_some() {
        return None;
    }
    match ending.exit {
        Some(Exit::Code(0) | Exit::Signal(_)) => None,
        Some(Exit::Code(code)) => Some((Verdict::Failed, format!("the command exited with {code}"))),
        None => Some((
            Verdict::Inconsistent,
            "nothing is known but the output, and it has no format that we read".to_owned(),
        )),
    }
}

fn nothing(run: &Collected, ending: &Ending) -> Option<(Verdict, String)> {
    let ran = run.summary.total - run.summary.skipped;
    if ran > 0 || run.exit_decides || ending.runner_missing.is_some() || ending.stopped.is_some() {
        return None;
    }
    let skipped = run.summary.skipped;
    let reason =
        if skipped > 0 { format!("all {} were skipped", tests(skipped)) } else { "no tests ran".to_owned() };
    Some((Verdict::NoTests, reason))
}

fn exit_disagrees(run: &Collected, ending: &Ending) -> Option<(Verdict, String)> {
    let Some(Exit::Code(code)) = ending.exit else { return None };
    let explained = run.summary.failed > 0 || run.summary.timed_out > 0 || !run.problems.is_empty();
    (code != 0 && !explained && !run.exit_decides && ending.runner_missing.is_none())
        .then(|| (Verdict::Inconsistent, format!("nothing failed, but the runner exited with {code}")))
}

fn tests(count: u64) -> String {
    format!("{count} {}", if count == 1 { "test" } else { "tests" })
}

fn plural<'a>(count: usize, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

fn first_line(message: &str) -> String {
    message
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("an error without a message")
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_whose_output_cannot_be_read_is_green_only_by_its_exit_status() {
        let run = Collected { exit_decides: true, ended: true, ..Collected::default() };
        let verdict = |ending: &Ending| judge(&run, ending).0;
        assert_eq!(verdict(&Ending::of_status(0)), Verdict::Passed);
        assert_eq!(verdict(&Ending::of_status(1)), Verdict::Failed);
        assert_eq!(verdict(&Ending::of_status(139)), Verdict::Crashed);
        assert_eq!(verdict(&Ending::default()), Verdict::Inconsistent);
    }
}
