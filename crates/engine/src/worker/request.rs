//! What is asked of an agent for a task.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::RunRequest;
use rehearsal_core::config::Profile;
use rehearsal_core::flow::Flow;
use rehearsal_core::{BoxFuture, Budget, RunId, Session, Task};
use rehearsal_git::Git;
use rehearsal_store::{FindError, Scope};

use super::{Policy, Role, WorkError, Worker, Workspace};
use crate::agents::own_program;
use crate::findings::findings_for;
use crate::prompt::{self, Iteration, PromptData, PromptError};

/// What a request is about.
pub(super) struct Subject<'a> {
    pub(super) task: &'a Task,
    pub(super) flow: &'a Flow,
    pub(super) role: &'a Role,
    pub(super) run: &'a RunId,
    pub(super) working_dir: &'a Utf8Path,
    /// What the worker may still spend.
    pub(super) left: Option<f64>,
    /// What a prompt says beside its task, in a session.
    pub(super) iteration: Option<Iteration>,
}

impl Worker {
    /// What the first iteration would ask for a task of a session. Nothing is begun.
    pub fn preview<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<RunRequest, WorkError>> {
        Box::pin(async move {
            let Policy::Session(policy) = &self.options.policy else {
                return Err(std::io::Error::other("only a session has a next request").into());
            };
            let role = self.roles.role(&policy.agent).await.and_then(Result::ok);
            let role =
                role.ok_or_else(|| std::io::Error::other(format!("agent `{}` is missing", policy.agent)))?;
            let flow = self.store.flow(&task.flow_version).await?;
            let iteration = self.iteration(policy, task, 1, Vec::new()).await?;
            let subject = Subject {
                task,
                flow: &flow,
                role: &role,
                run: &RunId::from_random(crate::random_bits()),
                working_dir: self.workspace.root(),
                left: self.options.max_cost,
                iteration: Some(iteration),
            };
            Ok(self.request(subject).await??)
        })
    }

    /// What is asked of the agent; or what is wrong with its template.
    pub(super) async fn request(
        &self,
        subject: Subject<'_>,
    ) -> Result<Result<RunRequest, PromptError>, WorkError> {
        let Subject { task, flow, role, run, working_dir, left, iteration } = subject;
        let profile = &role.profile;
        let session = self.session_of(task).await?;
        let findings = findings_for(&*self.store, task).await?;
        let (base, test_command) = match (&self.workspace, &self.options.policy) {
            (Workspace::Worktrees { outlet, .. }, _) => {
                (Some(outlet.base.as_str()), self.testing.command.as_deref())
            }
            (Workspace::Checkout(_), Policy::Session(policy)) => (None, policy.test_command.as_deref()),
            (Workspace::Checkout(_), Policy::Queue(_)) => (None, self.testing.command.as_deref()),
        };
        let data = PromptData {
            task,
            session: session.as_ref(),
            findings: &findings,
            base,
            test_command,
            iteration: iteration.as_ref(),
        };
        let shipped = shipped_template(task, flow, iteration.is_some());
        let prompt = match prompt::render(role.template.as_deref().unwrap_or(shipped), &data) {
            Ok(prompt) => prompt,
            Err(error) => return Ok(Err(error)),
        };
        let mut env: BTreeMap<_, _> = self.identity(working_dir).await.into_iter().collect();
        env.extend(BTreeMap::clone(&profile.env));
        let renamed = profile.renamed_env.iter();
        env.extend(
            renamed.filter_map(|(theirs, ours)| Some((theirs.clone(), self.variables.get(ours)?.clone()))),
        );
        Ok(Ok(RunRequest {
            run: run.clone(),
            task: task.id.clone(),
            prompt,
            working_dir: working_dir.to_owned(),
            run_dir: self.run_dir(run),
            model: profile.model.clone(),
            system_prompt: Some(system_prompt(profile)),
            permission: profile.permission,
            allow: allowed_commands(test_command),
            timeout: Some(profile.timeout.0),
            idle_timeout: Some(profile.idle_timeout.0),
            budget: self.budget(task, profile, left).await?,
            env_grants: profile.pass_env.clone(),
            env,
            resume: None,
            lease: None,
            rendezvous: None,
        }))
    }

    /// Who commits. Where git does not answer, it says so itself when the agent commits.
    async fn identity(&self, working_dir: &Utf8Path) -> Vec<(String, String)> {
        Git::at(working_dir).identity_variables().await.unwrap_or_default()
    }

    async fn session_of(&self, task: &Task) -> Result<Option<Session>, WorkError> {
        let Some(name) = &task.session else { return Ok(None) };
        match self.store.session(name).await {
            Ok(session) => Ok(Some(session)),
            Err(FindError::Store(error)) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    /// The tightest of the agent's budget, what is left of the task's, and what is left of the worker's.
    async fn budget(&self, task: &Task, profile: &Profile, left: Option<f64>) -> Result<Budget, WorkError> {
        let (own, agent) = (task.budget, profile.budget);
        let left_of_task = match own.usd {
            Some(usd) => {
                let spent = self.store.cost_of(&Scope::Task(task.id.clone())).await?.usd;
                Some((usd - spent).max(0.0))
            }
            None => None,
        };
        let fewest = |limits: [Option<u64>; 2]| limits.into_iter().flatten().min();
        Ok(Budget {
            usd: [left_of_task, agent.usd, left].into_iter().flatten().reduce(f64::min),
            tokens: fewest([own.tokens, agent.tokens]),
            turns: fewest([own.turns, agent.turns]),
        })
    }

    pub(super) fn run_dir(&self, run: &RunId) -> Utf8PathBuf {
        self.state_dir.join("runs").join(run.as_str())
    }
}

/// What an agent has to run for its work, whatever the rules of its CLI.
fn allowed_commands(test_command: Option<&str>) -> Vec<String> {
    let own = own_program();
    let always = ["git add", "git commit", "rehearsal"].map(str::to_owned);
    always.into_iter().chain([own]).chain(test_command.map(str::to_owned)).collect()
}

fn shipped_template(task: &Task, flow: &Flow, is_iteration: bool) -> &'static str {
    if is_iteration {
        prompt::SHIPPED_TEMPLATE
    } else if flow.only_decides(&task.state) {
        prompt::REVIEW_TEMPLATE
    } else if flow.only_looks(&task.state) {
        prompt::LOOK_TEMPLATE
    } else {
        prompt::TASK_TEMPLATE
    }
}

fn system_prompt(profile: &Profile) -> String {
    profile.system_prompt.clone().unwrap_or_else(|| prompt::SYSTEM_PROMPT.trim().into())
}
