//! Sizes as people write them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number of bytes like `512MB`, `2GB` or `1GiB`. `KB`, `MB` and `GB` count in 1024s, as memory does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct HumanSize(pub u64);

const UNITS: [(&str, u64); 8] = [
    ("gib", 1 << 30),
    ("mib", 1 << 20),
    ("kib", 1 << 10),
    ("gb", 1 << 30),
    ("mb", 1 << 20),
    ("kb", 1 << 10),
    ("g", 1 << 30),
    ("m", 1 << 20),
];

impl FromStr for HumanSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a size: write `512MB` or `2GB`");
        let lower = text.trim().to_ascii_lowercase();
        let (unit, factor) = UNITS.iter().find(|(unit, _)| lower.ends_with(unit)).ok_or_else(wrong)?;
        let number = lower.strip_suffix(unit).unwrap_or_default().trim();
        let size = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor));
        size.filter(|size| *size > 0).map(Self).ok_or_else(wrong)
    }
}

impl TryFrom<String> for HumanSize {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<HumanSize> for String {
    fn from(size: HumanSize) -> String {
        size.to_string()
    }
}

impl fmt::Display for HumanSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, factor) in [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)] {
            if self.0 >= factor && self.0.is_multiple_of(factor) {
                return write!(f, "{}{unit}", self.0 / factor);
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_as_people_write_it() {
        for (text, bytes) in [("512MB", 512 << 20), ("2 GB", 2 << 30), ("1GiB", 1 << 30), ("64kb", 64 << 10)]
        {
            assert_eq!(text.parse(), Ok(HumanSize(bytes)), "{text}");
        }
        assert_eq!(HumanSize(2 << 30).to_string(), "2GB");
        assert_eq!("lots".parse::<HumanSize>().unwrap_err(), "`lots` is not a size: write `512MB` or `2GB`");
        assert!("0MB".parse::<HumanSize>().is_err());
        assert!("99999999999999999999GB".parse::<HumanSize>().is_err());
    }
}
