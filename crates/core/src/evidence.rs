//! From evidence to outcome, in one place.
//!
//! An agent's words are a hint. What counts, in this order: what we ourselves did or ran into, the structured
//! end of its output, how the process ended, the `result.json` of this very attempt, the signal in its final
//! text, and what git says has changed.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::activity::{Denial, WireEnd, WireError, WireErrorKind, WireReport, WireShape};
use crate::sandbox::SandboxReport;
use crate::{Exit, Notice, Oid, Outcome, Promise, TimeLimit};

/// All that is known about a run when it is over.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// How the process ended; none if it never started.
    pub exit: Option<Exit>,
    /// Why we ended it, if we did.
    pub stop: Option<Stop>,
    /// What its output said.
    pub wire: WireReport,
    /// What it wrote to `result.json`, if anything.
    pub result_file: Option<Result<ResultFile, ResultFileError>>,
    /// What changed in the repository; none if nobody looked.
    pub git: Option<GitFacts>,
    /// The run was only to look: no change is expected of it, and a refused edit is no failure.
    pub read_only: bool,
}

/// The end of a run: what it is, what it was judged by, and what the agent reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The outcome, and why.
    pub verdict: Verdict,
    /// What it was judged by.
    pub evidence: Evidence,
    /// The signal in the final text.
    pub promise: Option<Promise>,
    /// What it reported on tasks, through `result.json` and the report commands.
    pub tasks: Vec<ReportedTask>,
    /// What it wrote for the session's journal.
    pub progress: Vec<String>,
    /// Tries it took, when transient failures were tried again.
    pub tries: u32,
    /// What a person should know: flags that the CLI lacks, leftover processes that were killed.
    pub warnings: Vec<Notice>,
    /// What confined it, and what did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxReport>,
}

/// Why we ended a run, or could not start it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// We ran into something before or while it ran; the outcome is known without asking the agent.
    Hindered(Outcome),
    /// A time limit.
    TimedOut {
        /// Which one.
        limit: TimeLimit,
        /// After how long.
        after_ms: u64,
    },
    /// Someone asked for it.
    Cancelled,
    /// Its result was there, but the process did not end by itself.
    LingeredAfterResult,
    /// A budget that we watch ourselves.
    OverBudget {
        /// Which one.
        reason: String,
    },
    /// It did the same again and again, or much more than any task takes.
    Runaway {
        /// What it did.
        reason: String,
    },
}

/// What an agent may write to `$TASK_DIR/result.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResultFile {
    /// How it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ResultOutcome>,
    /// A reviewer's decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<ReportedDecision>,
    /// What a reviewer wants changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Why it failed or is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Tasks it reports on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<ReportedTask>,
    /// Lines for the session's journal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<String>,
}

/// How an agent says it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResultOutcome {
    /// It did the work.
    Success,
    /// It could not.
    Failure,
    /// It needs another run.
    NeedsContinuation,
    /// It needs a human.
    Blocked,
}

/// A reviewer's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReportedDecision {
    /// It may pass.
    Approve,
    /// It goes back.
    Reject,
}

/// What an agent says about one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ReportedTask {
    /// The task is done.
    Done {
        /// Its id, or a unique prefix.
        id: String,
        /// Why nothing had to change for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The task needs a human.
    Blocked {
        /// Its id, or a unique prefix.
        id: String,
        /// What for.
        #[serde(default)]
        reason: String,
    },
}

/// Why a `result.json` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("`result.json` cannot be used: {reason}")]
pub struct ResultFileError {
    /// What is wrong with it, with line and column.
    pub reason: String,
}

/// What a run did to the repository, computed once, by us, from git.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GitFacts {
    /// HEAD when it began; none in a repository without a commit.
    pub head_before: Option<Oid>,
    /// HEAD when it was over.
    pub head_after: Option<Oid>,
    /// New commits, oldest first.
    pub commits: Vec<Commit>,
    /// Files that differ between the two moments, committed or not.
    pub files_changed: Vec<String>,
    /// Whether something is left that is not committed.
    pub uncommitted: bool,
}

impl GitFacts {
    /// Whether the run left any trace in the repository.
    pub fn changed(&self) -> bool {
        self.head_before != self.head_after || !self.commits.is_empty() || !self.files_changed.is_empty()
    }
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Commit {
    /// Its id.
    pub id: Oid,
    /// The first line of its message.
    pub subject: String,
}

/// An outcome and the evidence that led to it, strongest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The outcome.
    pub outcome: Outcome,
    /// The evidence, one sentence each.
    pub because: Vec<String>,
}

impl Evidence {
    /// Evidence of nothing but an exit.
    pub fn of_exit(exit: Exit) -> Self {
        let wire = WireReport { shape: WireShape::Unstructured, ..WireReport::default() };
        Self { exit: Some(exit), wire, ..Self::default() }
    }
}

/// How many denied calls are named.
const DENIALS_NAMED: usize = 5;

impl RunReport {
    /// A reviewer's run that came to a proper end has broken down if it gave no decision: with the reason, as far as that is known.
    pub fn require_decision(&mut self) {
        if !matches!(self.verdict.outcome, Outcome::Done | Outcome::NoChanges | Outcome::Continue { .. }) {
            return;
        }
        let mut reason = "the reviewer gave no decision".to_owned();
        if let Some(denial) = self.evidence.wire.denials.first() {
            let _ = write!(reason, ": {denial}");
        }
        self.verdict.because.insert(0, reason.clone());
        self.verdict.outcome = Outcome::ProtocolError { reason };
    }

    /// The tool calls that were denied, the first by name, and how many more.
    pub fn denials(&self) -> Option<(Vec<Denial>, usize)> {
        let denials = &self.evidence.wire.denials;
        let mut named: Vec<Denial> = Vec::new();
        for denial in denials {
            if named.len() < DENIALS_NAMED && !named.contains(denial) {
                named.push(denial.clone());
            }
        }
        let more = denials.iter().filter(|denial| !named.contains(denial)).count();
        (!named.is_empty()).then_some((named, more))
    }
}

/// Decides how a run ended.
pub fn judge(evidence: &Evidence) -> Verdict {
    let mut because = Vec::new();
    let outcome = decide(evidence, &mut because);
    if let Some(git) = &evidence.git {
        because.push(describe_git(git));
    }
    Verdict { outcome, because }
}

fn decide(evidence: &Evidence, because: &mut Vec<String>) -> Outcome {
    if let Some(Stop::Hindered(outcome)) = &evidence.stop {
        because.push(format!("the run could not be carried out: {outcome}"));
        return outcome.clone();
    }
    let wire = &evidence.wire;
    // Once we stopped it, an error that it tells is our own doing; a result that had come before is not.
    let had_ended = wire.end.as_ref().is_some_and(|end| !matches!(end, WireEnd::Error(_)));
    if !had_ended && let Some(outcome) = of_stop(evidence, because) {
        return outcome;
    }
    if let Some(end) = &wire.end {
        because.push(describe_end(end));
        match end {
            WireEnd::MaxTurns => {
                return Outcome::NeedsContinuation { reason: "the turn limit was reached".into() };
            }
            WireEnd::BudgetReached => {
                let reason = "the agent's own budget limit was reached".into();
                return Outcome::BudgetReached { reason };
            }
            WireEnd::TimedOut { after_ms } => {
                return Outcome::TimedOut { limit: TimeLimit::Total, after_ms: *after_ms };
            }
            WireEnd::Error(error) => return of_wire_error(error, evidence.exit),
            WireEnd::Success => {}
        }
    }
    if let Some(outcome) = of_exit(evidence, because) {
        return outcome;
    }
    if wire.end.is_none()
        && let Some(outcome) = of_shape(evidence, because)
    {
        return outcome;
    }
    of_proper_end(evidence, because)
}

/// We ended it, and it had not brought its result before.
fn of_stop(evidence: &Evidence, because: &mut Vec<String>) -> Option<Outcome> {
    match evidence.stop.as_ref()? {
        Stop::TimedOut { limit, after_ms } => {
            because.push("we ended it: a time limit was reached, and no result had come".into());
            let timed_out = Outcome::TimedOut { limit: *limit, after_ms: *after_ms };
            Some(evidence.wire.retrying.as_ref().map_or(timed_out, |error| of_retry(error, because)))
        }
        Stop::Cancelled => {
            because.push("we ended it on request, and no result had come".into());
            Some(Outcome::Cancelled)
        }
        Stop::OverBudget { reason } => {
            because.push(format!("we ended it: {reason}"));
            Some(Outcome::BudgetReached { reason: reason.clone() })
        }
        Stop::Runaway { reason } => {
            because.push(format!("we ended it: {reason}"));
            Some(Outcome::Runaway { reason: reason.clone() })
        }
        Stop::Hindered(outcome) => Some(outcome.clone()),
        Stop::LingeredAfterResult => None,
    }
}

/// The time went by while its requests failed: what they failed with is the outcome. Without a status, nobody answered.
fn of_retry(error: &WireError, because: &mut Vec<String>) -> Outcome {
    because.push(format!("until then it tried the same request again: {}", error.message));
    match error.kind {
        WireErrorKind::Other if error.status.is_none() => {
            Outcome::Unreachable { reason: error.message.clone() }
        }
        _ => of_wire_error(error, None),
    }
}

fn of_exit(evidence: &Evidence, because: &mut Vec<String>) -> Option<Outcome> {
    let exit = evidence.exit?;
    if evidence.stop.is_some() {
        because.push(format!("the process did not end by itself after its result ({exit} is our doing)"));
        return None;
    }
    because.push(exit.to_string());
    if let Some(signal) = exit.signal_told_as_status() {
        let exit = Exit::Signal(signal);
        because.push(format!("that status stands for {exit}"));
        return Some(Outcome::crashed(exit));
    }
    if exit.is_success() {
        return None;
    }
    let said_success = || "its output ends with success".to_owned();
    let reason =
        if evidence.wire.end.is_some() { Some(said_success()) } else { evidence.wire.complaint.clone() };
    Some(Outcome::Crashed { exit, reason })
}

fn of_shape(evidence: &Evidence, because: &mut Vec<String>) -> Option<Outcome> {
    let wire = &evidence.wire;
    let left_traces = evidence.result_file.is_some();
    let (reason, outcome) = match &wire.shape {
        WireShape::Empty if left_traces => return None,
        WireShape::Empty => ("there was no output".to_owned(), Outcome::EmptyOutput),
        WireShape::Unstructured => {
            let changed = evidence.git.as_ref().is_some_and(GitFacts::changed);
            if left_traces || changed || evidence.git.is_none() || !wire.final_text.trim().is_empty() {
                return None;
            }
            ("there was no output, no result and no change".to_owned(), Outcome::EmptyOutput)
        }
        WireShape::PlainText => {
            because.push("plain text where structured output was asked for".into());
            return None;
        }
        WireShape::Structured => {
            let reason = "the output ended without its final event".to_owned();
            (reason.clone(), Outcome::ProtocolError { reason })
        }
        WireShape::Broken { reason } => (reason.clone(), Outcome::ProtocolError { reason: reason.clone() }),
    };
    because.push(reason);
    Some(outcome)
}

/// The process ended well, and so did its output: now what it says counts, checked against what it did.
fn of_proper_end(evidence: &Evidence, because: &mut Vec<String>) -> Outcome {
    match &evidence.result_file {
        Some(Err(error)) => {
            because.push(error.to_string());
            return Outcome::ProtocolError { reason: error.to_string() };
        }
        Some(Ok(file)) => {
            if let Some(outcome) = of_result_file(file, because) {
                return outcome;
            }
        }
        None => {}
    }
    let promise = Promise::find(&evidence.wire.final_text);
    let said = |promise: &Promise| format!("the final text says {}", promise.word());
    if let Some(promise) = &promise
        && let Some(outcome) = of_promise(promise)
    {
        because.push(said(promise));
        return outcome;
    }
    let changed = evidence.git.as_ref().map(GitFacts::changed);
    if let Some(denial) = evidence.wire.denials.first()
        && !evidence.read_only
        && changed != Some(true)
    {
        let reason = format!("`{}` was refused ({})", denial.tool, denial.detail);
        because.push(format!(
            "{} tool calls were refused and nothing is known to have changed",
            evidence.wire.denials.len()
        ));
        return Outcome::PermissionDenied { reason };
    }
    because.extend(promise.as_ref().map(said));
    match promise {
        Some(Promise::Continue(message)) => Outcome::Continue { message },
        Some(Promise::Complete | Promise::Done(_)) => Outcome::Done,
        _ if changed == Some(false) && !evidence.read_only => {
            because.push("no signal, no result file, and nothing changed".into());
            Outcome::NoChanges
        }
        _ => Outcome::Done,
    }
}

/// What a signal decides by itself, whatever changed.
fn of_promise(promise: &Promise) -> Option<Outcome> {
    match promise.clone() {
        Promise::Blocked(reason) => Some(Outcome::Blocked { reason }),
        Promise::Failed(reason) => Some(Outcome::Failed { reason }),
        Promise::Approve(_) => Some(Outcome::Approved),
        Promise::Reject(comment) => Some(Outcome::Rejected { comment }),
        Promise::Done(_) | Promise::Complete | Promise::Continue(_) => None,
    }
}

fn of_result_file(file: &ResultFile, because: &mut Vec<String>) -> Option<Outcome> {
    let reason =
        || file.reason.clone().or_else(|| file.comment.clone()).unwrap_or_else(|| "no reason given".into());
    let outcome = match (file.decision, file.outcome) {
        (_, Some(ResultOutcome::Failure)) => Outcome::Failed { reason: reason() },
        (_, Some(ResultOutcome::Blocked)) => Outcome::Blocked { reason: reason() },
        (_, Some(ResultOutcome::NeedsContinuation)) => Outcome::NeedsContinuation { reason: reason() },
        (Some(ReportedDecision::Approve), _) => Outcome::Approved,
        (Some(ReportedDecision::Reject), _) => Outcome::Rejected {
            comment: file.comment.clone().or_else(|| file.reason.clone()).unwrap_or_default(),
        },
        (None, Some(ResultOutcome::Success)) => Outcome::Done,
        (None, None) => return None,
    };
    because.push(format!("`result.json` of this run says {}", outcome.name()));
    Some(outcome)
}

fn of_wire_error(error: &WireError, exit: Option<Exit>) -> Outcome {
    let reason = error.message.clone();
    match error.kind {
        WireErrorKind::Auth => Outcome::AuthFailed { reason },
        WireErrorKind::RateLimit { until } => Outcome::RateLimited { until },
        WireErrorKind::Quota { until } => Outcome::QuotaExhausted { until },
        WireErrorKind::Overloaded => Outcome::Overloaded,
        WireErrorKind::Unreachable => Outcome::Unreachable { reason },
        WireErrorKind::BadAnswer => Outcome::ProtocolError { reason },
        WireErrorKind::Permission => Outcome::PermissionDenied { reason },
        WireErrorKind::Sandbox => Outcome::SandboxUnavailable { reason },
        WireErrorKind::Interrupted => match exit {
            Some(exit @ Exit::Signal(_)) => Outcome::crashed(exit),
            _ => Outcome::Cancelled,
        },
        WireErrorKind::Other => Outcome::Failed { reason },
    }
}

fn describe_end(end: &WireEnd) -> String {
    match end {
        WireEnd::Success => "the structured output ends with success".into(),
        WireEnd::MaxTurns => "the structured output ends with its turn limit".into(),
        WireEnd::BudgetReached => "the structured output ends with its budget limit".into(),
        WireEnd::TimedOut { after_ms } => {
            format!("the structured output ends with its own time limit, after {after_ms} ms")
        }
        WireEnd::Error(error) => {
            let status = error.status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
            format!("the structured output ends with an error{status}: {}", error.message)
        }
    }
}

fn describe_git(git: &GitFacts) -> String {
    let left = if git.uncommitted { ", some of it not committed" } else { "" };
    format!("git: {} new commits, {} files changed{left}", git.commits.len(), git.files_changed.len())
}

#[cfg(test)]
mod tests;
