//! A remote, and machines that work for it: each with a clone, a home and a state directory of its own.

use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::Task;
use rehearsal_store::Durability;
use rehearsal_store::scratch::{Scratch, ScratchError};
use rehearsal_store::{PostgresStore, SqliteStore, Store, TaskQuery, TimeSource};
use serde_json::Value;

use crate::processes::{Process, living};

/// Worktrees that a machine keeps for the next tasks.
pub(crate) const KEPT_WARM: usize = 2;

/// The session that tasks belong to.
const SESSION: &str = "work";

/// Does its work once, however often it is killed and called again.
pub(crate) const IMPLEMENTER: &str = r#"
run:
  - run:
      status: 0
      command: |
        git log --format=%s -5 | grep -qx "Work on $TASK_ID" && exit
        mkdir -p work && echo "$TASK_ID" > "work/$TASK_ID.txt" && git add --all &&
        git -c user.name=Ada -c user.email=ada@example.invalid commit --quiet -m "Work on $TASK_ID"
  - result: { outcome: success }
  - say: Done.
"#;
const GATEKEEPER: &str = "run: [{ result: { decision: approve, comment: good } }, { say: good }]\n";
/// Changes nothing: for tasks that only go through the store.
const CLERK: &str = "run: [{ result: { outcome: success } }, { say: noted }]\n";

const NOTE: &str = "\
name: note
start: todo
states:
  todo: { agent: clerk, on: { done: done }, otherwise: failed }
  done: { end: success }
  failed: { end: failure }
";

pub(crate) struct Stage {
    _directory: tempfile::TempDir,
    root: Utf8PathBuf,
    binary: Utf8PathBuf,
    /// Where all machines keep their tasks; none: each in a file of its own.
    url: Option<String>,
    pub(crate) machines: Vec<Machine>,
}

/// One clone with its own home.
pub(crate) struct Machine {
    pub(crate) repo: Utf8PathBuf,
    home: Utf8PathBuf,
    binary: Utf8PathBuf,
    url: Option<String>,
}

/// A server of this test's own; none where PostgreSQL is not installed, which is said aloud.
pub(crate) fn server() -> Option<(Scratch, String)> {
    let server = match Scratch::start(Durability::Full) {
        Ok(server) => server,
        Err(error @ ScratchError::NotInstalled) => {
            println!("SKIPPED: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let url = wait_for(server.database()).unwrap();
    Some((server, url))
}

pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

impl Stage {
    /// So many machines, whose tasks live in one store.
    pub(crate) fn new(machines: usize, url: Option<String>) -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
        let binary = root.join("rehearsal");
        // A link has a path of its own, by which its processes are known.
        fs_err::hard_link(env!("CARGO_BIN_EXE_rehearsal"), &binary).unwrap();
        let mut stage = Self { _directory: directory, root, binary, url, machines: Vec::new() };
        stage.make_remote();
        stage.machines = (0..machines).map(|number| stage.make_machine(number)).collect();
        stage.first().succeed(&["session", "new", SESSION]);
        stage
    }

    pub(crate) fn remote(&self) -> Utf8PathBuf {
        self.root.join("origin.git")
    }

    fn make_remote(&self) {
        let seed = self.root.join("seed");
        fs_err::create_dir_all(seed.join(".rehearsal/flows")).unwrap();
        for (name, script) in [("implementer", IMPLEMENTER), ("gatekeeper", GATEKEEPER), ("clerk", CLERK)] {
            fs_err::write(self.root.join(format!("{name}.yaml")), script).unwrap();
        }
        fs_err::write(seed.join(".rehearsal/flows/note.yaml"), NOTE).unwrap();
        fs_err::write(seed.join(".rehearsal/config.yaml"), self.config()).unwrap();
        fs_err::write(seed.join("run-tests"), "test ! -e broken && echo ok\n").unwrap();
        git(&seed, &["init", "--quiet", "--initial-branch=main"]);
        git(&seed, &["add", "--all"]);
        git(&seed, &["commit", "--quiet", "--message=Begin"]);
        git(&self.root, &["clone", "--quiet", "--bare", "seed", "origin.git"]);
    }

    fn config(&self) -> String {
        let agent = |name: &str| {
            format!(
                "  {name}:\n    driver: claude\n    program: {binary}\n    \
                 args: [mock-agent, --as, claude, --script, {root}/{name}.yaml]\n    \
                 env: {{ REHEARSAL_MOCK_STATE: {root}/{name}.calls }}\n    sandbox: off\n",
                binary = self.binary,
                root = self.root,
            )
        };
        format!(
            "agents:\n{}{}{}testing: {{ command: sh run-tests, sandbox: {{ level: 'off' }} }}\n\
             worktrees: {{ keep_warm: {KEPT_WARM} }}\n",
            agent("implementer"),
            agent("gatekeeper"),
            agent("clerk"),
        )
    }

    fn make_machine(&self, number: usize) -> Machine {
        let (repo, home) = (self.root.join(format!("repo{number}")), self.root.join(format!("home{number}")));
        fs_err::create_dir(&home).unwrap();
        git(&self.root, &["clone", "--quiet", "origin.git", repo.as_str()]);
        Machine { repo, home, binary: self.binary.clone(), url: self.url.clone() }
    }

    /// Where things lie that agents and tests tell each other.
    pub(crate) fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// Changes what an agent plays.
    pub(crate) fn play(&self, name: &str, script: &str) {
        fs_err::write(self.root.join(format!("{name}.yaml")), script).unwrap();
    }

    pub(crate) fn first(&self) -> &Machine {
        &self.machines[0]
    }

    /// Adds tasks of a flow; how many there are is the caller's to know.
    pub(crate) fn add_tasks(&self, flow: &str, titles: impl Iterator<Item = String>) {
        let list: String = titles.map(|title| format!("- [ ] {title}\n")).collect();
        let path = self.root.join("tasks.md");
        fs_err::write(&path, list).unwrap();
        self.first().succeed(&["task", "import", path.as_str(), "--flow", flow, "--session", SESSION]);
    }

    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        match &self.url {
            Some(url) => Arc::new(PostgresStore::open(url, TimeSource::Server).await.unwrap()),
            None => {
                let state = self.first().state_dir();
                Arc::new(SqliteStore::open(state.as_std_path()).await.unwrap())
            }
        }
    }

    pub(crate) fn tasks(&self) -> Vec<Task> {
        wait_for(async { self.store().await.tasks(&TaskQuery::default()).await.unwrap() })
    }

    /// Everything that was started here and lives.
    pub(crate) fn processes(&self) -> Vec<Process> {
        self.machines.iter().flat_map(|machine| living(&self.binary, &machine.home)).collect()
    }
}

impl Machine {
    pub(crate) fn state_dir(&self) -> Utf8PathBuf {
        let key = fs_err::read_to_string(self.repo.join(".git/rehearsal-state")).unwrap_or_default();
        self.home.join(".local/share/rehearsal/state").join(key.lines().next().unwrap_or("none"))
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .current_dir(&self.repo)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &self.home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
            .args(args);
        if let Some(url) = &self.url {
            command.env("REHEARSAL_STORE", url);
        }
        command
    }

    /// A worker in the background, which writes what it says into a file: nobody has to read it.
    pub(crate) fn start_work(&self, args: &[&str]) -> Child {
        let log = fs_err::File::create(self.log()).unwrap().into_parts().0;
        let mut command = self.command(&[&["work", "--until-idle"], args].concat());
        command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
    }

    fn log(&self) -> Utf8PathBuf {
        self.home.join("work.log")
    }

    /// What its last worker said.
    pub(crate) fn said(&self) -> String {
        fs_err::read_to_string(self.log()).unwrap_or_default()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs the program to its end, with nothing going wrong; what it prints.
    pub(crate) fn succeed(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}{}", told(&output.stderr), told(&output.stdout));
        told(&output.stdout)
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.succeed(&[args, &["--json"]].concat())).unwrap()
    }

    /// Works until nothing is left to do.
    pub(crate) fn work(&self) {
        self.succeed(&["work", "--until-idle"]);
    }
}

pub(crate) fn git(directory: &Utf8Path, args: &[&str]) -> String {
    let identity = ["-c", "user.name=Someone", "-c", "user.email=someone@example.invalid"];
    let output = Command::new("git")
        .current_dir(directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(identity)
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", told(&output.stderr));
    told(&output.stdout)
}

pub(crate) fn told(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
