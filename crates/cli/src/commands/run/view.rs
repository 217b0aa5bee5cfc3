//! A loop, live: one line that changes on a terminal, a line an event elsewhere.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rehearsal_core::{Activity, Tokens};
use rehearsal_engine::{LoopEvent, Reporter};

use crate::context::Context;
use crate::ui::{BAD, BOLD, DIM, GOOD, ODD, Ui, harmless, one_line, styled};
use crate::words;

/// Tells people what happens, on standard error.
pub(crate) fn live(context: &Context) -> Reporter {
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
    iteration: String,
    title: String,
    doing: String,
    tokens: Option<Tokens>,
    cost: Option<f64>,
}

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
        Self { ui, bar, iteration: String::new(), title: String::new(), doing: String::new(), tokens: None, cost: None }
    }

    fn show(&mut self, event: &LoopEvent, now: rehearsal_core::Timestamp) {
        match event {
            LoopEvent::LoopStarted { session, agent, open_tasks, iterations } => {
                self.iteration = format!("/{iterations}");
                let open = words::count(*open_tasks, "open task");
                self.line(format!("{} session {session}, {open}, agent {agent}", styled(BOLD, "loop")));
            }
            LoopEvent::Recovered { run, task, outcome } => {
                self.line(styled(ODD, format!("run {run} of task {task} was left by a dead worker: {outcome}")));
            }
            LoopEvent::IterationStarted { iteration, task, title, .. } => {
                let of = self.iteration.split_once('/').map_or("", |(_, of)| of).to_owned();
                self.iteration = format!("{iteration}/{of}");
                self.title = one_line(title, 50);
                self.doing = "starting".into();
                self.line(format!("{} {task} {}", styled(BOLD, &self.iteration), self.title));
                self.redraw();
            }
            LoopEvent::AgentActed { activity, .. } => self.act(activity),
            LoopEvent::IterationEnded { outcome, commits, files_changed, cost_usd, duration_ms, .. } => {
                self.still();
                let style = if outcome.blame() == rehearsal_core::Blame::Nobody { GOOD } else { BAD };
                self.line(format!(
                    "    {} in {}, {}, {}, cost {}",
                    styled(style, harmless(&outcome.to_string())),
                    words::duration(Duration::from_millis(*duration_ms)),
                    words::count(*commits as u64, "commit"),
                    words::count(*files_changed as u64, "changed file"),
                    words::cost(*cost_usd),
                ));
            }
            LoopEvent::TaskReported { task, title, status } => {
                self.line(format!("    {task} {} is now {}", one_line(title, 50), styled(BOLD, status)));
            }
            LoopEvent::CompleteRefused { open_tasks } => {
                let open = words::count(*open_tasks, "task");
                self.line(styled(ODD, format!("    COMPLETE is refused: {open} not done")));
            }
            LoopEvent::Waiting { reason, until, .. } => {
                let text = format!("    waiting: {}, going on {}", harmless(reason), words::relative(*until, now));
                self.line(styled(ODD, text));
            }
            LoopEvent::Warning { message } => self.line(styled(ODD, format!("    note: {}", harmless(message)))),
        }
    }

    fn act(&mut self, activity: &Activity) {
        match activity {
            Activity::ToolCalled { tool, detail } => self.doing = format!("{} {}", harmless(tool), one_line(detail, 60)),
            Activity::Text { text } => self.doing = one_line(text.trim(), 70),
            Activity::Retrying { message } => self.doing = format!("retrying: {}", one_line(message, 60)),
            Activity::Usage { tokens, cost_usd } => {
                self.tokens = Some(*tokens);
                self.cost = cost_usd.or(self.cost);
            }
            Activity::Started { .. } => self.doing = "working".into(),
            Activity::ToolReturned { .. } | Activity::Unreadable { .. } => {}
        }
        self.redraw();
    }

    fn redraw(&self) {
        let Some(bar) = &self.bar else { return };
        let tokens = self.tokens.map_or_else(String::new, |tokens| format!(" · {}", words::tokens(Some(tokens))));
        let cost = self.cost.map_or_else(String::new, |cost| format!(" · {}", words::cost(Some(cost))));
        bar.enable_steady_tick(REDRAW);
        bar.set_message(format!("{} {} · {}{}", self.iteration, self.title, self.doing, styled(DIM, format!("{tokens}{cost}"))));
    }

    /// Nothing moves until the next iteration.
    fn still(&self) {
        if let Some(bar) = &self.bar {
            bar.disable_steady_tick();
            bar.set_message("");
        }
    }

    fn line(&self, text: String) {
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
