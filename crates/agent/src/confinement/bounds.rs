//! What an agent is granted in a run, as data.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_sandbox::{HIDDEN, Network, ProjectMode};
use serde::{Deserialize, Serialize};

use super::{Containment, NoSandbox, below};
use crate::environment::{Variables, agent_environment};
use crate::{Driver, Permission, RunRequest};

/// What keeps an agent within bounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ConfinedBy {
    /// The full sandbox. The rules of its CLI are off.
    Sandbox,
    /// The sandbox as far as the system has it, and the rules of its CLI.
    PartialSandbox,
    /// A sandbox around each of its commands, which its own program starts.
    OwnSandbox,
    /// The rules of its CLI.
    OwnRules {
        /// What the sandbox lacks here; none: the settings turn it off.
        missing: Option<String>,
    },
}

/// What an agent may do in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bounds {
    /// What keeps it within them.
    pub by: ConfinedBy,
    /// What it may do without being asked, where the rules of its CLI apply.
    pub permission: Permission,
    /// Files and directories that it can write.
    pub writable: Vec<String>,
    /// What it can only read below those, because others obey it.
    pub protected: Vec<String>,
    /// What it can only read of your home and of directories for temporary files. Without a sandbox: whatever you can.
    pub readable: Vec<String>,
    /// Whether it can use the network; none: its CLI decides.
    pub network: Option<bool>,
    /// Commands, as they begin, that its CLI is asked to allow.
    pub allow: Vec<String>,
}

impl Containment {
    /// What keeps an agent within bounds.
    pub fn confined_by(&self) -> ConfinedBy {
        match self {
            Self::Sandbox(confinement) if confinement.is_full() => ConfinedBy::Sandbox,
            Self::Sandbox(_) => ConfinedBy::PartialSandbox,
            Self::OwnRules(NoSandbox::ConfinesItself) => ConfinedBy::OwnSandbox,
            Self::OwnRules(NoSandbox::Off) => ConfinedBy::OwnRules { missing: None },
            Self::OwnRules(NoSandbox::Unavailable { why }) => {
                ConfinedBy::OwnRules { missing: Some(why.clone()) }
            }
        }
    }

    /// What a request grants. `ours` is our own environment.
    pub fn bounds(&self, driver: &Driver, request: &RunRequest, ours: &Variables) -> Bounds {
        let line = self.command_line(driver, request);
        let env = agent_environment(ours, driver.cli().variables, &line.env, request);
        // Rules name commands in parentheses: `Bash(git add:*)`.
        let rule = |start: &str| line.args.iter().any(|argument| argument.contains(&format!("({start}")));
        let bounds = Bounds {
            by: self.confined_by(),
            permission: request.permission,
            writable: Vec::new(),
            protected: Vec::new(),
            readable: Vec::new(),
            network: None,
            allow: request.allow.iter().filter(|start| rule(start)).cloned().collect(),
        };
        match self {
            Self::OwnRules(_) if request.permission == Permission::AcceptEdits => {
                let writable = [&request.working_dir, &request.run_dir].map(ToString::to_string).into();
                Bounds { writable, ..bounds }
            }
            Self::OwnRules(_) => bounds,
            Self::Sandbox(confinement) => {
                let policy = confinement.granted(request, &env);
                let home = policy.home.as_deref();
                let project = (policy.mode == ProjectMode::Writable).then_some(&policy.project);
                let mut writable: Vec<String> =
                    project.into_iter().chain(&policy.writable).map(ToString::to_string).collect();
                writable.extend(existing(&policy.own, home));
                let is_in = |path: &str, around: &str| Utf8Path::new(path).starts_with(around);
                let is_writable = |path: &String| writable.iter().any(|around| is_in(path, around));
                let is_hidden = |path: &String| {
                    let hidden = HIDDEN.iter().copied().chain(home.map(Utf8Path::as_str));
                    hidden.into_iter().any(|around| is_in(path, around))
                };
                let readable = existing(&policy.readable, home).into_iter();
                Bounds {
                    protected: existing(&policy.protected, home).into_iter().filter(is_writable).collect(),
                    readable: readable.filter(|path| is_hidden(path) && !is_writable(path)).collect(),
                    network: Some(policy.network == Network::Allowed),
                    writable,
                    ..bounds
                }
            }
        }
    }
}

/// The paths that are there, each once.
fn existing<'a>(paths: impl IntoIterator<Item = &'a Utf8PathBuf>, home: Option<&Utf8Path>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for path in paths {
        let path = below(home, path);
        if path.is_absolute() && path.exists() && !found.iter().any(|known| path == known.as_str()) {
            found.push(path.into());
        }
    }
    found
}
