//! Durations as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration like `90s`, `30m`, `1h30m` or `2d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct HumanDuration(pub Duration);

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl HumanDuration {
    pub(super) const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl FromStr for HumanDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a duration: write `90s`, `30m`, `1h30m` or `2d`");
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(wrong());
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
            let (number, after) = rest.split_at(digits);
            let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
            let (unit, after) = after.split_at(letters);
            let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?;
            let part = number.parse::<u64>().ok().and_then(|n| n.checked_mul(*millis)).ok_or_else(wrong)?;
            total = total.checked_add(part).ok_or_else(wrong)?;
            rest = after;
        }
        Ok(Self(Duration::from_millis(total)))
    }
}

impl TryFrom<String> for HumanDuration {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<HumanDuration> for String {
    fn from(duration: HumanDuration) -> String {
        duration.to_string()
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, millis) in UNITS.iter().rev() {
            if rest >= *millis {
                write!(f, "{}{unit}", rest / millis)?;
                rest %= millis;
            }
        }
        Ok(())
    }
}
