//! An agent that does as it was told: queued results, or a handler, and every call kept for the test.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rehearsal_core::{Evidence, Outcome, Promise, Stop, judge};
use tokio_util::sync::CancellationToken;

use crate::clis::Sessions;
use crate::excerpt::{beginning, nearest_part};
use crate::{Agent, Permission, RunReport, RunRequest, Watch};

mod run;

pub use run::ScriptedRun;

/// What a [`ScriptedAgent`] does when it is asked for more runs than it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenEmpty {
    /// The run fails and says what was asked: a stand-in that is asked more than it was told is loud.
    #[default]
    Fail,
    /// It says that all is complete.
    Complete,
}

type Handler = Arc<dyn Fn(&RunRequest) -> ScriptedRun + Send + Sync>;

/// An agent in this process that plays what a test scripted.
///
/// ```
/// use rehearsal_agent::{ScriptedAgent, ScriptedRun};
///
/// let agent = ScriptedAgent::new()
///     .then(ScriptedRun::done("half of it").task_done("t1"))
///     .then(ScriptedRun::done("<promise>COMPLETE</promise>"));
/// agent.assert_call_count(0);
/// ```
#[derive(Default)]
pub struct ScriptedAgent {
    runs: Vec<ScriptedRun>,
    handler: Option<Handler>,
    when_empty: WhenEmpty,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: Vec<RunRequest>,
    played: usize,
}

impl ScriptedAgent {
    /// An agent without a script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next run.
    pub fn then(mut self, run: ScriptedRun) -> Self {
        self.runs.push(run);
        self
    }

    /// Answers every request by a function, instead of a queue.
    pub fn with_handler(
        mut self,
        handler: impl Fn(&RunRequest) -> ScriptedRun + Send + Sync + 'static,
    ) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Chooses what happens after the last scripted run.
    pub fn when_empty(mut self, when_empty: WhenEmpty) -> Self {
        self.when_empty = when_empty;
        self
    }

    /// Every request so far, in order.
    pub fn calls(&self) -> Vec<RunRequest> {
        self.state().calls.clone()
    }

    /// Forgets the calls and begins the script again.
    pub fn reset(&self) {
        *self.state() = State::default();
    }

    /// Panics unless it was asked exactly `expected` times.
    #[track_caller]
    pub fn assert_call_count(&self, expected: usize) {
        let calls = self.calls();
        let prompts: Vec<String> = calls
            .iter()
            .enumerate()
            .map(|(at, call)| format!("\n  call {at}: {}", beginning(&call.prompt)))
            .collect();
        assert!(
            calls.len() == expected,
            "expected {expected} calls of the scripted agent, but there were {}{}",
            calls.len(),
            prompts.concat()
        );
    }

    /// Panics unless the prompt of a call, counted from 0, contains `text`.
    #[track_caller]
    pub fn assert_prompt_contains(&self, call: usize, text: &str) {
        let calls = self.calls();
        let Some(request) = calls.get(call) else {
            panic!("there is no call {call} of the scripted agent: there were {} calls", calls.len());
        };
        assert!(
            request.prompt.contains(text),
            "the prompt of call {call} does not contain {text:?}; the nearest part of it is\n{}",
            nearest_part(&request.prompt, text)
        );
    }

    /// Panics unless every scripted run was played.
    #[track_caller]
    pub fn assert_all_played(&self) {
        let played = self.state().played;
        assert!(played >= self.runs.len(), "only {played} of {} scripted runs were played", self.runs.len());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, request: &RunRequest) -> ScriptedRun {
        if let Some(handler) = &self.handler {
            return handler(request);
        }
        let played = {
            let mut state = self.state();
            state.played += 1;
            state.played
        };
        match (self.runs.get(played - 1), self.when_empty) {
            (Some(run), _) => run.clone(),
            (None, WhenEmpty::Complete) => ScriptedRun::done("<promise>COMPLETE</promise>"),
            (None, WhenEmpty::Fail) => ScriptedRun::of(Outcome::Failed {
                reason: format!(
                    "{} runs were scripted, and this is call {played}, which asks: {}",
                    self.runs.len(),
                    beginning(&request.prompt)
                ),
            }),
        }
    }
}

#[async_trait]
impl Agent for ScriptedAgent {
    async fn run(&self, request: RunRequest, watch: Watch, cancel: CancellationToken) -> RunReport {
        self.state().calls.push(request.clone());
        if cancel.is_cancelled() {
            return cancelled();
        }
        let run = self.next(&request);
        if run.never_ends {
            cancel.cancelled().await;
            return cancelled();
        }
        if let Some(effect) = &run.effect {
            effect(&request);
        }
        run.activities().into_iter().for_each(|activity| watch(activity));
        report(run, request.permission)
    }

    fn driver(&self) -> &'static str {
        "scripted"
    }

    fn sessions(&self) -> Sessions {
        Sessions::default()
    }
}

fn report(run: ScriptedRun, permission: Permission) -> RunReport {
    let evidence = Evidence { read_only: permission == Permission::Plan, ..run.evidence };
    let mut verdict = judge(&evidence);
    if let Some(outcome) = run.outcome {
        verdict.outcome = outcome;
        verdict.because = vec!["the script says so".to_owned()];
    }
    let file = evidence.result_file.as_ref().and_then(|file| file.as_ref().ok());
    let (mut tasks, mut progress) =
        file.map(|file| (file.tasks.clone(), file.progress.clone())).unwrap_or_default();
    tasks.extend(run.tasks);
    progress.extend(run.progress);
    RunReport {
        verdict,
        promise: Promise::find(&evidence.wire.final_text),
        evidence,
        tasks,
        progress,
        tries: 1,
        warnings: Vec::new(),
        sandbox: None,
    }
}

fn cancelled() -> RunReport {
    report(ScriptedRun::stopped(Stop::Cancelled), Permission::default())
}

#[cfg(test)]
mod tests;
