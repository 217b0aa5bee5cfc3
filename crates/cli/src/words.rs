//! Numbers as people read them.

mod bounds;
pub(crate) mod check;
pub(crate) mod doctor;
mod notice;

use std::time::Duration;

use rehearsal_app::tasks::Decision;
use rehearsal_app::testing::FoundTests;
pub(crate) use rehearsal_app::text::cost;
use rehearsal_app::text::harmless;
use rehearsal_core::{Timestamp, Tokens};

pub(crate) use bounds::{confined, confined_agents, granted};
pub(crate) use notice::{notice, remedy};

/// `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=9 => format!("{:.1} s", duration.as_secs_f64()),
        10..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..=86_399 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// `4 s`, `3 min 20 s`, `2 h 5 min`: for a number that changes before one's eyes.
pub(crate) fn seconds(duration: Duration) -> String {
    if duration.as_secs() < 10 { format!("{} s", duration.as_secs()) } else { self::duration(duration) }
}

/// `4s`, `3m20s`, `2h05m`, where there is little room.
pub(crate) fn short_seconds(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=59 => format!("{seconds}s"),
        60..=3599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..=86_399 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// `1.2k in, 340 out`.
pub(crate) fn tokens(tokens: Option<Tokens>) -> String {
    tokens.map_or_else(
        || "unknown".into(),
        |tokens| format!("{} in, {} out", thousands(tokens.input), thousands(tokens.output)),
    )
}

/// `340`, `1.2k`, `3.4M`.
pub(crate) fn thousands(number: u64) -> String {
    match number {
        0..=999 => number.to_string(),
        1_000..=999_999 => format!("{}.{}k", number / 1_000, number % 1_000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// `1 task`, `2 tasks`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// Which tests there are, in a line; nothing if there are none.
pub(crate) fn tests(tests: &[FoundTests]) -> Option<String> {
    let words = |test: &FoundTests| {
        let what = test.command.as_deref().unwrap_or(test.framework.name());
        let place = if test.root == "." { String::new() } else { format!(" in {}", test.root) };
        let by = test.found_by.as_deref().map_or_else(String::new, |file| format!(" ({file})"));
        format!("{what}{place}{by}")
    };
    let all: Vec<String> = tests.iter().map(words).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// How long ago, or in how long.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    if at > now {
        format!("in {}", duration(at.since(now)))
    } else {
        format!("{} ago", duration(now.since(at)))
    }
}

/// What a person decided, who that was, and when.
pub(crate) fn decision(decision: &Decision, now: Timestamp) -> String {
    let Decision { what, by, at } = decision;
    harmless(&format!("{what} by {by} {}", relative(*at, now)))
}

/// When something ends, or that it has ended.
pub(crate) fn ends(at: Timestamp, now: Timestamp) -> String {
    format!("{} {}", if at > now { "ends" } else { "ended" }, relative(at, now))
}

/// A moment in the user's time zone.
pub(crate) fn moment(at: Timestamp) -> String {
    local(at).map_or_else(|| at.to_string(), |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// A coming time of day in the user's time zone, with the date if it does not come within a day.
pub(crate) fn time_of_day(at: Timestamp, now: Timestamp) -> String {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let format = if at.since(now) < DAY { "%H:%M" } else { "%b %-d, %H:%M" };
    local(at).map_or_else(|| at.to_string(), |at| at.strftime(format).to_string())
}

/// The time of day to the second, in the user's time zone.
pub(crate) fn clock(at: Timestamp) -> String {
    local(at).map_or_else(|| at.to_string(), |at| at.strftime("%H:%M:%S").to_string())
}

fn local(at: Timestamp) -> Option<jiff::Zoned> {
    let at = jiff::Timestamp::from_millisecond(at.0).ok()?;
    Some(at.to_zoned(jiff::tz::TimeZone::system()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_unknown_is_not_zero() {
        assert_eq!(duration(Duration::from_millis(420)), "0.4 s");
        assert_eq!(duration(Duration::from_secs(200)), "3 min 20 s");
        assert_eq!(duration(Duration::from_secs(7500)), "2 h 5 min");
        assert_eq!(cost(None), "unknown");
        assert_eq!(cost(Some(0.0)), "$0.00");
        assert_eq!(cost(Some(0.0024)), "$0.0024");
        assert_eq!(tokens(Some(Tokens { input: 1234, cached: 0, output: 60 })), "1.2k in, 60 out");
        assert_eq!(count(1, "task"), "1 task");
    }
}
