//! The pull request of a task's work.

use std::fmt::Write as _;
use std::time::Duration;

use rehearsal_core::{Delivery, OutcomeName, PullRequestRef, RedVerdict, StepFailure};
use rehearsal_forge::{
    CandidateError, Checks, Comment, ErrorClass, Mergeable, NewPullRequest, PrState, PullRequest, check_fit,
};
use rehearsal_git::Oid;
use rehearsal_store::{RunQuery, Scope};

use super::{Scene, of_class, of_forge, of_git, red};

/// How long to wait before the checks of a forge are looked at again.
const LOOK_AT_CHECKS: Duration = Duration::from_secs(30);

impl Scene<'_> {
    pub(super) async fn create_pr(&self) -> Result<Delivery, StepFailure> {
        let outlet = &self.desk.worker.outlet;
        let head = self.task.branch();
        if self.has_one_open(&head).await {
            return Ok(self.delivery());
        }
        let body = self.body().await?;
        let new = NewPullRequest { title: self.task.title.clone(), body, head, base: outlet.base.clone() };
        match outlet.forge.create_pr(&new).await {
            Ok(opened) => {
                let PullRequest { number, url, .. } = opened.pull_request;
                Ok(Delivery { pull_request: Some(PullRequestRef { number, url }), ..self.delivery() })
            }
            // What the forge refuses once it refuses again: a person has to look.
            Err(error) if error.class() == ErrorClass::Task => {
                Err(StepFailure::Unknown { reason: error.to_string() })
            }
            Err(error) => Err(of_class(error.class(), error.to_string())),
        }
    }

    /// Whether the one that an earlier round opened still waits for this very branch. If the forge does not say, one is
    /// asked for, and found if it is there.
    async fn has_one_open(&self, head: &str) -> bool {
        let Some(opened) = &self.task.delivery.pull_request else { return false };
        let outlet = &self.desk.worker.outlet;
        let view = outlet.forge.view(opened.number).await;
        view.is_ok_and(|it| it.state == PrState::Open && it.head == head && it.base == outlet.base)
    }

    /// The evidence: what was asked, what was done, what it cost.
    async fn body(&self) -> Result<String, StepFailure> {
        let task = self.task;
        let mut body = String::new();
        if !task.body.trim().is_empty() {
            let _ = writeln!(body, "{}\n", task.body.trim());
        }
        for criterion in &task.criteria {
            let _ = writeln!(body, "- {criterion}");
        }
        let base = task.delivery.base.as_ref().map_or(self.desk.worker.outlet.base.as_str(), Oid::as_str);
        let range = format!("{base}..HEAD");
        let commits =
            self.git().line(&["log", "--reverse", "--format=- %h %s", "--max-count=50", &range]).await;
        let commits = commits.map_err(|error| of_git(&error))?;
        let _ = writeln!(body, "\n## Commits\n\n{commits}\n");
        if let Some(tree) = &task.delivery.tested_tree {
            let _ = writeln!(body, "## Tests\n\nPassed on tree `{tree:.10}`.\n");
        }
        let query = RunQuery { scope: Scope::Task(task.id.clone()), limit: None };
        let runs = self.desk.worker.store.runs(&query).await;
        let runs = runs.map_err(|error| StepFailure::Transient { reason: error.to_string() })?;
        let ends: Vec<_> = runs.iter().filter_map(|run| run.end.as_ref()).collect();
        let cost: f64 = ends.iter().filter_map(|end| end.cost_usd).sum();
        let told = ends.iter().any(|end| end.cost_usd.is_some());
        let cost = if told { format!("${cost:.2}") } else { "unknown".to_owned() };
        let _ = writeln!(body, "## Runs\n\nTask `{}`, {} runs, cost: {cost}.", task.id, ends.len());
        Ok(body)
    }

    pub(super) async fn check_conflicts(&self) -> Result<Delivery, StepFailure> {
        let (head, base) = (self.pushed()?, self.base_tip().await?);
        match check_fit(&self.git(), &base, &head).await {
            Ok(()) => {}
            Err(error @ CandidateError::Conflict { .. }) => {
                return Err(red(RedVerdict::Conflict, format!("{error} (at {base:.10})")));
            }
            Err(CandidateError::Git(error)) => return Err(of_git(&error)),
        }
        // The forge may know more: rules, or a base that only it has.
        let view = self.view().await?;
        match view.mergeable {
            Mergeable::Conflicting => {
                Err(red(RedVerdict::Conflict, "the forge says that it conflicts with the base"))
            }
            Mergeable::Clean | Mergeable::Unknown | Mergeable::Blocked { .. } => Ok(self.delivery()),
        }
    }

    pub(super) async fn check_ci(&self) -> Result<Delivery, StepFailure> {
        let pushed = self.pushed()?;
        let checks = self.desk.worker.outlet.forge.checks(&pushed).await;
        match checks.map_err(|error| of_forge(&error, RedVerdict::CiFailed))? {
            Checks::Passed { .. } => Ok(self.delivery()),
            Checks::Pending { names } => Err(StepFailure::Pending {
                reason: format!("{} of {pushed:.10} are not finished", names.join(", ")),
                until: self.desk.now().plus(LOOK_AT_CHECKS),
            }),
            Checks::Failed { names } => Err(red(
                RedVerdict::CiFailed,
                format!("these checks of {pushed:.10} failed: {}", names.join(", ")),
            )),
            // None is not a pass: they may not have begun.
            Checks::None => {
                Err(StepFailure::Transient { reason: format!("the forge has no checks of {pushed:.10}") })
            }
            Checks::Never => Err(StepFailure::Unknown {
                reason: "a repository on this machine has no checks: leave `check_ci` out of the flow, or use GitHub".to_owned(),
            }),
            Checks::Unfetchable { reason } => Err(StepFailure::Transient { reason }),
        }
    }

    pub(super) async fn post_comment(&self, text: &str) -> Result<Delivery, StepFailure> {
        let number = self.number()?;
        let pushed = self.task.delivery.pushed.as_ref().map_or("", Oid::as_str);
        let key = format!("{}/{}/{pushed:.10}", self.task.id, self.task.state);
        let comment = Comment { key, body: text.to_owned() };
        match self.desk.worker.outlet.forge.comment(number, &comment).await {
            Ok(()) => Ok(self.delivery()),
            Err(error) => Err(of_class(error.class(), error.to_string())),
        }
    }

    pub(super) fn pushed(&self) -> Result<Oid, StepFailure> {
        self.task.delivery.pushed.clone().ok_or_else(|| nothing_out("was pushed", "push_branch"))
    }

    pub(super) fn number(&self) -> Result<u64, StepFailure> {
        let number = self.task.delivery.pull_request.as_ref().map(|it| it.number);
        number.ok_or_else(|| nothing_out("has a pull request", "create_pr"))
    }

    pub(super) async fn view(&self) -> Result<PullRequest, StepFailure> {
        let view = self.desk.worker.outlet.forge.view(self.number()?).await;
        let view = view.map_err(|error| of_forge(&error, RedVerdict::MergeFailed))?;
        if view.state == PrState::Closed {
            let reason = format!("pull request {} was closed without being merged", view.number);
            return Err(StepFailure::Unknown { reason });
        }
        Ok(view)
    }
}

/// A flow that asks for this before that.
fn nothing_out(what: &str, step: &str) -> StepFailure {
    StepFailure::Systemic {
        outcome: OutcomeName::PermissionDenied,
        reason: format!("nothing of this task {what}: the flow needs `{step}` before this step"),
    }
}
