//! What a run did to its repository, read from git and from nothing else.

mod forward;
mod places;
mod status;

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use rehearsal_core::{Commit, GitFacts, Oid};
use rehearsal_git::{Git, GitError, Repository, parse_oid, split_nul};
use serde::{Deserialize, Serialize};

use crate::policy::MAX_COMMITS;
pub(crate) use places::git_places;
use status::{Fingerprint, Status};

/// What we ourselves keep in a user's repository, which is never a change.
const OUR_STATE: &str = ".rehearsal/state/";

/// A repository at one moment: its HEAD, and every file that differs from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The commit that HEAD stands for; none in a repository without a commit.
    pub head: Option<Oid>,
    dirty: BTreeMap<String, Fingerprint>,
}

impl Snapshot {
    /// The repository around a directory, now; none if there is no repository.
    pub async fn take(dir: &Utf8Path) -> Result<Option<Self>, GitError> {
        match Repository::find(dir)? {
            Some(repository) => Self::of(&repository.git()).await.map(Some),
            None => Ok(None),
        }
    }

    async fn of(git: &Git) -> Result<Self, GitError> {
        let Status { head, mut dirty } = Status::read(git).await?;
        dirty.retain(|path, _| !is_ours(path));
        Ok(Self { head, dirty })
    }

    /// Whether nothing differs from HEAD.
    pub fn is_clean(&self) -> bool {
        self.dirty.is_empty()
    }

    /// What happened since this snapshot was taken.
    pub async fn facts_since(&self, dir: &Utf8Path) -> Result<GitFacts, GitError> {
        let git = Repository::around(dir)?.git();
        let now = Self::of(&git).await?;
        let (commits, committed) = match &now.head {
            Some(after) if self.head.as_ref() != Some(after) => {
                committed(&git, self.head.as_ref(), after).await?
            }
            _ => (Vec::new(), Vec::new()),
        };
        let mut files: BTreeSet<String> = self.redirtied(&now).cloned().collect();
        files.extend(committed);
        Ok(GitFacts {
            head_before: self.head.clone(),
            head_after: now.head.clone(),
            commits,
            files_changed: files.into_iter().filter(|name| !is_ours(name)).collect(),
            uncommitted: !now.is_clean(),
        })
    }

    /// Files whose difference from HEAD came, went or changed.
    fn redirtied<'a>(&'a self, now: &'a Self) -> impl Iterator<Item = &'a String> {
        let changed = now
            .dirty
            .iter()
            .filter(|(path, print)| self.dirty.get(*path).is_none_or(|before| !before.is_same(print)));
        let gone = self.dirty.iter().filter(|(path, _)| !now.dirty.contains_key(*path));
        changed.chain(gone).map(|(path, _)| path)
    }
}

fn is_ours(path: &str) -> bool {
    path.starts_with(OUR_STATE)
}

/// Commits and the files they changed, with one call of git if HEAD only moved forward.
async fn committed(
    git: &Git,
    before: Option<&Oid>,
    after: &Oid,
) -> Result<(Vec<Commit>, Vec<String>), GitError> {
    if let Some(before) = before {
        let log = git.run(&forward::log_args(before, after)).await?;
        if let Some((commits, files)) = forward::read(&log, before, after) {
            return Ok((commits, files.into_iter().collect()));
        }
    }
    tokio::try_join!(new_commits(git, before, after), committed_files(git, before, after))
}

async fn new_commits(git: &Git, before: Option<&Oid>, after: &Oid) -> Result<Vec<Commit>, GitError> {
    let range = before.map_or_else(|| after.to_string(), |before| format!("{before}..{after}"));
    let limit = format!("--max-count={MAX_COMMITS}");
    let args = ["log", "--reverse", "-z", "--format=%H%x20%s", &limit, &range, "--"];
    split_nul(&git.run(&args).await?)
        .map(|line| {
            let (id, subject) = line.split_once(' ').unwrap_or((&line, ""));
            Ok(Commit { id: parse_oid(id, &args)?, subject: subject.to_owned() })
        })
        .collect()
}

async fn committed_files(git: &Git, before: Option<&Oid>, after: &Oid) -> Result<Vec<String>, GitError> {
    let after = after.as_str();
    let names = match before {
        Some(before) => {
            let before = before.as_str();
            git.run(&["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", before, after, "--"])
                .await?
        }
        None => git.run(&["ls-tree", "-r", "--name-only", "-z", "--full-tree", after]).await?,
    };
    Ok(split_nul(&names).collect())
}
