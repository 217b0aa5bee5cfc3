//! Whether the change needs a review, by what git says about it.

use rehearsal_core::quality::{Assessment, Facts, assess, listed};
use rehearsal_core::{Delivery, OutcomeName, RedVerdict, StepFailure};
use rehearsal_git::{GitError, Oid};

use super::{StepContext, of_git, red};

/// What is compared, in a form that no setting of a user changes. A rename is a file that is gone and one that is new.
const DIFF: [&str; 6] =
    ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=none"];

impl StepContext<'_> {
    pub(super) async fn assess(&self) -> Result<Delivery, StepFailure> {
        let (base, head) = (self.fork().await?, self.head().await?);
        let raw = match self.diff(&["--raw", "-z"], &base, &head).await {
            Err(GitError::TooMuch { .. }) => {
                return Err(red(RedVerdict::NeedsReview, "- more files changed than can be listed"));
            }
            raw => raw.map_err(|error| of_git(&error))?,
        };
        let rules = &self.state.worker.quality;
        // Where there are many files the lines of none matter.
        let few = raw.split(|byte| *byte == 0).count() <= 2 * rules.most_files as usize + 1;
        let patch = if few { self.patch(&base, &head).await? } else { None };
        let files = listed(&raw, patch.as_deref()).map_err(|error| StepFailure::Systemic {
            outcome: OutcomeName::PermissionDenied,
            reason: error.to_string(),
        })?;
        if files.is_empty() {
            return Err(red(RedVerdict::NoChanges, "the work changes no file"));
        }
        let facts = Facts { files, sent_back: self.task.rejections > 0 };
        match assess(&facts, rules) {
            Assessment::Harmless => Ok(self.delivery()),
            Assessment::NeedsReview { reasons } => {
                let reasons: Vec<String> = reasons.iter().map(|reason| format!("- {reason}")).collect();
                Err(red(RedVerdict::NeedsReview, reasons.join("\n")))
            }
        }
    }

    /// The lines that differ; none if there are more than one can read.
    async fn patch(&self, base: &Oid, head: &Oid) -> Result<Option<Vec<u8>>, StepFailure> {
        match self.diff(&["--patch", "--unified=0"], base, head).await {
            Ok(patch) => Ok(Some(patch)),
            Err(GitError::TooMuch { .. }) => Ok(None),
            Err(error) => Err(of_git(&error)),
        }
    }

    async fn diff(&self, form: &[&str], base: &Oid, head: &Oid) -> Result<Vec<u8>, GitError> {
        let mut arguments = DIFF.to_vec();
        arguments.extend_from_slice(form);
        arguments.extend([base.as_str(), head.as_str(), "--"]);
        self.git().run(&arguments).await
    }

    /// Where the work left its base.
    async fn fork(&self) -> Result<Oid, StepFailure> {
        let base = match &self.task.delivery.base {
            Some(base) => base.clone(),
            None => self.base_tip().await?,
        };
        match self.git().oid(&["merge-base", base.as_str(), "HEAD"]).await {
            Ok(fork) => Ok(fork),
            // Histories without a common beginning differ in everything.
            Err(GitError::Failed { .. }) => Ok(base),
            Err(error) => Err(of_git(&error)),
        }
    }
}
