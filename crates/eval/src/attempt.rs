//! Makes trials with the configured agents, their mocks or their recordings.

mod cassette;
mod flow;
mod judge;
mod model;
mod steps;
mod vendors;
mod workspace;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::environment::Variables;
use rehearsal_agent::redact::Redactor;
use rehearsal_agent::{CallLimits, RunReport, RunRequest};
use rehearsal_core::config::{DriverKind, PermissionMode, Profile, Settings};
use rehearsal_core::flow::Flow;
use rehearsal_core::{AgentName, Clock, Outcome, RunId, TaskId};
use rehearsal_engine::{AgentSetup, Reach};
use rehearsal_llm::cassette::{Place, Secrets};
use rehearsal_store::Store;
use tokio_util::sync::CancellationToken;

use self::cassette::{CassetteStage, Cassettes};
use self::flow::{FIRST_WORKTREE, FlowTrial};
use self::judge::{Judge, rubrics};
use self::model::ModelCassette;
use self::steps::watch;
use self::vendors::{Question, Vendors};
use self::workspace::failed;
use crate::assertion::Check;
use crate::case::{Case, Eval};
use crate::direct::Direct;
use crate::grade::no_evidence;
use crate::run::{Attempts, Obstacle, TrialError};
use crate::trial::{CommandEnd, Source, Step, Tested, Trial, TrialId, Variant};

pub use self::cassette::Mode;
pub(crate) use self::workspace::{TestResults, Workspace};

/// What all trials share: the project's settings and files, and the environment of this process.
pub struct TrialContext {
    /// The project's settings.
    pub settings: Settings,
    /// The flows that variants name.
    pub flows: BTreeMap<String, Arc<Flow>>,
    /// The prompt templates of agents that have one.
    pub templates: BTreeMap<AgentName, String>,
    /// Where recordings are: `.rehearsal/cassettes`.
    pub cassettes: Utf8PathBuf,
    /// Where the results of test runs go.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The environment of this process.
    pub variables: Variables,
    /// The `rehearsal` binary, which also plays `gh`.
    pub program: Utf8PathBuf,
    /// Whether agents whose profile says `permission: trust` may run.
    pub trust: bool,
}

impl TrialContext {
    fn secrets(&self) -> Secrets {
        Secrets::of(self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }
}

/// Makes the trials of one eval with real processes.
pub struct AgentTrials {
    eval: Eval,
    /// Where the eval's file is.
    directory: Utf8PathBuf,
    mode: Mode,
    context: Arc<TrialContext>,
    vendors: Vendors,
    cassettes: Cassettes,
}

/// A trial whose result is known in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// The known patch is applied.
    Oracle,
    /// Nothing is done.
    NoOp,
}

impl AgentTrials {
    /// The trials of an eval whose file is in `directory`; its paths are relative to it.
    pub fn new(eval: &Eval, directory: &Utf8Path, mode: Mode, context: Arc<TrialContext>) -> Self {
        Self {
            vendors: Vendors::of(eval, mode, &context),
            cassettes: Cassettes {
                directory: context.cassettes.clone(),
                beside: directory.to_owned(),
                eval: eval.name.clone(),
            },
            eval: eval.clone(),
            directory: directory.to_owned(),
            mode,
            context,
        }
    }

    pub(crate) fn eval(&self) -> &Eval {
        &self.eval
    }

    /// A trial without an agent: the known patch, or nothing.
    pub(crate) async fn control(
        &self,
        case: &Case,
        control: Control,
        cancel: &CancellationToken,
    ) -> Result<Trial, TrialError> {
        let workspace = self.workspace(case, cancel).await?;
        let before = self.tests(case, &workspace, cancel).await?;
        let began = self.context.clock.now();
        if let (Control::Oracle, Some(patch)) = (control, &case.file.known_patch) {
            workspace.apply(&self.text_of(patch)?).await?;
        }
        let agent = if control == Control::Oracle { "oracle" } else { "no-op" };
        let variant = Variant { agent: agent.to_owned(), model: None, prompt: None, flow: None };
        let id = TrialId { case: case.name.clone(), variant, trial: 1 };
        let trial = Trial::blank(id, Source::Scripted, began);
        let trial = self.observed(case, &workspace, before, trial, cancel).await?;
        let outcome = if trial.changes.is_empty() { Outcome::NoChanges } else { Outcome::Done };
        Ok(Trial { outcome, ..trial })
    }

    async fn workspace(&self, case: &Case, cancel: &CancellationToken) -> Result<Workspace, TrialError> {
        let (repository, setup) = (&case.file.repository, case.file.setup.as_deref());
        Workspace::create(repository, setup, &self.directory, &self.context, cancel).await
    }

    /// A patch, or the content of the file it names.
    fn text_of(&self, patch: &str) -> Result<String, TrialError> {
        if patch.contains('\n') {
            return Ok(patch.to_owned());
        }
        fs_err::read_to_string(self.directory.join(patch)).map_err(|error| failed("the known patch", &error))
    }
}

#[async_trait]
impl Attempts for AgentTrials {
    async fn attempt(
        &self,
        case: &Case,
        id: &TrialId,
        cancel: &CancellationToken,
    ) -> Result<Trial, TrialError> {
        if let Some(direct) = Direct::of(&id.variant.agent) {
            return self.answered(direct, case, id, cancel).await;
        }
        let cast = self.cast(id)?;
        let cassette = self.cassette(case, id)?;
        let mut workspace = self.workspace(case, cancel).await?;
        if id.variant.flow.is_some() {
            workspace.works_in = workspace.worktrees().join(FIRST_WORKTREE);
        }
        let before = self.tests(case, &workspace, cancel).await?;
        let trial = self.acted(case, id, &cast, &workspace, &cassette, cancel).await?;
        if cancel.is_cancelled() {
            return Err(TrialError::Cancelled);
        }
        let trial = self.observed(case, &workspace, before, trial, cancel).await?;
        let trial = self.without_secrets(&trial, &cast)?;
        self.judged(case, trial, workspace.place(), &cassette).await
    }
}

/// The agents of a trial, the measured one first.
type Cast = [(AgentName, Profile)];

impl AgentTrials {
    /// A trial without a process and a repository: one question.
    async fn answered(
        &self,
        direct: Direct<'_>,
        case: &Case,
        id: &TrialId,
        cancel: &CancellationToken,
    ) -> Result<Trial, TrialError> {
        let path = match (direct, self.mode) {
            // Echo needs no recording, but its judge does.
            (Direct::Echo, Mode::Replay(_)) => self.cassettes.judged_at(case, id),
            _ => self.cassette(case, id)?,
        };
        let place = Place::default();
        let question = Question { direct, prompt: self.prompt(case, id), case, id };
        let cassette = ModelCassette {
            mode: self.mode,
            path: &path,
            who: &id.variant.agent,
            place: &place,
            context: &self.context,
        };
        let trial = self.vendors.ask(question, &cassette, cancel).await?;
        self.judged(case, trial, place, &path).await
    }

    /// The measured agent, and the others of its flow.
    fn cast(&self, id: &TrialId) -> Result<Vec<(AgentName, Profile)>, TrialError> {
        let written = &id.variant.agent;
        let first = AgentName::new(written.as_str())
            .map_err(|_| TrialError::Skipped(format!("no agent `{written}` is configured")))?;
        let names = self.flow(id)?.map_or_else(|| vec![first.clone()], |flow| flow::cast(&flow, &first));
        let mut cast = Vec::new();
        for name in names {
            let mut profile = self.profile(&name)?;
            if let Some(model) = id.variant.model.as_ref().filter(|_| name == first) {
                profile.model = Some(model.clone());
            }
            cast.push((name, profile));
        }
        Ok(cast)
    }

    fn profile(&self, name: &AgentName) -> Result<Profile, TrialError> {
        let known = self.context.settings.profile_of(name).cloned();
        let profile = known.ok_or_else(|| TrialError::Skipped(format!("no agent `{name}` is configured")))?;
        // A plain command can be a mock. An agent CLI spends money, so the user has to allow it.
        let driver = profile.driver;
        if self.mode == Mode::Scripted && driver != DriverKind::COMMAND {
            let (agent, driver) = (name.to_string(), driver.to_string());
            return Err(TrialError::Obstacle(Obstacle::AgentSpendsTokens { agent, driver }));
        }
        if profile.permission == PermissionMode::Trust && !self.context.trust {
            let origin = profile.origins.get("permission").to_string();
            return Err(TrialError::Obstacle(Obstacle::NotTrusted { origin }));
        }
        Ok(profile)
    }

    fn flow(&self, id: &TrialId) -> Result<Option<Arc<Flow>>, TrialError> {
        let Some(name) = &id.variant.flow else { return Ok(None) };
        let known = self.context.flows.get(name).cloned();
        known.map(Some).ok_or_else(|| TrialError::Skipped(format!("there is no flow `{name}`")))
    }

    /// The recording to make or to play.
    fn cassette(&self, case: &Case, id: &TrialId) -> Result<Utf8PathBuf, TrialError> {
        match self.mode {
            Mode::Scripted | Mode::Live | Mode::Record => Ok(self.cassettes.made_at(case, id)),
            Mode::Replay(_) => self.cassettes.played(case, id),
        }
    }

    /// Runs the agents. Changes, tests and judges are added later.
    async fn acted(
        &self,
        case: &Case,
        id: &TrialId,
        cast: &Cast,
        workspace: &Workspace,
        cassette: &Utf8Path,
        cancel: &CancellationToken,
    ) -> Result<Trial, TrialError> {
        let mut ours = self.context.variables.clone();
        // The user's settings are in the user's home; a trial has its own.
        ours.retain(|name, _| !name.starts_with("XDG_"));
        let agents: Vec<&Profile> = cast.iter().map(|(_, profile)| profile).collect();
        let stage = match self.mode {
            Mode::Scripted | Mode::Live => None,
            Mode::Record => Some(CassetteStage::recording(cassette, &agents, workspace, &ours).await?),
            Mode::Replay(matching) => {
                Some(CassetteStage::replaying(cassette, matching, &agents, workspace, &ours)?)
            }
        };
        let source = if self.mode == Mode::Live { Source::Live } else { Source::Scripted };
        let mut trial = Trial::blank(id.clone(), source, self.context.clock.now());
        match self.flow(id)? {
            None => {
                let [(_, profile), ..] = cast else { return Err(failed("the trial", &"nobody works in it")) };
                self.run(case, profile, workspace, stage.as_ref(), ours, &mut trial, cancel).await?;
                (trial.pull_request, trial.gh_calls) = workspace.on_forge()?;
            }
            Some(flow) => {
                let played = FlowTrial {
                    flow,
                    cast,
                    context: &self.context,
                    workspace,
                    stage: stage.as_ref(),
                    timeout: case.file.timeout,
                };
                played.play(&self.prompt(case, id), &mut trial, &ours, cancel).await?;
            }
        }
        trial.duration_ms = u64::try_from(self.context.clock.now().0 - trial.began.0).unwrap_or(0);
        if let Some(stage) = stage {
            (trial.source, trial.replay) = stage.finish(no_evidence(&trial).is_none()).await?;
        }
        Ok(trial)
    }

    #[expect(clippy::too_many_arguments, reason = "each is another part of one run")]
    async fn run(
        &self,
        case: &Case,
        profile: &Profile,
        workspace: &Workspace,
        stage: Option<&CassetteStage>,
        ours: Variables,
        trial: &mut Trial,
        cancel: &CancellationToken,
    ) -> Result<(), TrialError> {
        let id = trial.id.clone();
        let clock = Arc::clone(&self.context.clock);
        let (profile, reach) = match stage {
            None => (profile.clone(), Reach::ItsVendor),
            Some(stage) => (stage.connect(profile, &ours, &workspace.home)?, Reach::Stage),
        };
        let setup = AgentSetup::new(&profile, ours, clock, &workspace.repository, reach).await;
        let agent = setup.map_err(|error| failed(&id.variant.agent, &error))?.agent();
        let request = self.request(case, &id, &profile, workspace)?;
        let steps = Arc::new(Mutex::new(vec![Step::Agent { name: id.variant.agent.clone() }]));
        let RunReport { verdict, evidence, .. } = agent.run(request, watch(&steps), cancel.clone()).await;
        let git = evidence.git.unwrap_or_default();
        trial.steps = std::mem::take(&mut *steps.lock().unwrap_or_else(PoisonError::into_inner));
        trial.outcome = verdict.outcome;
        trial.output = evidence.wire.final_text;
        trial.commits = git.commits.into_iter().map(|commit| commit.subject).collect();
        trial.uncommitted = git.uncommitted;
        trial.tokens = evidence.wire.tokens;
        trial.cost_usd = evidence.wire.cost_usd;
        trial.turns = evidence.wire.turns;
        Ok(())
    }

    fn request(
        &self,
        case: &Case,
        id: &TrialId,
        profile: &Profile,
        workspace: &Workspace,
    ) -> Result<RunRequest, TrialError> {
        let env = workspace.for_agent(&profile.env);
        let timeout = case.file.timeout.unwrap_or(profile.timeout).0;
        let name = |error: rehearsal_core::IdError| failed("the trial", &error);
        Ok(RunRequest {
            run: RunId::new(format!("t{}", id.trial)).map_err(name)?,
            task: TaskId::new("case").map_err(name)?,
            prompt: self.prompt(case, id),
            working_dir: workspace.repository.clone(),
            run_dir: workspace.run.clone(),
            model: profile.model.clone(),
            system_prompt: profile.system_prompt.clone(),
            permission: profile.permission,
            allow: Vec::new(),
            timeout: Some(timeout),
            idle_timeout: Some(profile.idle_timeout.0),
            calls: CallLimits { repeated: profile.repeated_calls, all: profile.tool_calls },
            budget: profile.budget,
            env_grants: profile.pass_env.clone(),
            env,
            resume: None,
            lease: None,
            rendezvous: None,
        })
    }

    /// Adds what can be seen in the repository afterwards: changes, tests, and the commands of the assertions.
    async fn observed(
        &self,
        case: &Case,
        workspace: &Workspace,
        before: Option<TestResults>,
        trial: Trial,
        cancel: &CancellationToken,
    ) -> Result<Trial, TrialError> {
        let (changes, diff) = workspace.changes().await?;
        let after = self.tests(case, workspace, cancel).await?;
        let commands = commands(case, workspace, cancel).await?;
        let tests = before.zip(after).map(|(before, after)| Tested { before, after });
        Ok(Trial { changes, diff, tests, commands, ..trial })
    }

    /// Asks the judges about a trial, unless it says nothing about the agent.
    async fn judged(
        &self,
        case: &Case,
        mut trial: Trial,
        place: Place,
        cassette: &Utf8Path,
    ) -> Result<Trial, TrialError> {
        let rubrics = rubrics(case);
        if let Some(model) =
            self.eval.judge.as_deref().filter(|_| !rubrics.is_empty() && no_evidence(&trial).is_none())
        {
            let cassette = &cassette::of_judge(cassette);
            let judge = Judge { model, mode: self.mode, cassette, place: &place, context: &self.context };
            let judged = judge.votes(&rubrics, &self.prompt(case, &trial.id), &trial).await?;
            (trial.judged, trial.judge_tokens) = (judged.votes, judged.tokens);
        }
        Ok(trial)
    }

    fn prompt(&self, case: &Case, id: &TrialId) -> String {
        let template = id.variant.prompt.as_ref().and_then(|name| self.eval.prompts.get(name));
        let own = case.file.prompt.as_str();
        template.map_or_else(
            || own.to_owned(),
            |template| template.replace("{{ prompt }}", own).replace("{{prompt}}", own),
        )
    }

    /// The results of the repository's tests, if an assertion needs them.
    async fn tests(
        &self,
        case: &Case,
        workspace: &Workspace,
        cancel: &CancellationToken,
    ) -> Result<Option<TestResults>, TrialError> {
        if !case.assertions.iter().any(|one| matches!(one.check, Check::Tests { .. })) {
            return Ok(None);
        }
        workspace.test(&self.context, cancel).await.map(Some)
    }

    /// An agent's words contain no secret, but the files it wrote may.
    fn without_secrets(&self, trial: &Trial, cast: &Cast) -> Result<Trial, TrialError> {
        let mut known = self.context.variables.clone();
        known.extend(cast.iter().flat_map(|(_, profile)| profile.env.clone()));
        let redacted = Redactor::new(&known).redact_all(trial);
        redacted.ok_or_else(|| TrialError::Failed("the trial cannot be written down".to_owned()))
    }
}

/// Runs the commands of the assertions in the repository as the agent left it.
async fn commands(
    case: &Case,
    workspace: &Workspace,
    cancel: &CancellationToken,
) -> Result<BTreeMap<String, CommandEnd>, TrialError> {
    let mut ends = BTreeMap::new();
    for assertion in &case.assertions {
        if let Check::Command { command, .. } = &assertion.check {
            ends.insert(command.clone(), workspace.shell(command, cancel).await?);
        }
    }
    Ok(ends)
}
