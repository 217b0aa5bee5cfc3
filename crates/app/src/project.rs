//! The repository that a request is about: its root, its settings, its store.

mod flows;
mod state;

use std::sync::{Arc, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::config::{self, Layer, Origin, Overrides, Settings};
use rehearsal_core::{Actor, AgentName, IdError, SourceError, nearest};
use rehearsal_store::{
    Change, CommitError, Committed, FindError, OpenError, SqliteStore, Store, StoreError, StoreLocation,
};
use tokio::sync::OnceCell;

use crate::caller::{Caller, InsideRun, InsideRunError};
use crate::file::{FileError, read_text};
use state::State;

/// A repository as a caller sees it. Its settings are resolved and its store is opened once, when they are first needed.
#[derive(Clone)]
pub struct Project {
    /// The directory with `.rehearsal` or `.git`.
    pub root: Utf8PathBuf,
    /// Who asks.
    pub caller: Caller,
    state: OnceLock<State>,
    settings: OnceLock<Arc<Settings>>,
    store: OnceCell<Arc<dyn Store>>,
}

/// Inside a repository.
pub const DIRECTORY: &str = ".rehearsal";

/// Why a project, its settings, its flows or its store cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum ProjectError {
    #[error("`{directory}` is not inside a git repository")]
    NoRepository { directory: Utf8PathBuf },
    #[error(transparent)]
    File(#[from] FileError),
    #[error("`store` is `{address}` ({origin}), which is no address of a store")]
    /// The address is without its password.
    StoreAddress { address: String, origin: Origin },
    #[error("agents do not see the tasks of run `{run}`")]
    HiddenStore { run: String },
    #[error("unknown agent `{name}`")]
    UnknownAgent { name: AgentName, near: Option<String> },
    #[error("there is no flow `{name}`")]
    UnknownFlow { name: String, near: Option<String> },
    /// A flow's name differs from its file's name, so two files could claim to be the same flow.
    #[error("{file}: the flow calls itself `{name}`")]
    MisnamedFlow { file: String, expected: String, name: String },
    #[error("`flow:` in {origin}: {error}")]
    FlowSetting { origin: Origin, error: IdError },
    #[error("flow `loop` cannot be used: {why}")]
    LoopFlow { why: String },
    #[error("the tasks of this repository are gone: there is no database in `{directory}`")]
    LostState { directory: Utf8PathBuf, key_file: Utf8PathBuf },
    /// Both would work on the same tasks.
    #[error("this repository is a copy of `{original}`, and has the key to its tasks")]
    CopiedRepository { original: Utf8PathBuf, key_file: Utf8PathBuf },
    #[error("`{file}` does not hold the name of a directory")]
    BrokenKey { file: Utf8PathBuf },
    #[error("cannot move `{from}` to `{to}`: {source}")]
    NotMoved { from: Utf8PathBuf, to: Utf8PathBuf, source: std::io::Error },
    #[error("there is no place for data outside of the repository: neither XDG_DATA_HOME nor HOME is set")]
    NoDataDirectory,
    #[error("`{}` is not UTF-8", .0.display())]
    NotUtf8(std::path::PathBuf),
    #[error(transparent)]
    InsideRun(#[from] InsideRunError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Commit(#[from] CommitError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Project {
    /// The repository around the caller's directory: the nearest one above it with `.rehearsal` or `.git`.
    pub fn open(caller: &Caller) -> Result<Self, ProjectError> {
        // Some agent CLIs leave an empty `.git` in directories that they write: git ignores it, too.
        let is_repository = |git: Utf8PathBuf| git.is_file() || git.join("HEAD").exists();
        let is_root = |dir: &&Utf8Path| dir.join(DIRECTORY).is_dir() || is_repository(dir.join(".git"));
        let root = caller.directory.ancestors().find(is_root);
        let root = root.ok_or_else(|| ProjectError::NoRepository { directory: caller.directory.clone() })?;
        Ok(Self::at(root, caller))
    }

    /// The repository with this root.
    pub fn at(root: &Utf8Path, caller: &Caller) -> Self {
        Self {
            root: root.to_owned(),
            caller: caller.clone(),
            state: OnceLock::new(),
            settings: OnceLock::new(),
            store: OnceCell::new(),
        }
    }

    /// Where the project's own files are.
    pub fn directory(&self) -> Utf8PathBuf {
        self.root.join(DIRECTORY)
    }

    /// Where its settings are.
    pub fn config_path(&self) -> Utf8PathBuf {
        self.directory().join("config.yaml")
    }

    /// Where its store, its runs and its locks are.
    pub fn state_dir(&self) -> Result<Utf8PathBuf, ProjectError> {
        // The worktree of a task has no state: who asks from inside a run means the state of the run.
        match self.caller.inside_run().and_then(|inside| inside.state_dir()) {
            Some(directory) => Ok(directory),
            None => Ok(self.state()?.directory.clone()),
        }
    }

    fn state(&self) -> Result<&State, ProjectError> {
        if let Some(state) = self.state.get() {
            return Ok(state);
        }
        let found = State::find(&self.root, &self.caller)?;
        Ok(self.state.get_or_init(|| found))
    }

    /// Where each run has a directory.
    pub fn runs_dir(&self) -> Result<Utf8PathBuf, ProjectError> {
        Ok(self.state_dir()?.join("runs"))
    }

    /// A path as messages show it: relative to the repository where possible.
    pub fn shown(&self, path: &Utf8Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string()
    }

    /// The store, created when it is missing.
    pub async fn store(&self) -> Result<Arc<dyn Store>, ProjectError> {
        let open = || async {
            let location = self.prepare_store()?;
            let store = rehearsal_store::open(&location).await?;
            self.note_store(&location)?;
            Ok(store)
        };
        self.store.get_or_try_init(open).await.cloned()
    }

    /// Writes to the store as the person who asks.
    pub async fn commit(&self, changes: Vec<Change>) -> Result<Vec<Committed>, ProjectError> {
        let actor = Actor::Person(self.caller.person.clone());
        Ok(self.store().await?.commit(actor, self.caller.now(), changes).await?)
    }

    /// Where the store is, with all that has to be on this machine for it.
    pub fn prepare_store(&self) -> Result<StoreLocation, ProjectError> {
        let location = self.store_location()?;
        if let Some(inside) = self.out_of_reach(&location) {
            return Err(ProjectError::HiddenStore { run: inside.run().to_owned() });
        }
        if self.caller.inside_run().is_none() {
            self.state()?.prepare(&self.root, matches!(location, StoreLocation::Directory(_)))?;
        }
        Ok(location)
    }

    /// The place of a store on this machine, prepared, for when the settings cannot say where the store is.
    pub fn prepare_usual_store(&self) -> Result<StoreLocation, ProjectError> {
        let state = self.state()?;
        state.prepare(&self.root, true)?;
        Ok(StoreLocation::Directory(state.directory.clone().into()))
    }

    /// Notes that there is a store: from now on one that is missing is an error.
    pub fn note_store(&self, location: &StoreLocation) -> Result<(), ProjectError> {
        match location {
            StoreLocation::Directory(_) if self.caller.inside_run().is_none() => {
                Ok(self.state()?.note_store()?)
            }
            _ => Ok(()),
        }
    }

    /// Where results of tests are remembered: in the store, and for an agent that cannot reach it beside its run.
    pub async fn store_of_tests(&self) -> Result<Arc<dyn Store>, ProjectError> {
        match self.out_of_reach(&self.store_location()?) {
            Some(inside) => {
                let beside = inside.directory().join("tests");
                Ok(rehearsal_store::open(&StoreLocation::Directory(beside.into())).await?)
            }
            None => self.store().await,
        }
    }

    /// The run from inside which a store cannot be reached. A store exists before the first run: a new one would be another one.
    fn out_of_reach(&self, location: &StoreLocation) -> Option<InsideRun> {
        match location {
            StoreLocation::Directory(directory) if !SqliteStore::is_in(directory) => self.caller.inside_run(),
            StoreLocation::Directory(_) | StoreLocation::Postgres(_) => None,
        }
    }

    /// Where the store is: a file on this machine, unless the settings name a server.
    pub fn store_location(&self) -> Result<StoreLocation, ProjectError> {
        let settings = self.settings()?;
        let Some(address) = &settings.store else {
            return Ok(StoreLocation::Directory(self.state_dir()?.into()));
        };
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            return Ok(StoreLocation::Postgres(address.clone()));
        }
        let address = config::without_password(address);
        Err(ProjectError::StoreAddress { address, origin: settings.origins.get("store").clone() })
    }

    /// All settings: files and environment.
    pub fn settings(&self) -> Result<&Settings, ProjectError> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let settings = self.settings_with(Overrides::default())?;
        Ok(self.settings.get_or_init(|| Arc::new(settings)))
    }

    /// All settings: files, environment, and the flags of one request.
    pub fn settings_with(&self, flags: Overrides) -> Result<Settings, ProjectError> {
        let mut layers = Vec::new();
        if let Some(path) = self.user_config_path() {
            layers.extend(self.layer(&path, Layer::parse)?);
        }
        layers.extend(self.layers()?);
        let lookup = |name: &str| self.caller.variable(name).map(ToOwned::to_owned);
        let environment = Overrides::from_environment(lookup)
            .map_err(|error| FileError::wrong(error, "the environment"))?;
        let file = self.shown(&self.config_path());
        Ok(config::resolve(&layers, environment, flags).map_err(|error| FileError::wrong(error, file))?)
    }

    /// The settings of the project's own files. `testing.yaml` is nearer to its subject, so it wins over `config.yaml`.
    pub fn layers(&self) -> Result<Vec<Layer>, ProjectError> {
        let own = self.layer(&self.config_path(), Layer::parse)?;
        let testing = self.layer(&self.directory().join("testing.yaml"), Layer::parse_testing)?;
        Ok(own.into_iter().chain(testing).collect())
    }

    fn layer(
        &self,
        path: &Utf8Path,
        parse: fn(&str, Origin) -> Result<Layer, SourceError>,
    ) -> Result<Option<Layer>, ProjectError> {
        let Some(text) = read_text(path)? else { return Ok(None) };
        let shown = self.shown(path);
        let layer = parse(&text, Origin::file(&shown)).map_err(|error| FileError::wrong(error, shown))?;
        Ok(Some(layer))
    }

    fn user_config_path(&self) -> Option<Utf8PathBuf> {
        let base = match self.caller.variable("XDG_CONFIG_HOME") {
            Some(directory) => Utf8PathBuf::from(directory),
            None => Utf8Path::new(self.caller.environment.get("HOME")?).join(".config"),
        };
        Some(base.join("rehearsal/config.yaml"))
    }

    /// An agent that a flow may name.
    pub fn check_agent(&self, name: &AgentName) -> Result<(), ProjectError> {
        let known: Vec<AgentName> = self.settings()?.agent_names().collect();
        if known.contains(name) {
            return Ok(());
        }
        let near = nearest(name.as_str(), known.iter().map(AgentName::as_str)).map(ToOwned::to_owned);
        Err(ProjectError::UnknownAgent { name: name.clone(), near })
    }

    /// The template of the loop's prompt.
    pub fn loop_template(&self) -> Result<String, ProjectError> {
        let path = self.directory().join("prompts/loop.md");
        Ok(read_text(&path)?.unwrap_or_else(|| rehearsal_engine::prompt::SHIPPED_TEMPLATE.to_owned()))
    }
}
