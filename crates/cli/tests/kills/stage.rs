//! A scratch repository with its own home, its own copy of the binary, and a stand-in for an agent.

use std::process::{Child, Command, Output, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use crate::processes::{Process, eventually, living};

pub(crate) const SESSION: &str = "work";

/// Works, and leaves a child in a session of its own that does not listen to SIGTERM. Can be played again
/// whenever it was killed.
pub(crate) const DILIGENT: &str = "\
run:
  - spawn_child: { detach: true, ignore_sigterm: true }
  - append: { path: work.txt, content: \"{task}\\n\" }
  - commit: { message: \"Work on {task}\" }
  - progress: \"worked on {task}\"
  - task_done: current
  - say: Done.
";

pub(crate) struct Stage {
    directory: tempfile::TempDir,
    pub(crate) repo: Utf8PathBuf,
    home: Utf8PathBuf,
    binary: Utf8PathBuf,
}

impl Stage {
    /// A repository with a session, whose agent plays a script.
    pub(crate) fn new(script: &str) -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
        let (repo, home, binary) = (root.join("repo"), root.join("home"), root.join("rehearsal"));
        // A link has a path of its own, by which its processes are known.
        fs_err::hard_link(env!("CARGO_BIN_EXE_rehearsal"), &binary).unwrap();
        fs_err::create_dir(&home).unwrap();
        fs_err::create_dir_all(repo.join(".rehearsal")).unwrap();
        let stage = Self { directory, repo, home, binary };
        stage.configure(script);
        stage.git(&["init", "--quiet", "--initial-branch=main"]);
        stage.git(&["add", "--all"]);
        stage.git(&["commit", "--quiet", "--message=Begin"]);
        stage.succeed(&["session", "new", SESSION]);
        stage
    }

    fn configure(&self, script: &str) {
        let config = format!(
            "agents:\n  implementer:\n    driver: claude\n    program: {}\n    \
             args: [mock-agent, --as, claude, --script, .rehearsal/script.yaml]\n    \
             env: {{ REHEARSAL_MOCK_STATE: ../calls }}\n    sandbox: off\n",
            self.binary
        );
        fs_err::write(self.repo.join(".rehearsal/config.yaml"), config).unwrap();
        self.play(script);
    }

    /// Changes what the agent plays.
    pub(crate) fn play(&self, script: &str) {
        fs_err::write(self.repo.join(".rehearsal/script.yaml"), script).unwrap();
    }

    pub(crate) fn state_dir(&self) -> Utf8PathBuf {
        let key = fs_err::read_to_string(self.repo.join(".git/rehearsal-state")).unwrap_or_default();
        self.home.join(".local/share/rehearsal/state").join(key.lines().next().unwrap_or("none"))
    }

    /// Lets the repository forget that it had a store.
    pub(crate) fn forget_store(&self) {
        let file = self.repo.join(".git/rehearsal-state");
        let key = fs_err::read_to_string(&file).unwrap();
        fs_err::write(file, format!("{}\n", key.lines().next().unwrap())).unwrap();
    }

    /// The directories of runs.
    pub(crate) fn run_dirs(&self) -> Vec<Utf8PathBuf> {
        let entries = self.state_dir().join("runs").read_dir_utf8().into_iter().flatten();
        entries.map(|entry| entry.unwrap().into_path()).collect()
    }

    fn isolate<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .current_dir(&self.repo)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &self.home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        self.isolate(&mut command).args(args);
        command
    }

    /// Runs the program to its end.
    pub(crate) fn rehearsal(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The same, with nothing going wrong; what it prints.
    pub(crate) fn succeed(&self, args: &[&str]) -> String {
        let output = self.rehearsal(args);
        assert!(output.status.success(), "{args:?}: {}{}", told(&output.stderr), told(&output.stdout));
        told(&output.stdout)
    }

    /// A loop in the background.
    pub(crate) fn start_loop(&self, args: &[&str]) -> Child {
        let mut command = self.command(&["run", SESSION]);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        let identity = ["-c", "user.name=Someone", "-c", "user.email=someone@example.invalid"];
        let output = self.isolate(&mut command).args(identity).args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", told(&output.stderr));
        told(&output.stdout)
    }

    pub(crate) fn add_tasks(&self, titles: &[String]) {
        let list: String = titles.iter().map(|title| format!("- [ ] {title}\n")).collect();
        let path = self.root().join("tasks.md");
        fs_err::write(&path, list).unwrap();
        self.succeed(&["task", "import", path.as_str(), "--session", SESSION]);
    }

    pub(crate) fn root(&self) -> &Utf8Path {
        Utf8Path::from_path(self.directory.path()).unwrap()
    }

    /// Everything that was started here and lives.
    pub(crate) fn processes(&self) -> Vec<Process> {
        living(&self.binary, &self.home)
    }

    /// Waits until nothing of it lives.
    pub(crate) fn until_nothing_lives(&self) {
        let mut left = Vec::new();
        let deadline = std::time::Instant::now() + crate::processes::FOR_EVER;
        while std::time::Instant::now() < deadline {
            left = self.processes();
            if left.is_empty() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("still alive: {left:?}");
    }

    /// Waits for a file in the repository.
    pub(crate) fn until_written(&self, path: &str) {
        eventually(&format!("`{path}` is written"), || self.repo.join(path).exists());
    }

    /// The supervisor of the agent that works now.
    pub(crate) fn shim(&self) -> Process {
        // Another one waits for the next run: this one has an agent.
        let mut shims =
            self.processes().into_iter().filter(|process| process.is_shim() && process.has_child());
        let shim = shims.next().unwrap();
        assert_eq!(shims.next(), None, "one agent has one supervisor");
        shim
    }
}

pub(crate) fn told(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
