//! The log of a store as a story.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rehearsal_core::transition::TaskInput;
use rehearsal_core::{AgentName, Event, EventKind, RunId, StateName, Task, TaskId, Timestamp};
use rehearsal_store::Store;
use serde::Serialize;

use crate::error::CliError;
use crate::words;

/// One thing that happened.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Moment {
    /// How long after the beginning.
    after_ms: u64,
    task: TaskId,
    /// What.
    what: String,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = Duration::from_millis(self.after_ms).as_secs_f64();
        write!(f, "{:>9}  task {}  {}", format!("+{seconds:.2} s"), self.task, self.what)
    }
}

/// What happened to tasks, in order.
pub(super) async fn timeline(events: &[Event], store: &dyn Store) -> Result<Vec<Moment>, CliError> {
    let mut story = Story::default();
    for event in events {
        if let EventKind::TaskAdded { task } = &event.kind {
            story.steps.insert(task.id.clone(), steps_of(task, store).await?);
        }
        story.tell(event);
    }
    Ok(story.moments)
}

/// The names of the steps of each state of its flow.
async fn steps_of(task: &Task, store: &dyn Store) -> Result<BTreeMap<StateName, Vec<String>>, CliError> {
    let flow = store.flow(&task.flow_version).await?;
    let names = |state: &StateName| flow.steps_of(state).iter().map(ToString::to_string).collect();
    Ok(flow.states.keys().map(|state| (state.clone(), names(state))).collect())
}

#[derive(Default)]
struct Story {
    began: Option<Timestamp>,
    steps: BTreeMap<TaskId, BTreeMap<StateName, Vec<String>>>,
    states: BTreeMap<TaskId, StateName>,
    agents: BTreeMap<RunId, AgentName>,
    /// Of each task: who ran last, and how many commits it made.
    last_run: BTreeMap<TaskId, (RunId, usize)>,
    moments: Vec<Moment>,
}

impl Story {
    fn tell(&mut self, event: &Event) {
        let began = *self.began.get_or_insert(event.at);
        let told = match &event.kind {
            EventKind::TaskAdded { task } => {
                self.states.insert(task.id.clone(), task.state.clone());
                Some((task.id.clone(), format!("{}  ({})", task.state, task.title)))
            }
            EventKind::RunStarted { run } => {
                self.agents.insert(run.id.clone(), run.agent.clone());
                self.last_run.insert(run.task.clone(), (run.id.clone(), 0));
                let from = self.states.get(&run.task).map_or("-", StateName::as_str);
                Some((run.task.clone(), format!("{from} → claimed  ({})", run.agent)))
            }
            EventKind::RunEnded { run, end } => {
                for (_, commits) in self.last_run.values_mut().filter(|(last, _)| last == run) {
                    *commits = end.commits.len();
                }
                None
            }
            EventKind::TaskChanged { task, input, from, to } => {
                self.states.insert(task.clone(), to.clone());
                self.change(task, input, from, to).map(|what| (task.clone(), what))
            }
            _ => None,
        };
        if let Some((task, what)) = told {
            let after_ms = u64::try_from(event.at.since(began).as_millis()).unwrap_or(u64::MAX);
            self.moments.push(Moment { after_ms, task, what });
        }
    }

    fn change(&self, task: &TaskId, input: &TaskInput, from: &StateName, to: &StateName) -> Option<String> {
        // A task that stays where it is goes on: what happened to it is all there is to tell.
        let told = |what: String| {
            if from == to { format!("  {what}") } else { format!("claimed → {to}  ({what})") }
        };
        match input {
            TaskInput::EndRun { outcome, .. } => {
                let (run, commits) = self.last_run.get(task)?;
                let agent = self.agents.get(run).map_or("agent", AgentName::as_str);
                let commits = match commits {
                    0 => String::new(),
                    commits => format!(", {}", words::count(*commits as u64, "commit")),
                };
                Some(told(format!("{agent}: {outcome}{commits}")))
            }
            TaskInput::StepDone { step, delivery, .. } => {
                let name = self.steps.get(task)?.get(from)?.get(*step as usize)?;
                let effect = match name.as_str() {
                    "create_pr" => delivery.pull_request.as_ref().map(|it| format!(" #{}", it.number)),
                    "merge_pr" => delivery.merged.as_ref().map(|commit| format!(" {commit:.10}")),
                    _ => None,
                };
                Some(told(format!("{name}{}", effect.unwrap_or_default())))
            }
            TaskInput::StepFailed { step, failure, .. } => {
                let name = self.steps.get(task)?.get(from)?.get(*step as usize)?;
                Some(told(format!("{name}: {}", failure.reason())))
            }
            _ => None,
        }
    }
}
