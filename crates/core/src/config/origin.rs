//! Where settings come from.

use std::collections::BTreeMap;
use std::fmt;

use crate::Place;

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// A file of the user or of the project.
    File {
        /// Its path, as messages show it.
        path: String,
        /// Where the value is in it.
        place: Option<Place>,
    },
    /// A `REHEARSAL_*` variable.
    Environment,
    /// The command line.
    Flag,
}

impl Origin {
    /// A file as a whole.
    pub fn file(path: impl Into<String>) -> Self {
        Self::File { path: path.into(), place: None }
    }

    /// File, line and column, if it is a file.
    pub fn place(&self) -> Option<String> {
        match self {
            Self::File { path, place: Some(place) } => Some(format!("{path}:{place}")),
            Self::File { path, place: None } => Some(path.clone()),
            Self::Default | Self::Environment | Self::Flag => None,
        }
    }

    pub(super) fn at(&self, place: Option<Place>) -> Self {
        match self {
            Self::File { path, .. } => Self::File { path: path.clone(), place },
            other => other.clone(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, .. } => f.write_str(path),
            Self::Environment => f.write_str("environment"),
            Self::Flag => f.write_str("command line"),
        }
    }
}

/// The origin of every setting that is not a default, by its path.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Origins(BTreeMap<Vec<String>, Origin>);

impl Origins {
    /// The origin of a setting, by its name in the file: `loop.iterations`.
    pub fn get(&self, key: &str) -> &Origin {
        self.at(&key.split('.').map(ToOwned::to_owned).collect::<Vec<_>>())
    }

    /// The same for a path with names of agents, which may have dots in them.
    pub(super) fn at(&self, path: &[String]) -> &Origin {
        self.0.get(path).unwrap_or(&Origin::Default)
    }

    /// Those of one section, by their names in it.
    pub(super) fn under(&self, section: &[&str]) -> Self {
        let within = |(path, origin): (&Vec<String>, &Origin)| {
            let (start, rest) = path.split_at_checked(section.len())?;
            (start == section).then(|| (rest.to_vec(), origin.clone()))
        };
        Self(self.0.iter().filter_map(within).collect())
    }

    pub(super) fn insert(&mut self, path: Vec<String>, origin: Origin) {
        self.0.insert(path, origin);
    }

    pub(super) fn forget(&mut self, key: &str) {
        self.0.remove(&[key.to_owned()][..]);
    }
}
