//! A project, a home and a sandbox around them.

use std::fs::File;
use std::io::{Read, Seek};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_sandbox::{Command, Confined, Ended, Policy, Rung, Sandbox, SandboxReport, Status, Written};
use tempfile::TempDir;

/// How long a command may take before its test fails. Never reached by one that works.
const DEADLINE: Duration = Duration::from_secs(60);

/// A project and a home in a place of their own, and a policy for them.
pub(crate) struct Box {
    pub(crate) root: Utf8PathBuf,
    pub(crate) policy: Policy,
    pub(crate) highest: Rung,
    _directory: TempDir,
}

impl Box {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
        for name in ["project", "home/.ssh", "outside"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::write(root.join("project/source"), "as it was\n").unwrap();
        std::fs::write(root.join("home/.ssh/id_ed25519"), "the secret").unwrap();
        std::fs::write(root.join("outside/file"), "untouched").unwrap();
        let mut policy = Policy::new(root.join("project"));
        policy.home = Some(root.join("home"));
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
        Prepared { sandbox, given: self }
    }
}

/// A sandbox that is ready.
pub(crate) struct Prepared {
    pub(crate) sandbox: Sandbox,
    pub(crate) given: Box,
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
}

impl Prepared {
    pub(crate) fn report(&self) -> &SandboxReport {
        self.sandbox.report()
    }

    pub(crate) fn path(&self, relative: &str) -> Utf8PathBuf {
        self.given.root.join(relative)
    }

    /// A command with output into a file, so that no pipe can be full or held open.
    pub(crate) fn start(&self, program: &str, arguments: &[&str]) -> (Confined, File) {
        let output = tempfile::tempfile().unwrap();
        let command = Command::new(program, &self.given.policy.project)
            .args(arguments)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home").as_str())
            .env("ROOT", self.given.root.as_str())
            .stdout(output.try_clone().unwrap())
            .stderr(output.try_clone().unwrap());
        (self.sandbox.spawn(command).unwrap(), output)
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Run {
        let (mut confined, mut file) = self.start(program, arguments);
        let ended = in_time(confined.wait());
        let mut output = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut output).unwrap();
        let written = confined.written(1000);
        Run { output: String::from_utf8_lossy(&output).into_owned(), ended, written }
    }

    pub(crate) fn shell(&self, script: &str) -> Run {
        self.run("/bin/sh", &["-c", script])
    }
}

/// Runs something to its end on a runtime of its own.
pub(crate) fn in_time<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE, future).await }).unwrap()
}

pub(crate) fn read(path: &Utf8Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
