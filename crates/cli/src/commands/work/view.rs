//! A worker, live: moving lines for the tasks in work on a terminal, a line an event elsewhere.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rehearsal_app::command_line;
use rehearsal_core::{
    Activity, Blame, Clock, Hold, Lane, NextAction, Outcome, StepFailure, TaskId, Timestamp,
};
use rehearsal_engine::why::gist;
use rehearsal_engine::{WorkEvent, WorkReporter};

use super::foot::Foot;
use super::lines::{FRAME, InWork, Lines, Now, Until, Wait};
use crate::commands::run;
use crate::context::Context;
use crate::ui::{BAD, BOLD, DIM, GOOD, ODD, Ui, fit_styled, harmless, one_line, styled, terminal_size, wrap};
use crate::words;

/// Shows what a worker does, on standard error. Its moving lines are gone once it is dropped.
pub(crate) struct Live {
    view: Arc<Mutex<View>>,
    /// Draws the moving lines again and again, until its sender is dropped.
    ticker: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Live {
    pub(crate) fn new(context: &Context) -> Self {
        let foot = context.ui.is_live().then(Foot::default);
        let is_live = foot.is_some();
        let (ui, clock) = (context.ui, Arc::clone(&context.clock));
        let view = View { ui, clock, foot, lines: Lines::default(), iterations: None };
        let view = Arc::new(Mutex::new(view));
        let ticker = is_live.then(|| ticker(Arc::clone(&view)));
        Self { view, ticker }
    }

    /// Receives what happens.
    pub(crate) fn reporter(&self) -> WorkReporter {
        let view = Arc::clone(&self.view);
        Arc::new(move |event| locked(&view).show(&event))
    }

    /// Prints a line above the moving ones.
    pub(crate) fn aside(&self) -> impl Fn(&str) + Send + 'static {
        let view = Arc::clone(&self.view);
        move |text| {
            let view = &mut *locked(&view);
            let text = if view.foot.is_some() { wrap(text, terminal_size().0) } else { text.to_owned() };
            view.print(&text);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.ticker.take() {
            drop(sender);
            // It can only have panicked, which it has printed.
            let _ = thread.join();
        }
        if let Some(mut foot) = locked(&self.view).foot.take() {
            foot.erase(terminal_size().0);
        }
    }
}

fn locked(view: &Mutex<View>) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread, because the runtime has only one, which may be busy.
fn ticker(view: Arc<Mutex<View>>) -> (Sender<()>, JoinHandle<()>) {
    let (sender, receiver) = channel();
    let thread = std::thread::spawn(move || {
        while receiver.recv_timeout(FRAME) == Err(RecvTimeoutError::Timeout) {
            locked(&view).draw();
        }
    });
    (sender, thread)
}

struct View {
    ui: Ui,
    clock: Arc<dyn Clock>,
    /// On a terminal: where the moving lines are drawn.
    foot: Option<Foot>,
    lines: Lines,
    /// How many iterations there are, in the loop of a session.
    iterations: Option<u32>,
}

const TITLE_WIDTH: usize = 50;

impl View {
    fn show(&mut self, event: &WorkEvent) {
        if let WorkEvent::WorkStarted { session: Some(session), .. } = event {
            self.iterations = Some(session.iterations);
        }
        let now = self.now();
        self.lines.apply(event, now);
        let text = match self.iterations {
            Some(iterations) => run::view::in_words(event, iterations, now.wall),
            None => in_words(event, now.wall),
        };
        match text {
            // The moving lines count down.
            Some(_) if self.foot.is_some() && matches!(event, WorkEvent::Waiting { .. }) => {}
            Some(text) if self.foot.is_none() => self.print(&text),
            Some(text) if gives_a_reason(event) => self.print(&wrap(&text, terminal_size().0)),
            Some(text) => self.print(&fit_styled(&text, terminal_size().0)),
            None => {}
        }
    }

    fn print(&mut self, text: &str) {
        if let Some(foot) = &mut self.foot {
            foot.erase(terminal_size().0);
        }
        self.ui.aside(text);
        self.draw();
    }

    fn draw(&mut self) {
        let now = self.now();
        if let Some(foot) = &mut self.foot {
            let (width, height) = terminal_size();
            foot.draw(self.lines.shown(width, height, now), width);
        }
    }

    fn now(&self) -> Now {
        Now { monotonic: self.clock.monotonic(), wall: self.clock.now() }
    }
}

/// What is lost when such a line is cut is nowhere else on the screen.
fn gives_a_reason(event: &WorkEvent) -> bool {
    matches!(
        event,
        WorkEvent::Warning { .. }
            | WorkEvent::RunEnded { .. }
            | WorkEvent::StepFailed { .. }
            | WorkEvent::Moved { .. }
            | WorkEvent::Held { .. }
            | WorkEvent::Recovered { .. }
    )
}

impl Lines {
    fn apply(&mut self, event: &WorkEvent, now: Now) {
        match event {
            WorkEvent::Claimed { task, title, state, .. } | WorkEvent::Adopted { task, title, state, .. } => {
                let doing = state.to_string();
                let (title, since) = (title.clone(), now.monotonic);
                self.tasks.insert(task.clone(), InWork { title, doing, since, ..InWork::default() });
            }
            WorkEvent::Moved { task, .. } | WorkEvent::Lost { task, .. } => {
                self.tasks.remove(task);
            }
            WorkEvent::Prepared { task, .. } => self.doing(task, "starting".to_owned()),
            WorkEvent::StepStarted { task, step } => self.doing(task, step.clone()),
            WorkEvent::AgentActed { task, activity: Activity::Usage { tokens, cost_usd }, .. } => {
                if let Some(task) = self.tasks.get_mut(task) {
                    (task.tokens, task.cost_usd) = (Some(*tokens), cost_usd.or(task.cost_usd));
                }
            }
            WorkEvent::AgentActed { task, activity, .. } => {
                if let Some(doing) = doing(activity) {
                    self.doing(task, doing);
                }
            }
            WorkEvent::RunEnded { task, cost_usd, .. } => {
                if let Some(task) = self.tasks.get_mut(task) {
                    task.cost_usd = cost_usd.or(task.cost_usd);
                }
            }
            WorkEvent::Held { lane, hold } => self.pause(lane, hold, now),
            WorkEvent::Waiting { until, reason } => self.wait = Some(wait(*until, reason.as_deref(), now)),
            _ => {}
        }
    }

    fn doing(&mut self, task: &TaskId, doing: String) {
        if let Some(task) = self.tasks.get_mut(task) {
            task.doing = doing;
        }
    }

    fn pause(&mut self, lane: &Lane, hold: &Hold, now: Now) {
        let what = format!("{lane} is paused: {}", harmless(&hold.reason));
        match hold.until {
            Some(at) => self.pauses.insert(lane.to_string(), Wait { what, until: Some(until(at, now)) }),
            None => self.pauses.remove(&lane.to_string()),
        };
    }
}

fn wait(at: Option<Timestamp>, reason: Option<&str>, now: Now) -> Wait {
    let what = match (reason, at) {
        (Some(reason), _) => format!("waiting: {}", harmless(reason)),
        (None, Some(_)) => "waiting".to_owned(),
        (None, None) => "waiting for tasks; Ctrl-C stops".to_owned(),
    };
    Wait { what, until: at.map(|at| until(at, now)) }
}

fn until(at: Timestamp, now: Now) -> Until {
    Until { at, shown: words::time_of_day(at, now.wall) }
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
