//! A directory of its own for each test, and the program in it.

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};

/// A git repository with nothing in it.
pub(crate) struct Stage {
    directory: tempfile::TempDir,
}

/// What a call said, and how it ended.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A file of scenarios.
pub(crate) fn data(name: &str) -> String {
    format!("{}/tests/scenarios/data/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

impl Stage {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let stage = Self { directory };
        let done = stage.command("git").args(["init", "--quiet"]).status().unwrap();
        assert!(done.success());
        stage
    }

    pub(crate) fn path(&self) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.directory.path().to_owned()).unwrap()
    }

    pub(crate) fn write(&self, path: impl AsRef<Utf8Path>, text: &str) {
        let path = self.path().join(path.as_ref());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        let output = self.command(env!("CARGO_BIN_EXE_rehearsal")).args(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// All that is seen in a terminal; none where there is no program to make one, which is said aloud.
    #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
    pub(crate) fn run_in_a_terminal(&self, args: &str) -> Option<String> {
        let call = format!("{} {args}", env!("CARGO_BIN_EXE_rehearsal"));
        let mut script = self.command("script");
        script.args(["--quiet", "--return", "--command", &call, "/dev/null"]).env("TERM", "xterm");
        match script.stdin(std::process::Stdio::null()).output() {
            Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
            Err(_) => {
                eprintln!("left out: `script`, which makes a terminal, is not installed");
                None
            }
        }
    }

    pub(crate) fn git(&self, args: &[&str]) {
        let who = ["-c", "user.name=Ada", "-c", "user.email=ada@localhost"];
        let done = self.command("git").args(who).args(args).status().unwrap();
        assert!(done.success(), "{args:?}");
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.directory.path()).env("NO_COLOR", "1").env("HOME", self.directory.path());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if ["GIT_", "REHEARSAL_", "XDG_", "MOCK_", "GH_"].iter().any(|prefix| name.starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command
    }
}
