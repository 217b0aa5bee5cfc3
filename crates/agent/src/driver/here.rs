//! When and where a run is: what anchors waits that are given as durations or as times of day.

use std::sync::Arc;

use jiff::tz::TimeZone;
use rehearsal_core::{Clock, Timestamp, VirtualClock};

use crate::environment::Variables;

/// A clock, and the time zone of the person whose agent it is.
#[derive(Clone)]
pub struct Here {
    clock: Arc<dyn Clock>,
    zone: TimeZone,
}

impl Here {
    /// The zone that these variables name with `TZ`, as the agent sees it too; else the machine's.
    pub fn of(clock: Arc<dyn Clock>, ours: &Variables) -> Self {
        let named = ours.get("TZ").map(|name| name.trim_start_matches(':')).filter(|name| !name.is_empty());
        let zone = named.and_then(|name| TimeZone::get(name).or_else(|_| TimeZone::posix(name)).ok());
        Self { clock, zone: zone.unwrap_or_else(TimeZone::system) }
    }

    /// A moment that does not pass, in UTC.
    pub fn at(moment: Timestamp) -> Self {
        Self { clock: Arc::new(VirtualClock::starting_at(moment)), zone: TimeZone::UTC }
    }

    /// The present moment.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The zone of times of day that name none.
    pub(crate) fn zone(&self) -> &TimeZone {
        &self.zone
    }
}
