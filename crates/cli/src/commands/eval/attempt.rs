//! Makes trials with the agents of the configuration.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use camino::Utf8PathBuf;
use rehearsal_agent::{RunReport, RunRequest, Watch};
use rehearsal_core::config::{DriverKind, Profile, Settings};
use rehearsal_core::{Activity, AgentName, Clock, Outcome, RunId, TaskId, TestStatus};
use rehearsal_engine::AgentSetup;
use rehearsal_eval::asked::Asked;
use rehearsal_eval::assertion::Check;
use rehearsal_eval::case::{Case, Eval};
use rehearsal_eval::run::{Attempts, Unmade};
use rehearsal_eval::trial::{Doing, Source, Step, Tested, Trial, TrialId, Variant, shortened};
use rehearsal_store::Store;
use tokio_util::sync::CancellationToken;

use super::asked::{Question, Vendors};
use super::scene::{Scene, failed};
use super::tested::by_name;
use crate::context::variables;

/// More steps than any assertion asks for.
const MOST_STEPS: usize = 10_000;

/// Makes trials with real processes.
pub(super) struct RealAttempts {
    pub(super) eval: Eval,
    /// Who is asked directly.
    pub(super) vendors: Vendors,
    pub(super) settings: Settings,
    pub(super) clock: Arc<dyn Clock>,
    /// Where the eval's file is.
    pub(super) beside: Utf8PathBuf,
    pub(super) store: Arc<dyn Store>,
    /// Money may be spent.
    pub(super) live: bool,
}

/// The two that are known beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    /// The patch that is known to be right.
    Oracle,
    /// Nothing is done.
    NoOp,
}

impl RealAttempts {
    /// A trial without an agent: the known patch, or nothing.
    pub(super) async fn control(
        &self,
        case: &Case,
        control: Control,
        cancel: &CancellationToken,
    ) -> Result<Trial, Unmade> {
        let file = &case.file;
        let scene = Scene::make(&file.repository, file.setup.as_deref(), &self.beside, cancel).await?;
        let before = self.tests(case, &scene, cancel).await?;
        let began = self.clock.now();
        if let (Control::Oracle, Some(patch)) = (control, &file.known_patch) {
            scene.apply(&self.text_of(patch)?).await?;
        }
        let (changes, diff) = scene.changes().await?;
        let after = self.tests(case, &scene, cancel).await?;
        let commands = commands(case, &scene, cancel).await?;
        let agent = if control == Control::Oracle { "oracle" } else { "no-op" };
        let variant = Variant { agent: agent.to_owned(), model: None, prompt: None, flow: None };
        let id = TrialId { case: case.name.clone(), variant, trial: 1 };
        Ok(Trial {
            outcome: if changes.is_empty() { Outcome::NoChanges } else { Outcome::Done },
            changes,
            diff,
            tests: before.zip(after).map(|(before, after)| Tested { before, after }),
            commands,
            ..Trial::blank(id, Source::Scripted, began)
        })
    }

    /// A patch, or the file below the eval's that has it.
    fn text_of(&self, patch: &str) -> Result<String, Unmade> {
        if patch.contains('\n') {
            return Ok(patch.to_owned());
        }
        fs_err::read_to_string(self.beside.join(patch)).map_err(|error| failed("the known patch", &error))
    }
}

#[async_trait]
impl Attempts for RealAttempts {
    async fn attempt(&self, case: &Case, id: &TrialId, cancel: &CancellationToken) -> Result<Trial, Unmade> {
        if let Some(asked) = Asked::of(&id.variant.agent) {
            let question = Question { asked, prompt: self.prompt(case, id), case, id };
            return self.vendors.ask(question, cancel).await;
        }
        let (profile, source) = self.who(id)?;
        let file = &case.file;
        let scene = Scene::make(&file.repository, file.setup.as_deref(), &self.beside, cancel).await?;
        let before = self.tests(case, &scene, cancel).await?;
        let began = self.clock.now();
        let steps = Arc::new(Mutex::new(vec![Step::Agent { name: id.variant.agent.clone() }]));
        let report = self.run(case, id, &profile, &scene, watch(&steps), cancel).await?;
        if cancel.is_cancelled() {
            return Err(Unmade::Cancelled);
        }
        let ended = self.clock.now();
        let (changes, diff) = scene.changes().await?;
        let after = self.tests(case, &scene, cancel).await?;
        let commands = commands(case, &scene, cancel).await?;
        let RunReport { verdict, evidence, .. } = report;
        let git = evidence.git.unwrap_or_default();
        Ok(Trial {
            duration_ms: u64::try_from(ended.0 - began.0).unwrap_or(0),
            outcome: verdict.outcome,
            output: evidence.wire.final_text,
            steps: std::mem::take(&mut *steps.lock().unwrap_or_else(PoisonError::into_inner)),
            changes,
            diff,
            commits: git.commits.into_iter().map(|commit| commit.subject).collect(),
            uncommitted: git.uncommitted,
            tests: before.zip(after).map(|(before, after)| Tested { before, after }),
            commands,
            tokens: evidence.wire.tokens,
            cost_usd: evidence.wire.cost_usd,
            turns: evidence.wire.turns,
            ..Trial::blank(id.clone(), source, began)
        })
    }
}

impl RealAttempts {
    /// The profile of who is measured, and where its answers come from.
    fn who(&self, id: &TrialId) -> Result<(Profile, Source), Unmade> {
        let name = &id.variant.agent;
        let known =
            AgentName::new(name.as_str()).ok().and_then(|name| self.settings.profile_of(&name).cloned());
        let mut profile = known.ok_or_else(|| Unmade::Skipped(format!("no agent `{name}` is configured")))?;
        if let Some(model) = &id.variant.model {
            profile.model.value = Some(model.clone());
        }
        if self.live {
            return Ok((profile, Source::Live));
        }
        // Any program can be a stand-in; an agent CLI is one only with `--live`, because it spends money.
        match profile.driver.value {
            DriverKind::Command => Ok((profile, Source::Scripted)),
            driver => Err(Unmade::Skipped(format!("`{name}` ({driver}) spends tokens: run it with --live"))),
        }
    }

    async fn run(
        &self,
        case: &Case,
        id: &TrialId,
        profile: &Profile,
        scene: &Scene,
        watch: Watch,
        cancel: &CancellationToken,
    ) -> Result<RunReport, Unmade> {
        let setup = AgentSetup::new(profile, variables(), Arc::clone(&self.clock), &scene.repository).await;
        let agent = setup.map_err(|error| failed(&id.variant.agent, &error))?.agent();
        let mut env = profile.env.value.clone();
        env.extend(scene.own());
        let timeout = case.file.timeout.unwrap_or(profile.timeout.value).0;
        let name = |error: rehearsal_core::IdError| failed("the trial", &error);
        let request = RunRequest {
            run: RunId::new(format!("t{}", id.trial)).map_err(name)?,
            task: TaskId::new("case").map_err(name)?,
            prompt: self.prompt(case, id),
            working_dir: scene.repository.clone(),
            run_dir: scene.run.clone(),
            model: profile.model.value.clone(),
            system_prompt: profile.system_prompt.value.clone(),
            permission: profile.permission.value,
            timeout: Some(timeout),
            idle_timeout: Some(profile.idle_timeout.value.0),
            budget: profile.budget.value,
            env_grants: profile.pass_env.value.clone(),
            env,
            resume: None,
            lease: None,
        };
        Ok(agent.run(request, watch, cancel.clone()).await)
    }

    fn prompt(&self, case: &Case, id: &TrialId) -> String {
        let template = id.variant.prompt.as_ref().and_then(|name| self.eval.prompts.get(name));
        let own = case.file.prompt.as_str();
        template.map_or_else(
            || own.to_owned(),
            |template| template.replace("{{ prompt }}", own).replace("{{prompt}}", own),
        )
    }

    /// The tests of the repository by name, where an assertion asks for them.
    async fn tests(
        &self,
        case: &Case,
        scene: &Scene,
        cancel: &CancellationToken,
    ) -> Result<Option<BTreeMap<String, TestStatus>>, Unmade> {
        if !case.assertions.iter().any(|one| matches!(one.check, Check::Tests { .. })) {
            return Ok(None);
        }
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        by_name(scene, self.settings.testing.clone(), store, clock, cancel).await.map(Some)
    }
}

/// Writes the steps down as they happen.
fn watch(steps: &Arc<Mutex<Vec<Step>>>) -> Watch {
    let steps = Arc::clone(steps);
    Arc::new(move |activity| {
        let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
        match activity {
            Activity::ToolCalled { tool, detail } if steps.len() < MOST_STEPS => {
                let does = doing(&tool, &detail);
                steps.push(Step::Tool { tool, arguments: shortened(detail), does, is_error: None });
            }
            Activity::ToolReturned { is_error: failed, .. } => {
                let open = steps.iter_mut().find_map(|step| match step {
                    Step::Tool { is_error: is_error @ None, .. } => Some(is_error),
                    _ => None,
                });
                if let Some(is_error) = open {
                    *is_error = Some(failed);
                }
            }
            Activity::Text { text } if steps.len() < MOST_STEPS => {
                steps.push(Step::Text { text: shortened(text) })
            }
            _ => {}
        }
    })
}

/// What kind of thing a tool does, whatever its agent calls it.
fn doing(tool: &str, detail: &str) -> Doing {
    const TESTS: [&str; 9] = [
        "cargo test",
        "nextest",
        "pytest",
        "go test",
        "npm test",
        "jest",
        "vitest",
        "make test",
        "rehearsal test",
    ];
    match tool.to_ascii_lowercase().as_str() {
        "run_tests" => Doing::Test,
        "write" | "edit" | "multiedit" | "write_file" | "edit_file" | "replace" | "apply_patch"
        | "file_change" | "patch" => Doing::Edit,
        "read" | "read_file" | "grep" | "glob" | "ls" | "list" | "search" | "git_diff" => Doing::Read,
        "bash" | "shell" | "command_execution" | "run_shell_command" | "exec_command" => {
            if TESTS.iter().any(|test| detail.contains(test)) { Doing::Test } else { Doing::Run }
        }
        name if name.ends_with("run_tests") => Doing::Test,
        _ => Doing::Other,
    }
}

/// Runs what assertions want to be run in what the agent left.
async fn commands(
    case: &Case,
    scene: &Scene,
    cancel: &CancellationToken,
) -> Result<BTreeMap<String, rehearsal_eval::trial::CommandEnd>, Unmade> {
    let mut ends = BTreeMap::new();
    for assertion in &case.assertions {
        if let Check::Command { command, .. } = &assertion.check {
            ends.insert(command.clone(), scene.shell(command, cancel).await?);
        }
    }
    Ok(ends)
}
