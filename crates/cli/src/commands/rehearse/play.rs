//! Plays scenarios on threads of their own, and tells of each in the order in which they are written.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::flow::Flow;
use rehearsal_core::place_of;
use rehearsal_scenario::{Beginnings, OpensStore, Performance, Rehearsal, Scenario, StageError};
use rehearsal_stage::Script;
use rehearsal_store::scratch::{Scratch, ScratchError};
use rehearsal_store::{Durability, OpenError, PostgresStore, SqliteStore, Store, TimeSource};

use super::progress::Progress;
use super::{Played, RehearseArgs, StoreKind, Written, absolute, millis, report};
use crate::context::{Context, variables};
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::{Project, read_text};

/// Plays all of them.
pub(super) fn all(
    found: &[Written],
    args: &RehearseArgs,
    project: Option<&Project>,
    context: &Context,
) -> Result<Vec<Played>, CliError> {
    let flows: Vec<Flows> =
        found.iter().map(|written| flows_of(written, project)).collect::<Result<_, _>>()?;
    let layers = match project {
        Some(project) => project.layers()?,
        None => Vec::new(),
    };
    let rehearsal = Rehearsal {
        program: own_program()?,
        variables: variables(),
        project: project.map(|project| project.root.clone()),
        layers,
        beginnings: Beginnings::default(),
    };
    // One server for all of them, and a database for each.
    let server = match args.store {
        StoreKind::Sqlite => None,
        StoreKind::Postgres => {
            Some(Scratch::start(Durability::UntilPowerFails).map_err(|error| no_server(&error))?)
        }
    };
    let hall = Hall {
        rehearsal,
        server,
        args,
        keep: args.keep.as_ref().map(|keep| absolute(&context.directory, keep)),
        next: AtomicUsize::new(0),
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let jobs = args.jobs.map_or(cores, |jobs| jobs as usize).min(found.len());
    let progress = Progress::new(context.ui, found.len());
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let sender = sender.clone();
            let (hall, flows, progress) = (&hall, &flows, &progress);
            scope.spawn(move || {
                while let Some(at) = hall.take(found.len()) {
                    let name = &found[at].scenario.name.value;
                    progress.began(name);
                    let played = hall.play(&found[at], &flows[at]);
                    progress.ended(name);
                    // Nobody listens any more once one of them could not be played.
                    if sender.send((at, played)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        in_order(&receiver, args, &progress)
    })
}

/// Tells of each when those before it are told of.
fn in_order(
    receiver: &mpsc::Receiver<(usize, Result<Played, CliError>)>,
    args: &RehearseArgs,
    progress: &Progress,
) -> Result<Vec<Played>, CliError> {
    let (mut early, mut all) = (BTreeMap::new(), Vec::new());
    for (at, played) in receiver {
        early.insert(at, played?);
        while let Some(mut played) = early.remove(&all.len()) {
            progress.say(report::told(&played, args.trace));
            if !args.trace {
                played.rehearsed.timeline.clear();
                played.rehearsed.log.clear();
            }
            all.push(played);
        }
    }
    Ok(all)
}

/// Where scenarios are played.
struct Hall<'a> {
    rehearsal: Rehearsal,
    server: Option<Scratch>,
    args: &'a RehearseArgs,
    keep: Option<Utf8PathBuf>,
    next: AtomicUsize,
}

impl Hall<'_> {
    fn take(&self, count: usize) -> Option<usize> {
        let at = self.next.fetch_add(1, Ordering::SeqCst);
        (at < count).then_some(at)
    }

    fn play(&self, written: &Written, flows: &Flows) -> Result<Played, CliError> {
        let scenario = &written.scenario;
        let script = script_of(written)?;
        let place = Place::new(self.keep.as_deref(), scenario)?;
        let began = Instant::now();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let rehearsed = runtime.block_on(async {
            let store = Arc::new(self.store(&place).await?);
            let performance = Performance {
                scenario,
                flow: Arc::clone(&flows.usual),
                other_flows: flows.others.clone(),
                script,
                directory: &place.path,
                store,
                seed: self.args.seed,
                workers: self.args.workers,
            };
            self.rehearsal.play(performance).await.map_err(|error| of_stage(error, written))
        });
        // What is left of it is not waited for.
        runtime.shutdown_background();
        let rehearsed = rehearsed?;
        if self.keep.is_some() {
            fs_err::write(place.path.join("log.jsonl"), rehearsed.log.join("\n") + "\n")?;
        }
        Ok(Played { file: written.file.clone(), duration_ms: millis(began.elapsed()), rehearsed })
    }
}

impl Hall<'_> {
    /// Where the tasks of one scenario live.
    async fn store(&self, place: &Place) -> Result<Shelf, CliError> {
        match &self.server {
            None => Ok(Shelf::Directory(place.path.join("state"))),
            Some(server) => Ok(Shelf::Server(server.database().await.map_err(|error| no_server(&error))?)),
        }
    }
}

/// Where the tasks of a scenario live. Its clock is the scenario's, also on a server.
enum Shelf {
    Directory(Utf8PathBuf),
    /// By its address.
    Server(String),
}

#[async_trait]
impl OpensStore for Shelf {
    async fn open(&self) -> Result<Arc<dyn Store>, OpenError> {
        Ok(match self {
            Self::Directory(directory) => Arc::new(SqliteStore::open_scratch(directory.as_std_path()).await?),
            Self::Server(url) => Arc::new(PostgresStore::open(url, TimeSource::Given).await?),
        })
    }
}

fn no_server(error: &ScratchError) -> CliError {
    CliError::of(Exit::Usage, error)
        .hint("install PostgreSQL (Debian: `apt install postgresql`), or leave `--store` out")
}

/// Where one scenario is played.
struct Place {
    path: Utf8PathBuf,
    _scratch: Option<tempfile::TempDir>,
}

impl Place {
    fn new(keep: Option<&Utf8Path>, scenario: &Scenario) -> Result<Self, CliError> {
        if let Some(keep) = keep {
            let path = keep.join(&scenario.name.value);
            if path.exists() {
                return Err(
                    CliError::usage(format!("`{path}` is already there")).hint("name a new directory")
                );
            }
            fs_err::create_dir_all(&path)?;
            return Ok(Self { path, _scratch: None });
        }
        let scratch = tempfile::Builder::new().prefix("rehearsal-").tempdir()?;
        let path = Utf8PathBuf::from_path_buf(scratch.path().to_owned())
            .map_err(|path| CliError::usage(format!("`{}` is not UTF-8", path.display())))?;
        Ok(Self { path, _scratch: Some(scratch) })
    }
}

fn of_stage(error: StageError, written: &Written) -> CliError {
    match error {
        StageError::Source(error) => CliError::in_file(error, &written.file),
        StageError::Io(error) => error.into(),
        StageError::Open(error) => error.into(),
        StageError::Store(error) => error.into(),
        StageError::Commit(error) => error.into(),
        StageError::Name(error) => error.into(),
        error @ (StageError::Git(_) | StageError::Worktree(_)) => CliError::of(Exit::Git, &error),
    }
}

/// The flows of a scenario's tasks.
struct Flows {
    usual: Arc<Flow>,
    others: BTreeMap<String, Arc<Flow>>,
}

/// What a scenario's model answers.
fn script_of(written: &Written) -> Result<Option<Script>, CliError> {
    let Some(stage) = &written.scenario.stage else { return Ok(None) };
    let (text, file) = if stage.value.contains('\n') {
        (stage.value.clone(), format!("the stage of scenario `{}`", written.scenario.name.value))
    } else {
        let path = written.path.parent().unwrap_or(&written.path).join(&stage.value);
        let text = read_text(&path)?
            .ok_or_else(|| CliError::usage(format!("there is no file `{path}`")).at(&written.file))?;
        (text, path.to_string())
    };
    Script::parse(&text).map(Some).map_err(|error| CliError::in_file(error, &file))
}

/// The flow of a scenario: its own, the project's, or a shipped one; and those that its tasks name.
fn flows_of(written: &Written, project: Option<&Project>) -> Result<Flows, CliError> {
    let scenario = &written.scenario;
    let named = |name: &str, place: Option<rehearsal_core::Place>| {
        let found = match project {
            Some(project) => project.flow(name),
            None => Flow::shipped(name).ok_or_else(|| CliError::usage(format!("there is no flow `{name}`"))),
        };
        let place = place.map_or_else(|| written.file.clone(), |place| format!("{}:{place}", written.file));
        found.map(Arc::new).map_err(|error| error.or_at(&place))
    };
    let usual = match scenario.inline_flow() {
        Some(flow) => flow.map(Arc::new).map_err(|error| CliError::in_file(error, &written.file))?,
        None => named(&scenario.flow.value, place_of(&scenario.flow))?,
    };
    let mut others = BTreeMap::new();
    for task in &scenario.tasks {
        if let Some(name) = &task.value.flow {
            others.insert(name.clone(), named(name, place_of(task))?);
        }
    }
    Ok(Flows { usual, others })
}

fn own_program() -> Result<Utf8PathBuf, CliError> {
    Utf8PathBuf::from_path_buf(std::env::current_exe()?)
        .map_err(|path| CliError::usage(format!("`{}` is not UTF-8", path.display())))
}
