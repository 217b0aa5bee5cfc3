//! For tests of recovery: lets the program kill itself at a moment of its work. Nothing is cleared up, exactly as if the
//! kernel had ended it there.

use async_trait::async_trait;
use rehearsal_core::TaskId;
use rehearsal_engine::{Moment, Moments, Reaction};
use rustix::process::{Signal, getpid, kill_process};

use crate::error::CliError;

/// Where to die: `MOMENT`, or `MOMENT:STEP`.
pub(super) const VARIABLE: &str = "REHEARSAL_DIE_AT";

/// Dies where it was told to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DieAt {
    moment: Moment,
    step: Option<String>,
}

impl DieAt {
    pub(super) fn parse(place: &str) -> Result<Self, CliError> {
        let (name, step) = match place.split_once(':') {
            Some((name, step)) => (name, Some(step.to_owned())),
            None => (place, None),
        };
        let Some(moment) = Moment::ALL.into_iter().find(|moment| moment.as_str() == name) else {
            let known = Moment::ALL.map(Moment::as_str).join(", ");
            return Err(CliError::usage(format!("{VARIABLE}: there is no moment `{name}`"))
                .hint(format!("there are {known}; those of steps take a step: `step_acted:merge_pr`")));
        };
        Ok(Self { moment, step })
    }
}

#[async_trait]
impl Moments for DieAt {
    async fn reached(&self, moment: Moment, _task: &TaskId, step: Option<&str>) -> Reaction {
        if moment != self.moment || (self.step.is_some() && self.step.as_deref() != step) {
            return Reaction::GoOn;
        }
        let _: rustix::io::Result<()> = kill_process(getpid(), Signal::KILL);
        // The signal is delivered before the call returns.
        Reaction::Die
    }
}
