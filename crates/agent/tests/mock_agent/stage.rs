//! A repository, a run directory and the stand-in, apart from everything else on the machine.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

pub(crate) struct Stage {
    _dir: tempfile::TempDir,
    pub(crate) root: Utf8PathBuf,
    pub(crate) repo: Utf8PathBuf,
    pub(crate) task_dir: Utf8PathBuf,
}

pub(crate) struct Ended {
    pub(crate) status: std::process::ExitStatus,
    pub(crate) raw: Vec<u8>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::try_from(dir.path().canonicalize().unwrap()).unwrap();
        let (repo, task_dir) = (root.join("repo"), root.join("task"));
        fs_err::create_dir_all(&repo).unwrap();
        fs_err::create_dir_all(&task_dir).unwrap();
        let stage = Self { _dir: dir, root, repo, task_dir };
        stage.git(&["init", "--quiet", "--initial-branch=main"]);
        stage.git(&[
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@t",
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            "init",
        ]);
        stage
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(args).current_dir(&self.repo);
        let output = self.hermetic(&mut command).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    fn hermetic<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
    }

    /// The stand-in, ready to be started where a driver would start it.
    pub(crate) fn mock(&self, args: &[&str], env: &[(&str, &str)]) -> Command {
        let mut command = Command::new(mock_agent());
        self.hermetic(&mut command)
            .args(args)
            .current_dir(&self.repo)
            .env("TASK_DIR", &self.task_dir)
            .env("REHEARSAL_TASK_DIR", &self.task_dir)
            .env("REHEARSAL_TASK_ID", "t42")
            .env("TASK_WORKTREE", &self.repo)
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn script(&self, text: &str) -> Utf8PathBuf {
        let path = self.root.join("script.yaml");
        fs_err::write(&path, text).unwrap();
        path
    }

    /// Plays a script to its end.
    pub(crate) fn play(&self, script: &str) -> Ended {
        self.play_as(None, &[], script)
    }

    pub(crate) fn play_as(&self, agent: Option<&str>, foreign: &[&str], script: &str) -> Ended {
        let path = self.script(script);
        let mut args = vec!["--script", path.as_str()];
        args.extend(agent.iter().flat_map(|agent| ["--as", agent]));
        args.push("--");
        args.extend(foreign);
        ended(self.mock(&args, &[]).spawn().unwrap(), "Create hello.txt then list files.")
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs_err::read_to_string(self.root.join(path)).unwrap()
    }
}

/// Gives the prompt and waits for the end.
pub(crate) fn ended(mut child: Child, prompt: &str) -> Ended {
    // One that ends before it reads has nobody to give it to.
    let _ = child.stdin.take().unwrap().write_all(prompt.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ended {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        raw: output.stdout,
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ended {
    #[track_caller]
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("it was ended by a signal: {}", self.status))
    }

    #[track_caller]
    pub(crate) fn well(self) -> Self {
        assert!(self.status.success(), "{}: {}{}", self.status, self.stdout, self.stderr);
        self
    }
}

/// The example that is only the stand-in; test binaries are in `deps`, next to `examples`.
fn mock_agent() -> Utf8PathBuf {
    let test = Utf8PathBuf::try_from(std::env::current_exe().unwrap()).unwrap();
    let target = test.parent().and_then(Utf8Path::parent).unwrap();
    let program = target.join("examples/mock_agent");
    assert!(program.exists(), "{program} is missing: `cargo build --example mock_agent` makes it");
    program
}
