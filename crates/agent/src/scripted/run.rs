//! One scripted run: what it says, does and ends with.

use std::fmt;
use std::sync::Arc;

use rehearsal_core::{
    Activity, Denial, Evidence, Exit, GitFacts, Outcome, ReportedTask, ResultFile, Stop, Tokens, WireEnd,
    WireError, WireErrorKind, WireReport, WireShape,
};

use crate::RunRequest;

type Effect = Arc<dyn Fn(&RunRequest) + Send + Sync>;

/// What a scripted agent does in one run. Its outcome is judged from its evidence, as for any other agent,
/// unless [`outcome`](Self::outcome) gives it.
#[derive(Clone, Default)]
pub struct ScriptedRun {
    pub(super) evidence: Evidence,
    pub(super) outcome: Option<Outcome>,
    pub(super) tasks: Vec<ReportedTask>,
    pub(super) progress: Vec<String>,
    pub(super) effect: Option<Effect>,
    pub(super) never_ends: bool,
    watched: Vec<Activity>,
}

impl ScriptedRun {
    /// Ends well, and says `text` at the end.
    pub fn done(text: impl Into<String>) -> Self {
        let wire = WireReport {
            final_text: text.into(),
            shape: WireShape::Structured,
            end: Some(WireEnd::Success),
            ..WireReport::default()
        };
        Self {
            evidence: Evidence { exit: Some(Exit::Code(0)), wire, ..Evidence::default() },
            ..Self::default()
        }
    }

    /// Ends without a proper end of its work.
    pub fn crashes(exit: Exit) -> Self {
        Self { evidence: Evidence::of_exit(exit), ..Self::default() }
    }

    /// Ends with an error of the model's service, or of the agent itself.
    pub fn error(kind: WireErrorKind, message: impl Into<String>) -> Self {
        let error = WireError { kind, status: None, message: message.into() };
        Self::done("").exit(Exit::Code(1)).wire_end(WireEnd::Error(error))
    }

    /// Ends with this outcome, whatever the evidence.
    pub fn of(outcome: Outcome) -> Self {
        Self::stopped(Stop::Hindered(outcome))
    }

    /// Goes on until it is cancelled.
    pub fn never_ends() -> Self {
        Self { never_ends: true, ..Self::default() }
    }

    pub(super) fn stopped(stop: Stop) -> Self {
        Self { evidence: Evidence { stop: Some(stop), ..Evidence::default() }, ..Self::default() }
    }

    /// How the process ends.
    pub fn exit(mut self, exit: Exit) -> Self {
        self.evidence.exit = Some(exit);
        self
    }

    /// How the structured output ends.
    pub fn wire_end(mut self, end: WireEnd) -> Self {
        self.evidence.wire.end = Some(end);
        self
    }

    /// What it writes to `result.json`.
    pub fn result_file(mut self, file: ResultFile) -> Self {
        self.evidence.result_file = Some(Ok(file));
        self
    }

    /// What git says about it.
    pub fn git(mut self, facts: GitFacts) -> Self {
        self.evidence.git = Some(facts);
        self
    }

    /// An outcome that is given and not judged.
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = Some(outcome);
        self
    }

    /// Reports a task as done.
    pub fn task_done(mut self, id: impl Into<String>) -> Self {
        self.tasks.push(ReportedTask::Done { id: id.into(), reason: Some("as scripted".into()) });
        self
    }

    /// Reports a task as blocked.
    pub fn task_blocked(mut self, id: impl Into<String>, reason: impl Into<String>) -> Self {
        self.tasks.push(ReportedTask::Blocked { id: id.into(), reason: reason.into() });
        self
    }

    /// Writes a line for the session's journal.
    pub fn progress(mut self, line: impl Into<String>) -> Self {
        self.progress.push(line.into());
        self
    }

    /// Is seen to do this while it runs.
    pub fn activity(mut self, activity: Activity) -> Self {
        self.watched.push(activity);
        self
    }

    /// A tool call that the agent's own rules refuse.
    pub fn denied(mut self, tool: impl Into<String>, detail: impl Into<String>) -> Self {
        self.evidence.wire.denials.push(Denial { tool: tool.into(), detail: detail.into() });
        self
    }

    /// What it costs, in US dollars.
    pub fn cost(mut self, usd: f64) -> Self {
        self.evidence.wire.cost_usd = Some(usd);
        self
    }

    /// The tokens it uses.
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.evidence.wire.tokens = Some(tokens);
        self
    }

    /// The turns it takes.
    pub fn turns(mut self, turns: u64) -> Self {
        self.evidence.wire.turns = Some(turns);
        self
    }

    /// The id of its own session.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.evidence.wire.session_id = Some(id.into());
        self
    }

    /// What it does to the world: edits, commits, files in its run directory.
    pub fn effect(mut self, effect: impl Fn(&RunRequest) + Send + Sync + 'static) -> Self {
        self.effect = Some(Arc::new(effect));
        self
    }

    /// What a watcher sees of it: its session, what was scripted, the final text, the tokens.
    pub(super) fn activities(&self) -> Vec<Activity> {
        let wire = &self.evidence.wire;
        let mut all =
            vec![Activity::Started { session_id: wire.session_id.clone(), model: wire.model.clone() }];
        all.extend(self.watched.iter().cloned());
        if !wire.final_text.is_empty() {
            all.push(Activity::Text { text: wire.final_text.clone() });
        }
        if let Some(tokens) = wire.tokens {
            all.push(Activity::Usage { tokens, cost_usd: wire.cost_usd });
        }
        all
    }
}

impl fmt::Debug for ScriptedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedRun")
            .field("evidence", &self.evidence)
            .field("outcome", &self.outcome)
            .field("tasks", &self.tasks)
            .field("progress", &self.progress)
            .field("never_ends", &self.never_ends)
            .finish_non_exhaustive()
    }
}
