//! What came of an eval, for people: Markdown for the summary of a CI run, and one HTML file with plots.

mod html;
mod junit;
mod markdown;
mod plot;

pub use html::html;
pub use junit::junit;
pub use markdown::markdown;

use crate::statistics::Interval;
use crate::summary::{Cost, Spread};

/// `87 %`, or a dash for what is not known.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// `61–97 %`.
fn range(interval: Option<Interval>) -> String {
    interval.map_or_else(
        || "–".to_owned(),
        |interval| format!("{:.0}–{:.0} %", interval.low * 100.0, interval.high * 100.0),
    )
}

fn seconds(spread: Option<Spread>) -> String {
    spread.map_or_else(
        || "–".to_owned(),
        |spread| format!("{:.1} s ({:.1} s)", spread.p50 / 1000.0, spread.p95 / 1000.0),
    )
}

fn tokens(spread: Option<Spread>) -> String {
    spread.map_or_else(|| "–".to_owned(), |spread| format!("{:.0} ({:.0})", spread.p50, spread.p95))
}

/// What is not known is said beside what is.
fn cost(cost: Cost) -> String {
    match cost.unknown {
        0 => format!("${:.4}", cost.usd),
        unknown => format!("${:.4} + {unknown} unknown", cost.usd),
    }
}
