//! A scratch repository with a session, and ways to put anything into it.

use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

pub(crate) const SESSION: &str = "work";

/// No input may take longer; generous for a busy machine.
const LONGEST: Duration = Duration::from_mins(2);

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    /// In kilobytes.
    pub(crate) peak_memory: u64,
}

pub(crate) struct Scene {
    _directory: tempfile::TempDir,
    pub(crate) root: Utf8PathBuf,
    pub(crate) repo: Utf8PathBuf,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
        let repo = root.join("repo");
        fs_err::create_dir_all(repo.join(".rehearsal/flows")).unwrap();
        fs_err::create_dir_all(repo.join(".rehearsal/prompts")).unwrap();
        fs_err::create_dir(root.join("home")).unwrap();
        let scene = Self { _directory: directory, root, repo };
        scene.git(&["init", "--quiet", "--initial-branch=main"]);
        scene.git(&["commit", "--quiet", "--allow-empty", "--message=Begin"]);
        scene.succeed(&["session", "new", SESSION]);
        scene
    }

    /// The same with a stand-in for an agent.
    pub(crate) fn playing(script: &str) -> Self {
        let scene = Self::new();
        let config = format!(
            "agents:\n  implementer:\n    driver: claude\n    program: {}\n    \
             args: [mock-agent, --as, claude, --script, ../script.yaml]\n    sandbox: off\n",
            env!("CARGO_BIN_EXE_rehearsal")
        );
        scene.write(".rehearsal/config.yaml", config);
        fs_err::write(scene.root.join("script.yaml"), script).unwrap();
        scene.succeed(&["task", "add", "do it"]);
        scene
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Utf8PathBuf {
        let path = self.repo.join(path);
        fs_err::write(&path, content).unwrap();
        path
    }

    fn isolate<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .current_dir(&self.repo)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.root.join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rehearsal"));
        self.isolate(&mut command).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn rehearsal(&self, args: &[&str]) -> Said {
        watch(self.command(args).spawn().unwrap())
    }

    /// The same with standard input, given piece by piece.
    pub(crate) fn rehearsal_reading(&self, args: &[&str], piece: &[u8], times: usize) -> Said {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // Who has read enough closes the pipe.
            scope.spawn(move || (0..times).all(|_| stdin.write_all(piece).is_ok()));
            watch(child)
        })
    }

    pub(crate) fn succeed(&self, args: &[&str]) -> String {
        let said = self.rehearsal(args);
        assert_eq!(said.code, Some(0), "{args:?}: {}{}", said.err, said.out);
        said.out
    }

    /// What a person reads who gave something wrong, with the scratch directory as `$DIR`.
    pub(crate) fn refused(&self, args: &[&str]) -> String {
        self.told(&self.rehearsal(args))
    }

    pub(crate) fn told(&self, said: &Said) -> String {
        assert_eq!(said.code, Some(2), "{}{}", said.err, said.out);
        assert!(said.peak_memory < MOST_MEMORY, "{} kB", said.peak_memory);
        said.err.replace(self.root.as_str(), "$DIR")
    }

    pub(crate) fn git(&self, args: &[&str]) {
        let mut command = Command::new("git");
        let identity = ["-c", "user.name=Someone", "-c", "user.email=someone@example.invalid"];
        let output: Output = self.isolate(&mut command).args(identity).args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// In kilobytes: 150 MB. Most of it is the program itself, which is large where it is built for tests; built for use it takes a
/// sixth of this.
pub(crate) const MOST_MEMORY: u64 = 150_000;

/// Waits for the end of a process, and looks at its memory meanwhile.
pub(crate) fn watch(child: Child) -> Said {
    let pid = child.id();
    let waiting = std::thread::spawn(move || child.wait_with_output().unwrap());
    let deadline = Instant::now() + LONGEST;
    let mut peak_memory = 0;
    while !waiting.is_finished() {
        peak_memory = peak_memory.max(high_water_mark(pid));
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = waiting.join().unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        peak_memory,
    }
}

/// The most memory that a process has held so far, in kilobytes.
fn high_water_mark(pid: u32) -> u64 {
    let status = std::fs::read_to_string(Utf8Path::new("/proc").join(pid.to_string()).join("status"));
    let status = status.unwrap_or_default();
    let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    mark.and_then(|mark| mark.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
