//! The repository that a command is about: its root, its configuration, its store.

use std::io::Read;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::config::{self, Layer, Origin, Overrides, Settings};
use rehearsal_core::flow::{self, Flow};
use rehearsal_core::{AgentName, FlowName, Place, SourceError, nearest};
use rehearsal_store::{SqliteStore, Store, StoreLocation};

use crate::error::CliError;
use crate::exit::Exit;
use crate::inside::InsideRun;

/// Where everything of a repository is.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    pub(crate) root: Utf8PathBuf,
    state: Utf8PathBuf,
}

/// Inside a repository.
pub(crate) const DIRECTORY: &str = ".rehearsal";
const LONGEST_FILE: u64 = 4 << 20;

/// The run from inside of which a store cannot be reached. One is there before the first run: a new one would be another one.
fn out_of_reach(location: &StoreLocation) -> Option<InsideRun> {
    match location {
        StoreLocation::Directory(directory) if !SqliteStore::is_in(directory) => InsideRun::detect(),
        StoreLocation::Directory(_) | StoreLocation::Postgres(_) => None,
    }
}

impl Project {
    /// The repository around a directory: the nearest one above it with `.rehearsal` or `.git`.
    pub(crate) fn around(directory: &Utf8Path) -> Result<Self, CliError> {
        let is_root = |dir: &&Utf8Path| dir.join(DIRECTORY).is_dir() || dir.join(".git").exists();
        match directory.ancestors().find(is_root) {
            // The worktree of a task has no state of its own: whoever asks from inside a run means the run's.
            Some(root) => match InsideRun::detect().and_then(|inside| inside.state_dir()) {
                Some(state) => Ok(Self { root: root.to_owned(), state }),
                None => Ok(Self::at(root)),
            },
            None => Err(CliError::new(Exit::Git, format!("`{directory}` is not inside a git repository"))
                .hint("run `git init`, or go to a repository, or name one with `--repo DIR`")),
        }
    }

    /// The repository with this root.
    pub(crate) fn at(root: &Utf8Path) -> Self {
        Self { root: root.to_owned(), state: root.join(DIRECTORY).join("state") }
    }

    pub(crate) fn directory(&self) -> Utf8PathBuf {
        self.root.join(DIRECTORY)
    }

    pub(crate) fn config_path(&self) -> Utf8PathBuf {
        self.directory().join("config.yaml")
    }

    pub(crate) fn state_dir(&self) -> Utf8PathBuf {
        self.state.clone()
    }

    pub(crate) fn runs_dir(&self) -> Utf8PathBuf {
        self.state_dir().join("runs")
    }

    /// The store, made when it is not there.
    pub(crate) async fn store(&self) -> Result<Arc<dyn Store>, CliError> {
        Ok(rehearsal_store::open(&self.prepare_store()?).await?)
    }

    /// Where the store is, with all that has to be on this machine for it.
    pub(crate) fn prepare_store(&self) -> Result<StoreLocation, CliError> {
        let location = self.store_location()?;
        if let Some(inside) = out_of_reach(&location) {
            return Err(inside.has_no_store());
        }
        if matches!(location, StoreLocation::Postgres(_)) {
            self.make_state_dir()?;
        }
        Ok(location)
    }

    /// Where results of tests are remembered: in the store, and for an agent that cannot reach it beside its run.
    pub(crate) async fn store_of_tests(&self) -> Result<Arc<dyn Store>, CliError> {
        match out_of_reach(&self.store_location()?) {
            Some(inside) => {
                let beside = inside.directory().join("tests");
                Ok(rehearsal_store::open(&StoreLocation::Directory(beside.into())).await?)
            }
            None => self.store().await,
        }
    }

    /// Runs and traces of workers stay on this machine wherever the store is, and out of the repository's history.
    fn make_state_dir(&self) -> Result<(), CliError> {
        use std::os::unix::fs::DirBuilderExt;
        // What agents say is nobody else's business.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.state)?;
        let ignore = self.state.join(".gitignore");
        if !ignore.exists() {
            fs_err::write(ignore, "*\n")?;
        }
        Ok(())
    }

    /// Where the store is: a file in the repository, unless the settings name a server.
    pub(crate) fn store_location(&self) -> Result<StoreLocation, CliError> {
        let settings = self.settings(Overrides::default())?;
        let Some(address) = settings.store else {
            return Ok(StoreLocation::Directory(self.state_dir().into()));
        };
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            return Ok(StoreLocation::Postgres(address));
        }
        let shown = config::without_password(&address);
        Err(CliError::usage(format!(
            "`store` is `{shown}` ({}), which is no address of a store",
            settings.origins.get("store")
        ))
        .hint(
            "write `postgres://USER@HOST/DATABASE`, or leave it out: tasks are then kept in .rehearsal/state",
        ))
    }

    /// The settings of the project's own files. `testing.yaml` is nearer to its subject, so it wins over `config.yaml`.
    pub(crate) fn layers(&self) -> Result<Vec<Layer>, CliError> {
        let own = self.layer(&self.config_path(), Layer::parse)?;
        let testing = self.layer(&self.directory().join("testing.yaml"), Layer::parse_testing)?;
        Ok(own.into_iter().chain(testing).collect())
    }

    /// All settings: files, environment, flags.
    pub(crate) fn settings(&self, flags: Overrides) -> Result<Settings, CliError> {
        let mut layers = Vec::new();
        if let Some(path) = user_config_path() {
            layers.extend(self.layer(&path, Layer::parse)?);
        }
        layers.extend(self.layers()?);
        let lookup = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let environment = Overrides::from_environment(lookup)
            .map_err(|error| CliError::in_file(error, "the environment"))?;
        let file = self.shown(&self.config_path());
        config::resolve(&layers, environment, flags).map_err(|error| CliError::in_file(error, &file))
    }

    fn layer(
        &self,
        path: &Utf8Path,
        parse: fn(&str, Origin) -> Result<Layer, SourceError>,
    ) -> Result<Option<Layer>, CliError> {
        let Some(text) = read_text(path)? else { return Ok(None) };
        let shown = self.shown(path);
        parse(&text, Origin::file(&shown)).map(Some).map_err(|error| CliError::in_file(error, &shown))
    }

    /// Where a flow of the user's own would be.
    pub(crate) fn flow_path(&self, name: &str) -> Utf8PathBuf {
        self.directory().join("flows").join(format!("{name}.yaml"))
    }

    /// A flow by its name: the user's own before the shipped one.
    pub(crate) fn flow(&self, name: &str) -> Result<Flow, CliError> {
        let path = self.flow_path(name);
        if let Some(text) = read_text(&path)? {
            let flow = flow::parse(&text).map_err(|error| CliError::in_file(error, &self.shown(&path)))?;
            return self.named_as_its_file(flow, name, &path);
        }
        Flow::shipped(name).ok_or_else(|| self.no_flow(name))
    }

    fn no_flow(&self, name: &str) -> CliError {
        let shipped = flow::SHIPPED.map(|(name, _)| name);
        // Without them, only the advice is worse.
        let own = self.own_flows().unwrap_or_default();
        let error = CliError::usage(format!("there is no flow `{name}`"));
        match nearest(name, own.iter().map(String::as_str).chain(shipped)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!(
                "shipped: {}; your own go to `{DIRECTORY}/flows/NAME.yaml`",
                shipped.join(", ")
            )),
        }
    }

    /// Two files could say that they are the same flow.
    fn named_as_its_file(&self, flow: Flow, name: &str, path: &Utf8Path) -> Result<Flow, CliError> {
        if flow.name.as_str() == name {
            return Ok(flow);
        }
        let hint = format!("write `name: {name}`, or call the file `{}.yaml`", flow.name);
        let error = CliError::usage(format!("the flow calls itself `{}`", flow.name));
        Err(error.at(&self.shown(path)).hint(hint))
    }

    /// The flow of new tasks: the named one, or the one that the settings name. Its agents must be there.
    pub(crate) fn flow_for_tasks(&self, named: Option<&FlowName>) -> Result<Flow, CliError> {
        let settings = self.settings(Overrides::default())?;
        let name = match named {
            Some(name) => name.clone(),
            None => FlowName::new(settings.flow.clone()).map_err(|error| {
                CliError::usage(format!("`flow:` in {}: {error}", settings.origins.get("flow")))
            })?,
        };
        let flow = self.flow(name.as_str())?;
        self.check_agents(&flow, &settings)?;
        Ok(flow)
    }

    /// Every agent that a flow names must be one that the settings know.
    pub(crate) fn check_agents(&self, flow: &Flow, settings: &Settings) -> Result<(), CliError> {
        let known: Vec<AgentName> = settings.agent_names().collect();
        match flow.unknown_agent(&known.iter()) {
            Some(error) => Err(CliError::in_file(error, &self.place_of_flow(flow.name.as_str()))),
            None => Ok(()),
        }
    }

    /// Where a flow comes from, as messages show it.
    pub(crate) fn place_of_flow(&self, name: &str) -> String {
        let path = self.flow_path(name);
        if path.exists() { self.shown(&path) } else { format!("the shipped flow `{name}`") }
    }

    /// The flow that a loop takes tasks through.
    pub(crate) fn loop_flow(&self) -> Result<Flow, CliError> {
        let flow = self.flow("loop")?;
        flow.fits_a_loop().map_err(|why| {
            CliError::usage(format!("flow `loop` cannot be used: {why}"))
                .hint(format!("see `{DIRECTORY}/flows/loop.yaml`; without that file the shipped one is used"))
        })?;
        Ok(flow)
    }

    /// The user's own flows, by name.
    pub(crate) fn own_flows(&self) -> Result<Vec<String>, CliError> {
        let directory = self.directory().join("flows");
        if !directory.is_dir() {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        for entry in directory.read_dir_utf8()? {
            let path = entry?.into_path();
            if path.extension() == Some("yaml") {
                names.extend(path.file_stem().map(ToOwned::to_owned));
            }
        }
        names.sort();
        Ok(names)
    }

    /// The template of the loop's prompt.
    pub(crate) fn loop_template(&self) -> Result<String, CliError> {
        let path = self.directory().join("prompts/loop.md");
        Ok(read_text(&path)?.unwrap_or_else(|| rehearsal_engine::prompt::SHIPPED_TEMPLATE.to_owned()))
    }

    /// A path as messages show it: relative to the repository where it can be.
    pub(crate) fn shown(&self, path: &Utf8Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string()
    }
}

fn user_config_path() -> Option<Utf8PathBuf> {
    let base = std::env::var("XDG_CONFIG_HOME")
        .ok()
        .filter(|dir| !dir.is_empty())
        .or_else(|| std::env::var("HOME").ok().map(|home| format!("{home}/.config")))?;
    Some(Utf8PathBuf::from(base).join("rehearsal/config.yaml"))
}

/// A text file that a person wrote; none if it is not there. Binary junk and endless files are refused.
pub(crate) fn read_text(path: &Utf8Path) -> Result<Option<String>, CliError> {
    match fs_err::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            return Err(CliError::usage(format!("`{path}` is a directory")));
        }
        // A pipe would be waited for, and a device never ends.
        Ok(metadata) if !metadata.is_file() => {
            return Err(CliError::usage(format!("`{path}` is not a regular file")));
        }
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    read_all(fs_err::File::open(path)?, path.as_str(), LONGEST_FILE).map(Some)
}

/// A text from standard input.
pub(crate) fn read_stdin() -> Result<String, CliError> {
    read_all(std::io::stdin(), "standard input", LONGEST_FILE)
}

/// All of a text, up to a limit.
pub(crate) fn read_all(from: impl std::io::Read, name: &str, limit: u64) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    from.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(CliError::usage(format!("`{name}` is too large: at most {} MiB are read", limit >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        let line = 1 + before.matches('\n').count() as u64;
        let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count() as u64;
        let place = Some(Place { line, column });
        CliError::in_file(SourceError::at(place, "this is not text: it is not valid UTF-8"), name)
    })
}
