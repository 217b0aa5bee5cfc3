//! The changes, as git tells them.

use std::time::Duration;

use camino::Utf8Path;
use rehearsal_git::{Git, GitError, Oid};

use super::{ChangedLines, Changes, Since, hunks};

/// A repository that needs longer for a diff is not worth waiting for: the analysis goes without.
const DEADLINE: Duration = Duration::from_secs(10);
/// A change larger than this is no change that a failure could be pinned on.
const LARGEST: usize = 16 << 20;

const DIFF: &[&str] = &[
    "diff",
    "-U0",
    "-M",
    "--relative",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules",
    "--inter-hunk-context=0",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

pub(super) async fn read(project: &Utf8Path, since: Since) -> Result<Changes, GitError> {
    let git = git(project);
    let head = git.find_commit("HEAD").await?;
    let start = match &since {
        Since::LastCommit => git.find_commit("HEAD~1").await?,
        Since::Base(base) => Some(fork_point(&git, base).await?),
    };
    // A repository that begins with this commit, or has none yet, begins with nothing.
    let nothing = git.oid(&["hash-object", "-t", "tree", "/dev/null"]).await?;
    let diff = async |from: &Option<Oid>| {
        let from = from.as_ref().unwrap_or(&nothing).as_str();
        git.head(&[DIFF, &[from, "--"]].concat(), LARGEST).await
    };
    let (all, uncommitted) = (diff(&start).await?, diff(&head).await?);
    let untracked = git.head(&["ls-files", "-z", "--others", "--exclude-standard"], LARGEST).await?;
    let mut changes = Changes {
        since,
        all: hunks(&all.text),
        uncommitted: hunks(&uncommitted.text),
        cut: all.is_cut || uncommitted.is_cut || untracked.is_cut,
    };
    for name in untracked.text.split('\0').filter(|name| !name.is_empty()) {
        let added = ChangedLines { added: true, ..ChangedLines::default() };
        changes.all.insert(name.to_owned(), added.clone());
        changes.uncommitted.insert(name.to_owned(), added);
    }
    Ok(changes)
}

/// git in a project, in a hurry.
pub(crate) fn git(project: &Utf8Path) -> Git {
    Git::at(project).within(DEADLINE)
}

/// Where the work left a branch; a commit of another history stands for itself.
async fn fork_point(git: &Git, base: &str) -> Result<Oid, GitError> {
    let base = git.commit(base).await?;
    match git.oid(&["merge-base", base.as_str(), "HEAD"]).await {
        Err(GitError::Failed { .. }) => Ok(base),
        fork => fork,
    }
}
