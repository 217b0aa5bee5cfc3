//! What is being played, live: one line on a terminal, nothing elsewhere.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::ui::{Ui, one_line};

const REDRAW: Duration = Duration::from_millis(120);
/// Names longer than this are not read in passing.
const NAMES_WIDTH: usize = 100;

/// The line, and those whose names it shows.
pub(super) struct Progress {
    ui: Ui,
    /// On a terminal.
    bar: Option<ProgressBar>,
    playing: Mutex<BTreeSet<String>>,
}

impl Progress {
    pub(super) fn new(ui: Ui, scenarios: usize) -> Self {
        let bar = ui.is_live().then(|| bar_of(scenarios));
        Self { ui, bar, playing: Mutex::default() }
    }

    pub(super) fn began(&self, name: &str) {
        self.redraw(|playing| playing.insert(name.to_owned()));
    }

    pub(super) fn ended(&self, name: &str) {
        self.redraw(|playing| playing.remove(name));
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Prints above the line.
    pub(super) fn say(&self, text: impl std::fmt::Display) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.ui.say(text)),
            None => self.ui.say(text),
        }
    }

    fn redraw(&self, change: impl FnOnce(&mut BTreeSet<String>) -> bool) {
        let mut playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut playing);
        if let Some(bar) = &self.bar {
            let names: Vec<&str> = playing.iter().map(String::as_str).collect();
            bar.set_message(one_line(&names.join(", "), NAMES_WIDTH));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar_of(scenarios: usize) -> ProgressBar {
    let bar = ProgressBar::new(scenarios as u64);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} of {len} scenarios played · {wide_msg}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(REDRAW);
    bar
}
