//! The moving lines of a terminal: what is in work, and what is waited for. Pure functions of what is known, the width
//! of the terminal and the time.

use std::collections::BTreeMap;
use std::time::Duration;

use rehearsal_core::{TaskId, Timestamp, Tokens};

use crate::ui::{columns, fit};
use crate::words;

/// What the moving lines show.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) tasks: BTreeMap<TaskId, InWork>,
    /// Paused lanes that continue by themselves.
    pub(super) pauses: BTreeMap<String, Wait>,
    /// What a worker without a task waits for.
    pub(super) wait: Option<Wait>,
}

/// A task in work.
#[derive(Debug, Clone, Default)]
pub(super) struct InWork {
    pub(super) title: String,
    pub(super) doing: String,
    pub(super) tokens: Option<Tokens>,
    pub(super) cost_usd: Option<f64>,
    /// The monotonic time at which this worker got it.
    pub(super) since: Duration,
}

/// Something that is waited for.
#[derive(Debug, Clone)]
pub(super) struct Wait {
    pub(super) what: String,
    pub(super) until: Option<Until>,
}

/// The end of a wait.
#[derive(Debug, Clone)]
pub(super) struct Until {
    pub(super) at: Timestamp,
    /// The same as a time of day.
    pub(super) shown: String,
}

/// The time on both clocks: one measures durations, the other says when a wait is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) monotonic: Duration,
    pub(super) wall: Timestamp,
}

/// From this width on, numbers have units.
const WIDE: usize = 80;
/// What a terminal echoes for Ctrl-C must fit behind each line, or it would wrap.
const MARGIN: usize = 3;
/// An action is not worth showing in less.
const LEAST_ACTION: usize = 12;
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
pub(super) const FRAME: Duration = Duration::from_millis(120);

impl Lines {
    /// All lines, none of them wider than the terminal, and no more of them than it has room for.
    pub(super) fn shown(&self, width: usize, height: usize, now: Now) -> Vec<String> {
        let room = width.saturating_sub(MARGIN);
        let tasks = self.tasks.iter().map(|(id, task)| task.line(id, room, now));
        let is_over = |wait: &&Wait| wait.until.as_ref().is_some_and(|until| until.at <= now.wall);
        let pauses = self.pauses.values().filter(|wait| !is_over(wait)).map(|wait| wait.line(room, now));
        let idle = self.wait.iter().filter(|_| self.tasks.is_empty()).map(|wait| wait.line(room, now));
        let mut lines: Vec<String> = tasks.chain(pauses).chain(idle).collect();
        // The cursor is below them.
        let most = height.saturating_sub(1);
        if lines.len() > most {
            let hidden = lines.len() - most.saturating_sub(1);
            lines.truncate(most.saturating_sub(1));
            lines.push(fit(&format!("… and {hidden} more"), room));
        }
        lines
    }
}

impl InWork {
    fn line(&self, id: &TaskId, room: usize, now: Now) -> String {
        let numbers = self.numbers(room, now);
        let head = format!("{} {id} ", frame(now));
        let left = room.saturating_sub(columns(&head) + columns(&numbers));
        let title = fit(&self.title, left);
        let action = left.saturating_sub(columns(" · ") + columns(&self.title).min(left / 2));
        if self.doing.is_empty() || action < LEAST_ACTION {
            return fit(&format!("{head}{title}{numbers}"), room);
        }
        let action = fit(&self.doing, action);
        let title = fit(&self.title, left.saturating_sub(columns(" · ") + columns(&action)));
        fit(&format!("{head}{title} · {action}{numbers}"), room)
    }

    /// Elapsed time, tokens and cost; what is unknown is left out.
    fn numbers(&self, room: usize, now: Now) -> String {
        let elapsed = now.monotonic.saturating_sub(self.since);
        let is_wide = room + MARGIN >= WIDE;
        let elapsed = if is_wide { words::seconds(elapsed) } else { words::short_seconds(elapsed) };
        let tokens = self.tokens.map(|tokens| {
            if is_wide { words::tokens(Some(tokens)) } else { words::thousands(tokens.total()) }
        });
        let cost = self.cost_usd.map(|usd| words::cost(Some(usd)));
        let numbers: Vec<String> = [Some(elapsed), tokens, cost].into_iter().flatten().collect();
        format!(" · {}", numbers.join(" · "))
    }
}

impl Wait {
    fn line(&self, room: usize, now: Now) -> String {
        let Some(until) = &self.until else { return fit(&format!("{} {}", frame(now), self.what), room) };
        let left = until.at.since(now.wall);
        let left = if room + MARGIN >= WIDE { words::seconds(left) } else { words::short_seconds(left) };
        let rest = format!(" · {left} left, until {}", until.shown);
        let what = format!("{} {}", frame(now), self.what);
        fit(&format!("{}{rest}", fit(&what, room.saturating_sub(columns(&rest)))), room)
    }
}

fn frame(now: Now) -> &'static str {
    let number = now.monotonic.as_millis() / FRAME.as_millis();
    FRAMES[usize::try_from(number).unwrap_or(0) % FRAMES.len()]
}

#[cfg(test)]
mod tests;
