//! How pull requests are kept as git objects.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Local;
use crate::forge::ForgeError;
use rehearsal_git::{GitError, Oid, drop_stale_lock, parse_oid};

/// A pull request, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) title: String,
    pub(super) body: String,
    pub(super) head: String,
    pub(super) base: String,
    pub(super) stage: Stage,
    pub(super) comments: Vec<Remark>,
    pub(super) reviews: Vec<Remark>,
}

/// Where it stands. What is over keeps the commit that it was about: the branch may be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub(super) enum Stage {
    Open,
    Closed { head: Option<Oid> },
    Merged { head: Oid, commit: Oid },
}

/// A comment with its key, or a review with its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Remark {
    pub(super) kind: String,
    pub(super) body: String,
}

/// A record as it was read: the blob says whether it was changed since.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) number: u64,
    pub(super) record: Record,
    blob: Oid,
}

/// Whether a change was the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Swap {
    Done,
    Lost,
}

const PULLS: &str = "refs/rehearsal/pr";

impl Local {
    pub(super) async fn load(&self, number: u64) -> Result<Stored, ForgeError> {
        let Some((blob, text)) = self.read(&format!("{PULLS}/{number}")).await? else {
            return Err(ForgeError::NotFound { what: format!("pull request {number}") });
        };
        let record = serde_json::from_slice(&text).map_err(|error| ForgeError::Garbled {
            action: format!("read pull request {number}"),
            reason: error.to_string(),
        })?;
        Ok(Stored { number, record, blob })
    }

    /// The newest one that brings a branch.
    pub(super) async fn newest_of(&self, head: &str) -> Result<Option<Stored>, ForgeError> {
        let Some((_, number)) = self.read(&name_of(head)).await? else {
            return Ok(None);
        };
        let number = String::from_utf8_lossy(&number).into_owned();
        match number.parse() {
            Ok(number) => self.load(number).await.map(Some),
            Err(_) => Err(ForgeError::Garbled {
                action: format!("find the pull request of {head}"),
                reason: number,
            }),
        }
    }

    /// The blob that a reference points at, and what is in it.
    async fn read(&self, name: &str) -> Result<Option<(Oid, Vec<u8>)>, GitError> {
        self.git.object(name).await
    }

    async fn write(&self, content: &[u8]) -> Result<Oid, GitError> {
        let args = ["hash-object", "-w", "--stdin"];
        let said = self.git.feed(&args, content).await?;
        parse_oid(String::from_utf8_lossy(&said).trim_end(), &args)
    }

    /// Gives a new one the next number; none if someone was faster, for this branch or for the number.
    pub(super) async fn add(
        &self,
        record: &Record,
        before: Option<&Stored>,
    ) -> Result<Option<Stored>, ForgeError> {
        let numbers = self.git.line(&["for-each-ref", "--format=%(refname:lstrip=3)", PULLS]).await?;
        let number = numbers.lines().filter_map(|line| line.parse::<u64>().ok()).max().unwrap_or(0) + 1;
        let (blob, number_text) = (json(record), number.to_string());
        let (blob, index) = tokio::try_join!(self.write(&blob), self.write(number_text.as_bytes()))?;
        let name = name_of(&record.head);
        let pointer = match before {
            None => format!("create {name} {index}\n"),
            Some(before) => {
                let old = self.write(before.number.to_string().as_bytes()).await?;
                format!("update {name} {index} {old}\n")
            }
        };
        let changes = format!("create {PULLS}/{number} {blob}\n{pointer}");
        match self.transact(&changes).await? {
            Swap::Done => Ok(Some(Stored { number, record: record.clone(), blob })),
            Swap::Lost => Ok(None),
        }
    }

    /// Replaces a record, together with other changes, if nobody did in between.
    pub(super) async fn swap(
        &self,
        was: &Stored,
        now: &Record,
        others: &[String],
    ) -> Result<Swap, ForgeError> {
        let blob = self.write(&json(now)).await?;
        let changes = format!("update {PULLS}/{} {blob} {}\n{}", was.number, was.blob, others.concat());
        Ok(self.transact(&changes).await?)
    }

    /// All of it or nothing. Lost if something is not what it was believed to be, or is just being changed.
    async fn transact(&self, changes: &str) -> Result<Swap, GitError> {
        match self.git.feed(&["update-ref", "--stdin"], changes.as_bytes()).await {
            Ok(_) => Ok(Swap::Done),
            Err(GitError::LockHeld { lock, .. }) if drop_stale_lock(&lock, self.git.dir()).await => {
                Ok(Swap::Lost)
            }
            Err(GitError::Failed { stderr, .. }) if stderr.contains("cannot lock ref") => Ok(Swap::Lost),
            Err(error) => Err(error),
        }
    }
}

/// A branch's name may be longer than a reference's part, so it is hashed.
fn name_of(head: &str) -> String {
    let hash: String =
        Sha256::digest(head.as_bytes()).iter().take(20).map(|byte| format!("{byte:02x}")).collect();
    format!("refs/rehearsal/pr-of/{hash}")
}

fn json(record: &Record) -> Vec<u8> {
    // A record is text and numbers: it always has a form.
    serde_json::to_vec(record).unwrap_or_default()
}
