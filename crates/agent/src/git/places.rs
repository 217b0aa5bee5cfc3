//! Where a repository keeps what a commit writes, and what makes git execute something.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_git::Repository;

/// The places of a repository, for whoever confines a process that works in it.
#[derive(Debug, Default)]
pub(crate) struct GitPlaces {
    /// The top of the working tree.
    pub(crate) root: Option<Utf8PathBuf>,
    /// What a commit writes: the git directory, and for a linked worktree that of the main repository.
    pub(crate) written: Vec<Utf8PathBuf>,
    /// What git obeys when it is called by anybody: hooks, configuration, and what leads to them.
    pub(crate) obeyed: Vec<Utf8PathBuf>,
}

/// The places of the repository around a directory; none without one.
pub(crate) fn git_places(dir: &Utf8Path) -> GitPlaces {
    let Ok(Repository { root, git_dir, common_dir }) = Repository::around(dir) else {
        return GitPlaces::default();
    };
    let hooks = common_dir.join("hooks");
    // What is not there cannot be protected, and could be made. `git init` makes it too.
    let _stays_open = fs_err::create_dir_all(&hooks);
    // The last leads to the tasks of the repository.
    let named = ["config", "config.worktree", "rehearsal-state"].map(|name| common_dir.join(name));
    let mut obeyed: Vec<_> = std::iter::once(hooks).chain(named).collect();
    let mut written = vec![common_dir.clone()];
    let is_linked = root.join(".git").is_file();
    if is_linked {
        obeyed.push(root.join(".git"));
    }
    if git_dir != common_dir {
        obeyed.extend(["commondir", "gitdir", "config.worktree"].map(|name| git_dir.join(name)));
        written.push(git_dir);
    }
    GitPlaces { root: Some(root), written, obeyed }
}
