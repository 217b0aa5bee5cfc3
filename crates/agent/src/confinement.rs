//! The sandbox of an agent: what it needs to do its work, and nothing else of the machine.
//!
//! It can write its working tree, the repository behind it, and its run's directory. Of the home it sees toolchains, what is on its
//! PATH, git's identity, and what its own CLI keeps there ([`OwnPlaces`]). What others would obey outside is read-only: the
//! hooks and the configuration of the repository, settings of the CLI that name commands. The network is there unless it is forbidden,
//! because the model is.

mod bounds;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::config::{ProjectAccess, SandboxLevel, SandboxSettings};
use rehearsal_sandbox::{
    Demand, Layer, LayerReport, Limits, Network, Policy, ProjectMode, Sandbox, holds_secrets,
};

use crate::clis::AgentCli;
use crate::environment::Variables;
use crate::git::git_places;
use crate::{CommandLine, Driver, Permission, RunRequest};

pub use bounds::{Bounds, ConfinedBy};

/// What keeps the agents of one profile within bounds.
#[derive(Debug, Clone)]
pub enum Containment {
    /// A sandbox.
    Sandbox(Confinement),
    /// The permission rules of their own CLI.
    OwnRules(NoSandbox),
}

impl Default for Containment {
    fn default() -> Self {
        Self::OwnRules(NoSandbox::Off)
    }
}

/// Why an agent runs without a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoSandbox {
    /// The settings say so.
    Off,
    /// It runs every command of its own in a sandbox.
    ConfinesItself,
    /// The full sandbox is not available here.
    Unavailable {
        /// What is missing.
        why: String,
    },
}

/// How agents of one profile are confined.
#[derive(Debug, Clone)]
pub struct Confinement {
    cli: Option<&'static AgentCli>,
    read: Vec<Utf8PathBuf>,
    write: Vec<Utf8PathBuf>,
    demand: Demand,
    mode: ProjectMode,
    network: Network,
    limits: Limits,
    protected: Vec<Utf8PathBuf>,
}

/// What below a project's `.rehearsal` says how agents work and are confined: none may change it.
pub const OBEYED_IN_PROJECT: [&str; 4] = ["config.yaml", "flows", "prompts", "agents"];

/// Private files are kept in memory: downloads and build caches of a whole task must fit.
const PRIVATE_FILES: u64 = 4 << 30;

/// Variables that name certificates, which are wanted wherever they lie.
const CERTIFICATES: &[&str] =
    &["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"];

impl Containment {
    /// As the settings say. For `auto` the sandbox is tried once in `project`.
    pub fn new(settings: &SandboxSettings, cli: &'static AgentCli, project: &Utf8Path) -> Self {
        let demand = match settings.level {
            SandboxLevel::Off => return Self::OwnRules(NoSandbox::Off),
            SandboxLevel::BestEffort => Demand::BestEffort,
            SandboxLevel::Required => Demand::Required,
            SandboxLevel::Auto if cli.confines_itself => return Self::OwnRules(NoSandbox::ConfinesItself),
            SandboxLevel::Auto => match Self::missing(settings, project) {
                None => Demand::Required,
                Some(why) => return Self::OwnRules(NoSandbox::Unavailable { why }),
            },
        };
        Self::Sandbox(Confinement::new(settings, cli, demand))
    }

    /// What the full sandbox of an agent lacks on this machine; none if it lacks nothing.
    pub fn missing(settings: &SandboxSettings, project: &Utf8Path) -> Option<String> {
        let mut policy = Policy::new(project);
        policy.mode = ProjectMode::Writable;
        policy.network = Network::Allowed;
        policy.limits = limits(settings);
        match Sandbox::prepare(&policy) {
            Ok(sandbox) => {
                let missing = sandbox.report().missing();
                let name = |(layer, report): &(Layer, &LayerReport)| match &report.why {
                    Some(why) => format!("{layer} ({why})"),
                    None => layer.to_string(),
                };
                let names: Vec<String> = missing.iter().map(name).collect();
                (!names.is_empty()).then(|| names.join(", "))
            }
            Err(error) => Some(error.to_string()),
        }
    }

    /// What is executed for a request. In a full sandbox the rules of the agent's CLI are switched off, since ours decide what it
    /// can touch.
    pub fn command_line(&self, driver: &Driver, request: &RunRequest) -> CommandLine {
        match self {
            Self::Sandbox(confinement) if confinement.is_full() && !driver.cli().confines_itself => {
                driver.command(&RunRequest { permission: Permission::Trust, ..request.clone() })
            }
            _ => driver.command(request),
        }
    }

    /// The sandbox, if there is one.
    pub fn sandbox(&self) -> Option<&Confinement> {
        match self {
            Self::Sandbox(confinement) => Some(confinement),
            Self::OwnRules(_) => None,
        }
    }
}

fn limits(settings: &SandboxSettings) -> Limits {
    Limits {
        memory: settings.max_memory.map(|size| size.0),
        cpus: settings.max_cpus,
        processes: settings.max_processes.map(u64::from),
        open_files: None,
        files: PRIVATE_FILES,
    }
}

impl Confinement {
    fn new(settings: &SandboxSettings, cli: &'static AgentCli, demand: Demand) -> Self {
        let paths = |paths: &[String]| paths.iter().map(Utf8PathBuf::from).collect();
        Self {
            cli: Some(cli),
            read: paths(&settings.read),
            write: paths(&settings.write),
            demand,
            mode: match settings.project {
                None | Some(ProjectAccess::Writable) => ProjectMode::Writable,
                Some(ProjectAccess::Overlay) => ProjectMode::Overlay,
                Some(ProjectAccess::ReadOnly) => ProjectMode::ReadOnly,
            },
            network: if settings.allow_network { Network::Allowed } else { Network::Private },
            limits: limits(settings),
            protected: Vec::new(),
        }
    }

    /// Whether it holds completely or nothing runs.
    pub fn is_full(&self) -> bool {
        self.demand == Demand::Required
    }

    /// For what an agent of ours lets run: a command has no CLI of its own that keeps anything. Memory and CPUs are the machine's; a
    /// fork bomb ends before it hurts.
    pub fn of_tools(mode: ProjectMode, network: Network, demand: Demand) -> Self {
        let limits = Limits {
            memory: None,
            cpus: None,
            processes: Some(4096),
            open_files: None,
            files: PRIVATE_FILES,
        };
        let (read, write, protected) = Default::default();
        Self { cli: None, read, write, demand, mode, network, limits, protected }
    }

    /// The same with more that an agent cannot change, although it may lie in its working tree.
    pub fn protecting(mut self, path: impl Into<Utf8PathBuf>) -> Self {
        self.protected.push(path.into());
        self
    }

    /// What holds for one run, whose variables are `env`. What a run writes that only looks is thrown away.
    pub fn policy(&self, request: &RunRequest, env: &Variables) -> Policy {
        self.create_kept(env);
        self.granted(request, env)
    }

    /// What its CLI keeps would be created inside and lost; where it cannot be created, it is.
    fn create_kept(&self, env: &Variables) {
        let home = env.get("HOME").map(Utf8Path::new);
        let kept = self.cli.map(|cli| (cli.places)(env).kept).unwrap_or_default();
        for directory in kept.iter().map(|directory| below(home, directory)) {
            let _is_lost = directory.is_absolute().then(|| fs_err::create_dir_all(directory));
        }
    }

    /// The same, and nothing is created.
    fn granted(&self, request: &RunRequest, env: &Variables) -> Policy {
        let mode = match (request.permission, self.mode) {
            (Permission::Plan, ProjectMode::Writable) => ProjectMode::Overlay,
            (_, mode) => mode,
        };
        self.policy_for(&request.working_dir, &request.run_dir, mode, env)
    }

    /// What holds for a command in `working_dir`.
    pub fn policy_of_tools(&self, working_dir: &Utf8Path, run_dir: &Utf8Path, env: &Variables) -> Policy {
        self.policy_for(working_dir, run_dir, self.mode, env)
    }

    fn policy_for(
        &self,
        working_dir: &Utf8Path,
        run_dir: &Utf8Path,
        mode: ProjectMode,
        env: &Variables,
    ) -> Policy {
        let git = git_places(working_dir);
        let mut policy = Policy::new(git.root.clone().unwrap_or_else(|| working_dir.to_owned()));
        policy.mode = mode;
        policy.network = self.network;
        policy.home = env.get("HOME").map(Utf8PathBuf::from);
        policy.limits = self.limits;
        policy.demand = self.demand;
        policy.readable.push(".gitconfig".into());
        policy.readable.extend(readable_by_environment(env, policy.home.as_deref()));
        policy.readable.extend(self.read.iter().cloned());
        // Agents report through this program, wherever it is.
        policy
            .readable
            .extend(std::env::current_exe().ok().and_then(|path| Utf8PathBuf::from_path_buf(path).ok()));
        policy.writable.push(run_dir.to_owned());
        policy.writable.extend(self.write.iter().map(|path| below(policy.home.as_deref(), path)));
        policy.protected.clone_from(&self.protected);
        if mode == ProjectMode::Writable {
            policy.writable.extend(git.written);
            policy.protected.extend(git.obeyed);
        } else {
            // The repository of a linked worktree may lie in the home, which is hidden.
            policy.readable.extend(git.written);
        }
        let own = self.cli.map(|cli| (cli.places)(env)).unwrap_or_default();
        for (path, content) in &own.written_at_first_start {
            write_missing(&below(policy.home.as_deref(), path), content);
        }
        policy.own.extend(own.kept.into_iter().chain(own.known));
        policy.protected.extend(own.obeyed);
        // git's identity; as a file of a directory that is known for secrets.
        for file in [".config/git/config", ".config/git/ignore"] {
            policy.own.push(file.into());
            policy.protected.push(file.into());
        }
        policy
    }
}

/// Writes a file into a directory that exists. Where that fails, the CLI itself says what it misses.
fn write_missing(path: &Utf8Path, content: &str) {
    use std::io::Write;
    if let Ok(mut file) = fs_err::OpenOptions::new().write(true).create_new(true).open(path) {
        let _is_incomplete = file.write_all(content.as_bytes());
    }
}

fn below(home: Option<&Utf8Path>, path: &Utf8Path) -> Utf8PathBuf {
    home.map_or_else(|| path.to_owned(), |home| home.join(path))
}

/// The directories of the PATH, and certificates.
fn readable_by_environment(env: &Variables, home: Option<&Utf8Path>) -> Vec<Utf8PathBuf> {
    let on_path = env.get("PATH").into_iter().flat_map(|path| path.split(':'));
    let certificates = CERTIFICATES.iter().filter_map(|name| env.get(*name).map(String::as_str));
    let is_too_wide = |path: &Utf8Path| {
        ["/tmp", "/var/tmp", "/run", "/home", "/root"]
            .iter()
            .any(|wide| Utf8Path::new(wide).starts_with(path))
            || home.is_some_and(|home| home.starts_with(path) || holds_secrets(home, path))
    };
    on_path
        .chain(certificates)
        .map(Utf8PathBuf::from)
        .filter(|path| path.is_absolute() && !is_too_wide(path))
        .collect()
}

/// What the CLI of an agent keeps in the home. Paths that are not absolute are below it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OwnPlaces {
    /// Directories with its login and its sessions: it writes both, and could neither renew the one nor resume the other without.
    pub kept: Vec<Utf8PathBuf>,
    /// What else it reads there.
    pub known: Vec<Utf8PathBuf>,
    /// What of it can name commands, which would be executed outside by the next agent that nobody confines.
    pub obeyed: Vec<Utf8PathBuf>,
    /// Files that it writes at its first start where it may not write in the sandbox, with their content. They are written before.
    pub written_at_first_start: Vec<(Utf8PathBuf, &'static str)>,
}

impl OwnPlaces {
    /// The directory that a variable names, or the default below the home.
    pub(crate) fn directory(env: &Variables, variable: &str, default: &str) -> Utf8PathBuf {
        env.get(variable).map_or(default, String::as_str).into()
    }
}
