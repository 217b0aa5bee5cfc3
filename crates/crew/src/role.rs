//! Roles: what the members of the crew are for, what they may do, and what they are told.
//!
//! Eight are built in. A file `NAME.yaml` in `.rehearsal/agents` changes one of them, key by key, or adds one.

mod file;

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::SourceError;
use rehearsal_core::nearest;

use crate::{Hooks, McpServer, Permissions, WebSearch};
pub use file::RoleFile;

/// A member of the crew.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    /// What it is called.
    pub name: String,
    /// What it is for, in a line.
    pub about: String,
    /// What it is told.
    pub prompt: String,
    /// The tools that it has.
    pub tools: Vec<String>,
    /// What it may do.
    pub permissions: Permissions,
    /// How long it may work, if nobody says otherwise.
    pub timeout: Duration,
    /// The longest that is sensible for it.
    pub max_timeout: Duration,
    /// How often it may ask its model.
    pub turns: u64,
    /// Its model, if it is not everyone's.
    pub model: Option<String>,
    /// What is put behind the name of its model, for vendors that know it.
    pub model_suffix: Option<String>,
    /// Whether it is told what is known of the project.
    pub project_context: bool,
    /// Commands around each call of a tool.
    pub hooks: Hooks,
    /// Servers of more tools, by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// Where it searches the web; none: it does not.
    pub web_search: Option<WebSearch>,
}

impl Role {
    /// How long it may work. Who asks for more than three times what is sensible for the role has made a mistake.
    pub fn time_limit(&self, timeout_override: Option<Duration>) -> Duration {
        timeout_override.map_or(self.timeout, |asked| asked.min(self.max_timeout.saturating_mul(3)))
    }
}

/// All roles that there are.
#[derive(Debug, Clone, PartialEq)]
pub struct Roles(BTreeMap<String, (Role, RoleOrigin)>);

/// Where a role comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleOrigin {
    /// It is built in.
    BuiltIn,
    /// It is built in, and this file changes it.
    Changed(Utf8PathBuf),
    /// It is in this file.
    Own(Utf8PathBuf),
}

/// Why there is no role.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// The files cannot be read.
    #[error("the roles in `{path}` cannot be read")]
    Unreadable {
        /// Where they are.
        path: Utf8PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not right.
    #[error("the role in `{path}` cannot be used: {error}")]
    Wrong {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong.
        error: SourceError,
    },
    /// There is none of that name.
    #[error("there is no role `{name}`")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        near: Option<String>,
        /// Those that there are.
        known: Vec<String>,
    },
}

/// The roles that are built in, in the order in which people read of them.
const BUILT_IN: [(&str, &str); 8] = [
    ("search", include_str!("roles/search.yaml")),
    ("research", include_str!("roles/research.yaml")),
    ("code", include_str!("roles/code.yaml")),
    ("review", include_str!("roles/review.yaml")),
    ("test", include_str!("roles/test.yaml")),
    ("qa", include_str!("roles/qa.yaml")),
    ("docs", include_str!("roles/docs.yaml")),
    ("init", include_str!("roles/init.yaml")),
];

/// A role is a page or two of text; what is longer is something else.
const LONGEST_FILE: u64 = 256 << 10;

/// More files than anyone has roles.
const MOST_FILES: usize = 200;

impl Roles {
    /// Those that are built in.
    pub fn built_in() -> Result<Self, RoleError> {
        let mut roles = BTreeMap::new();
        for (name, text) in BUILT_IN {
            let wrong = |error| RoleError::Wrong { path: format!("{name}.yaml").into(), error };
            let role = file::read(name, text, None).map_err(wrong)?;
            roles.insert(name.to_owned(), (role, RoleOrigin::BuiltIn));
        }
        Ok(Self(roles))
    }

    /// With those of a directory, if it is there.
    pub fn with_those_in(mut self, directory: &Utf8Path) -> Result<Self, RoleError> {
        let unreadable = |path: &Utf8Path, source| RoleError::Unreadable { path: path.to_owned(), source };
        let entries = match fs_err::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(self),
            Err(error) => return Err(unreadable(directory, error)),
        };
        let mut paths = Vec::new();
        for entry in entries.take(MOST_FILES) {
            let path = entry.map_err(|error| unreadable(directory, error))?.path();
            paths.extend(
                Utf8PathBuf::from_path_buf(path).ok().filter(|path| path.extension() == Some("yaml")),
            );
        }
        paths.sort();
        for path in paths {
            let text = read_text(&path).map_err(|error| unreadable(&path, error))?;
            self.add(&path, &text)?;
        }
        Ok(self)
    }

    fn add(&mut self, path: &Utf8Path, text: &str) -> Result<(), RoleError> {
        let wrong = |error| RoleError::Wrong { path: path.to_owned(), error };
        let name = path.file_stem().unwrap_or_default();
        let base = self.0.get(name).map(|(role, _)| role);
        let origin = match base {
            Some(_) => RoleOrigin::Changed(path.to_owned()),
            None => RoleOrigin::Own(path.to_owned()),
        };
        let role = file::read(name, text, base).map_err(wrong)?;
        self.0.insert(name.to_owned(), (role, origin));
        Ok(())
    }

    /// The role of a name.
    pub fn get(&self, name: &str) -> Result<&Role, RoleError> {
        self.0.get(name).map(|(role, _)| role).ok_or_else(|| RoleError::Unknown {
            name: name.to_owned(),
            near: nearest(name, self.0.keys().map(String::as_str)).map(str::to_owned),
            known: self.iter().map(|(role, _)| role.name.clone()).collect(),
        })
    }

    /// All, those that are built in first.
    pub fn iter(&self) -> impl Iterator<Item = (&Role, &RoleOrigin)> {
        let built_in = BUILT_IN.iter().filter_map(|(name, _)| self.0.get(*name));
        let is_built_in = |name: &str| BUILT_IN.iter().any(|(known, _)| *known == name);
        let own = self.0.iter().filter(move |(name, _)| !is_built_in(name)).map(|(_, role)| role);
        built_in.chain(own).map(|(role, origin)| (role, origin))
    }
}

/// A regular file of a sensible length.
fn read_text(path: &Utf8Path) -> std::io::Result<String> {
    let data = fs_err::metadata(path)?;
    if !data.is_file() || data.len() > LONGEST_FILE {
        let message = format!("this is no file of at most {LONGEST_FILE} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message));
    }
    fs_err::read_to_string(path)
}

#[cfg(test)]
mod tests;
