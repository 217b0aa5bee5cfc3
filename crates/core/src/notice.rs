//! What a person should know beside a result, and what they can do next: facts without words. The command line words
//! them, in one place.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::sandbox::{Layer, Limit};
use crate::{AgentName, Lane, Oid, Outcome, OutcomeName, RunId, SessionName, StateName, TaskId};

/// Something that a person should know. `error` is always the message of what failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum Notice {
    /// The program does not have the flag, so the feature is left out.
    FlagMissing { program: String, version: Option<String>, flag: String, feature: String },
    /// This kind of agent cannot do what was asked for.
    Unsupported { program: String, feature: Feature },
    /// The program was not found, so its flags are unknown.
    ProgramNotProbed { program: String },

    /// There is no space left for a file of a run.
    DiskFull { path: String },
    /// A file of a run cannot be written.
    NotWritable { path: String, error: String },
    /// The program of the agent was not found.
    ProgramMissing { program: String },
    /// What the first line of the agent's program names was not found.
    InterpreterMissing { program: String },
    /// The agent's program may not be executed.
    NotExecutable { program: String },
    /// The directory to work in does not exist.
    WorkingDirMissing { path: String },
    /// The directory to work in was deleted during the run.
    WorkingDirDeleted,
    /// The arguments and variables of the agent are longer than the system allows.
    CommandTooLong,
    /// The system has no room for another process.
    NoResources,
    /// The agent's supervisor did not start.
    SupervisorFailed,
    /// The agent's sandbox cannot be set up.
    SandboxFailed,
    /// The agent's program did not start, for another reason.
    StartFailed,

    /// The full sandbox is not available here: the agent runs under the permission rules of its own CLI.
    NotSandboxed { why: String },
    /// Some layers of the sandbox do not hold fully: each with the reason.
    SandboxIncomplete { missing: BTreeMap<Layer, Option<String>> },
    /// The agent reached a limit of its sandbox.
    LimitReached { limit: Limit },
    /// The run's supervisor was killed from outside, and the agent with it.
    SupervisorKilled,
    /// Processes that had outlived the agent were killed; the first ones by name.
    LeftoversKilled { count: u32, names: Vec<String> },
    /// Processes of the run could not be killed.
    ProcessesStuck { count: u32 },
    /// The run cannot outlive its worker.
    NotAdoptable { error: String },
    /// What the run changed in the repository is unknown.
    ChangesUnknown { error: String },
    /// Lock files of a killed git were removed.
    GitLocksRemoved { locks: Vec<String> },
    /// A git is at work in the repository, so its lock files were left there.
    GitLocksInUse { directory: String },
    /// A log reached its greatest size, and the rest was dropped.
    LogCut { path: String, limit_mib: u64 },
    /// A file that the agent wrote, or a line of it, cannot be read.
    FileUnreadable { file: String, line: Option<usize>, error: String },
    /// Secrets in a file that the agent wrote could not be removed.
    SecretsNotRemoved { file: String, error: String },

    /// A try failed, and there was another one.
    Retried { tries: u32, outcome: Outcome, after_ms: u64 },
    /// There was no other try; without an error, the limits of the run left no room for one.
    NotRetried { outcome: OutcomeName, error: Option<String> },
    /// `result.json` may not be that of the last try.
    ResultStale { error: String },

    /// What a run reported does not count because of its outcome.
    ReportIgnored { run: RunId, outcome: OutcomeName },
    /// A run reported on a task that is not its own; without an error, one of another session.
    ReportedTaskIgnored { run: RunId, task: String, error: Option<String> },
    /// A run reported a text that is too long.
    ReportedTextCut { run: RunId, bytes: usize },
    /// A change that a run reported was refused.
    ChangeRefused { error: String },
    /// The task was taken from the run, so what the run reported on it does not count.
    TaskTakenAway { task: String },
    /// The report of a run could not be saved.
    ReportNotSaved { run: RunId, error: String },
    /// The main checkout changed during a run in a worktree; without files, its branch moved.
    CheckoutChanged { run: RunId, files: Vec<String> },
    /// A reviewer changed files, and the changes were undone.
    ReviewerChangesUndone,
    /// A run reported no cost, so the cost limit does not include it.
    CostUnknown { run: RunId, limit_usd: f64 },
    /// Processes of a run that was left were killed.
    LeftRunKilled { run: RunId, count: u32, names: Vec<String> },
    /// A run of a dead worker cannot be continued.
    RunNotAdopted { run: RunId, error: String },

    /// The worker could not renew its leases.
    LeasesNotRenewed { error: String },
    /// The database cannot be reached.
    DatabaseUnreachable { error: String },
    /// The database can be reached again.
    DatabaseBack,
    /// The work on a task was lost with the machine that had it.
    WorkLost { task: TaskId },
    /// Files that the user had changed before the run were changed by it, and are not committed.
    NotCommitted { files: Vec<String> },
    /// There are no tests, so nothing was tested.
    NothingTested,
    /// These tests fail, and failed before the run.
    FailedBefore { tests: Vec<String> },
    /// A task was reported as done, but nothing changed and no reason was given: it stays open.
    DoneWithoutEffect { run: RunId, task: TaskId },
    /// Another agent takes over from one that the system keeps from working.
    TakenOver { task: TaskId, from: AgentName, by: AgentName, cause: OutcomeName },
    /// The worktree of a task was broken; its files were moved.
    WorktreeRebuilt { task: TaskId, set_aside: String },
    /// The worktree of a task was behind the work of another one; what only it had was moved.
    WorktreeUpdated { task: TaskId, set_aside: String },
    /// The worktree of a task cannot be released.
    WorktreeKept { task: TaskId, error: String },
    /// An earlier attempt at a task, which was done elsewhere, was saved under a reference.
    EarlierWorkSaved { task: TaskId, reference: String },
    /// The checkout in which a gate ran cannot be released.
    GateCheckoutKept { error: String },
    /// The forge merged a pull request into a base that had moved: what landed was not tested.
    MergedUntested { number: u64, commit: Oid },
    /// The user's base branch and the one that work goes to have diverged.
    BaseDiverged { base: String, remote: String },
}

/// The name and the facts, for time lines and tests: `report_ignored outcome=crashed run=k3f`.
impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(Value::Object(mut facts)) = serde_json::to_value(self) else { return Err(fmt::Error) };
        f.write_str(facts.remove("type").as_ref().and_then(Value::as_str).unwrap_or_default())?;
        for (name, fact) in facts.iter().filter(|(_, fact)| !fact.is_null()) {
            match fact {
                Value::String(text) => write!(f, " {name}={text}")?,
                fact => write!(f, " {name}={fact}")?,
            }
        }
        Ok(())
    }
}

/// What some kinds of agents cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Use a certain model.
    Model,
    /// Resume a session.
    Resume,
    /// Leave files alone.
    ReadOnly,
    /// Report a cost, which a cost limit needs.
    CostLimit,
    /// Report tokens, which a token limit needs.
    TokenLimit,
    /// Report tokens before the run ends, so that a token limit can stop it.
    TokensMeanwhile,
    /// Stop after a number of turns.
    TurnLimit,
}

/// What a person can do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum NextAction {
    /// Approve a task.
    Approve { task: TaskId },
    /// Reject a task, with a comment.
    Reject { task: TaskId },
    /// Let a blocked task continue.
    Unblock { task: TaskId },
    /// Start a task over.
    Retry { task: TaskId },
    /// Raise the cost limit of a task.
    RaiseCostLimit { task: TaskId },
    /// See why a task is not moving.
    Why { task: TaskId },
    /// List the runs of a task.
    ListRuns { task: TaskId },
    /// List the tasks in a state.
    ListTasks { state: StateName },
    /// Watch what a run does.
    FollowLogs { run: RunId },
    /// Watch what is at work.
    WatchStatus,
    /// Work on tasks of any flow.
    Work,
    /// Work through a session.
    Run { session: Option<SessionName> },
    /// Resume what is paused.
    Resume { lane: Lane },
    /// Enable an agent in the settings.
    EnableAgent { agent: AgentName },
    /// Pull merged work into the checkout.
    Pull { remote: String, base: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_shown_as_its_name_and_facts() {
        let run = RunId::new("k3f").unwrap();
        let ignored = Notice::ReportIgnored { run, outcome: OutcomeName::Crashed };
        assert_eq!(ignored.to_string(), "report_ignored outcome=crashed run=k3f");
        assert_eq!(Notice::DatabaseBack.to_string(), "database_back");
        let missing = BTreeMap::from([(Layer::Kill, None), (Layer::Files, Some("old kernel".into()))]);
        let incomplete = Notice::SandboxIncomplete { missing };
        assert_eq!(
            incomplete.to_string(),
            r#"sandbox_incomplete missing={"files":"old kernel","kill":null}"#
        );
        let stored = serde_json::to_string(&incomplete).unwrap();
        assert_eq!(serde_json::from_str::<Notice>(&stored).unwrap(), incomplete);
    }
}
