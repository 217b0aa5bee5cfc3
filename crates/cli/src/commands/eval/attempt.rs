//! Makes trials with the agents of the configuration.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::environment::Variables;
use rehearsal_agent::redact::Redactor;
use rehearsal_agent::{RunReport, RunRequest};
use rehearsal_core::config::{DriverKind, Profile, Settings};
use rehearsal_core::flow::Flow;
use rehearsal_core::{AgentName, Clock, Outcome, RunId, TaskId, TestStatus};
use rehearsal_engine::{AgentSetup, Reach};
use rehearsal_eval::asked::Asked;
use rehearsal_eval::assertion::Check;
use rehearsal_eval::case::{Case, Eval};
use rehearsal_eval::run::{Attempts, Unmade};
use rehearsal_eval::trial::{Source, Step, Tested, Trial, TrialId, Variant};
use rehearsal_llm::cassette::Place;
use rehearsal_store::Store;
use tokio_util::sync::CancellationToken;

use super::asked::{Question, Vendors};
use super::flow::{self, FIRST_WORKTREE, FlowTrial};
use super::judge::{Judge, rubrics};
use super::scene::{Scene, failed};
use super::steps::watch;
use super::tape::{Mode, TapedStage, Tapes, of_judge, says_something};
use super::taped_model::ModelTape;
use super::tested::by_name;
use crate::commands::run::check_permission;
use crate::context::variables;

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
    /// The flows that variants name.
    pub(super) flows: BTreeMap<String, Arc<Flow>>,
    /// Where the templates of prompts are.
    pub(super) prompts: Utf8PathBuf,
    /// Where the answers of models come from.
    pub(super) mode: Mode,
    /// Agents whose profile asks for it may do everything.
    pub(super) trust: bool,
    /// Where they are kept.
    pub(super) tapes: Tapes,
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
            return self.answered(asked, case, id, cancel).await;
        }
        let cast = self.cast(id)?;
        let tape = self.tape(case, id)?;
        let file = &case.file;
        let mut scene = Scene::make(&file.repository, file.setup.as_deref(), &self.beside, cancel).await?;
        if id.variant.flow.is_some() {
            scene.works_in = scene.worktrees().join(FIRST_WORKTREE);
        }
        let before = self.tests(case, &scene, cancel).await?;
        let trial = self.acted(case, id, &cast, &scene, &tape, cancel).await?;
        if cancel.is_cancelled() {
            return Err(Unmade::Cancelled);
        }
        let (changes, diff) = scene.changes().await?;
        let after = self.tests(case, &scene, cancel).await?;
        let commands = commands(case, &scene, cancel).await?;
        let tests = before.zip(after).map(|(before, after)| Tested { before, after });
        let trial = without_secrets(&Trial { changes, diff, commands, tests, ..trial }, &cast)?;
        self.judged(case, trial, scene.place(), &tape).await
    }
}

/// Who works in a trial, the one who is measured first.
type Cast = [(AgentName, Profile)];

impl RealAttempts {
    /// A trial without a process and a repository: someone is asked once.
    async fn answered(
        &self,
        asked: Asked<'_>,
        case: &Case,
        id: &TrialId,
        cancel: &CancellationToken,
    ) -> Result<Trial, Unmade> {
        let path = match (asked, self.mode) {
            // What says only what it is told needs no recording, but its judge does.
            (Asked::Echo, Mode::Replay(_)) => self.tapes.judged_at(case, id),
            _ => self.tape(case, id)?,
        };
        let place = Place::default();
        let question = Question { asked, prompt: self.prompt(case, id), case, id };
        let tape = ModelTape {
            mode: self.mode,
            path: &path,
            who: &id.variant.agent,
            place: &place,
            clock: Arc::clone(&self.clock),
        };
        let trial = self.vendors.ask(question, &tape, cancel).await?;
        self.judged(case, trial, place, &path).await
    }

    /// Who is measured, and who else works in its flow.
    fn cast(&self, id: &TrialId) -> Result<Vec<(AgentName, Profile)>, Unmade> {
        let written = &id.variant.agent;
        let first = AgentName::new(written.as_str())
            .map_err(|_| Unmade::Skipped(format!("no agent `{written}` is configured")))?;
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

    fn profile(&self, name: &AgentName) -> Result<Profile, Unmade> {
        let known = self.settings.profile_of(name).cloned();
        let profile = known.ok_or_else(|| Unmade::Skipped(format!("no agent `{name}` is configured")))?;
        // Any program can be a stand-in; an agent CLI is one only with the user's word, because it spends money.
        let driver = profile.driver;
        if self.mode == Mode::StandIns && driver != DriverKind::Command {
            return Err(Unmade::Skipped(format!("`{name}` ({driver}) spends tokens: run it with --live")));
        }
        check_permission(&profile, self.trust)
            .map_err(|error| Unmade::Skipped(format!("{}: run it with --trust", error.message)))?;
        Ok(profile)
    }

    fn flow(&self, id: &TrialId) -> Result<Option<Arc<Flow>>, Unmade> {
        let Some(name) = &id.variant.flow else { return Ok(None) };
        let known = self.flows.get(name).cloned();
        known.map(Some).ok_or_else(|| Unmade::Skipped(format!("there is no flow `{name}`")))
    }

    /// Where the trial is recorded, or what it plays.
    fn tape(&self, case: &Case, id: &TrialId) -> Result<Utf8PathBuf, Unmade> {
        match self.mode {
            Mode::StandIns | Mode::Live | Mode::Record => Ok(self.tapes.made_at(case, id)),
            Mode::Replay(_) => self.tapes.played(case, id),
        }
    }

    /// The trial as far as its agents made it.
    async fn acted(
        &self,
        case: &Case,
        id: &TrialId,
        cast: &Cast,
        scene: &Scene,
        tape: &Utf8Path,
        cancel: &CancellationToken,
    ) -> Result<Trial, Unmade> {
        let mut ours = variables();
        // The settings of a user are in the user's home, and a trial has its own.
        ours.retain(|name, _| !name.starts_with("XDG_"));
        let agents: Vec<&Profile> = cast.iter().map(|(_, profile)| profile).collect();
        let stage = match self.mode {
            Mode::StandIns | Mode::Live => None,
            Mode::Record => Some(TapedStage::recording(tape, &agents, scene, &ours).await?),
            Mode::Replay(matching) => Some(TapedStage::replaying(tape, matching, &agents, scene, &ours)?),
        };
        let source = if self.mode == Mode::Live { Source::Live } else { Source::Scripted };
        let mut trial = Trial::blank(id.clone(), source, self.clock.now());
        match self.flow(id)? {
            None => {
                let [(_, profile), ..] = cast else { return Err(failed("the trial", &"nobody works in it")) };
                self.run(case, profile, scene, stage.as_ref(), ours, &mut trial, cancel).await?;
                (trial.pull_request, trial.gh_calls) = scene.on_forge()?;
            }
            Some(flow) => {
                let played = FlowTrial {
                    flow,
                    cast,
                    settings: &self.settings,
                    scene,
                    stage: stage.as_ref(),
                    prompts: &self.prompts,
                    timeout: case.file.timeout,
                    clock: Arc::clone(&self.clock),
                };
                played.play(&self.prompt(case, id), &mut trial, &ours, cancel).await?;
            }
        }
        trial.duration_ms = u64::try_from(self.clock.now().0 - trial.began.0).unwrap_or(0);
        if let Some(stage) = stage {
            (trial.source, trial.replay) = stage.finish(says_something(&trial)).await?;
        }
        Ok(trial)
    }

    /// One run of one agent.
    #[expect(clippy::too_many_arguments, reason = "each is another part of one run")]
    async fn run(
        &self,
        case: &Case,
        profile: &Profile,
        scene: &Scene,
        stage: Option<&TapedStage>,
        ours: Variables,
        trial: &mut Trial,
        cancel: &CancellationToken,
    ) -> Result<(), Unmade> {
        let id = trial.id.clone();
        let clock = Arc::clone(&self.clock);
        let (profile, reach) = match stage {
            None => (profile.clone(), Reach::ItsVendor),
            Some(stage) => (stage.dress(profile, &ours, &scene.home)?, Reach::Stage),
        };
        let setup = AgentSetup::new(&profile, ours, clock, &scene.repository, reach).await;
        let agent = setup.map_err(|error| failed(&id.variant.agent, &error))?.agent();
        let request = self.request(case, &id, &profile, scene)?;
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
        scene: &Scene,
    ) -> Result<RunRequest, Unmade> {
        let env = scene.around(&profile.env);
        let timeout = case.file.timeout.unwrap_or(profile.timeout).0;
        let name = |error: rehearsal_core::IdError| failed("the trial", &error);
        Ok(RunRequest {
            run: RunId::new(format!("t{}", id.trial)).map_err(name)?,
            task: TaskId::new("case").map_err(name)?,
            prompt: self.prompt(case, id),
            working_dir: scene.repository.clone(),
            run_dir: scene.run.clone(),
            model: profile.model.clone(),
            system_prompt: profile.system_prompt.clone(),
            permission: profile.permission,
            timeout: Some(timeout),
            idle_timeout: Some(profile.idle_timeout.0),
            budget: profile.budget,
            env_grants: profile.pass_env.clone(),
            env,
            resume: None,
            lease: None,
            rendezvous: None,
        })
    }

    /// The trial with what its judges say. Of one that says nothing about the agent nobody is asked.
    async fn judged(
        &self,
        case: &Case,
        mut trial: Trial,
        place: Place,
        tape: &Utf8Path,
    ) -> Result<Trial, Unmade> {
        let rubrics = rubrics(case);
        if let Some(model) =
            self.eval.judge.as_deref().filter(|_| !rubrics.is_empty() && says_something(&trial))
        {
            let judge = Judge {
                model,
                mode: self.mode,
                tape: &of_judge(tape),
                place,
                clock: Arc::clone(&self.clock),
            };
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

/// What an agent tells has no secret in it; what it wrote into files may.
fn without_secrets(trial: &Trial, cast: &Cast) -> Result<Trial, Unmade> {
    let mut known = variables();
    known.extend(cast.iter().flat_map(|(_, profile)| profile.env.clone()));
    let redacted = Redactor::new(&known).redact_all(trial);
    redacted.ok_or_else(|| Unmade::Failed("the trial cannot be written down".to_owned()))
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
