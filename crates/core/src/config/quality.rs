//! Which changes need a review.

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::resolve::{Layers, Origin, Setting};
use crate::quality::{Rules, check_pattern, risky_paths, risky_words};

/// Which changes need a review: the step `assess` looks at what git says, not at what an agent says.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct QualityConfig {
    /// A change of more files is reviewed.
    pub most_files: Option<u32>,
    /// A change of these files is reviewed: a word (`auth` is in `src/user_auth.py`), or a pattern (`*.sql`, `deploy/**`). Instead of
    /// the list that ships, which `config show --json` prints.
    #[serde(deserialize_with = "possible_patterns")]
    pub risky_paths: Option<Vec<String>>,
    /// A change of a line with one of these words is reviewed. Instead of the list that ships.
    pub risky_words: Option<Vec<String>>,
    /// Whether a change of what a module exports is reviewed.
    pub public_interfaces: Option<bool>,
}

/// The same, resolved.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each field is explained by its twin in the file")]
pub struct QualitySettings {
    pub most_files: Setting<u32>,
    pub risky_paths: Setting<Vec<String>>,
    pub risky_words: Setting<Vec<String>>,
    pub public_interfaces: Setting<bool>,
}

/// Refused where it is written, so that the place is known.
fn possible_patterns<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<String>>, D::Error> {
    let patterns = Option::<Vec<String>>::deserialize(input)?;
    patterns.iter().flatten().try_for_each(|pattern| check_pattern(pattern)).map_err(D::Error::custom)?;
    Ok(patterns)
}

impl QualitySettings {
    pub(super) fn of(layers: &Layers) -> Self {
        Self {
            most_files: layers.pick(|file| file.quality.most_files, Rules::MOST_FILES),
            risky_paths: layers.pick(|file| file.quality.risky_paths.clone(), risky_paths()),
            risky_words: layers.pick(|file| file.quality.risky_words.clone(), risky_words()),
            public_interfaces: layers.pick(|file| file.quality.public_interfaces, true),
        }
    }

    /// The rules that these settings make.
    pub fn rules(&self) -> Rules {
        let (paths, words) = (&self.risky_paths.value, &self.risky_words.value);
        Rules::new(self.most_files.value, self.public_interfaces.value, paths, words)
    }

    pub(super) fn lines(&self) -> Vec<(&'static str, String, &Origin)> {
        let list = |values: &[String]| if values.is_empty() { "-".into() } else { values.join(", ") };
        vec![
            ("most_files", self.most_files.value.to_string(), &self.most_files.origin),
            ("risky_paths", list(&self.risky_paths.value), &self.risky_paths.origin),
            ("risky_words", list(&self.risky_words.value), &self.risky_words.origin),
            ("public_interfaces", self.public_interfaces.value.to_string(), &self.public_interfaces.origin),
        ]
    }
}
