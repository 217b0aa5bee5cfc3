//! A worker, live: a line for each task in work on a terminal, a line an event elsewhere.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use rehearsal_app::command_line;
use rehearsal_core::{Activity, Blame, NextAction, Outcome, StepFailure, TaskId, Timestamp};
use rehearsal_engine::why::gist;
use rehearsal_engine::{WorkEvent, WorkReporter};

use crate::commands::run;
use crate::context::Context;
use crate::ui::{BAD, BOLD, DIM, GOOD, ODD, Ui, harmless, one_line, styled};
use crate::words;

/// Tells people what happens, on standard error.
pub(crate) fn live(context: &Context) -> WorkReporter {
    let view = Mutex::new(View::new(context.ui));
    let clock = Arc::clone(&context.clock);
    Arc::new(move |event| {
        if let Ok(mut view) = view.lock() {
            view.show(&event, clock.now());
        }
    })
}

struct View {
    ui: Ui,
    /// On a terminal.
    bars: Option<MultiProgress>,
    in_work: BTreeMap<TaskId, InWork>,
    /// How many iterations there are, in the loop of a session.
    iterations: Option<u32>,
}

/// A task in work, as its line shows it.
struct InWork {
    title: String,
    /// Its tokens and its cost.
    usage: String,
    bar: Option<ProgressBar>,
}

const TITLE_WIDTH: usize = 50;
const REDRAW: Duration = Duration::from_millis(120);

impl View {
    fn new(ui: Ui) -> Self {
        let bars = ui.is_live().then(MultiProgress::new);
        Self { ui, bars, in_work: BTreeMap::new(), iterations: None }
    }

    fn show(&mut self, event: &WorkEvent, now: Timestamp) {
        match event {
            WorkEvent::WorkStarted { session: Some(session), .. } => {
                self.iterations = Some(session.iterations);
            }
            WorkEvent::Claimed { task, title, .. } | WorkEvent::Adopted { task, title, .. } => {
                let bar = self.bars.as_ref().map(|bars| bars.add(spinner()));
                let title = format!("{} {}", styled(BOLD, task), one_line(title, TITLE_WIDTH));
                self.in_work.insert(task.clone(), InWork { title, usage: String::new(), bar });
            }
            WorkEvent::AgentActed { task, activity: Activity::Usage { tokens, cost_usd }, .. } => {
                if let Some(task) = self.in_work.get_mut(task) {
                    let cost =
                        cost_usd.map_or_else(String::new, |cost| format!(" · {}", words::cost(Some(cost))));
                    task.usage = format!(" · {}{cost}", words::tokens(Some(*tokens)));
                }
            }
            _ => {}
        }
        self.redraw(event);
        let text = match self.iterations {
            Some(iterations) => run::view::in_words(event, iterations, now),
            None => in_words(event, now),
        };
        if let Some(text) = text {
            self.line(&text);
        }
        if let WorkEvent::Moved { task, .. } | WorkEvent::Lost { task, .. } = event
            && let Some(InWork { bar: Some(bar), .. }) = self.in_work.remove(task)
        {
            bar.finish_and_clear();
        }
    }

    /// What the line of the task that it is about shows now.
    fn redraw(&self, event: &WorkEvent) {
        let (task, doing) = match event {
            WorkEvent::Claimed { task, state, .. } | WorkEvent::Adopted { task, state, .. } => {
                (task, state.to_string())
            }
            WorkEvent::Prepared { task, .. } => (task, "starting".to_owned()),
            WorkEvent::StepStarted { task, step } => (task, one_line(step, 60)),
            WorkEvent::AgentActed { task, activity, .. } => match doing(activity) {
                Some(doing) => (task, doing),
                None => return,
            },
            _ => return,
        };
        if let Some(InWork { title, usage, bar: Some(bar) }) = self.in_work.get(task) {
            bar.set_message(format!("{title} · {doing}{}", styled(DIM, usage)));
        }
    }

    fn line(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| self.ui.aside(text)),
            None => self.ui.aside(text),
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if let Some(bars) = &self.bars {
            // Nothing is left to be drawn over.
            let _ = bars.clear();
        }
    }
}

/// The line for an event; none for what only the moving lines show.
fn in_words(event: &WorkEvent, now: Timestamp) -> Option<String> {
    let of = |task: &TaskId, text: String| format!("{}  {text}", styled(BOLD, task));
    Some(match event {
        WorkEvent::AgentActed { .. }
        | WorkEvent::StepStarted { .. }
        | WorkEvent::Prepared { .. }
        | WorkEvent::TaskReported { .. }
        | WorkEvent::CompleteRefused { .. } => return None,
        WorkEvent::WorkStarted { at_once, .. } => {
            format!("{} at most {} at once", styled(BOLD, "work"), words::count(u64::from(*at_once), "task"))
        }
        WorkEvent::Recovered { task, run, outcome } => {
            let text = format!("run {run} was left by a dead worker: {outcome}");
            of(task, styled(ODD, harmless(&text)))
        }
        WorkEvent::Adopted { task, title, state, agent, run, .. } => {
            let who = agent.as_ref().map_or_else(|| "what is left to do".to_owned(), ToString::to_string);
            let title = one_line(title, TITLE_WIDTH);
            of(task, format!("{state}: {who} goes on (run {run}), though its worker died  {title}"))
        }
        WorkEvent::Claimed { task, title, state, agent, run, taken_from, .. } => {
            let who = agent.as_ref().map_or_else(|| "steps".to_owned(), ToString::to_string);
            let from =
                taken_from.as_ref().map_or_else(String::new, |run| format!(", taken over from run {run}"));
            let text = format!("{state}: {who} (run {run}{from})  {}", one_line(title, TITLE_WIDTH));
            of(task, text)
        }
        WorkEvent::RunEnded { task, outcome, commits, cost_usd, duration_ms, .. } => {
            let style = if outcome.blame() == Blame::Nobody { GOOD } else { BAD };
            // What a reviewer wants changed is told when the task moves.
            let told = match outcome {
                Outcome::Rejected { .. } => outcome.name().to_string(),
                other => harmless(&other.to_string()),
            };
            let text = format!(
                "{} in {}, {}, cost {}",
                styled(style, told),
                words::duration(Duration::from_millis(*duration_ms)),
                words::count(*commits as u64, "commit"),
                words::cost(*cost_usd),
            );
            of(task, text)
        }
        WorkEvent::StepDone { task, step } => of(task, styled(DIM, format!("{}: done", one_line(step, 60)))),
        WorkEvent::StepFailed { task, step, failure } => of(task, failed_in_words(step, failure)),
        WorkEvent::Moved { task, from, to, status, reason, .. } => of(
            task,
            format!(
                "{} {}",
                styled(BOLD, format!("{from} → {}", where_to(to.as_str(), status))),
                reason
                    .as_deref()
                    .map_or_else(String::new, |reason| format!("({})", one_line(&gist(reason), 90)))
            )
            .trim_end()
            .to_owned(),
        ),
        WorkEvent::Lost { task, run } => {
            let text = format!("run {run} counts no more: the task was taken away meanwhile");
            of(task, styled(ODD, text))
        }
        WorkEvent::Held { lane, hold } => {
            let until = match hold.until {
                Some(until) => words::relative(until, now),
                None => {
                    format!("until `{}`", command_line::line(&NextAction::Resume { lane: lane.clone() }))
                }
            };
            styled(ODD, format!("{lane} is held: {}, {until}", harmless(&hold.reason)))
        }
        WorkEvent::Waiting { until, .. } => waiting_in_words(*until, now),
        WorkEvent::Warning { notice } => styled(ODD, format!("note: {}", harmless(&words::notice(notice)))),
    })
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(REDRAW);
    bar
}

fn doing(activity: &Activity) -> Option<String> {
    match activity {
        Activity::ToolCalled { tool, detail, .. } => {
            Some(format!("{} {}", harmless(tool), one_line(detail, 60)))
        }
        Activity::Text { text } => Some(one_line(text.trim(), 70)),
        Activity::Retrying { message } => Some(format!("retrying: {}", one_line(message, 60))),
        Activity::Started { .. } => Some("working".into()),
        Activity::Turn { .. }
        | Activity::Usage { .. }
        | Activity::ToolReturned { .. }
        | Activity::Unreadable { .. } => None,
    }
}

/// The state, and how it stands there if that is another word.
fn where_to(state: &str, status: &str) -> String {
    if state == status { state.to_owned() } else { format!("{state}, {status}") }
}

fn failed_in_words(step: &str, failure: &StepFailure) -> String {
    let what = match failure {
        StepFailure::Red { verdict, .. } => verdict.to_string(),
        StepFailure::Pending { .. } => "not decided yet".to_owned(),
        StepFailure::Transient { .. } => "failed for now".to_owned(),
        StepFailure::Systemic { .. } => "cannot be done here".to_owned(),
        StepFailure::Unknown { .. } => "needs a human".to_owned(),
    };
    let style = if matches!(failure, StepFailure::Pending { .. }) { ODD } else { BAD };
    let reason = one_line(&gist(failure.reason()), 100);
    format!("{}: {} ({reason})", one_line(step, 60), styled(style, what))
}

fn waiting_in_words(until: Option<Timestamp>, now: Timestamp) -> String {
    let text = match until {
        Some(until) => format!("waiting; something may go on {}", words::relative(until, now)),
        None => "waiting for tasks; Ctrl-C ends it".to_owned(),
    };
    styled(ODD, text)
}
