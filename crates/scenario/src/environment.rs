//! Where a scenario is played: a repository, its remote, a forge, and a state directory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::RunId;
use rehearsal_forge::mock_gh::{InstalledGh, MockState};
use rehearsal_forge::{Forge, GitHub, Local, WorktreeError, WorktreeSettings, Worktrees, tree_of};
use rehearsal_git::{Git, GitError, Oid};
use rehearsal_store::{CommitError, OpenError, StoreError};

use crate::clock::ScenarioClock;
use crate::foreign_commit;
use crate::repository::{ORIGIN, OUTSIDER, RepositoryCache, RepositorySetup, WORK};
use crate::scenario::{ForeignCommit, ForgeChoice, Gh, Repository};
use rehearsal_engine::{Landing, Outlet};

/// The branch that work is merged into.
pub(crate) const BASE: &str = "main";
const BASE_REFERENCE: &str = "refs/heads/main";
/// How the default repository is tested.
pub(crate) const TEST_COMMAND: &str = "sh run-tests";

/// Why a scenario cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A worktree cannot be created.
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store refused a change.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A file cannot be used.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The scenario is invalid.
    #[error(transparent)]
    Source(#[from] rehearsal_core::SourceError),
    /// A name is invalid.
    #[error(transparent)]
    Name(#[from] rehearsal_core::IdError),
}

pub(crate) struct Environment {
    pub(crate) root: Utf8PathBuf,
    pub(crate) clock: ScenarioClock,
    pub(crate) worktrees: Arc<Worktrees>,
    pub(crate) outlet: Outlet,
    began_at: Oid,
    gh: Option<InstalledGh>,
}

impl Environment {
    pub(crate) async fn build(
        root: &Utf8Path,
        repositories: &RepositoryCache,
        (repository, project): (&Repository, Option<&Utf8Path>),
        forge: &ForgeChoice,
        program: &Utf8Path,
        clock: ScenarioClock,
        settings: WorktreeSettings,
    ) -> Result<Self, ScenarioError> {
        fs_err::create_dir_all(root.join("state"))?;
        fs_err::create_dir_all(root.join("scripts"))?;
        let beginning = RepositorySetup { root, repositories, now: clock.now() };
        match (&repository.template, project) {
            (Some(_), Some(project)) => beginning.clone_project(project, repository.at.as_deref()).await?,
            _ => beginning.copy(&repository.files).await?,
        }
        let began_at = Git::at(root.join(ORIGIN)).commit(BASE_REFERENCE).await?;
        let worktrees = Worktrees::open(&root.join(WORK), &root.join("worktrees"), settings)?;
        let (forge, landing, gh): (Arc<dyn Forge>, _, _) = match forge {
            ForgeChoice::Local => (Arc::new(Local::open(&root.join(ORIGIN)).await?), Landing::Ours, None),
            ForgeChoice::Gh(gh) => {
                let (forge, installed) = github(root, gh, program)?;
                (Arc::new(forge), Landing::Forge, Some(installed))
            }
        };
        let outlet = Outlet { remote: root.join(ORIGIN).into(), base: BASE.into(), forge, landing };
        Ok(Self { root: root.to_owned(), clock, worktrees: Arc::new(worktrees), outlet, began_at, gh })
    }

    pub(crate) fn state_dir(&self) -> Utf8PathBuf {
        self.root.join("state")
    }

    pub(crate) fn run_dir(&self, run: &RunId) -> Utf8PathBuf {
        self.state_dir().join("runs").join(run.as_str())
    }

    fn remote(&self) -> Git {
        Git::at(self.root.join(ORIGIN))
    }

    pub(crate) fn checkout(&self) -> Git {
        Git::at(self.root.join(WORK))
    }

    /// Makes the remote unreachable, or reachable again.
    pub(crate) fn move_remote(&self, away: bool) -> std::io::Result<()> {
        let (here, gone) = (self.root.join(ORIGIN), self.root.join("origin.gone"));
        if away { fs_err::rename(here, gone) } else { fs_err::rename(gone, here) }
    }

    /// Pushes someone else's commit to a branch of the remote.
    pub(crate) async fn commit(&self, commit: &ForeignCommit) -> Result<(), ScenarioError> {
        let branch = commit.branch.as_deref().unwrap_or(BASE);
        let import = foreign_commit::import_of(commit, branch, self.clock.now())?;
        self.remote().feed(&["fast-import", "--quiet", "--done"], &import).await?;
        Ok(())
    }

    /// The content of these files on the base, if they exist.
    pub(crate) async fn base_files(
        &self,
        wanted: impl Iterator<Item = &Utf8PathBuf>,
    ) -> Result<BTreeMap<Utf8PathBuf, String>, ScenarioError> {
        let wanted: Vec<&Utf8PathBuf> = wanted.collect();
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let names: Vec<String> = wanted.iter().map(|path| format!("{BASE}:{path}")).collect();
        let found = self.remote().contents(&names).await?;
        let files = wanted.into_iter().zip(found).filter_map(|(path, content)| {
            Some((path.clone(), String::from_utf8_lossy(&content?).into_owned()))
        });
        Ok(files.collect())
    }

    pub(crate) async fn base_tip(&self) -> Result<Oid, ScenarioError> {
        Ok(self.remote().commit(BASE_REFERENCE).await?)
    }

    pub(crate) async fn base_moved(&self) -> Result<bool, ScenarioError> {
        Ok(self.base_tip().await? != self.began_at)
    }

    pub(crate) async fn base_commits(&self) -> Result<usize, ScenarioError> {
        let range = format!("{}..{BASE}", self.began_at);
        let count = self.remote().line(&["rev-list", "--count", "--no-merges", &range]).await?;
        Ok(count.parse().unwrap_or(0))
    }

    /// The tree of a commit in the remote, if it exists.
    pub(crate) async fn tree_on_remote(&self, commit: &Oid) -> Option<Oid> {
        tree_of(&self.remote(), commit).await.ok()
    }

    /// Whether someone else made this commit.
    pub(crate) async fn is_foreign(&self, commit: &Oid) -> bool {
        let author = self.remote().line(&["show", "--no-patch", "--format=%an", commit.as_str()]).await;
        author.is_ok_and(|author| author == OUTSIDER)
    }

    pub(crate) async fn branches(&self) -> Result<BTreeSet<String>, ScenarioError> {
        let listed = self.remote().line(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]).await?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// The heads of all pull requests.
    pub(crate) async fn pull_requests(&self) -> Result<Vec<String>, ScenarioError> {
        if let Some(gh) = &self.gh {
            return Ok(gh.state()?.pull_requests.into_iter().map(|it| it.head).collect());
        }
        let listed =
            self.remote().line(&["for-each-ref", "--format=%(refname)", "refs/rehearsal/pr/"]).await?;
        let mut heads = Vec::new();
        for number in listed.lines().filter_map(|name| name.rsplit('/').next()?.parse().ok()) {
            let view = self.outlet.forge.view(number).await;
            heads.push(view.map_or_else(|error| error.to_string(), |it| it.head));
        }
        Ok(heads)
    }

    /// The calls of `gh`, without their fields.
    pub(crate) fn gh_calls(&self) -> Result<Vec<String>, ScenarioError> {
        Ok(self.gh.as_ref().map(InstalledGh::calls).transpose()?.unwrap_or_default())
    }
}

fn github(root: &Utf8Path, gh: &Gh, program: &Utf8Path) -> Result<(GitHub, InstalledGh), ScenarioError> {
    let state = MockState {
        origin: Some(root.join(ORIGIN)),
        checks: gh.checks.clone(),
        faults: gh.faults.clone(),
        ..MockState::default()
    };
    let installed = InstalledGh::install(root, program, &state)?;
    let mut variables = installed.variables();
    let mut set = |name: &str, value: Option<String>| {
        variables.extend(value.map(|value| (format!("GH_MOCK_{name}"), value)));
    };
    let yes = |it: bool| it.then(|| "true".to_owned());
    set("PR_NUMBER", gh.pr_number.map(|number| number.to_string()));
    set("MERGE_STATUS", gh.merge_status.clone());
    set("MERGE_FAIL", yes(gh.merge_fail));
    set("CREATE_FAIL", yes(gh.create_fail));
    set("PR_EXISTS", yes(gh.pr_exists));
    let forge = GitHub::new(installed.program(), &root.join(WORK)).with_variables(variables);
    Ok((forge, installed))
}
