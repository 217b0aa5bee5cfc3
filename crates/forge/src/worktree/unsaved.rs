//! Work that is in one worktree and nowhere else.

use std::collections::BTreeSet;
use std::fmt;

use camino::Utf8Path;

use super::admin::Admin;
use super::spotless::{IGNORED, differences};
use rehearsal_git::{Git, GitError, Oid, split_nul};

/// How many files are named; the rest are counted.
const NAMED: usize = 5;

/// Something that would be lost with a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsaved {
    /// Files that differ from the last commit, or are in none.
    Uncommitted {
        /// The first few.
        files: Vec<String>,
        /// How many in all.
        count: usize,
    },
    /// Commits that no branch, tag or remote has.
    Unpushed {
        /// How many.
        commits: u64,
        /// The newest.
        head: Oid,
    },
    /// Entries of the stash, which all worktrees share, that were made here.
    Stashed {
        /// How many.
        entries: usize,
    },
    /// Commits in a submodule that its remote does not have.
    Submodule {
        /// Where it is.
        path: String,
    },
    /// git could not tell what is there.
    Unreadable {
        /// Why.
        reason: String,
    },
}

impl fmt::Display for Unsaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uncommitted { files, count } => {
                write!(f, "{count} uncommitted {}: {}", noun(*count, "file"), files.join(", "))?;
                if *count > files.len() { f.write_str(", …") } else { Ok(()) }
            }
            Self::Unpushed { commits, head } => {
                let word = if *commits == 1 { "commit" } else { "commits" };
                write!(f, "{commits} {word} that nothing else has, up to {head:.10}")
            }
            Self::Stashed { entries } => write!(f, "{entries} stashed {}", noun(*entries, "change")),
            Self::Submodule { path } => write!(f, "unpushed commits in the submodule `{path}`"),
            Self::Unreadable { reason } => write!(f, "it cannot be read: {reason}"),
        }
    }
}

fn noun(count: usize, one: &str) -> String {
    if count == 1 { one.to_owned() } else { format!("{one}s") }
}

/// What was found in a worktree.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// All that it has and nothing else does.
    pub(crate) unsaved: Vec<Unsaved>,
    /// Whether it is its commit, without even a file that git ignores.
    pub(crate) is_spotless: bool,
}

/// Looks at a worktree. Commits in `saved` are known to be safe, and all before them.
pub(crate) async fn look_at(worktree: &Utf8Path, admin: &Admin, saved: &[Oid]) -> Result<Look, GitError> {
    let git = Git::at(worktree);
    let (files, commits, stash, submodule) = tokio::try_join!(
        differences(&git),
        unpushed(&git, admin, saved),
        stashed(&git, admin),
        unpushed_submodule(&git, admin),
    )?;
    let is_spotless = files.is_empty();
    let unsaved = [uncommitted(files), commits, stash, submodule].into_iter().flatten().collect();
    Ok(Look { unsaved, is_spotless })
}

fn uncommitted(differences: Vec<String>) -> Option<Unsaved> {
    let files = differences.into_iter().filter(|record| !record.starts_with(IGNORED));
    let files: Vec<String> = files.filter_map(|record| record.get(3..).map(str::to_owned)).collect();
    let count = files.len();
    let files = files.into_iter().take(NAMED).collect();
    (count > 0).then_some(Unsaved::Uncommitted { files, count })
}

async fn unpushed(git: &Git, admin: &Admin, saved: &[Oid]) -> Result<Option<Unsaved>, GitError> {
    let head = git.commit("HEAD").await?;
    // While a rebase is under way the work is where it began.
    let begun = ["rebase-merge/orig-head", "rebase-apply/orig-head"]
        .into_iter()
        .find_map(|name| Oid::new(std::fs::read_to_string(admin.dir.join(name)).ok()?.trim_end()).ok());
    let tips: Vec<&Oid> = [Some(&head), begun.as_ref()].into_iter().flatten().collect();
    if tips.iter().all(|tip| saved.contains(tip)) {
        return Ok(None);
    }
    let mut args = vec!["rev-list", "--count"];
    args.extend(tips.iter().map(|tip| tip.as_str()));
    // References of this worktree's own go with it, and a stash is dropped as soon as it is applied.
    args.extend([
        "--not",
        "--exclude=refs/worktree/*",
        "--exclude=refs/bisect/*",
        "--exclude=refs/rewritten/*",
        "--exclude=refs/stash",
    ]);
    args.push("--glob=refs/*");
    // One that is not in this repository cannot be named; then it saves nothing here.
    let mut known = BTreeSet::new();
    for commit in saved {
        if git.commit(commit.as_str()).await.is_ok() {
            known.insert(commit.as_str());
        }
    }
    args.extend(known);
    let said = git.line(&args).await?;
    let commits: u64 =
        said.parse().map_err(|_| GitError::Unexpected { command: "rev-list --count".into(), said })?;
    Ok((commits > 0).then_some(Unsaved::Unpushed { commits, head }))
}

/// An entry is ours if it was made without a branch on a commit that was checked out here.
async fn stashed(git: &Git, admin: &Admin) -> Result<Option<Unsaved>, GitError> {
    let is_ours = |entry: &String| {
        (entry.contains("on (no branch)") || entry.contains("On (no branch)"))
            && entry.split(' ').next().is_some_and(|base| admin.has_logged(base))
    };
    let said = git.run(&["stash", "list", "-z", "--format=%P %gs"]).await?;
    let entries = split_nul(&said).filter(is_ours).count();
    Ok((entries > 0).then_some(Unsaved::Stashed { entries }))
}

async fn unpushed_submodule(git: &Git, admin: &Admin) -> Result<Option<Unsaved>, GitError> {
    // Without one there is no need to ask.
    if !admin.dir.join("modules").is_dir() {
        return Ok(None);
    }
    let staged = git.run(&["ls-files", "-z", "--stage"]).await?;
    for record in split_nul(&staged).filter(|record| record.starts_with("160000 ")) {
        let Some((_, path)) = record.split_once('\t') else { continue };
        if !git.dir().join(path).join(".git").exists() {
            continue;
        }
        let inside = Git::at(git.dir().join(path));
        let args = ["rev-list", "--max-count=1", "HEAD", "--branches", "--not", "--remotes"];
        if !inside.line(&args).await?.is_empty() {
            return Ok(Some(Unsaved::Submodule { path: path.to_owned() }));
        }
    }
    Ok(None)
}
