//! What every command has at hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use rehearsal_core::{Actor, Clock, Timestamp};
use rehearsal_engine::SystemClock;
use rehearsal_store::{Change, Committed, Store};

use crate::error::CliError;
use crate::project::Project;
use crate::ui::Ui;

/// One call's surroundings.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) ui: Ui,
    pub(crate) directory: Utf8PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Context {
    pub(crate) fn new(ui: Ui, repo: Option<Utf8PathBuf>) -> Result<Self, CliError> {
        let here = std::env::current_dir()?;
        let here = Utf8PathBuf::from_path_buf(here).map_err(|path| {
            CliError::usage(format!("the directory `{}` has a name that is not UTF-8", path.display()))
        })?;
        let directory = repo.map_or_else(|| here.clone(), |repo| here.join(repo));
        if !directory.is_dir() {
            return Err(CliError::usage(format!("there is no directory `{directory}`")));
        }
        Ok(Self { ui, directory, clock: Arc::new(SystemClock) })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn project(&self) -> Result<Project, CliError> {
        Project::around(&self.directory)
    }

    /// The store of the repository around.
    pub(crate) async fn store(&self) -> Result<Arc<dyn Store>, CliError> {
        self.project()?.store().await
    }

    /// Writes as the user.
    pub(crate) async fn commit(
        &self,
        store: &dyn Store,
        changes: Vec<Change>,
    ) -> Result<Vec<Committed>, CliError> {
        Ok(store.commit(Actor::User, self.now(), changes).await?)
    }
}

/// The path of this binary.
pub(crate) fn own_program() -> Result<Utf8PathBuf, CliError> {
    Utf8PathBuf::from_path_buf(std::env::current_exe()?)
        .map_err(|path| CliError::usage(format!("`{}` is not UTF-8", path.display())))
}

/// Our environment, as far as it is text; what is not cannot be handed on by name.
pub(crate) fn variables() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
