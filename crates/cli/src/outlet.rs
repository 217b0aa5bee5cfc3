//! Where work goes: what the settings and the repository's remote ask for.

mod address;

use std::fmt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::config::{ForgeKind, Origin, Settings};
use rehearsal_engine::{Landing, Outlet};
use rehearsal_forge::{GitHub, Local, RemoteError, fetch, remote_head};
use rehearsal_git::{Git, GitError};

use crate::error::CliError;
use crate::exit::Exit;
use crate::places;
use crate::project::Project;
use address::Address;

/// The base branch and the forge that were chosen. Nothing was made yet.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    root: Utf8PathBuf,
    pub(crate) base: String,
    pub(crate) forge: ChosenForge,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChosenForge {
    /// Through `gh`.
    GitHub { remote: String, program: Utf8PathBuf },
    /// The remote is a directory on this machine.
    Directory { remote: String, path: Utf8PathBuf },
    /// There is no remote: a bare repository of ours.
    Ours { path: Utf8PathBuf },
}

impl Destination {
    /// Looks at the settings and the remote.
    pub(crate) async fn choose(settings: &Settings, project: &Project) -> Result<Self, CliError> {
        let root = project.root.clone();
        let base = match &settings.base_branch {
            Some(base) => base.clone(),
            None => rehearsal_git::base_branch(&root).await.map_err(|error| {
                CliError::of(Exit::Git, &error).hint("set `base_branch:` in .rehearsal/config.yaml")
            })?,
        };
        let remote = &settings.forge.remote;
        let address = address_of(&root, remote).await?;
        let origin = settings.origins.get("forge.remote");
        if address.is_none() && *origin != Origin::Default {
            return Err(CliError::usage(format!("there is no remote `{remote}`, which {origin} names"))
                .hint("`git remote -v` lists those that there are"));
        }
        let forge = choose_forge(settings.forge.kind, remote, address, project)?;
        Ok(Self { root, base, forge })
    }

    /// Makes what is missing, and looks whether it can be used. What a person should know comes with it.
    pub(crate) async fn open(&self) -> Result<(Outlet, Option<String>), CliError> {
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
                let forge = Arc::new(Local::open(path).await.map_err(|error| git_error(&error))?);
                // Not by its name: an address like `../origin.git` leads elsewhere from a worktree.
                Ok((outlet(path.as_str(), forge, Landing::Ours), None))
            }
            ChosenForge::Ours { path } => {
                let note = self.make_own(path).await?;
                let forge = Arc::new(Local::open(path).await.map_err(|error| git_error(&error))?);
                Ok((outlet(path.as_str(), forge, Landing::Ours), note))
            }
        }
    }

    /// Where branches are pushed to: a name in the repository, or a path.
    pub(crate) fn remote(&self) -> &str {
        match &self.forge {
            ChosenForge::GitHub { remote, .. } => remote,
            ChosenForge::Directory { path, .. } | ChosenForge::Ours { path } => path.as_str(),
        }
    }

    /// How the merged work comes into the checkout.
    pub(crate) fn pull_command(&self) -> String {
        match &self.forge {
            ChosenForge::GitHub { remote, .. } | ChosenForge::Directory { remote, .. } => {
                format!("git pull {remote} {}", self.base)
            }
            ChosenForge::Ours { path } => format!("git pull {path} {}", self.base),
        }
    }

    async fn check_directory(&self, remote: &str, path: &Utf8Path) -> Result<(), CliError> {
        let git = Git::at(self.root.clone());
        match remote_head(&git, remote, &self.base).await {
            Ok(Some(_)) => {}
            Ok(None) => {
                let base = &self.base;
                return Err(CliError::new(
                    Exit::Git,
                    format!("the remote `{remote}` has no branch `{base}`"),
                )
                .hint(format!("`git push {remote} {base}` brings it there")));
            }
            Err(error) => return Err(remote_error(&error)),
        }
        let there = Git::at(path);
        let is_bare = there.line(&["rev-parse", "--is-bare-repository"]).await;
        let head = there.line(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await;
        if is_bare.is_ok_and(|said| said == "false") && head.is_ok_and(|head| head == self.base) {
            return Err(CliError::new(
                Exit::Git,
                format!(
                    "`{path}`, the remote `{remote}`, has `{}` checked out: it cannot be moved",
                    self.base
                ),
            )
            .hint(
                "use a bare repository as the remote (`git clone --bare`), or check out another branch there",
            ));
        }
        Ok(())
    }

    /// Our own remote, with the base as it is here if that is newer.
    async fn make_own(&self, path: &Utf8Path) -> Result<Option<String>, CliError> {
        let git = Git::at(self.root.clone());
        let base = &self.base;
        let name = format!("refs/heads/{base}");
        let ours = git.commit(&name).await.map_err(|_| {
            CliError::new(Exit::Git, format!("there is no branch `{base}` with a commit here"))
                .hint("commit something first, or set `base_branch:` in .rehearsal/config.yaml")
        })?;
        if !path.exists() {
            make_bare(path, base).await?;
        }
        let theirs = remote_head(&git, path.as_str(), base).await.map_err(|error| remote_error(&error))?;
        if let Some(theirs) = &theirs {
            if *theirs == ours {
                return Ok(None);
            }
            fetch(&git, path.as_str(), base).await.map_err(|error| remote_error(&error))?;
            let missing = async |from: &str, to: &str| {
                let range = format!("{from}..{to}");
                let first = git.line(&["rev-list", "--max-count=1", &range]).await;
                first.map(|first| !first.is_empty()).map_err(|error| git_error(&error))
            };
            let (ahead, behind) = (
                missing(theirs.as_str(), ours.as_str()).await?,
                missing(ours.as_str(), theirs.as_str()).await?,
            );
            match (ahead, behind) {
                (false, _) => return Ok(None),
                (true, true) => {
                    return Ok(Some(format!(
                        "your `{base}` and the one that work goes to have gone apart; `{}` joins them",
                        self.pull_command()
                    )));
                }
                (true, false) => {}
            }
        }
        let refspec = format!("{name}:{name}");
        let pushed = git.run(&["push", "--quiet", "--", path.as_str(), &refspec]).await;
        if let Err(error) = pushed {
            // Another worker that began at the same moment may have been faster.
            let now = remote_head(&git, path.as_str(), base).await.map_err(|error| remote_error(&error))?;
            if now.is_none() || now == theirs {
                return Err(git_error(&error));
            }
        }
        Ok(None)
    }
}

/// Makes a bare repository beside its place and then moves it there: of two who begin at the same moment one is faster, and
/// nobody sees half of one.
async fn make_bare(path: &Utf8Path, base: &str) -> Result<(), CliError> {
    let above = path.parent().unwrap_or(path);
    fs_err::create_dir_all(above)?;
    let scratch = tempfile::Builder::new().prefix(".new-").tempdir_in(above)?;
    let new = Utf8PathBuf::from_path_buf(scratch.path().to_owned())
        .map_err(|path| CliError::usage(format!("`{}` is not UTF-8", path.display())))?;
    let branch = format!("--initial-branch={base}");
    let init = ["init", "--quiet", "--bare", "--template=", &branch];
    Git::at(new.clone()).run(&init).await.map_err(|error| git_error(&error))?;
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
) -> Result<ChosenForge, CliError> {
    let remote = remote.to_owned();
    let ours = || Ok(ChosenForge::Ours { path: places::own_remote(project)? });
    match (kind, address) {
        (ForgeKind::Github, Some(_)) | (ForgeKind::Auto, Some(Address::GitHub)) => {
            let program = std::env::var("REHEARSAL_GH").ok().filter(|program| !program.is_empty());
            Ok(ChosenForge::GitHub { remote, program: program.unwrap_or_else(|| "gh".into()).into() })
        }
        (ForgeKind::Github, None) => Err(CliError::usage(format!("there is no remote `{remote}`"))
            .hint("`git remote add` makes one; `kind: local` under `forge:` needs none")),
        (ForgeKind::Auto | ForgeKind::Local, Some(Address::Directory(path))) => {
            let path = project.root.join(path);
            let path = path.canonicalize_utf8().unwrap_or(path);
            Ok(ChosenForge::Directory { remote, path })
        }
        (ForgeKind::Auto | ForgeKind::Local, None) | (ForgeKind::Local, Some(_)) => ours(),
        (ForgeKind::Auto, Some(Address::Elsewhere(host))) => Err(CliError::new(
            Exit::Forge,
            format!("the remote `{remote}` is on `{host}`, and pull requests there are not known"),
        )
        .hint("set `kind: local` under `forge:` in .rehearsal/config.yaml: work is merged into a repository on this machine")
        .hint("set `kind: github` if it is a GitHub of your own that `gh` is logged in to")),
    }
}

async fn address_of(root: &Utf8Path, remote: &str) -> Result<Option<Address>, CliError> {
    match Git::at(root).line(&["remote", "get-url", "--", remote]).await {
        Ok(url) => Ok(Some(Address::read(&url))),
        Err(GitError::Failed { stderr, .. }) if stderr.contains("No such remote") => Ok(None),
        Err(error) => Err(git_error(&error)),
    }
}

fn find_gh(program: &Utf8Path) -> Result<(), CliError> {
    which::which(program).map(drop).map_err(|_| {
        CliError::new(Exit::Forge, format!("`{program}` was not found, and GitHub is used through it"))
            .hint("install it from https://cli.github.com and run `gh auth login`")
            .hint("set `kind: local` under `forge:` in .rehearsal/config.yaml to work without GitHub")
    })
}

pub(crate) fn git_error(error: &GitError) -> CliError {
    CliError::of(Exit::Git, error)
}

fn remote_error(error: &RemoteError) -> CliError {
    CliError::of(Exit::Git, error).hint("`git remote -v` shows where it points")
}
