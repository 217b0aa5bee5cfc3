//! A repository with a toolbox, and something outside that nobody may see.

use std::collections::BTreeMap;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{RunId, TaskId};
use rehearsal_crew::{Called, Hooks, Permissions, TOOL_NAMES, Toolbox, Tools, Workplace};
use rehearsal_llm::chat::{Arguments, ToolCall};
use rehearsal_sandbox::Demand;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The value of a key that must never be seen.
pub(crate) const SECRET: &str = "hunter2-hunter2-hunter2-hunter2";

pub(crate) const ALL: Permissions = Permissions { read: true, write: true, execute: true, web: false };

pub(crate) struct Place {
    _dir: tempfile::TempDir,
    /// The worktree.
    pub(crate) root: Utf8PathBuf,
    /// Beside it.
    pub(crate) outside: Utf8PathBuf,
    /// For the toolbox.
    pub(crate) workplace: Workplace,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let [root, outside, run_dir, home] =
            ["worktree", "outside", "run", "home"].map(|name| base.join(name));
        for directory in [&root, &outside, &run_dir, &home] {
            fs_err::create_dir(directory).unwrap();
        }
        fs_err::write(outside.join("secret.txt"), "the secret of somebody else\n").unwrap();
        let path = std::env::var("PATH").unwrap();
        let variables = [
            ("PATH", path.as_str()),
            ("HOME", home.as_str()),
            ("ANTHROPIC_API_KEY", SECRET),
            ("LANG", "C.UTF-8"),
        ];
        let workplace = Workplace {
            role: "code".into(),
            tools: TOOL_NAMES.map(str::to_owned).into(),
            permissions: ALL,
            worktree: root.clone(),
            task: TaskId::new("task1").unwrap(),
            run: RunId::new(unique(dir.path())).unwrap(),
            run_dir,
            variables: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            demand: Demand::BestEffort,
            base: None,
            hooks: Hooks::default(),
            mcp: BTreeMap::new(),
            web_search: None,
            tests: None,
        };
        let place = Self { _dir: dir, root, outside, workplace };
        place.git(&["init", "-q", "-b", "main"]);
        place
    }

    /// The same with a file.
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.root.join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content).unwrap();
        self
    }

    pub(crate) fn may(mut self, permissions: Permissions) -> Self {
        self.workplace.permissions = permissions;
        self
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"])
            .args(args)
            .current_dir(&self.root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) async fn toolbox(&self) -> Toolbox {
        Toolbox::open(&self.workplace).await.unwrap()
    }

    /// One call of a fresh toolbox.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Called {
        let called = self.toolbox().await.call(&call(tool, &arguments), &CancellationToken::new()).await;
        assert!(!called.text.contains(SECRET), "a key is in the answer: {}", called.text);
        called
    }

    /// What the model reads of it, without the places of this machine.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).await.text.replace(self.root.as_str(), "WORKTREE")
    }

    pub(crate) fn read(&self, path: impl AsRef<Utf8Path>) -> String {
        fs_err::read_to_string(self.root.join(path.as_ref())).unwrap()
    }

    /// How many processes of the run there are.
    pub(crate) fn processes(&self) -> usize {
        rehearsal_process::processes_of_run(&self.workplace.run).len()
    }

    /// Nothing outside has changed.
    pub(crate) fn assert_outside_is_untouched(&self) {
        let mut names: Vec<_> =
            fs_err::read_dir(&self.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["secret.txt"]);
        let content = fs_err::read_to_string(self.outside.join("secret.txt")).unwrap();
        assert_eq!(content, "the secret of somebody else\n");
    }
}

/// The name of the run is in the environment of all its processes, by which they are found: no other test has the same.
fn unique(dir: &std::path::Path) -> String {
    let letters = dir.file_name().unwrap().to_str().unwrap().chars().filter(char::is_ascii_alphanumeric);
    format!("run{}", letters.collect::<String>().to_lowercase())
}

pub(crate) fn call(tool: &str, arguments: &Value) -> ToolCall {
    ToolCall {
        id: "1".into(),
        name: tool.into(),
        namespace: None,
        arguments: Arguments::read(arguments.to_string()),
        signature: None,
    }
}
