//! How far a run is, in a line.

use rehearsal_testing::{Progress, RunEvent};

use crate::ui::one_line;

/// What was heard of a run so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// As many tests as the runner said there are; 0 if it did not.
    pub(crate) expected: u64,
    pub(crate) ended: u64,
    failed: u64,
}

impl Counts {
    /// What is to be shown now; none if nothing has changed for those who watch.
    pub(crate) fn hear(&mut self, event: &RunEvent<'_>) -> Option<String> {
        match event {
            RunEvent::Progress(Progress::Declared(total)) => {
                self.expected = *total;
                None
            }
            RunEvent::Progress(Progress::Started(test)) => Some(self.line(test.name)),
            RunEvent::Progress(Progress::Finished(test)) => {
                self.ended += 1;
                self.failed += u64::from(test.status.is_failure());
                Some(self.line(&test.name))
            }
            RunEvent::Retrying(tests) => Some(format!("again: {} failed tests", tests.len())),
            RunEvent::Started(_)
            | RunEvent::Progress(Progress::Problem(_))
            | RunEvent::Printed(..)
            | RunEvent::Ended(_) => None,
        }
    }

    fn line(&self, name: &str) -> String {
        let of = if self.expected > 0 { format!("/{}", self.expected) } else { String::new() };
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        format!("{}{of}{failed}  {}", self.ended, one_line(name, 60))
    }
}
