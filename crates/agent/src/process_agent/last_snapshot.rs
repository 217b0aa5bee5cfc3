//! The snapshot after one run serves as the one before the next, if the next follows at once.

use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use tokio::time::Instant;

use crate::git::{GitError, Snapshot};
use crate::policy::SNAPSHOT_FRESH;

/// The last snapshot that was taken after a run.
#[derive(Debug, Default)]
pub(super) struct LastSnapshot(Mutex<Option<Kept>>);

#[derive(Debug)]
struct Kept {
    dir: Utf8PathBuf,
    snapshot: Snapshot,
    at: Instant,
}

impl LastSnapshot {
    pub(super) fn keep(&self, dir: &Utf8Path, snapshot: Snapshot) {
        let kept = Kept { dir: dir.to_owned(), snapshot, at: Instant::now() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }

    /// The kept one if it is of this directory and fresh, and nobody has committed since; a new one otherwise.
    pub(super) async fn before(&self, dir: &Utf8Path) -> Result<Option<Snapshot>, GitError> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match kept {
            // Another agent can have worked here meanwhile, however short that was.
            Some(kept)
                if kept.dir == dir
                    && kept.at.elapsed() < SNAPSHOT_FRESH
                    && kept.snapshot.is_at_head(dir).await? =>
            {
                Ok(Some(kept.snapshot))
            }
            _ => Snapshot::take(dir).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(dir: &Utf8Path) {
        let git = |args: &[&str]| {
            let identity =
                ["-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgSign=false"];
            let git = std::process::Command::new("git").args(identity).args(args).current_dir(dir).status();
            assert!(git.unwrap().success(), "{args:?}");
        };
        git(&["init", "--quiet"]);
        git(&["commit", "--quiet", "--allow-empty", "--message=more"]);
    }

    #[tokio::test]
    async fn what_another_agent_committed_meanwhile_is_not_this_ones() {
        let root = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(root.path()).unwrap();
        commit(dir);
        let snapshots = LastSnapshot::default();
        let after_a_run = Snapshot::take(dir).await.unwrap().unwrap();
        snapshots.keep(dir, after_a_run.clone());
        assert_eq!(snapshots.before(dir).await.unwrap(), Some(after_a_run.clone()));

        snapshots.keep(dir, after_a_run.clone());
        commit(dir);
        let before_the_next = snapshots.before(dir).await.unwrap().unwrap();
        assert_ne!(before_the_next.head, after_a_run.head);
        let (facts, _) = before_the_next.facts_since(dir).await.unwrap();
        assert_eq!(facts.commits, []);
    }
}
