//! Panics that tests print while they run (`--nocapture`), until it is known which of them failed.

use std::collections::{HashMap, VecDeque};

use crate::parse::rust_failure::panic_header;

/// Threads whose panics are remembered.
const MOST_THREADS: usize = 1000;
/// Bytes of one panic.
const LONGEST: usize = 16 << 10;

#[derive(Debug, Default)]
pub(super) struct Panics {
    by_thread: HashMap<String, VecDeque<String>>,
    current: Option<String>,
    /// What tests returned as errors: printed without a name.
    errors: VecDeque<String>,
    in_error: bool,
}

impl Panics {
    /// Takes a line that no one else wants.
    pub(super) fn line(&mut self, line: &str) {
        if let Some((thread, ..)) = panic_header(line) {
            self.in_error = false;
            self.current = None;
            if self.by_thread.len() < MOST_THREADS || self.by_thread.contains_key(thread) {
                let panics = self.by_thread.entry(thread.to_owned()).or_default();
                if panics.len() < 10 {
                    panics.push_back(String::new());
                    self.current = Some(thread.to_owned());
                }
            }
        } else if line.starts_with("Error: ") && self.errors.len() < MOST_THREADS {
            (self.current, self.in_error) = (None, true);
            self.errors.push_back(String::new());
        } else if line.starts_with("error: ") || line.trim_start().starts_with("Running ") {
            (self.current, self.in_error) = (None, false);
        }
        let open = match &self.current {
            Some(thread) => self.by_thread.get_mut(thread).and_then(VecDeque::back_mut),
            None if self.in_error => self.errors.back_mut(),
            None => None,
        };
        if let Some(text) = open
            && text.len() + line.len() < LONGEST
        {
            text.push_str(line);
            text.push('\n');
        }
    }

    /// The panic of a test that failed.
    pub(super) fn take(&mut self, test: &str) -> Option<String> {
        self.by_thread.get_mut(test)?.pop_front()
    }

    /// The next error that a test returned.
    pub(super) fn take_error(&mut self) -> Option<String> {
        self.errors.pop_front()
    }
}
