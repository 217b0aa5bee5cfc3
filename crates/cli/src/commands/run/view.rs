//! A loop, live: one line that changes on a terminal, a line an event elsewhere.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rehearsal_core::{Activity, Blame, Timestamp, Tokens};
use rehearsal_engine::{SessionStart, WorkEvent, WorkReporter};

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
    bar: Option<ProgressBar>,
    iteration: u32,
    iterations: u32,
    title: String,
    doing: String,
    tokens: Option<Tokens>,
    cost: Option<f64>,
}

const TITLE_WIDTH: usize = 50;
const REDRAW: Duration = Duration::from_millis(120);

impl View {
    fn new(ui: Ui) -> Self {
        let bar = ui.is_live().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self {
            ui,
            bar,
            iteration: 0,
            iterations: 0,
            title: String::new(),
            doing: String::new(),
            tokens: None,
            cost: None,
        }
    }

    fn show(&mut self, event: &WorkEvent, now: Timestamp) {
        match event {
            WorkEvent::WorkStarted { session: Some(session), .. } => self.iterations = session.iterations,
            WorkEvent::Claimed { iteration: Some(iteration), title, .. } => {
                self.iteration = *iteration;
                self.title = one_line(title, TITLE_WIDTH);
                self.doing = "starting".into();
            }
            WorkEvent::AgentActed { activity, .. } => self.act(activity),
            WorkEvent::RunEnded { .. } => self.still(),
            _ => {}
        }
        if let Some(text) = self.in_words(event, now) {
            self.line(&text);
        }
        if matches!(event, WorkEvent::Claimed { .. } | WorkEvent::AgentActed { .. }) {
            self.redraw();
        }
    }

    /// The line for an event; none for what only the moving line shows.
    fn in_words(&self, event: &WorkEvent, now: Timestamp) -> Option<String> {
        Some(match event {
            WorkEvent::WorkStarted {
                session: Some(SessionStart { session, agent, open_tasks, .. }), ..
            } => {
                let open = words::count(*open_tasks, "open task");
                format!("{} session {session}, {open}, agent {agent}", styled(BOLD, "loop"))
            }
            WorkEvent::Recovered { run, task, outcome } => {
                let text = format!("run {run} of task {task} was left by a dead worker: {outcome}");
                styled(ODD, harmless(&text))
            }
            WorkEvent::Claimed { task, .. } => {
                format!("{} {task} {}", styled(BOLD, self.place()), self.title)
            }
            WorkEvent::RunEnded { .. } => ended_in_words(event)?,
            WorkEvent::TaskReported { task, title, status } => {
                format!("    {task} {} is now {}", one_line(title, TITLE_WIDTH), styled(BOLD, status))
            }
            WorkEvent::CompleteRefused { open_tasks } => {
                let open = words::count(*open_tasks, "task");
                styled(ODD, format!("    COMPLETE is refused: {open} not done"))
            }
            WorkEvent::Waiting { reason: Some(reason), until: Some(until) } => {
                let when = words::relative(*until, now);
                styled(ODD, format!("    waiting: {}, going on {when}", harmless(reason)))
            }
            WorkEvent::Warning { message } => styled(ODD, format!("    note: {}", harmless(message))),
            _ => return None,
        })
    }

    fn place(&self) -> String {
        format!("{}/{}", self.iteration, self.iterations)
    }

    fn act(&mut self, activity: &Activity) {
        match activity {
            Activity::ToolCalled { tool, detail, .. } => {
                self.doing = format!("{} {}", harmless(tool), one_line(detail, 60))
            }
            Activity::Text { text } => self.doing = one_line(text.trim(), 70),
            Activity::Retrying { message } => self.doing = format!("retrying: {}", one_line(message, 60)),
            Activity::Usage { tokens, cost_usd } => {
                self.tokens = Some(*tokens);
                self.cost = cost_usd.or(self.cost);
            }
            Activity::Started { .. } => self.doing = "working".into(),
            Activity::Turn { .. } | Activity::ToolReturned { .. } | Activity::Unreadable { .. } => {}
        }
    }

    fn redraw(&self) {
        let Some(bar) = &self.bar else { return };
        let tokens =
            self.tokens.map_or_else(String::new, |tokens| format!(" · {}", words::tokens(Some(tokens))));
        let cost = self.cost.map_or_else(String::new, |cost| format!(" · {}", words::cost(Some(cost))));
        bar.enable_steady_tick(REDRAW);
        bar.set_message(format!(
            "{} {} · {}{}",
            self.iteration,
            self.title,
            self.doing,
            styled(DIM, format!("{tokens}{cost}"))
        ));
    }

    /// Nothing moves until the next iteration.
    fn still(&self) {
        if let Some(bar) = &self.bar {
            bar.disable_steady_tick();
            bar.set_message("");
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.ui.aside(text)),
            None => self.ui.aside(text),
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn ended_in_words(event: &WorkEvent) -> Option<String> {
    let WorkEvent::RunEnded { outcome, commits, files_changed, cost_usd, duration_ms, .. } = event else {
        return None;
    };
    let style = if outcome.blame() == Blame::Nobody { GOOD } else { BAD };
    Some(format!(
        "    {} in {}, {}, {}, cost {}",
        styled(style, harmless(&outcome.to_string())),
        words::duration(Duration::from_millis(*duration_ms)),
        words::count(*commits as u64, "commit"),
        words::count(*files_changed as u64, "changed file"),
        words::cost(*cost_usd),
    ))
}
