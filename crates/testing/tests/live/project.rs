//! A project of one runner, copied to where it can be run.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_testing::{Framework, Machine, RunWatcher, SandboxSpawner, TestReport, TestRequest, run};
use tokio_util::sync::CancellationToken;

/// What the misbehaving test does.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Misbehaviour {
    None,
    Crash,
    Hang,
}

/// A project whose runner is installed.
pub(crate) struct Live {
    _keep: tempfile::TempDir,
    root: Utf8PathBuf,
    framework: Framework,
    machine: Machine,
    tools: Option<Utf8PathBuf>,
}

/// The variables that runners need; the rest of ours is none of their business.
const VARIABLES: [&str; 8] =
    ["PATH", "HOME", "LANG", "RUSTUP_HOME", "CARGO_HOME", "RUSTUP_TOOLCHAIN", "PYENV_ROOT", "JAVA_HOME"];

impl Live {
    /// Nothing if the runner is not there, which is said aloud.
    pub(crate) fn new(directory: &str, framework: Framework, program: &str) -> Option<Self> {
        let tools = std::env::var("REHEARSAL_TEST_TOOLS").ok().map(Utf8PathBuf::from);
        let keep = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap().join(directory);
        copy(&Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/projects").join(directory), &root);
        let mut variables: BTreeMap<String, String> = VARIABLES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
            .collect();
        if let Some(tools) = &tools {
            for (link, target) in
                [("node_modules", tools.join("node_modules")), (".venv", tools.join("venv"))]
            {
                let of_its_kind = if link == ".venv" {
                    framework == Framework::Pytest
                } else {
                    root.join("package.json").is_file()
                };
                if of_its_kind && target.is_dir() {
                    std::os::unix::fs::symlink(target, root.join(link)).unwrap();
                }
            }
            let path = format!("{}:{tools}/venv/bin:{tools}/node_modules/.bin", variables["PATH"]);
            variables.insert("PATH".to_owned(), path);
            variables.insert("GOCACHE".to_owned(), tools.join("go-build").into_string());
        }
        let machine = Machine::new(variables);
        // Maven fetches nothing here: JUnit comes from where Debian puts it.
        let libraries = Utf8Path::new("/usr/share/maven-repo/org/junit/jupiter");
        let without_libraries = framework == Framework::Maven && !libraries.is_dir();
        if !machine.has(program) || without_libraries {
            let what = if machine.has(program) { "JUnit 5 of Debian" } else { program };
            #[expect(clippy::print_stderr, reason = "what is left out must be seen")]
            {
                eprintln!("left out: `{what}` is not installed");
            }
            return None;
        }
        Some(Self { _keep: keep, root, framework, machine, tools })
    }

    pub(crate) fn run(&self, misbehaviour: Misbehaviour, timeout: Duration) -> TestReport {
        let word = match misbehaviour {
            Misbehaviour::None => "",
            Misbehaviour::Crash => "crash",
            Misbehaviour::Hang => "hang",
        };
        self.run_with(|request| {
            request.environment.insert("MISBEHAVE".to_owned(), word.to_owned());
            request.timeout = timeout;
        })
    }

    pub(crate) fn run_with(&self, change: impl FnOnce(&mut TestRequest)) -> TestReport {
        let mut request = TestRequest::new(&self.root, self.machine.clone());
        request.framework = Some(self.framework);
        change(&mut request);
        let spawner = SandboxSpawner {
            home: self.machine.variable("HOME").map(Utf8PathBuf::from),
            readable: self.tools.iter().cloned().collect(),
            ..SandboxSpawner::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut run =
            runtime.block_on(run(&request, &spawner, &RunWatcher::none(), &CancellationToken::new()));
        run.projects.remove(0)
    }

    /// A run in which one test hangs, with as much time as this machine needs to come to it.
    pub(crate) fn run_until_it_hangs(&self, has_come: impl Fn(&TestReport) -> bool) -> TestReport {
        let mut seconds = 2;
        loop {
            let report = self.run(Misbehaviour::Hang, Duration::from_secs(seconds));
            if has_come(&report) || seconds > 60 {
                return report;
            }
            seconds *= 2;
        }
    }
}

/// A report as it helps to understand a failed test.
pub(crate) fn told(report: &TestReport) -> String {
    let mut report = report.clone();
    report.sandbox = None;
    serde_json::to_string_pretty(&report).unwrap()
}

fn copy(from: &Utf8Path, to: &Utf8Path) {
    fs_err::create_dir_all(to).unwrap();
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
