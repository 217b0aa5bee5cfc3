//! A real runner in a copy of its small project, with our reporter.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::Exit;
use rehearsal_testing::{Ending, EnvChange, Framework, Injection, Recorded, TestReport, read};

const DEADLINE: Duration = Duration::from_secs(120);

/// One that is installed.
pub(crate) struct Runner {
    framework: Framework,
    program: Vec<String>,
    project: &'static str,
    /// Where its modules are, for runners that look for them from the project up.
    modules: Option<Utf8PathBuf>,
}

/// What to run.
#[derive(Default, Clone, Copy)]
pub(crate) struct Run<'a> {
    pub env: &'a [(&'a str, &'a str)],
    pub args: &'a [&'a str],
    /// Kills it as soon as this test starts.
    pub kill_when_starts: Option<&'a str>,
}

impl Runner {
    pub(crate) fn pytest() -> Option<Self> {
        let python = tool("venv/bin/python")?;
        let program = [python.as_str(), "-m", "pytest", "-p", "no:cacheprovider"].map(str::to_owned).to_vec();
        Some(Self { framework: Framework::Pytest, program, project: "pytest", modules: None })
    }

    pub(crate) fn node(project: &'static str, framework: Framework, version: &str) -> Option<Self> {
        let modules = Utf8Path::new(version).join("node_modules");
        let program = vec![tool(modules.join(".bin").join(project).as_str())?.into_string()];
        Some(Self { framework, program, project, modules: tool(modules.as_str()) })
    }

    pub(crate) fn rspec() -> Option<Self> {
        let found =
            Command::new("rspec").arg("--version").output().is_ok_and(|output| output.status.success());
        if !found {
            say("left out: rspec is not installed");
        }
        found.then(|| Self {
            framework: Framework::Rspec,
            program: vec!["rspec".to_owned()],
            project: "rspec",
            modules: None,
        })
    }

    pub(crate) fn is_old(&self) -> bool {
        self.modules.as_ref().is_some_and(|modules| modules.as_str().contains("/old/"))
    }

    /// Runs it and reads the events.
    pub(crate) fn run(&self, run: &Run<'_>) -> TestReport {
        let place = Place::new(self);
        let mut child =
            self.command(&place, run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            let started = run.kill_when_starts.is_some_and(|name| place.has_started(name));
            if started || Instant::now() > deadline {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let exit = status.code().map(Exit::Code).or_else(|| status.signal().map(Exit::Signal));
        let ending = Ending { exit, ..Ending::default() };
        let recorded = Recorded {
            files: vec![place.events.clone()],
            root: Some(place.project.clone()),
            ending,
            ..Recorded::default()
        };
        read(&recorded).unwrap()
    }

    /// Runs it, and tells its exit status and what it prints.
    pub(crate) fn output(&self, run: &Run<'_>) -> (Option<i32>, String) {
        let place = Place::new(self);
        let output = self.command(&place, run).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn command(&self, place: &Place, run: &Run<'_>) -> Command {
        let version = if self.is_old() { "0.34.6" } else { "30.0.0" };
        let injection = Injection::of(self.framework, Some(version), &place.scratch, &place.events).unwrap();
        for (name, content) in &injection.files {
            fs_err::write(place.scratch.join(name), content).unwrap();
        }
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).args(run.args).args(&injection.args).current_dir(&place.project);
        for (name, change) in &injection.env {
            let (EnvChange::Set(value) | EnvChange::PrependPath(value)) = change;
            command.env(name, value);
        }
        command.env("NO_COLOR", "1").env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
        command.envs(run.env.iter().copied());
        command
    }
}

/// Where it runs.
struct Place {
    _directory: tempfile::TempDir,
    project: Utf8PathBuf,
    scratch: Utf8PathBuf,
    events: Utf8PathBuf,
}

impl Place {
    fn new(runner: &Runner) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize().unwrap()).unwrap();
        let (project, scratch, events) = (root.join("shop"), root.join("scratch"), root.join("events"));
        fs_err::create_dir(&scratch).unwrap();
        copy(&projects().join(runner.project), &project);
        if let Some(modules) = &runner.modules {
            std::os::unix::fs::symlink(modules, project.join("node_modules")).unwrap();
        }
        Self { _directory: directory, project, scratch, events }
    }

    fn has_started(&self, test: &str) -> bool {
        let events = fs_err::read_to_string(&self.events).unwrap_or_default();
        let name = serde_json::to_string(test).unwrap();
        let starts = events
            .lines()
            .filter(|line| line.starts_with(r#"{"ev":"start""#) || line.starts_with(r#"{"ev": "start""#));
        starts.into_iter().any(|line| {
            line.contains(&format!(r#""test":{name}"#)) || line.contains(&format!(r#""test": {name}"#))
        })
    }
}

fn copy(from: &Utf8Path, to: &Utf8Path) {
    fs_err::create_dir(to).unwrap();
    for entry in from.read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(entry.path(), &target);
        } else {
            fs_err::copy(entry.path(), target).unwrap();
        }
    }
}

fn projects() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reporters/projects")
}

/// A file below the directory with the runners.
fn tool(path: &str) -> Option<Utf8PathBuf> {
    let root = std::env::var("REHEARSAL_TEST_TOOLS").ok();
    let found = root.map(|root| Utf8PathBuf::from(root).join(path)).filter(|path| path.exists());
    if found.is_none() {
        say(&format!("left out: REHEARSAL_TEST_TOOLS names no directory with `{path}`"));
    }
    found
}

fn say(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}
