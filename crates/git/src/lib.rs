//! The one way git is called.
//!
//! [`Git`] runs git in a directory: in an environment without `GIT_*` variables, without hooks, within a time limit,
//! with bounded output. Dropping a call kills it. Failures are one type, [`GitError`]; ids of objects are
//! [`Oid`]s.
//!
//! ```no_run
//! # async fn example() -> Result<(), rehearsal_git::GitError> {
//! use rehearsal_git::Git;
//!
//! let git = Git::at("/home/ann/project");
//! let head = git.commit("HEAD").await?;
//! let files = git.run(&["ls-tree", "-r", "--name-only", "-z", head.as_str()]).await?;
//! # Ok(())
//! # }
//! ```
//!
//! **Invariant:** no other crate starts git, save inside a sandbox.

mod batch;
mod error;
mod git;
mod locks;
mod repository;
pub mod scratch;

use camino::Utf8Path;

pub use error::GitError;
pub use git::{Answer, Git, Head, Identity, parse_oid, split_nul, without_git_variables};
pub use locks::{Released, drop_stale_lock, gits_at_work, release_locks};
pub use rehearsal_core::{NotAnOid, Oid};
pub use repository::Repository;

/// The branch that work in a directory's repository is based on.
pub async fn base_branch(dir: &Utf8Path) -> Result<String, GitError> {
    Repository::around(dir)?.base_branch().await
}

/// git's version, as it names it: `2.47.3`.
pub async fn version() -> Result<String, GitError> {
    let said = Git::at("/").line(&["--version"]).await?;
    let version = said.trim_start_matches("git version ");
    Ok(version.split(' ').next().unwrap_or_default().to_owned())
}
