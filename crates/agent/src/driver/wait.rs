//! When a vendor says that it may go on.
//!
//! It is given as seconds, as a date of HTTP, as `8h36m13s`, as "try again in 2 hours 13 minutes", and as a time
//! of day: "try again at 9:30 PM" (codex, in the machine's time zone), "resets 3pm (Europe/Berlin)" (claude).

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;
use rehearsal_core::Timestamp;
use rehearsal_core::vendor::if_sensible;
pub(crate) use rehearsal_core::vendor::{in_seconds, retry_after};

use super::here::Here;

/// What is over for less than this is not tomorrow's: clocks differ, and times of day are rounded.
const JUST_OVER_MS: i64 = 10 * 60_000;

/// The moment that seconds since 1970 stand for.
pub(crate) fn epoch(seconds: i64, now: Timestamp) -> Option<Timestamp> {
    if_sensible(Timestamp(seconds.checked_mul(1000)?), now)
}

/// The moment that an error's message names.
pub(crate) fn reset_time(message: &str, here: &Here) -> Option<Timestamp> {
    let now = here.now();
    let message = message.to_ascii_lowercase();
    for opening in ["try again in ", "retry in ", "reset after ", "resets in ", "reset in ", "retry after "] {
        if let Some(seconds) = following(&message, opening).and_then(duration) {
            return in_seconds(seconds, now);
        }
    }
    if let Some(seconds) = ["retry after ", "retry-after: "]
        .iter()
        .find_map(|opening| following(&message, opening)?.split_whitespace().next()?.parse().ok())
    {
        return in_seconds(seconds, now);
    }
    if let Some(moment) = stamp(&message, now) {
        return Some(moment);
    }
    let openings = ["try again at ", "try again after ", "resets at ", "reset at ", "resets on ", "resets "];
    let rest = openings.iter().find_map(|opening| following(&message, opening))?;
    clock_time(rest, here)
}

/// `…|1760000000` (claude), `resets at 1760000000`, `try again at 2026-11-15T21:00:00z`.
fn stamp(message: &str, now: Timestamp) -> Option<Timestamp> {
    let words = message.split([' ', '|', ',', '(', ')']).map(|word| word.trim_end_matches('.'));
    words.into_iter().find_map(|word| {
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            return match word.len() {
                10 => epoch(word.parse().ok()?, now),
                13 => if_sensible(Timestamp(word.parse().ok()?), now),
                _ => None,
            };
        }
        let date: jiff::Timestamp = word.to_ascii_uppercase().parse().ok()?;
        if_sensible(Timestamp(date.as_millisecond()), now)
    })
}

fn following<'a>(text: &'a str, opening: &str) -> Option<&'a str> {
    text.find(opening).map(|at| &text[at + opening.len()..])
}

/// Seconds of `8h36m13s`, `1.5s`, `3 days 3 hours`, `20ms`; none if it is no duration.
pub(crate) fn duration(text: &str) -> Option<f64> {
    let mut total = None;
    let mut rest = text.trim_start_matches("about ");
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else {
            return total;
        };
        let after_number = rest[digits..].trim_start();
        let unit = after_number.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after_number.len());
        let Some(seconds) = unit_seconds(&after_number[..unit]) else {
            return total;
        };
        total = Some(total.unwrap_or(0.0) + number * seconds);
        rest = after_number[unit..].trim_start_matches([' ', ',']).trim_start_matches("and ");
    }
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

/// `9:30 pm`, `3pm (europe/berlin)`, `mar 5th, 2026 9:30 pm`, `oct 6, 1pm`, `thu 9am`, `14:00 utc`. The next such moment.
fn clock_time(text: &str, here: &Here) -> Option<Timestamp> {
    let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).take(7).collect();
    let zone = named_zone(text, &words).unwrap_or_else(|| here.zone().clone());
    let now = here.now();
    let today = jiff::Timestamp::from_millisecond(now.0).ok()?.to_zoned(zone.clone()).date();
    let (date, rest) = match (month(words.first()?), weekday(words.first()?)) {
        (Some(month), _) => {
            let day = words.get(1)?.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
            let year = words.get(2).filter(|word| word.len() == 4).and_then(|word| word.parse::<i16>().ok());
            let date = Date::new(year.unwrap_or(today.year()), month, day).ok()?;
            (Some(date), &words[if year.is_some() { 3 } else { 2 }..])
        }
        (None, Some(weekday)) if today.weekday() == weekday => (Some(today), &words[1..]),
        (None, Some(weekday)) => (Some(today.nth_weekday(1, weekday).ok()?), &words[1..]),
        (None, None) => (None, &words[..]),
    };
    let rest = rest.strip_prefix(&["at"]).unwrap_or(rest);
    let time = time_of_day(rest.first()?, rest.get(1).copied().unwrap_or_default())?;
    let moment = |date: Date| {
        let at = DateTime::from_parts(date, time).to_zoned(zone.clone()).ok()?;
        let at = Timestamp(at.timestamp().as_millisecond());
        if (now.0 - JUST_OVER_MS..now.0).contains(&at.0) { Some(now) } else { if_sensible(at, now) }
    };
    match date {
        Some(date) => moment(date),
        None => moment(today).or_else(|| moment(today.tomorrow().ok()?)),
    }
}

/// The zone in parentheses, or after the time.
fn named_zone(text: &str, words: &[&str]) -> Option<TimeZone> {
    let inside = following(text, "(").and_then(|rest| rest.split(')').next());
    let plain = words.iter().find(|word| matches!(word.trim_end_matches('.'), "utc" | "gmt"));
    inside.and_then(|name| TimeZone::get(name).ok()).or_else(|| plain.map(|_| TimeZone::UTC))
}

fn weekday(word: &str) -> Option<Weekday> {
    let names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let at = names.iter().position(|name| word.len() >= 3 && name.starts_with(word))?;
    Weekday::from_monday_zero_offset(i8::try_from(at).ok()?).ok()
}

fn month(word: &str) -> Option<i8> {
    let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let at = months.iter().position(|month| word.get(..3) == Some(month))?;
    i8::try_from(at + 1).ok()
}

fn time_of_day(word: &str, next: &str) -> Option<Time> {
    let digits = word.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(word.len());
    let (clock, joined) = word.split_at(digits);
    let half = if joined.is_empty() { next } else { joined };
    let (hour, minute) = clock.split_once(':').unwrap_or((clock, "0"));
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match half.trim_end_matches('.') {
        "pm" if hour < 12 => hour + 12,
        "am" if hour == 12 => 0,
        "am" | "pm" => hour,
        _ if clock.contains(':') => hour,
        _ => return None,
    };
    Time::new(hour, minute, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-11-15 20:00 UTC.
    const NOW: Timestamp = Timestamp(1_794_772_800_000);

    fn minutes_until(message: &str) -> Option<i64> {
        reset_time(message, &Here::at(NOW)).map(|until| (until.0 - NOW.0) / 60_000)
    }

    #[test]
    fn a_duration_is_given_in_many_ways() {
        assert_eq!(minutes_until("or try again in 3 days 3 hours."), Some(75 * 60));
        assert_eq!(minutes_until("Please try again in 2 hours 13 minutes."), Some(133));
        assert_eq!(minutes_until("Your quota will reset after 8h36m13s."), Some(8 * 60 + 36));
        assert_eq!(minutes_until("Please retry in 90.5s."), Some(1));
        assert_eq!(duration("20ms"), Some(0.02));
        assert_eq!(minutes_until("try again later"), None);
    }

    #[test]
    fn a_time_of_day_is_the_next_one() {
        assert_eq!(minutes_until("or try again at 9:30 PM."), Some(90));
        assert_eq!(minutes_until("Try again at 12:16 AM."), Some(4 * 60 + 16));
        assert_eq!(minutes_until("Try again at Nov 17th, 2026 8:00 PM."), Some(48 * 60));
        assert_eq!(minutes_until("You've hit your limit · resets 10pm (UTC)"), Some(120));
        assert_eq!(minutes_until("resets Nov 16, 1pm (UTC)"), Some(17 * 60));
        assert_eq!(minutes_until("Claude AI usage limit reached|1794776400"), Some(60));
        assert_eq!(minutes_until("limit reached, resets at 1794776400000."), Some(60));
        assert_eq!(minutes_until("Please try again at 2026-11-15T21:30:00Z."), Some(90));
        assert_eq!(minutes_until("Weekly limit reached ∙ resets Mon 9am"), Some(13 * 60));
        assert_eq!(minutes_until("Your limit resets on Sunday at 11pm"), Some(3 * 60));
        assert_eq!(minutes_until("resets 21:00 UTC"), Some(60));
    }

    #[test]
    fn a_time_of_day_is_one_in_the_zone_that_is_named_or_in_that_of_the_person() {
        let in_zone = |name: &str, message: &str| {
            let clock = std::sync::Arc::new(rehearsal_core::VirtualClock::starting_at(NOW));
            let here = Here::of(clock, &[("TZ".to_owned(), name.to_owned())].into());
            reset_time(message, &here).map(|until| (until.0 - NOW.0) / 60_000)
        };
        // In Tokyo it is five in the morning, in Berlin nine in the evening, in New York three in the afternoon.
        assert_eq!(in_zone("Asia/Tokyo", "5-hour limit reached ∙ resets 7am"), Some(120));
        assert_eq!(in_zone("America/New_York", "5-hour limit reached ∙ resets 3:30pm"), Some(30));
        assert_eq!(in_zone("Asia/Tokyo", "limit reached ∙ resets 10pm (Europe/Berlin)"), Some(60));
        assert_eq!(in_zone("no/such/zone, surely", "resets 10pm (Europe/Berlin)"), Some(60));
    }

    #[test]
    fn a_time_that_is_just_over_is_now_and_not_tomorrow() {
        assert_eq!(minutes_until("5-hour limit reached ∙ resets 7:55pm"), Some(0));
        assert_eq!(minutes_until("5-hour limit reached ∙ resets 7pm"), Some(23 * 60));
    }

    proptest! {
        #[test]
        fn no_message_panics(message in "(try again (at|in)|resets|[0-9:.]{1,12}|pm|mar|th|é| |\\(|days|[|]){0,12}") {
            let _ = reset_time(&message, &Here::at(NOW));
        }
    }
}
