//! Opens the pull request of a task, or finds the one that is open.

use std::fmt::Write as _;

use rehearsal_core::{Delivery, PullRequestRef, StepFailure};
use rehearsal_forge::{ErrorClass, NewPullRequest, PrState, PullRequest};
use rehearsal_git::Oid;
use rehearsal_store::{RunQuery, Scope};

use super::{StepContext, of_class, of_git};

impl StepContext<'_> {
    pub(super) async fn create_pr(&self) -> Result<Delivery, StepFailure> {
        let outlet = self.outlet;
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
        let outlet = self.outlet;
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
        let base = task.delivery.base.as_ref().map_or(self.outlet.base.as_str(), Oid::as_str);
        let range = format!("{base}..HEAD");
        let commits =
            self.git().line(&["log", "--reverse", "--format=- %h %s", "--max-count=50", &range]).await;
        let commits = commits.map_err(|error| of_git(&error))?;
        let _ = writeln!(body, "\n## Commits\n\n{commits}\n");
        if let Some(tree) = &task.delivery.tested_tree {
            let _ = writeln!(body, "## Tests\n\nPassed on tree `{tree:.10}`.\n");
        }
        let query = RunQuery { scope: Scope::Task(task.id.clone()), limit: None };
        let runs = self.state.worker.store.runs(&query).await;
        let runs = runs.map_err(|error| StepFailure::Transient { reason: error.to_string() })?;
        let ends: Vec<_> = runs.iter().filter_map(|run| run.end.as_ref()).collect();
        let cost: f64 = ends.iter().filter_map(|end| end.cost_usd).sum();
        let told = ends.iter().any(|end| end.cost_usd.is_some());
        let cost = if told { format!("${cost:.2}") } else { "unknown".to_owned() };
        let _ = writeln!(body, "## Runs\n\nTask `{}`, {} runs, cost: {cost}.", task.id, ends.len());
        Ok(body)
    }
}
