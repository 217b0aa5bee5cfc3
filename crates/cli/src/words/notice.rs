//! What people read of a notice.

use rehearsal_core::sandbox::{Layer, Limit};
use rehearsal_core::{Feature, NextAction, Notice};

use super::command;

/// A sentence for a notice.
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
        N::InterpreterMissing { program } => {
            format!("the interpreter of `{program}` was not found: install what its first line names")
        }
        N::NotExecutable { program } => {
            format!("make it executable with `chmod +x {}`, or name another program", command::quote(program))
        }
        N::WorkingDirMissing { path } => {
            format!("create `{path}` again, or let the next run have a new working directory")
        }
        N::WorkingDirDeleted => {
            "the agent's work in the deleted directory is lost; the next run needs a new one".to_owned()
        }
        N::CommandTooLong => "shorten the agent's arguments, or grant it fewer variables".to_owned(),
        N::NoResources => {
            "run fewer agents at the same time, or raise the limits (`ulimit -u`, `ulimit -n`)".to_owned()
        }
        N::SupervisorFailed => {
            "no agent runs without its supervisor; check that `/proc` is mounted".to_owned()
        }
        N::SandboxFailed => {
            "`rehearsal doctor` shows what the sandbox lacks; `sandbox: best_effort` runs without it"
                .to_owned()
        }
        N::StartFailed => "try the agent's command by hand in the same directory".to_owned(),
        N::SandboxIncomplete { missing } => {
            let layer = |(layer, why): (&Layer, &Option<String>)| match why {
                Some(why) => format!("{layer} ({why})"),
                None => layer.to_string(),
            };
            let missing: Vec<String> = missing.iter().map(layer).collect();
            format!("the sandbox is incomplete: {}", missing.join(", "))
        }
        N::LimitReached { limit } => reached(*limit).to_owned(),
        N::SupervisorKilled => {
            "the run's supervisor was killed from outside; the agent died with it".to_owned()
        }
        N::LeftoversKilled { count, names } => {
            format!("ended processes that had outlived the agent: {}", processes(*count, names))
        }
        N::ProcessesStuck { count } => format!(
            "{count} processes of the run could not be ended: they are stuck in the kernel; look for a hanging disk or network mount"
        ),
        N::NotAdoptable { error } => format!("if the worker dies, the run ends with it: {error}"),
        N::ChangesUnknown { error } => {
            format!("it is unknown what the run changed: {error}; check the repository with `git status`")
        }
        N::GitLocksRemoved { locks } => {
            let locks: Vec<String> = locks.iter().map(|lock| format!("`{lock}`")).collect();
            format!("removed the lock files of a killed git: {}", locks.join(", "))
        }
        N::GitLocksInUse { directory } => format!(
            "the repository is locked, and a git is at work in it: if its commits fail, look for lock files in `{directory}`"
        ),
        N::LogCut { path, limit_mib } => format!("`{path}` was cut at {limit_mib} MiB: the agent wrote more"),
        N::FileUnreadable { file, line: Some(line), error } => {
            format!("line {line} of `{file}` cannot be read: {error}")
        }
        N::FileUnreadable { file, line: None, error } => format!("`{file}` cannot be used: {error}"),
        N::SecretsNotRemoved { file, error } => format!("`{file}` may hold secrets: {error}"),
        N::Retried { tries, outcome, after_ms } => {
            let seconds = *after_ms / 1000;
            let tenths = *after_ms % 1000 / 100;
            format!("try {tries} ended with {outcome}; tried again after {seconds}.{tenths} s")
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
            format!("run {run} reported a text of {bytes} bytes, which is cut short")
        }
        N::ChangeRefused { error } => format!("a reported change was refused: {error}"),
        N::TaskTakenAway { task } => {
            format!(
                "task `{task}` was taken from the run while it worked; what it reported on it does not count"
            )
        }
        N::ReportNotSaved { run, error } => format!("the report of run {run} was not saved: {error}"),
        N::CheckoutChanged { run, files } => {
            let files = if files.is_empty() { "its branch".to_owned() } else { files.join(", ") };
            format!("the main checkout was changed while run {run} had its own worktree: {files}")
        }
        N::ReviewerChangesUndone => {
            "the reviewer changed files; this was undone, because it is only asked for a decision".to_owned()
        }
        N::CostUnknown { run, limit_usd } => {
            format!(
                "run {run} did not report its cost: the limit of ${limit_usd:.2} only counts reported costs"
            )
        }
        N::LeftRunKilled { run, count, names } => {
            format!("processes of run {run} were still alive and were ended: {}", processes(*count, names))
        }
        N::RunNotAdopted { run, error } => format!("run {run} cannot be continued: {error}"),
        N::LeasesNotRenewed { error } => format!("the leases could not be renewed: {error}"),
        N::DatabaseUnreachable { error } => format!("{error}; retrying until it answers"),
        N::DatabaseBack => "the database answers again".to_owned(),
        N::WorkLost { task } => {
            format!("the work on task {task} was lost with its machine: the agent has to work again")
        }
        N::WorktreeRebuilt { task, set_aside } => {
            format!("the worktree of task {task} was broken; its files are in `{set_aside}`")
        }
        N::WorktreeUpdated { task, set_aside } => format!(
            "the worktree of task {task} was behind work done elsewhere; what only it had is in `{set_aside}`"
        ),
        N::WorktreeKept { task, error } => format!("the worktree of task {task} was not removed: {error}"),
        N::EarlierWorkSaved { task, reference } => {
            format!("task {task} was done elsewhere; an earlier attempt made here is saved as `{reference}`")
        }
        N::GateCheckoutKept { error } => format!("the checkout of a gate was not removed: {error}"),
        N::MergedUntested { number, commit } => format!(
            "pull request {number} was merged onto a base that had moved: {commit:.10} is not the tree that was tested"
        ),
        N::BaseDiverged { base, remote } => {
            let pull = NextAction::Pull { remote: remote.clone(), base: base.clone() };
            format!(
                "your `{base}` and the branch that work goes to have diverged; `{}` joins them",
                command::line(&pull)
            )
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
        Limit::Memory => {
            "the sandbox's memory limit was reached, and a process was killed; raise `max_memory` under the agent's `sandbox`"
        }
        Limit::Processes => {
            "the sandbox's process limit was reached, and a fork was refused; raise `max_processes` under the agent's `sandbox`"
        }
        Limit::Files => "the sandbox's private files were full: nothing more could be written there",
    }
}

/// How many processes, and the names of the first ones.
fn processes(number: u32, names: &[String]) -> String {
    let mut shown: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if shown.is_empty() {
        return number.to_string();
    }
    if names.len() < number as usize {
        shown.push("…".to_owned());
    }
    format!("{number} ({})", shown.join(", "))
}
