//! Where a scenario is played: a repository, its remote, a forge, and directories for what is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{RunId, Timestamp};
use rehearsal_forge::mock_gh::{InstalledGh, MockState};
use rehearsal_forge::{Forge, Git, GitError, GitHub, Local, WorktreeError, WorktreeSettings, Worktrees};
use rehearsal_store::{CommitError, OpenError, StoreError};

use super::clock::StageClock;
use super::scenario::{ForeignCommit, ForgeChoice, Gh, Repository};
use crate::{Landing, Outlet};

/// The branch that work goes into.
pub(super) const BASE: &str = "main";
/// What a repository has of which nothing is said.
const FILES: [(&str, &str); 2] =
    [("README.md", "# A repository\n"), ("run-tests", "#!/bin/sh\necho '1..1'\necho 'ok 1 - it works'\n")];
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
    began_at: String,
    gh: Option<InstalledGh>,
}

impl Stage {
    pub(super) async fn build(
        root: &Utf8Path,
        repository: &Repository,
        project: Option<&Utf8Path>,
        forge: &ForgeChoice,
        program: &Utf8Path,
        clock: StageClock,
        settings: WorktreeSettings,
    ) -> Result<Self, StageError> {
        fs_err::create_dir_all(root.join("state"))?;
        fs_err::create_dir_all(root.join("scripts"))?;
        match (&repository.template, project) {
            (Some(_), Some(project)) => clone_project(root, project, repository.at.as_deref()).await?,
            _ => write_repository(root, repository, clock.now()).await?,
        }
        let began_at = git_at(root.join("origin.git")).line(&["rev-parse", BASE]).await?;
        let worktrees = Worktrees::open(&root.join("work"), &root.join("worktrees"), settings).await?;
        let (forge, landing, gh): (Arc<dyn Forge>, _, _) = match forge {
            ForgeChoice::Local => {
                (Arc::new(Local::open(&root.join("origin.git")).await?), Landing::Ours, None)
            }
            ForgeChoice::Gh(gh) => {
                let (forge, installed) = github(root, gh, program)?;
                (Arc::new(forge), Landing::Forge, Some(installed))
            }
        };
        let outlet = Outlet { remote: "origin".into(), base: BASE.into(), forge, landing };
        Ok(Self { root: root.to_owned(), clock, worktrees: Arc::new(worktrees), outlet, began_at, gh })
    }

    pub(super) fn state_dir(&self) -> Utf8PathBuf {
        self.root.join("state")
    }

    pub(super) fn run_dir(&self, run: &RunId) -> Utf8PathBuf {
        self.state_dir().join("runs").join(run.as_str())
    }

    fn remote(&self) -> Git {
        git_at(self.root.join("origin.git"))
    }

    pub(super) fn checkout(&self) -> Git {
        git_at(self.root.join("work"))
    }

    /// Takes the remote away, or puts it back.
    pub(super) fn move_remote(&self, away: bool) -> std::io::Result<()> {
        let (here, gone) = (self.root.join("origin.git"), self.root.join("origin.gone"));
        if away { fs_err::rename(here, gone) } else { fs_err::rename(gone, here) }
    }

    /// Someone else's commit goes to a branch of the remote.
    pub(super) async fn commit(&self, commit: &ForeignCommit) -> Result<(), StageError> {
        let outsider = self.root.join("outsider");
        if !outsider.exists() {
            git_at(self.root.clone()).run(&["clone", "--quiet", "origin.git", "outsider"]).await?;
        }
        let git = git_at(outsider.clone()).dated(self.clock.now());
        let branch = commit.branch.as_deref().unwrap_or(BASE);
        git.run(&["fetch", "--quiet", "origin"]).await?;
        git.run(&["checkout", "--quiet", "--force", "-B", branch, &format!("origin/{branch}")]).await?;
        write_files(&outsider, commit.files.iter().map(|(path, text)| (path.as_path(), text.as_str())))?;
        commit_all(&git, &commit.message).await?;
        let to = format!("HEAD:refs/heads/{branch}");
        git.run(&["push", "--quiet", "origin", &to]).await?;
        Ok(())
    }

    /// The text files of the base.
    pub(super) async fn base_files(&self) -> Result<BTreeMap<Utf8PathBuf, String>, StageError> {
        let git = self.remote();
        let listed = git.run(&["ls-tree", "-r", "-z", "--name-only", BASE]).await?;
        let mut files = BTreeMap::new();
        for name in String::from_utf8_lossy(&listed).split('\0').filter(|name| !name.is_empty()) {
            let content = git.run(&["cat-file", "blob", &format!("{BASE}:{name}")]).await?;
            files.insert(Utf8PathBuf::from(name), String::from_utf8_lossy(&content).into_owned());
        }
        Ok(files)
    }

    pub(super) async fn base_commits(&self) -> Result<usize, StageError> {
        let range = format!("{}..{BASE}", self.began_at);
        let count = self.remote().line(&["rev-list", "--count", "--no-merges", &range]).await?;
        Ok(count.parse().unwrap_or(0))
    }

    /// The tree of a commit of the remote, unless someone else made it; none if it is not there.
    pub(super) async fn tree_of_ours(&self, commit: &str) -> Option<String> {
        let shown = self.remote().line(&["show", "--no-patch", "--format=%T %an", commit]).await.ok()?;
        let (tree, author) = shown.split_once(' ')?;
        (author != OUTSIDER).then(|| tree.to_owned())
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

/// Whoever commits beside the agents.
const OUTSIDER: &str = "Someone Else";

fn git_at(dir: Utf8PathBuf) -> Git {
    Git::at(dir)
}

async fn commit_all(git: &Git, message: &str) -> Result<(), GitError> {
    git.run(&["add", "--all"]).await?;
    let (name, mail) = (format!("user.name={OUTSIDER}"), "user.email=someone@localhost");
    git.run(&["-c", &name, "-c", mail, "commit", "--quiet", "--allow-empty", "--message", message]).await?;
    Ok(())
}

fn write_files<'a>(
    root: &Utf8Path,
    files: impl Iterator<Item = (&'a Utf8Path, &'a str)>,
) -> Result<(), StageError> {
    for (path, text) in files {
        if path.is_absolute() || path.components().any(|part| part.as_str() == "..") {
            let message = format!("`{path}` is not inside of the repository");
            return Err(rehearsal_core::SourceError::at(None, message).into());
        }
        let path = root.join(path);
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        fs_err::write(&path, text)?;
        if text.starts_with("#!") {
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

async fn write_repository(
    root: &Utf8Path,
    repository: &Repository,
    now: Timestamp,
) -> Result<(), StageError> {
    let work = root.join("work");
    fs_err::create_dir_all(&work)?;
    let git = git_at(work.clone()).dated(now);
    git.run(&["init", "--quiet", "--initial-branch", BASE]).await?;
    let shipped = FILES.iter().filter(|_| repository.files.is_empty());
    write_files(&work, shipped.map(|(path, text)| (Utf8Path::new(path), *text)))?;
    write_files(&work, repository.files.iter().map(|(path, text)| (path.as_path(), text.as_str())))?;
    commit_all(&git, "The beginning").await?;
    git_at(root.to_owned()).run(&["clone", "--quiet", "--bare", "work", "origin.git"]).await?;
    let origin = root.join("origin.git");
    git.run(&["remote", "add", "origin", origin.as_str()]).await?;
    name_committer(root)
}

/// Whoever sits at this machine commits under the same name: commits are the same everywhere.
fn name_committer(root: &Utf8Path) -> Result<(), StageError> {
    for path in ["work/.git/config", "origin.git/config"] {
        let mut config = fs_err::OpenOptions::new().append(true).open(root.join(path))?;
        config.write_all(b"[user]\n\tname = Rehearsal\n\temail = rehearsal@localhost\n")?;
    }
    Ok(())
}

/// The project as it is committed, without its remotes: whatever is pushed stays here.
async fn clone_project(root: &Utf8Path, project: &Utf8Path, at: Option<&str>) -> Result<(), StageError> {
    let commit = git_at(project.to_owned()).commit(at.unwrap_or("HEAD")).await?;
    let git = git_at(root.to_owned());
    git.run(&["init", "--quiet", "--bare", "--initial-branch", BASE, "origin.git"]).await?;
    let origin = git_at(root.join("origin.git"));
    let from = format!("{commit}:refs/heads/{BASE}");
    // A commit by its name may be asked for only where that is allowed.
    origin
        .run(&[
            "-c",
            "uploadpack.allowAnySHA1InWant=true",
            "fetch",
            "--quiet",
            "--no-tags",
            project.as_str(),
            &from,
        ])
        .await?;
    git.run(&["clone", "--quiet", "origin.git", "work"]).await?;
    name_committer(root)
}

fn github(root: &Utf8Path, gh: &Gh, program: &Utf8Path) -> Result<(GitHub, InstalledGh), StageError> {
    let state = MockState { checks: gh.checks.clone(), faults: gh.faults.clone(), ..MockState::default() };
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
    let forge = GitHub::new(installed.program(), &root.join("work")).with_variables(variables);
    Ok((forge, installed))
}
