//! Where a scenario is played: a repository, its remote, a forge, and directories for what is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::RunId;
use rehearsal_forge::mock_gh::{InstalledGh, MockState};
use rehearsal_forge::{Forge, GitHub, Local, WorktreeError, WorktreeSettings, Worktrees, tree_of};
use rehearsal_git::{Git, GitError, Oid};
use rehearsal_store::{CommitError, OpenError, StoreError};

use super::beginning::{Beginning, Beginnings, ORIGIN, OUTSIDER, WORK};
use super::clock::StageClock;
use super::foreign;
use super::scenario::{ForeignCommit, ForgeChoice, Gh, Repository};
use crate::{Landing, Outlet};

/// The branch that work goes into.
pub(super) const BASE: &str = "main";
const BASE_REFERENCE: &str = "refs/heads/main";
/// How its tests run.
pub(super) const TEST_COMMAND: &str = "sh run-tests";

/// Why a scenario cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// git could not do it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There are no worktrees to be had.
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store does not take it.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A file cannot be used.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// What the scenario says is not right.
    #[error(transparent)]
    Source(#[from] rehearsal_core::SourceError),
    /// A name of ours is none.
    #[error(transparent)]
    Name(#[from] rehearsal_core::IdError),
}

/// The place.
pub(super) struct Stage {
    pub(super) root: Utf8PathBuf,
    pub(super) clock: StageClock,
    pub(super) worktrees: Arc<Worktrees>,
    pub(super) outlet: Outlet,
    began_at: Oid,
    gh: Option<InstalledGh>,
}

impl Stage {
    pub(super) async fn build(
        root: &Utf8Path,
        beginnings: &Beginnings,
        (repository, project): (&Repository, Option<&Utf8Path>),
        forge: &ForgeChoice,
        program: &Utf8Path,
        clock: StageClock,
        settings: WorktreeSettings,
    ) -> Result<Self, StageError> {
        fs_err::create_dir_all(root.join("state"))?;
        fs_err::create_dir_all(root.join("scripts"))?;
        let beginning = Beginning { root, beginnings, now: clock.now() };
        match (&repository.template, project) {
            (Some(_), Some(project)) => beginning.clone_project(project, repository.at.as_deref()).await?,
            _ => beginning.copy(&repository.files).await?,
        }
        let began_at = Git::at(root.join(ORIGIN)).commit(BASE_REFERENCE).await?;
        let worktrees = Worktrees::open(&root.join(WORK), &root.join("worktrees"), settings).await?;
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

    pub(super) fn state_dir(&self) -> Utf8PathBuf {
        self.root.join("state")
    }

    pub(super) fn run_dir(&self, run: &RunId) -> Utf8PathBuf {
        self.state_dir().join("runs").join(run.as_str())
    }

    fn remote(&self) -> Git {
        Git::at(self.root.join(ORIGIN))
    }

    pub(super) fn checkout(&self) -> Git {
        Git::at(self.root.join(WORK))
    }

    /// Takes the remote away, or puts it back.
    pub(super) fn move_remote(&self, away: bool) -> std::io::Result<()> {
        let (here, gone) = (self.root.join(ORIGIN), self.root.join("origin.gone"));
        if away { fs_err::rename(here, gone) } else { fs_err::rename(gone, here) }
    }

    /// Someone else's commit goes to a branch of the remote.
    pub(super) async fn commit(&self, commit: &ForeignCommit) -> Result<(), StageError> {
        let branch = commit.branch.as_deref().unwrap_or(BASE);
        let import = foreign::import_of(commit, branch, self.clock.now())?;
        self.remote().feed(&["fast-import", "--quiet", "--done"], &import).await?;
        Ok(())
    }

    /// Those of the files that the base has.
    pub(super) async fn base_files(
        &self,
        wanted: impl Iterator<Item = &Utf8PathBuf>,
    ) -> Result<BTreeMap<Utf8PathBuf, String>, StageError> {
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

    /// What the base has now.
    pub(super) async fn base_tip(&self) -> Result<Oid, StageError> {
        Ok(self.remote().commit(BASE_REFERENCE).await?)
    }

    pub(super) async fn base_moved(&self) -> Result<bool, StageError> {
        Ok(self.base_tip().await? != self.began_at)
    }

    pub(super) async fn base_commits(&self) -> Result<usize, StageError> {
        let range = format!("{}..{BASE}", self.began_at);
        let count = self.remote().line(&["rev-list", "--count", "--no-merges", &range]).await?;
        Ok(count.parse().unwrap_or(0))
    }

    /// The tree of a commit of the remote; none if it is not there.
    pub(super) async fn tree_on_remote(&self, commit: &Oid) -> Option<Oid> {
        tree_of(&self.remote(), commit).await.ok()
    }

    /// Whether someone else made a commit of the remote.
    pub(super) async fn is_foreign(&self, commit: &Oid) -> bool {
        let author = self.remote().line(&["show", "--no-patch", "--format=%an", commit.as_str()]).await;
        author.is_ok_and(|author| author == OUTSIDER)
    }

    pub(super) async fn branches(&self) -> Result<BTreeSet<String>, StageError> {
        let listed = self.remote().line(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]).await?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// The heads of all pull requests.
    pub(super) async fn pull_requests(&self) -> Result<Vec<String>, StageError> {
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
    pub(super) fn gh_calls(&self) -> Result<Vec<String>, StageError> {
        Ok(self.gh.as_ref().map(InstalledGh::calls).transpose()?.unwrap_or_default())
    }
}

fn github(root: &Utf8Path, gh: &Gh, program: &Utf8Path) -> Result<(GitHub, InstalledGh), StageError> {
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
