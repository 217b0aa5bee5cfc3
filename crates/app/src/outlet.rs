//! Where work goes: what the settings and the repository's remote ask for.

mod address;

use std::fmt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::config::{ForgeKind, Origin, Settings};
use rehearsal_core::{NextAction, Notice};
use rehearsal_engine::{Landing, Outlet};
use rehearsal_forge::{GitHub, Local, RemoteError, fetch, remote_head};
use rehearsal_git::{Git, GitError};

use crate::places;
use crate::project::{Project, ProjectError};
use address::Address;

/// The base branch and the forge that were chosen. Nothing was created yet.
#[derive(Debug, Clone)]
pub struct Destination {
    root: Utf8PathBuf,
    /// The branch that work starts from and goes to.
    pub base: String,
    /// Where it goes.
    pub forge: ChosenForge,
}

/// Where work goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenForge {
    /// Through `gh`.
    GitHub {
        /// The remote's name.
        remote: String,
        /// The program that is run as `gh`.
        program: Utf8PathBuf,
    },
    /// The remote is a directory on this machine.
    Directory {
        /// The remote's name.
        remote: String,
        /// The directory.
        path: Utf8PathBuf,
    },
    /// There is no remote: a bare repository of ours.
    Ours {
        /// Where it is.
        path: Utf8PathBuf,
    },
}

/// Why work cannot go anywhere.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum OutletError {
    #[error(transparent)]
    NoBaseBranch(GitError),
    #[error("there is no remote `{remote}`, which {origin} names")]
    UnknownRemote { remote: String, origin: Origin },
    #[error("there is no remote `{remote}`")]
    NoRemote { remote: String },
    #[error("the remote `{remote}` is on `{host}`, and pull requests there are not known")]
    UnknownHost { remote: String, host: String },
    #[error("`{program}` was not found, and GitHub is used through it")]
    NoGh { program: Utf8PathBuf },
    #[error("there is no branch `{base}` with a commit here")]
    NoBase { base: String },
    #[error("the remote `{remote}` has no branch `{base}`")]
    NoBaseThere { remote: String, base: String },
    /// The remote is a checkout of the base branch, which a push would change under a person's feet.
    #[error("`{path}`, the remote `{remote}`, has `{base}` checked out: it cannot be moved")]
    CheckedOut { path: Utf8PathBuf, remote: String, base: String },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Destination {
    /// Looks at the settings and the remote.
    pub async fn choose(settings: &Settings, project: &Project) -> Result<Self, OutletError> {
        let root = project.root.clone();
        let base = match &settings.base_branch {
            Some(base) => base.clone(),
            None => rehearsal_git::base_branch(&root).await.map_err(OutletError::NoBaseBranch)?,
        };
        let remote = &settings.forge.remote;
        let address = address_of(&root, remote).await?;
        let origin = settings.origins.get("forge.remote");
        if address.is_none() && *origin != Origin::Default {
            let (remote, origin) = (remote.clone(), origin.clone());
            return Err(OutletError::UnknownRemote { remote, origin });
        }
        let forge = choose_forge(settings.forge.kind, remote, address, project)?;
        Ok(Self { root, base, forge })
    }

    /// A bare repository of ours at `path`.
    pub(crate) fn ours(root: &Utf8Path, base: &str, path: Utf8PathBuf) -> Self {
        Self { root: root.to_owned(), base: base.to_owned(), forge: ChosenForge::Ours { path } }
    }

    /// Creates what is missing, and checks whether it can be used.
    pub async fn open(&self) -> Result<(Outlet, Option<Notice>), OutletError> {
        let outlet = |remote: &str, forge, landing| Outlet {
            remote: remote.to_owned(),
            base: self.base.clone(),
            forge,
            landing,
        };
        match &self.forge {
            ChosenForge::GitHub { remote, program } => {
                find_gh(program)?;
                let forge = Arc::new(GitHub::new(program.clone(), &self.root));
                Ok((outlet(remote, forge, Landing::Forge), None))
            }
            ChosenForge::Directory { remote, path } => {
                self.check_directory(remote, path).await?;
                let forge = Arc::new(Local::open(path).await?);
                // Not by its name: an address like `../origin.git` leads elsewhere from a worktree.
                Ok((outlet(path.as_str(), forge, Landing::Ours), None))
            }
            ChosenForge::Ours { path } => {
                let note = self.make_own(path).await?;
                let forge = Arc::new(Local::open(path).await?);
                Ok((outlet(path.as_str(), forge, Landing::Ours), note))
            }
        }
    }

    /// Where branches are pushed to: a name in the repository, or a path.
    pub fn remote(&self) -> &str {
        match &self.forge {
            ChosenForge::GitHub { remote, .. } => remote,
            ChosenForge::Directory { path, .. } | ChosenForge::Ours { path } => path.as_str(),
        }
    }

    /// What brings the merged work into the user's base branch.
    pub async fn pull(&self) -> NextAction {
        let remote = match &self.forge {
            ChosenForge::GitHub { remote, .. } | ChosenForge::Directory { remote, .. } => remote.clone(),
            ChosenForge::Ours { path } => path.to_string(),
        };
        let checked_out = Git::at(self.root.clone()).symbolic("HEAD").await.ok().flatten();
        let switch = checked_out.as_ref() != Some(&self.base);
        NextAction::Pull { remote, base: self.base.clone(), switch }
    }

    async fn check_directory(&self, remote: &str, path: &Utf8Path) -> Result<(), OutletError> {
        let git = Git::at(self.root.clone());
        match remote_head(&git, remote, &self.base).await {
            Ok(Some(_)) => {}
            Ok(None) => {
                let (remote, base) = (remote.to_owned(), self.base.clone());
                return Err(OutletError::NoBaseThere { remote, base });
            }
            Err(error) => return Err(error.into()),
        }
        let there = Git::at(path);
        let is_bare = there.line(&["rev-parse", "--is-bare-repository"]).await;
        let head = there.line(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await;
        if is_bare.is_ok_and(|said| said == "false") && head.is_ok_and(|head| head == self.base) {
            let (path, remote, base) = (path.to_owned(), remote.to_owned(), self.base.clone());
            return Err(OutletError::CheckedOut { path, remote, base });
        }
        Ok(())
    }

    /// Our own remote, with the base as it is here if that is newer.
    async fn make_own(&self, path: &Utf8Path) -> Result<Option<Notice>, OutletError> {
        let git = Git::at(self.root.clone());
        let base = &self.base;
        let name = format!("refs/heads/{base}");
        let ours = git.commit(&name).await.map_err(|_| OutletError::NoBase { base: base.clone() })?;
        if !path.exists() {
            make_bare(path, base).await?;
        }
        let theirs = remote_head(&git, path.as_str(), base).await?;
        if let Some(theirs) = &theirs {
            if *theirs == ours {
                return Ok(None);
            }
            fetch(&git, path.as_str(), base).await?;
            let missing = async |from: &str, to: &str| {
                let range = format!("{from}..{to}");
                let first = git.line(&["rev-list", "--max-count=1", &range]).await;
                first.map(|first| !first.is_empty())
            };
            let (ahead, behind) = (
                missing(theirs.as_str(), ours.as_str()).await?,
                missing(ours.as_str(), theirs.as_str()).await?,
            );
            match (ahead, behind) {
                (false, _) => return Ok(None),
                (true, true) => {
                    return Ok(Some(Notice::BaseDiverged { base: base.clone(), remote: path.to_string() }));
                }
                (true, false) => {}
            }
        }
        let refspec = format!("{name}:{name}");
        let pushed = git.run(&["push", "--quiet", "--", path.as_str(), &refspec]).await;
        if let Err(error) = pushed {
            // Another worker that began at the same moment may have been faster.
            let now = remote_head(&git, path.as_str(), base).await?;
            if now.is_none() || now == theirs {
                return Err(error.into());
            }
        }
        Ok(None)
    }
}

/// Creates a bare repository beside its place and then moves it there: if two processes start at the same moment one is
/// faster, and nobody sees half of a repository.
async fn make_bare(path: &Utf8Path, base: &str) -> Result<(), OutletError> {
    let above = path.parent().unwrap_or(path);
    fs_err::create_dir_all(above)?;
    let scratch = tempfile::Builder::new().prefix(".new-").tempdir_in(above)?;
    let new = Utf8PathBuf::from_path_buf(scratch.path().to_owned()).map_err(ProjectError::NotUtf8)?;
    let branch = format!("--initial-branch={base}");
    let init = ["init", "--quiet", "--bare", "--template=", &branch];
    Git::at(new.clone()).run(&init).await?;
    match fs_err::rename(&new, path) {
        Err(_) if path.exists() => Ok(()),
        moved => Ok(moved?),
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.forge {
            ChosenForge::GitHub { remote, program } => {
                write!(f, "GitHub, through `{program}` (remote {remote}, branch {})", self.base)
            }
            ChosenForge::Directory { remote, path } => {
                write!(f, "local: {path} (remote {remote}, branch {})", self.base)
            }
            ChosenForge::Ours { path } => write!(f, "local: {path} (branch {})", self.base),
        }
    }
}

fn choose_forge(
    kind: ForgeKind,
    remote: &str,
    address: Option<Address>,
    project: &Project,
) -> Result<ChosenForge, OutletError> {
    let remote = remote.to_owned();
    match (kind, address) {
        (ForgeKind::Github, Some(_)) | (ForgeKind::Auto, Some(Address::GitHub)) => {
            let program = project.caller.variable("REHEARSAL_GH").unwrap_or("gh").into();
            Ok(ChosenForge::GitHub { remote, program })
        }
        (ForgeKind::Github, None) => Err(OutletError::NoRemote { remote }),
        (ForgeKind::Auto | ForgeKind::Local, Some(Address::Directory(path))) => {
            let path = project.root.join(path);
            let path = path.canonicalize_utf8().unwrap_or(path);
            Ok(ChosenForge::Directory { remote, path })
        }
        (ForgeKind::Auto | ForgeKind::Local, None) | (ForgeKind::Local, Some(_)) => {
            Ok(ChosenForge::Ours { path: places::own_remote(project)? })
        }
        (ForgeKind::Auto, Some(Address::Elsewhere(host))) => Err(OutletError::UnknownHost { remote, host }),
    }
}

async fn address_of(root: &Utf8Path, remote: &str) -> Result<Option<Address>, OutletError> {
    match Git::at(root).line(&["remote", "get-url", "--", remote]).await {
        Ok(url) => Ok(Some(Address::read(&url))),
        Err(GitError::Failed { stderr, .. }) if stderr.contains("No such remote") => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn find_gh(program: &Utf8Path) -> Result<(), OutletError> {
    which::which(program).map(drop).map_err(|_| OutletError::NoGh { program: program.to_owned() })
}
