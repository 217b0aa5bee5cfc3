//! A scratch repository with a home of its own, in which the real program is run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use crate::running::{Running, wait_until};
use crate::stable::Stable;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rehearsal");

/// What agents and git need; nothing else of this machine is on the PATH, above all no real agent.
const TOOLS: [&str; 15] = [
    "git", "sh", "cat", "cut", "env", "grep", "head", "ls", "mkdir", "printf", "pwd", "rm", "sleep", "tail",
    "touch",
];

/// An action of a script: to wait until the test lets it go on. Leaves the id of its process.
pub(crate) const WAITS: &str = "run: { command: 'echo $$ > ../agent/pid; touch ../agent/ready; \
     until [ -e ../agent/go ]; do sleep 0.02; done', status: 0 }";

/// A repository, the sessions and tasks in it, and the agent that it is configured with.
pub(crate) struct TestEnv {
    /// Deleted with the test.
    _scratch: tempfile::TempDir,
    pub(crate) scratch: Utf8PathBuf,
    pub(crate) repo: Utf8PathBuf,
    vars: BTreeMap<String, String>,
    session: String,
    agent: Option<ScriptedAgent>,
    /// Lines of the agent's profile in the configuration.
    settings: Vec<String>,
    /// Lines of other agents' profiles.
    others: Vec<String>,
    /// The rest of the configuration.
    sections: Vec<String>,
    tasks: RefCell<Vec<String>>,
}

struct ScriptedAgent {
    driver: String,
    args: String,
}

impl TestEnv {
    /// A git repository with one commit.
    pub(crate) fn new() -> Self {
        Self::without_repository().with_repository()
    }

    /// The same, but not below the machine's directory for temporary files.
    pub(crate) fn outside_tmp() -> Self {
        let directory = tempfile::Builder::new().prefix("it-").tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        Self::in_directory(directory.unwrap()).with_repository()
    }

    fn with_repository(self) -> Self {
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        self.file("README.md", "# Greetings\n").commit("A beginning");
        self
    }

    /// An empty directory.
    pub(crate) fn without_repository() -> Self {
        Self::in_directory(tempfile::Builder::new().prefix("rehearsal-it-").tempdir().unwrap())
    }

    fn in_directory(directory: tempfile::TempDir) -> Self {
        let scratch = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
        for name in ["repo", "home", "bin", "agent", "tmp"] {
            std::fs::create_dir(scratch.join(name)).unwrap();
        }
        link_tools(&scratch.join("bin"));
        Self {
            vars: variables(&scratch),
            repo: scratch.join("repo"),
            scratch,
            _scratch: directory,
            session: String::new(),
            agent: None,
            settings: Vec::new(),
            others: Vec::new(),
            sections: Vec::new(),
            tasks: RefCell::default(),
        }
    }

    /// Makes a session; the tasks that follow belong to it.
    pub(crate) fn session(self, name: &str) -> Self {
        self.session_with(name, &[])
    }

    /// Makes a session with more to it.
    pub(crate) fn session_with(mut self, name: &str, flags: &[&str]) -> Self {
        self.must(&[&["session", "new", name], flags].concat());
        name.clone_into(&mut self.session);
        self
    }

    /// Adds a task to the session.
    pub(crate) fn task(self, title: &str) -> Self {
        self.task_with(title, &[])
    }

    /// Adds a task with more to it.
    pub(crate) fn task_with(self, title: &str, flags: &[&str]) -> Self {
        let document = self.json(&[&["task", "add", title, "--session", &self.session], flags].concat());
        self.know_task(&document["task"]["id"]);
        self
    }

    /// Tasks that came in another way get their numbers, in the order in which they are listed.
    pub(crate) fn know_all_tasks(&self) {
        for task in self.json(&["task", "list", "--all"])["tasks"].as_array().unwrap() {
            self.know_task(&task["id"]);
        }
    }

    fn know_task(&self, id: &Value) {
        let id = id.as_str().unwrap().to_owned();
        let mut tasks = self.tasks.borrow_mut();
        if !tasks.contains(&id) {
            tasks.push(id);
        }
    }

    /// The id of the n-th task, from 1.
    pub(crate) fn task_id(&self, number: usize) -> String {
        self.tasks.borrow()[number - 1].clone()
    }

    /// The implementer is the stand-in, which speaks like Claude Code and does what the script says.
    pub(crate) fn agent_script(self, script: &str) -> Self {
        self.agent_script_as("claude", script)
    }

    /// The same with another driver; `command` speaks plain text.
    pub(crate) fn agent_script_as(mut self, driver: &str, script: &str) -> Self {
        let path = self.scratch.join("agent/script.yaml");
        std::fs::write(&path, script).unwrap();
        let wire = if driver == "command" { String::new() } else { format!("--as, {driver}, ") };
        let args = format!("[mock-agent, {wire}--script, {path}]");
        self.agent = Some(ScriptedAgent { driver: driver.to_owned(), args });
        self.configure()
    }

    /// A line of the agent's profile, like `model: sonnet`.
    pub(crate) fn agent_setting(mut self, line: &str) -> Self {
        self.settings.push(line.to_owned());
        self.configure()
    }

    /// One more agent, which does what the script says.
    pub(crate) fn other_agent(mut self, name: &str, script: &str) -> Self {
        let path = self.scratch.join(format!("agent/{name}.yaml"));
        std::fs::write(&path, script).unwrap();
        let state = self.scratch.join(format!("agent/{name}.calls"));
        self.others.push(format!(
            "  {name}:\n    driver: claude\n    program: {PROGRAM}\n    args: [mock-agent, --as, claude, --script, {path}]\n    env: {{ REHEARSAL_MOCK_STATE: {state} }}\n    sandbox: off"
        ));
        self.configure()
    }

    /// A section of the configuration, like `testing: { command: sh test }`.
    pub(crate) fn config(mut self, section: &str) -> Self {
        self.sections.push(section.to_owned());
        self.configure()
    }

    /// Adds a task of another flow.
    pub(crate) fn task_of(self, flow: &str, title: &str, flags: &[&str]) -> Self {
        let document = self.json(&[&["task", "add", title, "--flow", flow], flags].concat());
        self.know_task(&document["task"]["id"]);
        self
    }

    /// The agent is a shell script of this name.
    pub(crate) fn program(self, name: &str, script: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let path = self.scratch.join("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self.agent_setting(&format!("program: {name}"))
    }

    fn configure(self) -> Self {
        let state = self.scratch.join("agent/calls");
        let mut lines = vec!["agents:".to_owned(), "  implementer:".to_owned()];
        if let Some(ScriptedAgent { driver, args }) = &self.agent {
            lines.push(format!("    driver: {driver}"));
            lines.push(format!("    program: {PROGRAM}"));
            lines.push(format!("    args: {args}"));
            lines.push(format!("    env: {{ REHEARSAL_MOCK_STATE: {state} }}"));
        }
        // A stand-in reads its script and counts its calls outside of the repository, where a sandbox would not let it.
        if self.agent.is_some() && !self.settings.iter().any(|line| line.starts_with("sandbox")) {
            lines.push("    sandbox: off".to_owned());
        }
        lines.extend(self.settings.iter().map(|line| format!("    {line}")));
        lines.extend(self.others.clone());
        lines.extend(self.sections.clone());
        let text = lines.join("\n");
        self.file(".rehearsal/config.yaml", &text).commit("Configure");
        self
    }

    /// Writes a file of the repository.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.repo.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Writes a shell script of the repository that can be executed.
    pub(crate) fn script(&self, path: &str, lines: &str) -> &Self {
        use std::os::unix::fs::PermissionsExt;
        self.file(path, format!("#!/bin/sh\n{lines}\n"));
        std::fs::set_permissions(self.repo.join(path), std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// Puts one more program of this machine on the PATH. Says aloud if there is none.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        let path = std::env::var("PATH").unwrap();
        // What is installed for all users works without the home of one.
        let found = std::env::split_paths(&format!("/usr/bin:{path}"))
            .map(|directory| directory.join(name))
            .find(|file| file.is_file());
        match found {
            Some(file) => std::os::unix::fs::symlink(file, self.scratch.join("bin").join(name)).unwrap(),
            None => drop(writeln!(std::io::stderr(), "left out: `{name}` is not installed")),
        }
        self.scratch.join("bin").join(name).exists()
    }

    /// Commits all that is there.
    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
    }

    /// Sets a variable for every command that follows.
    pub(crate) fn var(mut self, name: &str, value: &str) -> Self {
        self.vars.insert(name.to_owned(), value.to_owned());
        self
    }

    /// A file of the repository.
    pub(crate) fn read(&self, path: impl AsRef<Utf8Path>) -> String {
        let path = self.repo.join(path.as_ref());
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = self.command("git").args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// A command in the repository that sees nothing of this machine's user.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.repo).env_clear().envs(&self.vars);
        command
    }

    /// A command in another directory that sees nothing of this machine's user.
    pub(crate) fn command_in(&self, directory: &str, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory).env_clear().envs(&self.vars);
        command
    }

    /// Runs the program in another directory.
    pub(crate) fn run_in(&self, directory: &str, args: &[&str]) -> Output {
        self.finish(self.command_in(directory, PROGRAM).args(args), b"")
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.run_with_input(args, "")
    }

    /// The same with something on standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: impl AsRef<[u8]>) -> Output {
        self.finish(self.command(PROGRAM).args(args), input.as_ref())
    }

    /// Runs the program with more variables.
    pub(crate) fn run_with_vars(&self, vars: &[(&str, &str)], args: &[&str]) -> Output {
        self.finish(self.command(PROGRAM).args(args).envs(vars.iter().copied()), b"")
    }

    /// Runs the program where the kernel allows no more namespaces.
    pub(crate) fn run_without_namespaces(&self, args: &[&str]) -> Output {
        let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
        let mut command = self.command("/usr/bin/unshare");
        command.args(["--user", "--map-root-user", "/bin/sh", "-c", script, "sh", PROGRAM]).args(args);
        self.finish(&mut command, b"")
    }

    /// The same repository, mounted so that it can only be read; none where one may not mount, which is said aloud.
    pub(crate) fn read_only(&self) -> Option<ReadOnly<'_>> {
        let this = ReadOnly { env: self };
        let tried = this.command("/bin/true", &[]).output();
        let works = tried.is_ok_and(|output| output.status.success());
        if !works {
            drop(writeln!(std::io::stderr(), "left out: nothing can be mounted here (it takes root)"));
        }
        works.then_some(this)
    }

    /// Runs the program as an agent of a run would: with the variables of that run.
    pub(crate) fn run_inside(&self, run: &str, args: &[&str]) -> Output {
        let directory = self.run_dir(run);
        let mut command = self.command(PROGRAM);
        command.args(args).env("REHEARSAL_RUN_ID", run).env("REHEARSAL_TASK_DIR", directory);
        self.finish(&mut command, b"")
    }

    fn finish(&self, command: &mut Command, input: &[u8]) -> Output {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A program that does not read its input may be gone already.
        let _ = child.stdin.take().unwrap().write_all(input);
        Output::new(&child.wait_with_output().unwrap(), &self.stable())
    }

    /// Starts the program and leaves it running.
    pub(crate) fn start(&self, args: &[&str]) -> Running<'_> {
        Running::start(self, self.command(PROGRAM).args(args))
    }

    /// Runs a command that has to succeed.
    pub(crate) fn must(&self, args: &[&str]) -> Output {
        let output = self.run(args);
        assert_eq!(output.code, 0, "rehearsal {args:?}\n{output}");
        output
    }

    /// Runs a command with `--json` that has to succeed, and reads its one document.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        self.must(&[args, &["--json"]].concat()).document()
    }

    /// The ids of all runs, oldest first.
    pub(crate) fn runs(&self) -> Vec<String> {
        let document = self.json(&["runs", "list", "--limit", "1000"]);
        let runs = document["runs"].as_array().unwrap().iter().rev();
        runs.map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    }

    /// The outcomes of all runs, oldest first.
    pub(crate) fn outcomes(&self) -> Vec<String> {
        let document = self.json(&["runs", "list", "--limit", "1000"]);
        let runs = document["runs"].as_array().unwrap().iter().rev();
        runs.map(|run| run["end"]["verdict"]["outcome"]["name"].as_str().unwrap_or("running").to_owned())
            .collect()
    }

    /// Where a run keeps its files.
    pub(crate) fn run_dir(&self, run: &str) -> Utf8PathBuf {
        self.state_dir().join("runs").join(run)
    }

    /// Where the repository's database, runs and logs are.
    pub(crate) fn state_dir(&self) -> Utf8PathBuf {
        let key = std::fs::read_to_string(self.repo.join(".git/rehearsal-state")).unwrap_or_default();
        self.scratch.join("home/.local/share/rehearsal/state").join(key.lines().next().unwrap_or("none"))
    }

    /// What the agent was told in the n-th run, from 1.
    pub(crate) fn prompt(&self, number: usize) -> String {
        self.read(self.run_dir(&self.runs()[number - 1]).join("prompt.md"))
    }

    /// A task as `task show --json` has it.
    pub(crate) fn task_now(&self, number: usize) -> Value {
        self.json(&["task", "show", &self.task_id(number)])
    }

    /// Waits until the agent has come to [`WAITS`] in its script.
    #[track_caller]
    pub(crate) fn until_the_agent_waits(&self) {
        wait_until("the agent", || self.scratch.join("agent/ready").exists());
    }

    /// Lets an agent go on that waits.
    pub(crate) fn let_the_agent_go_on(&self) {
        std::fs::write(self.scratch.join("agent/go"), "").unwrap();
    }

    /// How often the stand-in was called.
    pub(crate) fn agent_calls(&self) -> u32 {
        let calls = std::fs::read_to_string(self.scratch.join("agent/calls")).unwrap_or_default();
        if calls.is_empty() { 0 } else { calls.trim().parse().unwrap() }
    }

    pub(crate) fn stable(&self) -> Stable<'_> {
        Stable { env: self, tasks: self.tasks.borrow().clone() }
    }
}

/// A repository and a home on a file system that can only be read, for the processes that are started here.
pub(crate) struct ReadOnly<'a> {
    env: &'a TestEnv,
}

impl ReadOnly<'_> {
    fn command(&self, program: &str, args: &[&str]) -> Command {
        let script = "for place in \"$1\" \"$2\"; do /bin/mount --bind \"$place\" \"$place\" && \
             /bin/mount -o remount,ro,bind \"$place\" || exit 1; done; cd \"$1\" && shift 2 && exec \"$@\"";
        let mut command = self.env.command("/usr/bin/unshare");
        let home = self.env.scratch.join("home");
        command.args(["--mount", "/bin/sh", "-c", script, "sh"]);
        command.args([self.env.repo.as_str(), home.as_str(), program]).args(args);
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.env.finish(&mut self.command(PROGRAM, args), b"")
    }
}

fn variables(scratch: &Utf8Path) -> BTreeMap<String, String> {
    let inside = |name: &str| scratch.join(name).to_string();
    [
        ("PATH", inside("bin")),
        ("HOME", inside("home")),
        ("TMPDIR", inside("tmp")),
        ("XDG_CONFIG_HOME", inside("home/.config")),
        ("XDG_DATA_HOME", inside("home/.local/share")),
        ("XDG_STATE_HOME", inside("home/.local/state")),
        ("XDG_CACHE_HOME", inside("home/.cache")),
        ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_AUTHOR_NAME", "Ada".into()),
        ("GIT_AUTHOR_EMAIL", "ada@example.invalid".into()),
        ("GIT_COMMITTER_NAME", "Ada".into()),
        ("GIT_COMMITTER_EMAIL", "ada@example.invalid".into()),
        ("NO_COLOR", "1".into()),
        ("TZ", "UTC".into()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn link_tools(bin: &Utf8Path) {
    std::os::unix::fs::symlink(PROGRAM, bin.join("rehearsal")).unwrap();
    let path = std::env::var("PATH").unwrap();
    for tool in TOOLS {
        let found = std::env::split_paths(&path).map(|dir| dir.join(tool)).find(|file| file.is_file());
        let found = found.unwrap_or_else(|| panic!("`{tool}` is not on the PATH"));
        std::os::unix::fs::symlink(found, bin.join(tool)).unwrap();
    }
}

/// What a call came to. Displays as a person sees it, with what differs from run to run replaced.
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
    shown: String,
}

impl Output {
    pub(crate) fn new(output: &std::process::Output, stable: &Stable<'_>) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code().unwrap_or_else(|| -output.status.signal().unwrap());
        let aside = if stderr.is_empty() { String::new() } else { format!("[stderr]\n{stderr}") };
        let end = if code == 0 { String::new() } else { format!("[exit {code}]\n") };
        let shown = stable.text(&format!("{stdout}{aside}{end}"));
        Self { stdout, stderr, code, shown }
    }

    /// The one JSON document on standard output.
    pub(crate) fn document(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "not one line: {self}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Everything it wrote.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self}");
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.shown.contains(text), "nothing says {text:?}:\n{self}");
        self
    }

    #[track_caller]
    pub(crate) fn never_says(self, text: &str) -> Self {
        assert!(!self.shown.contains(text), "something says {text:?}:\n{self}");
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown.trim_end())
    }
}
