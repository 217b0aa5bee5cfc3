//! The machine that tests run on: its programs and its variables.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

/// The variables that tests get, and with their `PATH` the programs that there are. A snapshot: what secrets were among
/// them, the caller took out.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// By name.
    pub variables: BTreeMap<String, String>,
}

impl Machine {
    /// With these variables.
    pub fn new(variables: BTreeMap<String, String>) -> Self {
        Self { variables }
    }

    /// A variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Where a program is; a name with a slash is relative to `directory`.
    pub fn find(&self, program: &str, directory: &Utf8Path) -> Option<Utf8PathBuf> {
        let found = which::which_in(program, self.variable("PATH"), directory).ok()?;
        Utf8PathBuf::from_path_buf(found).ok()
    }

    /// Whether a program is installed.
    pub fn has(&self, program: &str) -> bool {
        self.find(program, Utf8Path::new("/")).is_some()
    }

    /// Where a tool keeps its cache: where its variable says, else in the usual place below the home.
    pub(crate) fn cache(&self, variable: &str, below_home: &str) -> Option<Utf8PathBuf> {
        let told = self.variable(variable).map(Utf8PathBuf::from);
        told.or_else(|| Some(Utf8Path::new(self.variable("HOME")?).join(below_home)))
            .filter(|path| path.is_absolute())
    }
}
