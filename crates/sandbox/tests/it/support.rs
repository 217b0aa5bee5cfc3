//! A project, a home and a sandbox around them.

use std::fs::File;
use std::io::{Read, Seek};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_sandbox::{
    Command, Confined, Demand, Ended, Layer, Policy, Rung, Sandbox, SandboxReport, State, Status, Written,
};
use tempfile::TempDir;

use crate::acts;

/// How long a command may take before its test fails. Never reached by one that works.
const DEADLINE: Duration = Duration::from_secs(60);

/// A project and a home in a place of their own, and a policy for them.
pub(crate) struct Place {
    pub(crate) root: Utf8PathBuf,
    pub(crate) policy: Policy,
    pub(crate) highest: Rung,
    _directory: TempDir,
}

/// A directory that no sandbox hides. Where the build is may be hidden: in a home, or in a temporary directory.
pub(crate) fn outside() -> TempDir {
    const HIDDEN: [&str; 5] = ["/tmp", "/var/tmp", "/home", "/root", "/run"];
    let places = [env!("CARGO_TARGET_TMPDIR"), "/srv", "/opt", "/var/lib", "/usr/local"];
    let mut shown = places.iter().filter(|place| !HIDDEN.iter().any(|hidden| place.starts_with(hidden)));
    shown.find_map(|place| tempfile::tempdir_in(place).ok()).unwrap()
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
        for name in ["project", "home/.ssh", "home/.tools", "home/.cargo/bin", "outside", "cache"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::write(root.join("project/source"), "as it was").unwrap();
        std::fs::write(root.join("project/doomed"), "to be deleted").unwrap();
        std::fs::write(root.join("home/.ssh/id_ed25519"), "the secret").unwrap();
        std::fs::write(root.join("home/.cargo/bin/tool"), "a tool").unwrap();
        std::fs::write(root.join("outside/file"), "untouched").unwrap();
        let mut policy = Policy::new(root.join("project"));
        policy.home = Some(root.join("home"));
        policy.readable.push(Utf8PathBuf::from_path_buf(std::env::current_exe().unwrap()).unwrap());
        Self { root, policy, highest: Rung::Full, _directory: directory }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(&mut self.policy);
        self
    }

    pub(crate) fn at_most(mut self, rung: Rung) -> Self {
        self.highest = rung;
        self
    }

    pub(crate) fn prepare(self) -> Prepared {
        let sandbox = Sandbox::prepare_at_most(&self.policy, self.highest).unwrap();
        Prepared { sandbox, place: self }
    }

    pub(crate) fn path(&self, relative: &str) -> String {
        self.root.join(relative).into_string()
    }
}

/// A sandbox that is ready.
pub(crate) struct Prepared {
    pub(crate) sandbox: Sandbox,
    pub(crate) place: Place,
}

/// A command that ran to its end.
pub(crate) struct Run {
    pub(crate) output: String,
    pub(crate) ended: Ended,
    pub(crate) written: Written,
}

impl Run {
    pub(crate) fn code(&self) -> Option<i32> {
        match self.ended.status {
            Status::Exited { code } => Some(code),
            _ => None,
        }
    }

    pub(crate) fn outcome(&self) -> &str {
        acts::outcome(&self.output)
    }
}

impl Prepared {
    pub(crate) fn report(&self) -> &SandboxReport {
        self.sandbox.report()
    }

    pub(crate) fn path(&self, relative: &str) -> String {
        self.place.path(relative)
    }

    /// A command with output into a file, so that no pipe can be full or held open.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> (Command, File) {
        let output = tempfile::tempfile().unwrap();
        let command = Command::new(program, &self.place.policy.project)
            .args(arguments)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .stdout(output.try_clone().unwrap())
            .stderr(output.try_clone().unwrap());
        (command, output)
    }

    pub(crate) fn start(&self, program: &str, arguments: &[&str]) -> (Confined, File) {
        let (command, output) = self.command(program, arguments);
        (self.sandbox.spawn(command).unwrap(), output)
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Run {
        let (command, output) = self.command(program, arguments);
        self.finish(command, output)
    }

    pub(crate) fn shell(&self, script: &str) -> Run {
        self.run("/bin/sh", &["-c", script])
    }

    /// Has an attacker do something.
    pub(crate) fn attempt(&self, act: &str, on: &str) -> Run {
        let program = std::env::current_exe().unwrap();
        let arguments = ["--exact", "acts::perform", "--nocapture", "--test-threads=1"];
        let (command, output) = self.command(program.to_str().unwrap(), &arguments);
        self.finish(command.env(acts::ACT, act).env(acts::ON, on), output)
    }

    fn finish(&self, command: Command, output: File) -> Run {
        let mut confined = self.sandbox.spawn(command).unwrap();
        let ended = in_time(confined.wait());
        let written = confined.written(1000);
        Run { output: all_of(output), ended, written }
    }

    /// That the report says which mechanism keeps a layer up.
    pub(crate) fn assert_enforced(&self, layer: Layer, by: &str) {
        let layers = self.report().layers.all();
        let (_, report) = layers.into_iter().find(|(name, _)| *name == layer).unwrap();
        assert_eq!(report.state, State::Enforced, "{layer}: {report:?}");
        assert!(report.by.iter().any(|name| name == by), "{layer} is not held by {by}: {report:?}");
    }
}

/// An escape that is tried in the usual sandbox, and how it must fail.
pub(crate) struct Escape<'a> {
    pub(crate) act: &'a str,
    pub(crate) on: &'a str,
    /// The system's answer.
    pub(crate) held_with: &'a str,
    /// The layer that answers so, and by what.
    pub(crate) by: (Layer, &'a str),
}

impl Escape<'_> {
    /// Tries it. Before, the act is shown to succeed without a sandbox where that harms nobody.
    pub(crate) fn is_held_in(&self, place: Place, without: Without) {
        let sandbox = place.prepare();
        if without == Without::Succeeds {
            let mut policy = sandbox.place.policy.clone();
            policy.demand = Demand::Off;
            let open = Sandbox::prepare(&policy).unwrap();
            let open = Prepared { sandbox: open, place: Place { policy, ..Place::new() } };
            let run = open.attempt(self.act, self.on);
            assert_ne!(run.outcome(), self.held_with, "it fails without a sandbox too");
        }
        let run = sandbox.attempt(self.act, self.on);
        assert_eq!(run.outcome(), self.held_with);
        sandbox.assert_enforced(self.by.0, self.by.1);
    }
}

/// What an act comes to without a sandbox.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Without {
    /// It succeeds, or fails in another way: the sandbox makes the difference.
    Succeeds,
    /// Not tried: it would do harm, or depends on the machine and the user.
    NotTried,
}

/// Runs something to its end on a runtime of its own.
pub(crate) fn in_time<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE, future).await }).unwrap()
}

pub(crate) fn all_of(mut file: File) -> String {
    let mut content = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut content).unwrap();
    String::from_utf8_lossy(&content).into_owned()
}

pub(crate) fn read(path: impl AsRef<Utf8Path>) -> String {
    std::fs::read_to_string(path.as_ref()).unwrap()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// How a read-only file system refuses to change what belongs to root: others have no right to it in the first place.
pub(crate) fn read_only() -> &'static str {
    if is_root() { "EROFS" } else { "EACCES" }
}
