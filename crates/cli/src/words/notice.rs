//! What people read of a notice.

use std::time::Duration;

use rehearsal_agent::{Containment, NoSandbox};
use rehearsal_app::command_line;
use rehearsal_core::sandbox::{Layer, Limit};
use rehearsal_core::{Feature, NextAction, Notice};
use rehearsal_eval::run::Obstacle;

use super::duration;

/// A sentence for a notice.
#[expect(clippy::too_many_lines, reason = "one arm per notice")]
pub(crate) fn notice(notice: &Notice) -> String {
    use Notice as N;
    match notice {
        N::FlagMissing { program, version, flag, feature } => {
            let version = version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
            format!("`{program}`{version} has no `{flag}`: {feature} is left out")
        }
        N::Unsupported { program, feature } => format!("`{program}` {}", lacks(*feature)),
        N::ProgramNotProbed { program } => {
            format!("`{program}` was not found, so it could not be asked which of these flags it has")
        }
        N::DiskFull { path } => format!("no space left for `{path}`; free some and start again"),
        N::NotWritable { path, error } => {
            format!("cannot write `{path}`: {error}; check that the directory exists and is yours")
        }
        N::ProgramMissing { program } => {
            format!("install `{program}`, put it on the PATH, or give its path in the configuration")
        }
        N::InterpreterMissing { program } => format!("install what the first line of `{program}` names"),
        N::NotExecutable { program } => {
            format!("run `chmod +x {}`, or name another program", command_line::quote(program))
        }
        N::WorkingDirMissing { path } => format!("create `{path}` again, or use a new working directory"),
        N::WorkingDirDeleted => "what the agent did there is lost; use a new working directory".into(),
        N::CommandTooLong => "shorten the agent's arguments, or grant it fewer variables".into(),
        N::NoResources => "run fewer agents, or raise the limits (`ulimit -u`, `ulimit -n`)".into(),
        N::SupervisorFailed => "no agent runs unsupervised; check that `/proc` is mounted".into(),
        N::SandboxFailed => {
            "`rehearsal doctor` shows what the sandbox lacks; `sandbox: best_effort` runs without it".into()
        }
        N::StartFailed => "try the agent's command by hand in the same directory".into(),
        N::SandboxIncomplete { missing } => {
            let layer = |(layer, why): (&Layer, &Option<String>)| match why {
                Some(why) => format!("{layer} ({why})"),
                None => layer.to_string(),
            };
            format!("the sandbox is incomplete: {}", listed(missing.iter().map(layer)))
        }
        N::LimitReached { limit } => reached(*limit).into(),
        N::SupervisorKilled => "the run's supervisor was killed from outside; the agent died with it".into(),
        N::LeftoversKilled { count, names } => {
            format!("ended processes that had outlived the agent: {}", processes(*count, names))
        }
        N::ProcessesStuck { count } => {
            format!("{count} processes are stuck in the kernel; look for a hanging disk or network mount")
        }
        N::NotAdoptable { error } => format!("if the worker dies, the run ends with it: {error}"),
        N::ChangesUnknown { error } => {
            format!("it is unknown what the run changed: {error}; check the repository with `git status`")
        }
        N::GitLocksRemoved { locks } => {
            format!(
                "removed the lock files of a killed git: {}",
                listed(locks.iter().map(|lock| format!("`{lock}`")))
            )
        }
        N::GitLocksInUse { directory } => {
            format!("another git is at work; if commits fail, look for lock files in `{directory}`")
        }
        N::LogCut { path, limit_mib } => format!("`{path}` was cut at {limit_mib} MiB: the agent wrote more"),
        N::FileUnreadable { file, line: Some(line), error } => {
            format!("line {line} of `{file}` cannot be read: {error}")
        }
        N::FileUnreadable { file, line: None, error } => format!("`{file}` cannot be used: {error}"),
        N::SecretsNotRemoved { file, error } => format!("`{file}` may hold secrets: {error}"),
        N::Retried { tries, outcome, after_ms } => {
            let wait = duration(Duration::from_millis(*after_ms));
            format!("try {tries} ended with {outcome}; tried again after {wait}")
        }
        N::NotRetried { outcome, error } => {
            let why = error.as_deref().unwrap_or("the run's limits leave no room");
            format!("`{outcome}` was not tried again: {why}")
        }
        N::ResultStale { error } => format!("`result.json` is not that of the last try: {error}"),
        N::ReportIgnored { run, outcome } => {
            format!("what run {run} reported does not count, because it ended with {outcome}")
        }
        N::ReportedTaskIgnored { run, task, error } => {
            let why = error.as_deref().unwrap_or("it belongs to another session");
            format!("run {run} reported on task `{task}`, which is ignored: {why}")
        }
        N::ReportedTextCut { run, bytes } => {
            format!("run {run} reported a text of {bytes} bytes; it was cut")
        }
        N::ChangeRefused { error } => format!("a reported change was refused: {error}"),
        N::TaskTakenAway { task } => format!(
            "task `{task}` was taken from the run while it worked; what it reported on it does not count"
        ),
        N::ReportNotSaved { run, error } => format!("the report of run {run} was not saved: {error}"),
        N::CheckoutChanged { run, files } => {
            let files = if files.is_empty() { "its branch".into() } else { files.join(", ") };
            format!("the main checkout was changed while run {run} had its own worktree: {files}")
        }
        N::ReviewerChangesUndone => {
            "the reviewer changed files, which is not its task: they were reset".into()
        }
        N::CostUnknown { run, limit_usd } => {
            format!("run {run} did not report its cost: the limit of ${limit_usd:.2} cannot include it")
        }
        N::LeftRunKilled { run, count, names } => {
            format!("processes of run {run} were still alive and were ended: {}", processes(*count, names))
        }
        N::RunNotAdopted { run, error } => format!("run {run} cannot be continued: {error}"),
        N::LeasesNotRenewed { error } => format!("the leases could not be renewed: {error}"),
        N::DatabaseUnreachable { error } => format!("{error}; retrying until it answers"),
        N::DatabaseBack => "the database answers again".into(),
        N::NotSandboxed { why } => {
            format!(
                "the sandbox is not available here, so only the agent's own permission rules apply: {why}"
            )
        }
        N::NotCommitted { files } => {
            format!("not committed, because you had changed them before the run: {}", files.join(", "))
        }
        N::NothingTested => "no tests were found, so nothing was tested: set `testing.command`".into(),
        N::FailedBefore { tests } if tests.is_empty() => "the tests fail, as they did before the run".into(),
        N::FailedBefore { tests } => {
            format!("tests fail, but no others than before the run: {}", tests.join(", "))
        }
        N::TakenOver { task, from, by, cause } => {
            format!("agent `{by}` takes over task {task} from `{from}` ({cause})")
        }
        N::DoneWithoutEffect { run, task } => format!(
            "run {run} reported task `{task}` as done, but changed nothing and gave no reason: it stays open"
        ),
        N::WorkLost { task } => format!("the work on task {task} was lost with its machine; starting over"),
        N::WorktreeRebuilt { task, set_aside } => {
            format!("the worktree of task {task} was broken; its files are in `{set_aside}`")
        }
        N::WorktreeUpdated { task, set_aside } => {
            format!("the worktree of task {task} was outdated; what only it had is in `{set_aside}`")
        }
        N::WorktreeKept { task, error } => format!("the worktree of task {task} was not removed: {error}"),
        N::EarlierWorkSaved { task, reference } => {
            format!("task {task} was done elsewhere; an earlier attempt made here is saved as `{reference}`")
        }
        N::GateCheckoutKept { error } => format!("the checkout of a gate was not removed: {error}"),
        N::MergedUntested { number, commit } => {
            format!("pull request {number} was merged onto a moved base: {commit:.10} was not tested")
        }
        N::BaseDiverged { base, remote } => {
            let pull = NextAction::Pull { remote: remote.clone(), base: base.clone() };
            let pull = command_line::line(&pull);
            format!("your `{base}` and the branch that work goes to have diverged; `{pull}` joins them")
        }
    }
}

/// How to remove what is in the way of a trial.
pub(crate) fn remedy(obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::NotRecorded { eval, case, .. } => {
            let (eval, case) = (command_line::quote(eval), command_line::quote(case));
            format!("record it first: rehearsal eval run {eval} --case {case} --record")
        }
        Obstacle::AgentSpendsTokens { .. } => "run it with --live".to_owned(),
        Obstacle::ModelSpendsTokens { .. } => {
            "run it with --live, or give it the address of a fake model API such as `rehearsal stage`"
                .to_owned()
        }
        Obstacle::NotTrusted { .. } => "run it with --trust".to_owned(),
        Obstacle::HoldsSecrets { cassette, .. } => {
            format!("`rehearsal cassette redact {}` takes it out", command_line::quote(cassette))
        }
    }
}

fn lacks(feature: Feature) -> &'static str {
    match feature {
        Feature::Model => "has no choice of models",
        Feature::Resume => "cannot resume a session: a new one is started",
        Feature::ReadOnly => "cannot be kept from changing files",
        Feature::CostLimit => "does not report its cost, so the cost limit has no effect",
        Feature::TokenLimit => "does not report its tokens, so the token limit has no effect",
        Feature::TokensMeanwhile => "reports its tokens only at the end, so the token limit cannot stop it",
        Feature::TurnLimit => "has no option for a turn limit, so the turn limit has no effect",
    }
}

/// A limit that the agent reached, and the setting that raises it.
fn reached(limit: Limit) -> &'static str {
    match limit {
        Limit::Memory => "a process reached the sandbox's memory limit and was killed; raise `max_memory`",
        Limit::Processes => "the sandbox's process limit was reached; raise `max_processes`",
        Limit::Files => "the sandbox's private files were full: nothing more could be written there",
    }
}

/// How many processes, and the names of the first ones.
fn processes(count: u32, names: &[String]) -> String {
    if names.is_empty() {
        return count.to_string();
    }
    let more = (names.len() < count as usize).then(|| "…".to_owned());
    format!("{count} ({})", listed(names.iter().map(|name| format!("`{name}`")).chain(more)))
}

fn listed(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// What keeps an agent within bounds.
pub(crate) fn containment(containment: &Containment) -> String {
    match containment {
        Containment::Sandbox(confinement) if confinement.is_full() => {
            "confined by the full sandbox; the agent's own permission rules are off".into()
        }
        Containment::Sandbox(_) => {
            "confined as far as the system can, and by the agent's own permission rules".into()
        }
        Containment::OwnRules(NoSandbox::Off) => {
            "not confined: `sandbox: off`; only the agent's own permission rules apply".into()
        }
        Containment::OwnRules(NoSandbox::ConfinesItself) => {
            "each of its commands is confined by the sandbox".into()
        }
        Containment::OwnRules(NoSandbox::Unavailable { why }) => {
            format!(
                "not confined, because the sandbox is not available here ({why}); only the agent's own permission rules apply"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use rehearsal_core::OutcomeName;

    use super::*;

    #[test]
    fn a_notice_is_a_sentence_with_its_facts() {
        let program = || "codex".to_owned();
        let flag_missing = |version: Option<&str>| Notice::FlagMissing {
            program: program(),
            version: version.map(str::to_owned),
            flag: "--effort".to_owned(),
            feature: "the effort".to_owned(),
        };
        let names = vec!["sh".to_owned(), "sleep".to_owned()];
        let cases = [
            (flag_missing(Some("0.1")), "`codex` 0.1 has no `--effort`: the effort is left out"),
            (flag_missing(None), "`codex` has no `--effort`: the effort is left out"),
            (
                Notice::Unsupported { program: program(), feature: Feature::CostLimit },
                "`codex` does not report its cost, so the cost limit has no effect",
            ),
            (
                Notice::LeftoversKilled { count: 3, names },
                "ended processes that had outlived the agent: 3 (`sh`, `sleep`, …)",
            ),
            (
                Notice::NotRetried { outcome: OutcomeName::Overloaded, error: None },
                "`overloaded` was not tried again: the run's limits leave no room",
            ),
            (
                Notice::BaseDiverged { base: "main".to_owned(), remote: "/home/ann/a b.git".to_owned() },
                "your `main` and the branch that work goes to have diverged; `git pull '/home/ann/a b.git' main` joins them",
            ),
        ];
        for (facts, sentence) in cases {
            assert_eq!(notice(&facts), sentence);
        }
    }
}
