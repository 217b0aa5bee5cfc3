//! Plays many scenarios, several at a time, each on its own thread with its own store and directory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::flow::Flow;
use rehearsal_stage::Script;
use rehearsal_store::scratch::{Scratch, ScratchError};
use rehearsal_store::{Durability, OpenError, PostgresStore, SqliteStore, Store, TimeSource};

use crate::environment::ScenarioError;
use crate::faulty_store::OpensStore;
use crate::rehearsal::{Performance, Rehearsal, Rehearsed};
use crate::scenario::Scenario;

/// How scenarios are played.
pub struct Suite {
    /// What all of them share.
    pub rehearsal: Rehearsal,
    /// Where their tasks live.
    pub store: StoreKind,
    /// How many are played at a time.
    pub jobs: usize,
    /// Keep each scenario's directory and log in here.
    pub keep: Option<Utf8PathBuf>,
    /// Overrides the scenarios' seeds.
    pub seed: Option<u64>,
    /// Overrides the scenarios' numbers of workers.
    pub workers: Option<u32>,
}

/// Where the tasks of a scenario live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// In a file.
    Sqlite,
    /// In a PostgreSQL server that is started for the suite.
    Postgres,
}

/// A scenario and what it refers to.
pub struct Prepared {
    /// The scenario.
    pub scenario: Scenario,
    /// Its flow.
    pub flow: Arc<Flow>,
    /// The flows that tasks name, by name.
    pub other_flows: BTreeMap<String, Arc<Flow>>,
    /// What its model answers, if it has a stage.
    pub script: Option<Arc<Script>>,
}

/// What happens while a suite is played.
#[derive(Debug, Clone, Copy)]
pub enum SuiteEvent<'a> {
    /// A scenario of this name starts.
    Started(&'a str),
    /// It ended.
    Ended(&'a str),
}

/// Why a suite was not played to its end.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// PostgreSQL does not start.
    #[error(transparent)]
    Server(#[from] ScratchError),
    /// The directory to keep a scenario in exists.
    #[error("`{0}` is already there")]
    Exists(Utf8PathBuf),
    /// A path is not UTF-8.
    #[error("`{}` is not UTF-8", .0.display())]
    NotUtf8(std::path::PathBuf),
    /// A file or thread fails.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A scenario cannot be played.
    #[error("scenario {at} cannot be played")]
    Scenario {
        /// Its index.
        at: usize,
        /// Why.
        #[source]
        error: ScenarioError,
    },
}

impl Suite {
    /// Plays the scenarios, and passes each result with its real duration to `played` in their order. `watch` is called
    /// from several threads. The first error ends the suite.
    pub fn play(
        &self,
        scenarios: &[Prepared],
        watch: &(dyn Fn(SuiteEvent<'_>) + Sync),
        mut played: impl FnMut(Rehearsed, Duration),
    ) -> Result<(), SuiteError> {
        let server = match self.store {
            StoreKind::Sqlite => None,
            StoreKind::Postgres => Some(Scratch::start(Durability::UntilPowerFails)?),
        };
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.clamp(1, scenarios.len().max(1)) {
                let (sender, server, next) = (sender.clone(), server.as_ref(), &next);
                scope.spawn(move || {
                    loop {
                        let at = next.fetch_add(1, Ordering::SeqCst);
                        let Some(prepared) = scenarios.get(at) else { return };
                        let name = &prepared.scenario.name.value;
                        watch(SuiteEvent::Started(name));
                        let began = Instant::now();
                        let result = self.play_one(at, prepared, server);
                        watch(SuiteEvent::Ended(name));
                        let result = result.map(|rehearsed| (rehearsed, began.elapsed()));
                        // The receiver is gone once a scenario failed to play.
                        if sender.send((at, result)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let (mut early, mut count) = (BTreeMap::new(), 0);
            for (at, result) in receiver {
                early.insert(at, result?);
                while let Some((rehearsed, duration)) = early.remove(&count) {
                    played(rehearsed, duration);
                    count += 1;
                }
            }
            Ok(())
        })
    }

    fn play_one(
        &self,
        at: usize,
        prepared: &Prepared,
        server: Option<&Scratch>,
    ) -> Result<Rehearsed, SuiteError> {
        let directory = Directory::create(self.keep.as_deref(), &prepared.scenario)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let rehearsed = runtime.block_on(async {
            let store = match server {
                None => ScenarioStore::Directory(directory.path.join("state")),
                Some(server) => ScenarioStore::Server(server.database().await?),
            };
            let performance = Performance {
                scenario: &prepared.scenario,
                flow: Arc::clone(&prepared.flow),
                other_flows: prepared.other_flows.clone(),
                script: prepared.script.clone(),
                directory: &directory.path,
                store: Arc::new(store),
                seed: self.seed,
                workers: self.workers,
            };
            let played = self.rehearsal.play(performance).await;
            played.map_err(|error| SuiteError::Scenario { at, error })
        });
        // Do not wait for what is left of it.
        runtime.shutdown_background();
        let rehearsed = rehearsed?;
        if self.keep.is_some() {
            fs_err::write(directory.path.join("log.jsonl"), rehearsed.log.join("\n") + "\n")?;
        }
        Ok(rehearsed)
    }
}

/// The store of one scenario. Its clock is the scenario's, also on a server.
enum ScenarioStore {
    Directory(Utf8PathBuf),
    /// By its address.
    Server(String),
}

#[async_trait]
impl OpensStore for ScenarioStore {
    async fn open(&self) -> Result<Arc<dyn Store>, OpenError> {
        Ok(match self {
            Self::Directory(directory) => Arc::new(SqliteStore::open_scratch(directory.as_std_path()).await?),
            Self::Server(url) => Arc::new(PostgresStore::open(url, TimeSource::Given).await?),
        })
    }
}

/// Where one scenario is played.
struct Directory {
    path: Utf8PathBuf,
    _scratch: Option<tempfile::TempDir>,
}

impl Directory {
    fn create(keep: Option<&Utf8Path>, scenario: &Scenario) -> Result<Self, SuiteError> {
        if let Some(keep) = keep {
            let path = keep.join(&scenario.name.value);
            if path.exists() {
                return Err(SuiteError::Exists(path));
            }
            fs_err::create_dir_all(&path)?;
            return Ok(Self { path, _scratch: None });
        }
        let scratch = tempfile::Builder::new().prefix("rehearsal-").tempdir()?;
        let path = Utf8PathBuf::from_path_buf(scratch.path().to_owned()).map_err(SuiteError::NotUtf8)?;
        Ok(Self { path, _scratch: Some(scratch) })
    }
}
