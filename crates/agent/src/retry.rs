//! Tries again what fails for a moment only.
//!
//! A service that is overloaded for a second is not worth a task's attention. What needs longer is: it is
//! returned at once, so that the caller stores the wait instead of sitting through it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rehearsal_core::{Activity, Clock, GitFacts, Notice, Outcome, Stop, Timestamp, judge, seed};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::clis::Sessions;
use crate::{Agent, ConfinedBy, Lease, Orphan, RunReport, RunRequest, Watch};

mod spent;

use spent::Spent;

/// In all, the first one included. A service that fails three times in a row does not fail for a moment.
const TRIES: u32 = 3;
/// Doubles with each try; jitter adds up to half of it, so that workers do not come back in step.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait that is sat through. A worker's claim is renewed meanwhile, but its slot is taken.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

const RESUMED_PROMPT: &str = "The service failed while you worked, and your last answer was cut off. Go on where \
you stopped: what you did so far is in the working directory. Do not begin anew.\n";

/// An agent whose transient failures are tried again.
pub struct Retrying<A> {
    agent: A,
    clock: Arc<dyn Clock>,
    seed: u64,
}

impl<A: Agent> Retrying<A> {
    /// Wraps an agent. The seed decides the jitter: the same seed and run wait the same time.
    pub fn new(agent: A, clock: Arc<dyn Clock>, seed: u64) -> Self {
        Self { agent, clock, seed }
    }

    /// When the next try begins; none if there is to be none.
    fn next_try(&self, request: &RunRequest, outcome: &Outcome, tries: u32) -> Option<Timestamp> {
        if tries >= TRIES {
            return None;
        }
        let told = match outcome {
            Outcome::Overloaded | Outcome::Unreachable { .. } => None,
            Outcome::RateLimited { until } => *until,
            _ => return None,
        };
        let now = self.clock.now();
        let wait = FIRST_WAIT * 2_u32.pow(tries - 1);
        let jitter = wait.mul_f64(self.jitter(request, tries) / 2.0);
        match told.map(|until| until.since(now)) {
            Some(longer) if longer > LONGEST_WAIT => None,
            Some(longer) => Some(now.plus(longer.max(wait) + jitter)),
            None => Some(now.plus(wait + jitter)),
        }
    }

    /// Between 0 and 1, the same for the same seed, run and try.
    fn jitter(&self, request: &RunRequest, tries: u32) -> f64 {
        let run =
            request.run.as_str().bytes().fold(self.seed, |mixed, byte| seed::mix(mixed ^ u64::from(byte)));
        seed::fraction(run ^ u64::from(tries))
    }
}

#[async_trait]
impl<A: Agent> Agent for Retrying<A> {
    async fn run(&self, request: RunRequest, watch: Watch, cancel: CancellationToken) -> RunReport {
        let began = self.clock.now();
        let resumed = request.resume.clone();
        let first = self.agent.run(request.clone(), Arc::clone(&watch), cancel.clone()).await;
        let past = Past::of(first, resumed, self.agent.sessions());
        self.try_again(request, began, past, watch, cancel).await
    }

    async fn adopt(
        &self,
        mut orphan: Orphan,
        lease: Lease,
        watch: Watch,
        cancel: CancellationToken,
    ) -> Option<RunReport> {
        let sessions = self.agent.sessions();
        let (earlier, started_at) = (orphan.take_earlier(), orphan.started_at());
        let tried = orphan.request().clone();
        let resumed = tried.resume.clone();
        let adopted = self.agent.adopt(orphan, lease.clone(), Arc::clone(&watch), cancel.clone());
        let report = adopted.await?;
        let (request, began, past) = match earlier {
            None => (tried, started_at, Past::of(report, resumed, sessions)),
            Some(earlier) => {
                let Earlier { request, began, mut past } = *earlier;
                past.add(report, resumed, sessions);
                (request, began, past)
            }
        };
        let request = RunRequest { lease: Some(lease), ..request };
        Some(self.try_again(request, began, past, watch, cancel).await)
    }

    fn driver(&self) -> &str {
        self.agent.driver()
    }

    fn sessions(&self) -> Sessions {
        self.agent.sessions()
    }

    fn confined_by(&self) -> ConfinedBy {
        self.agent.confined_by()
    }
}

impl<A: Agent> Retrying<A> {
    /// Tries again as long as that may help.
    async fn try_again(
        &self,
        request: RunRequest,
        began: Timestamp,
        mut past: Past,
        watch: Watch,
        cancel: CancellationToken,
    ) -> RunReport {
        let sessions = self.agent.sessions();
        while let Some(at) = self.next_try(&request, past.outcome(), past.tries) {
            let left = request.timeout.map(|timeout| began.plus(timeout).since(at));
            if left.is_some_and(|left| left.is_zero()) || past.spent.exhausts(request.budget) {
                past.warn_of_no_retry(None);
                break;
            }
            past.announce(at.since(self.clock.now()), &watch);
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    past.cancel();
                    break;
                }
                () = self.clock.sleep_until(at) => {}
            }
            let mut next = RunRequest { timeout: left, ..past.next_request(&request, sessions) };
            if let Some(rendezvous) = &mut next.rendezvous {
                let earlier = Earlier { request: request.clone(), began, past: past.clone() };
                rendezvous.earlier = Some(Box::new(earlier));
            }
            if let Err(error) = fs_err::create_dir_all(&next.run_dir) {
                past.warn_of_no_retry(Some(error.to_string()));
                break;
            }
            let resumed = next.resume.clone();
            let report = self.agent.run(next, Arc::clone(&watch), cancel.clone()).await;
            past.add(report, resumed, sessions);
        }
        past.into_report(&request)
    }
}

/// The tries of a run that are over, for whoever adopts the one that is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Earlier {
    /// What was asked of the first.
    request: RunRequest,
    began: Timestamp,
    past: Past,
}

/// What the tries so far came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Past {
    last: RunReport,
    tries: u32,
    spent: Spent,
    git: Option<GitFacts>,
    /// At least one try is not known to have left the tree alone.
    may_have_changed: bool,
    warnings: Vec<Notice>,
}

impl Past {
    fn of(mut first: RunReport, resumed: Option<String>, sessions: Sessions) -> Self {
        let mut spent = Spent::default();
        spent.add(&first.evidence.wire, false, sessions);
        // An agent that died early may not have told the session that it was to go on with.
        first.evidence.wire.session_id = first.evidence.wire.session_id.or(resumed);
        Self {
            tries: first.tries,
            spent,
            git: first.evidence.git.clone(),
            may_have_changed: may_have_changed(&first),
            warnings: std::mem::take(&mut first.warnings),
            last: first,
        }
    }

    fn add(&mut self, mut report: RunReport, resumed: Option<String>, sessions: Sessions) {
        let same_session = resumed.is_some() && resumed == self.last.evidence.wire.session_id;
        self.spent.add(&report.evidence.wire, same_session, sessions);
        self.tries += report.tries;
        self.git = join_git(self.git.take(), report.evidence.git.as_ref());
        self.may_have_changed |= may_have_changed(&report);
        self.warnings.append(&mut report.warnings);
        report.evidence.wire.session_id = report.evidence.wire.session_id.or(resumed);
        report.tasks = joined(std::mem::take(&mut self.last.tasks), report.tasks);
        report.progress = joined(std::mem::take(&mut self.last.progress), report.progress);
        self.last = report;
    }

    fn outcome(&self) -> &Outcome {
        &self.last.verdict.outcome
    }

    fn warn_of_no_retry(&mut self, error: Option<String>) {
        self.warnings.push(Notice::NotRetried { outcome: self.outcome().name(), error });
    }

    fn announce(&mut self, wait: Duration, watch: &Watch) {
        let (tries, outcome) = (self.tries, self.outcome().clone());
        let message =
            format!("try {tries} ended with {outcome}; tried again after {:.1} s", wait.as_secs_f64());
        watch(Activity::Retrying { message });
        let after_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.warnings.push(Notice::Retried { tries, outcome, after_ms });
    }

    /// The request for the next try: never from the start, once work may be in the tree.
    fn next_request(&self, request: &RunRequest, sessions: Sessions) -> RunRequest {
        let mut next = request.clone();
        next.run_dir = request.run_dir.join(format!("try-{}", self.tries + 1));
        next.budget = self.spent.left_of(request.budget);
        if !self.may_have_changed {
            return next;
        }
        match &self.last.evidence.wire.session_id {
            Some(session) if sessions.can_resume => {
                next.resume = Some(session.clone());
                RESUMED_PROMPT.clone_into(&mut next.prompt);
            }
            _ => {
                next.prompt = format!(
                    "An earlier try of this very run was cut off ({}). Its work is in the working directory, \
                     committed or not: look at it first (`git status`, `git log`) and continue it, do not begin \
                     anew.\n\n{}",
                    self.outcome().name(),
                    request.prompt
                );
            }
        }
        next
    }

    fn cancel(&mut self) {
        self.last.evidence.stop = Some(Stop::Hindered(Outcome::Cancelled));
        self.last.verdict = judge(&self.last.evidence);
    }

    fn into_report(mut self, request: &RunRequest) -> RunReport {
        if self.tries > 1 {
            let last = &mut self.last;
            let was_judged = last.verdict == judge(&last.evidence);
            self.spent.write_to(&mut last.evidence.wire);
            last.evidence.git = self.git.take();
            if was_judged {
                last.verdict = judge(&last.evidence);
            }
            self.keep_last_result(request);
        }
        RunReport { tries: self.tries, warnings: self.warnings, ..self.last }
    }

    /// `result.json` of the run is the last try's; one of an earlier try must not be taken for it.
    fn keep_last_result(&mut self, request: &RunRequest) {
        let kept = request.run_dir.join("result.json");
        let last = request.run_dir.join(format!("try-{}", self.tries)).join("result.json");
        let done = if last.exists() {
            fs_err::copy(&last, &kept).map(drop)
        } else if kept.exists() {
            fs_err::remove_file(&kept)
        } else {
            Ok(())
        };
        if let Err(error) = done {
            self.warnings.push(Notice::ResultStale { error: error.to_string() });
        }
    }
}

/// Nobody looked, or something is there.
fn may_have_changed(report: &RunReport) -> bool {
    report.evidence.git.as_ref().is_none_or(GitFacts::changed)
}

fn joined<T: PartialEq>(mut all: Vec<T>, more: Vec<T>) -> Vec<T> {
    for item in more {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}

/// What two tries in a row did to the repository. Where nobody looked at one of them, only a change is known.
fn join_git(before: Option<GitFacts>, after: Option<&GitFacts>) -> Option<GitFacts> {
    let (Some(before), Some(after)) = (&before, after) else {
        return before.or_else(|| after.cloned()).filter(GitFacts::changed);
    };
    Some(GitFacts {
        head_before: before.head_before.clone(),
        head_after: after.head_after.clone(),
        commits: joined(before.commits.clone(), after.commits.clone()),
        files_changed: joined(before.files_changed.clone(), after.files_changed.clone()),
        uncommitted: after.uncommitted,
    })
}

#[cfg(test)]
mod tests;
