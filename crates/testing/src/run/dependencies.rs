//! What depends on what in a project: asked of its build tool, in the sandbox like everything that the project can have a
//! say in; or read from its sources.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::Exit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::drive::{Listener, drive};
use super::execute::lay_out;
use super::{Project, RunWatcher, Session, Spawner, TestRequest};
use crate::detect::Tree;
use crate::detect::file::read_inside;
use crate::parse::Stream;
use crate::words::one_line;
use crate::{Candidate, Dependencies, Framework, PythonImports, RunPlan, Stopped};

/// A build tool that needs longer than this is slower than many tests.
const LONGEST: Duration = Duration::from_secs(30);
/// Answers of large workspaces have a few megabytes.
const LARGEST_ANSWER: usize = 64 << 20;
/// More sources are not looked through.
const MOST_FILES: usize = 20_000;
/// A source that is larger was not written by hand, and imports what it likes.
const LARGEST_FILE: usize = 1 << 20;

/// What is known of a project's dependencies.
#[derive(Debug)]
pub struct KnownDependencies {
    known: Known,
    /// The project's directory as its tools name it.
    root: Utf8PathBuf,
}

#[derive(Debug)]
enum Known {
    GoList(String),
    CargoMetadata(String),
    Python(PythonImports),
    NotTold(String),
    Unknown,
}

impl KnownDependencies {
    /// Of a project for which nobody is asked.
    pub fn unknown() -> Self {
        Self { known: Known::Unknown, root: Utf8PathBuf::new() }
    }

    /// Nobody can tell, and why.
    pub fn not_told(why: impl Into<String>) -> Self {
        Self { known: Known::NotTold(why.into()), root: Utf8PathBuf::new() }
    }

    /// As the choice of tests takes it.
    pub fn told(&self) -> Dependencies<'_> {
        match &self.known {
            Known::GoList(json) => Dependencies::GoList { json, root: self.root.as_str() },
            Known::CargoMetadata(json) => Dependencies::CargoMetadata { json, root: self.root.as_str() },
            Known::Python(imports) => Dependencies::Python(imports),
            Known::NotTold(why) => Dependencies::NotTold(why),
            Known::Unknown => Dependencies::Unknown,
        }
    }
}

/// Finds out what depends on what in a project.
pub async fn dependencies(
    request: &TestRequest,
    candidate: &Candidate,
    spawner: &dyn Spawner,
    cancel: &CancellationToken,
) -> KnownDependencies {
    let root = request.root.join(&candidate.root);
    let root = root.canonicalize_utf8().unwrap_or(root);
    let watcher = RunWatcher::none();
    let session = Session { request, machine: request.machine(), spawner, watcher: &watcher, cancel };
    let known = match candidate.framework {
        Framework::Go => {
            session.ask(candidate, &["list", "-json", "-deps", "-test", "./..."]).await.map(Known::GoList)
        }
        Framework::CargoTest | Framework::Nextest => {
            let args = ["metadata", "--format-version", "1", "--offline"];
            session.ask(candidate, &args).await.map(Known::CargoMetadata)
        }
        Framework::Pytest | Framework::Unittest => python_imports(&root, candidate).map(Known::Python),
        _ => Ok(Known::Unknown),
    };
    KnownDependencies { known: known.unwrap_or_else(Known::NotTold), root }
}

impl Session<'_> {
    /// Asks the tool that would run the tests, where it would run them.
    async fn ask(&self, candidate: &Candidate, args: &[&str]) -> Result<String, String> {
        let scratch = tempfile::Builder::new().prefix("rehearsal-test-").tempdir();
        let scratch = scratch.map_err(|error| format!("no temporary directory could be made: {error}"))?;
        let directory =
            Utf8Path::from_path(scratch.path()).ok_or("the temporary directory has no UTF-8 name")?;
        let project = Project::from(candidate.clone());
        let plan = self.request.plans(&project, directory).into_iter().next().ok_or("there is no plan")?;
        let plan = question(plan, args);
        if let Some(missing) = plan.missing {
            return Err(missing);
        }
        let failed = |why: &str| format!("`{}` failed: {}", plan.command, one_line(why, 200));
        lay_out(&plan, directory).map_err(|error| failed(&error.to_string()))?;
        let mut around = self.surroundings(&plan, directory);
        around.until = Instant::now() + LONGEST;
        let mut answer = Answer::default();
        let driven = drive(&plan, &plan.command, &around, &mut answer).await;
        let driven = driven.map_err(|error| failed(&error.to_string()))?;
        match (driven.stopped, driven.end.exit) {
            (Some(Stopped::Cancelled), _) => Err(failed("it was cancelled")),
            (Some(_), _) => Err(failed("it took too long")),
            (None, Some(Exit::Code(0))) if answer.too_long => Err(failed("its answer is too long")),
            (None, Some(Exit::Code(0))) => Ok(String::from_utf8_lossy(&answer.text).into_owned()),
            _ => Err(failed(answer.last_words().trim())),
        }
    }
}

/// The same program with other arguments. It builds nothing: of what tests may write to, it gets Go's cache alone,
/// without which Go does not even start.
fn question(mut plan: RunPlan, args: &[&str]) -> RunPlan {
    plan.command.args = args.iter().map(|arg| (*arg).to_owned()).collect();
    plan.merge_stderr = false;
    plan.files.clear();
    if plan.framework != Framework::Go {
        plan.writable.clear();
    }
    // `cargo-nextest` may be missing where cargo is there.
    if plan.command.program.starts_with('/') {
        plan.missing = None;
    }
    plan
}

/// What a tool says: its answer, and the beginning of its complaints.
#[derive(Default)]
struct Answer {
    text: Vec<u8>,
    too_long: bool,
    complaints: Vec<u8>,
}

impl Answer {
    fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.complaints);
        text.lines().find(|line| line.starts_with("error") || line.contains(": ")).unwrap_or("").to_owned()
    }
}

impl Listener for Answer {
    fn printed(&mut self, stream: Stream, bytes: &[u8]) {
        let (kept, most) = match stream {
            Stream::Out => (&mut self.text, LARGEST_ANSWER),
            Stream::Err => (&mut self.complaints, 16 << 10),
        };
        let room = most - kept.len();
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.too_long |= stream == Stream::Out && bytes.len() > room;
    }

    fn look(&mut self) {}

    fn stopping(&mut self) {}
}

/// The imports of all Python files that git would know, without those of projects within.
fn python_imports(root: &Utf8Path, candidate: &Candidate) -> Result<PythonImports, String> {
    let tree = Tree::walk(root);
    if tree.cut {
        return Err("there are more directories than can be looked through".to_owned());
    }
    let others: Vec<&Utf8Path> = candidate.invocation.leave_out.iter().map(Utf8Path::new).collect();
    let mut imports = PythonImports::default();
    let mut count = 0;
    for (directory, files) in tree.directories() {
        if others.iter().any(|other| directory.starts_with(other)) {
            continue;
        }
        for name in files.iter().filter(|name| name.ends_with(".py")) {
            count += 1;
            if count > MOST_FILES {
                return Err(format!("there are more than {MOST_FILES} Python files"));
            }
            let file = directory.join(name);
            let text = read_inside(root, &root.join(&file)).unwrap_or_default();
            if text.len() >= LARGEST_FILE {
                return Err(format!("`{file}` is too large to be looked through"));
            }
            imports.add(file.as_str(), &text);
        }
    }
    Ok(imports)
}
