//! Evals: which there are, how they are run, and what came of a run.

mod import;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::AgentName;
use rehearsal_core::flow::Flow;
use rehearsal_eval::attempt::{AgentTrials, Mode, TrialContext};
use rehearsal_eval::case::{Eval, parse};
use rehearsal_eval::direct::ECHO;
use rehearsal_eval::mutation_test::{MutateDocument, MutatedCase};
use rehearsal_eval::oracle::{CheckedCase, OracleDocument};
use rehearsal_eval::recorded_run::{self, RecordedTask, ReplayError};
use rehearsal_eval::run::{
    Archive, Ended, EvalRun, FindRunError, Journal, JournalError, Limits, RunEvent, TrialError,
};
use rehearsal_eval::statistics::Comparison;
use rehearsal_eval::summary::{Record, Summary, VariantError};
use rehearsal_eval::trial::{Trial, Variant};
use rehearsal_eval::{mutation_test, oracle, run};
use rehearsal_git::{Git, GitError};
use rehearsal_llm::cassette::Matching;
use tokio_util::sync::CancellationToken;

use crate::cassettes::{CassetteError, path_of};
use crate::file::{FileError, is_yaml, read_text, yaml_files};
use crate::project::{Project, ProjectError};

pub use import::{
    ImportDocument, ImportError, ImportFile, ImportHistory, ImportOutput, ImportTo, Mined, import,
    import_history,
};

/// The evals of a project.
pub struct Evals {
    /// The project.
    pub project: Project,
    /// Their runs. They stay when evals go.
    pub runs: Archive,
    /// Our own program, which trials start again.
    program: Utf8PathBuf,
}

/// An eval and the file that it is in.
pub struct LoadedEval {
    /// What it says.
    pub eval: Eval,
    text: String,
    path: Utf8PathBuf,
}

/// How evals are run.
pub struct RunRequest {
    /// Where the answers of models come from.
    pub mode: Mode,
    /// Whether agents whose profile asks for trust may run.
    pub trust: bool,
    /// Whether the last run of the eval continues.
    pub resume: bool,
    /// How many trials at a time, and what they may cost.
    pub limits: Limits,
}

/// A run of an agent with its recording.
pub struct Recorded {
    /// The recording, as messages show it.
    pub cassette: String,
    /// What the agent was asked.
    pub task: RecordedTask,
    /// What came of it.
    pub trial: Trial,
}

/// Why evals cannot be run or read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum EvalsError {
    #[error("there is no eval in .rehearsal/evals")]
    NoEvals,
    #[error("there is no eval `{name}`")]
    Unknown { name: String, known: Vec<String> },
    #[error("`{ECHO}` is the stand-in that answers with its prompt, and an agent of the configuration")]
    TwoMeanings,
    #[error(transparent)]
    Wrong(FileError),
    #[error(transparent)]
    Find(#[from] FindRunError),
    #[error(transparent)]
    Open(JournalError),
    #[error(transparent)]
    Write(JournalError),
    #[error("`{0}` has several agents")]
    SeveralAgents(String),
    #[error("`{0}` has no such agent")]
    UnknownAgent(String),
    #[error("there is no case that both have trials of")]
    NothingInCommon,
    #[error(transparent)]
    NoCommit(GitError),
    #[error("there is no recording `{cassette}` with its task beside it")]
    NoRecording { name: Utf8PathBuf, cassette: String },
    #[error("{error}")]
    BrokenTask { file: String, error: serde_json::Error },
    #[error("the run failed")]
    Trial(TrialError),
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    #[error(transparent)]
    Project(ProjectError),
}

impl<E: Into<ProjectError>> From<E> for EvalsError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

impl Evals {
    /// Those of a project; `program` is our own binary.
    pub fn new(project: Project, program: Utf8PathBuf) -> Result<Self, ProjectError> {
        let runs = Archive::at(project.state_dir()?.join("evals"));
        Ok(Self { project, runs, program })
    }

    /// All of the project; there may be none.
    pub fn all(&self) -> Result<Vec<LoadedEval>, EvalsError> {
        match self.find(&[]) {
            Err(EvalsError::NoEvals) => Ok(Vec::new()),
            found => found,
        }
    }

    /// Those with these names or in these files; without any, all of the project.
    pub fn find(&self, wanted: &[String]) -> Result<Vec<LoadedEval>, EvalsError> {
        let (files, names): (Vec<_>, Vec<_>) = wanted.iter().partition(|name| is_yaml(Utf8Path::new(name)));
        let files: Vec<Utf8PathBuf> =
            files.into_iter().map(|file| self.project.caller.directory.join(file)).collect();
        let mut paths = files.clone();
        paths.extend(yaml_files(&self.project.directory().join("evals"))?);
        paths.sort();
        paths.dedup();
        if paths.is_empty() {
            return Err(EvalsError::NoEvals);
        }
        let mut all = paths.into_iter().map(|path| self.load(path)).collect::<Result<Vec<_>, _>>()?;
        for name in &names {
            if !all.iter().any(|found| found.eval.name == **name) {
                let known = all.into_iter().map(|found| found.eval.name).collect();
                return Err(EvalsError::Unknown { name: (*name).clone(), known });
            }
        }
        all.retain(|found| {
            wanted.is_empty() || names.contains(&&found.eval.name) || files.contains(&found.path)
        });
        Ok(all)
    }

    fn load(&self, path: Utf8PathBuf) -> Result<LoadedEval, EvalsError> {
        let settings = self.project.settings()?;
        let shown = self.project.shown(&path);
        let text = read_text(&path)?.ok_or_else(|| FileError::Missing(shown.clone().into()))?;
        let eval = parse(&text, settings.agent.as_str())
            .map_err(|error| EvalsError::Wrong(FileError::wrong(error, shown)))?;
        let named = eval.cases.iter().flat_map(|case| &case.variants).any(|variant| variant.agent == ECHO);
        let configured = AgentName::new(ECHO).is_ok_and(|name| settings.profile_of(&name).is_some());
        if named && configured {
            return Err(EvalsError::TwoMeanings);
        }
        Ok(LoadedEval { eval, text, path })
    }

    /// Runs an eval: all its trials, or those that its last run did not make.
    pub async fn run(
        &self,
        found: &LoadedEval,
        request: &RunRequest,
        watch: &mut (dyn FnMut(RunEvent<'_>) + Send),
        stop: &CancellationToken,
    ) -> Result<(EvalRun, Journal, Ended), EvalsError> {
        let LoadedEval { eval, text, .. } = found;
        let run = if request.resume { self.runs.last_of(&eval.name)? } else { None };
        let created = || self.runs.create(&eval.name, text, self.project.caller.now());
        let run = run.map_or_else(created, Ok)?;
        let mut journal = run.journal().map_err(EvalsError::Open)?;
        let trials = Arc::new(self.trials(found, request.mode, request.trust).await?);
        let ended = run::run(eval, trials, &mut journal, request.limits, watch, stop).await;
        Ok((run, journal, ended.map_err(EvalsError::Write)?))
    }

    /// Whether the cases can tell good from bad: the known patch must pass, and doing nothing must fail. Stopped, it ends early.
    pub async fn oracle(
        &self,
        names: &[String],
        mut checked: impl FnMut(&CheckedCase),
        stop: &CancellationToken,
    ) -> Result<OracleDocument, EvalsError> {
        let mut cases = Vec::new();
        for found in self.find(names)?.into_iter().take_while(|_| !stop.is_cancelled()) {
            let trials = self.trials(&found, Mode::Scripted, false).await?;
            let add = |case| {
                checked(&case);
                cases.push(case);
            };
            oracle::check(&trials, stop, add).await;
        }
        Ok(OracleDocument::new(cases))
    }

    /// Whether each assertion is able to fail; none if nothing could be tried. Stopped, it ends early.
    pub async fn mutate(
        &self,
        names: &[String],
        mut mutated: impl FnMut(&MutatedCase),
        stop: &CancellationToken,
    ) -> Result<Option<MutateDocument>, EvalsError> {
        let mut cases = Vec::new();
        for found in self.find(names)?.into_iter().take_while(|_| !stop.is_cancelled()) {
            let records = match self.runs.last_of(&found.eval.name)? {
                Some(run) => run.journal().map_err(EvalsError::Open)?.records().to_vec(),
                None => Vec::new(),
            };
            let trials = self.trials(&found, Mode::Scripted, false).await?;
            let add = |case| {
                mutated(&case);
                cases.push(case);
            };
            mutation_test::check(&trials, &records, stop, add).await;
        }
        Ok(MutateDocument::new(cases))
    }

    /// Makes the trials of an eval.
    async fn trials(&self, found: &LoadedEval, mode: Mode, trust: bool) -> Result<AgentTrials, EvalsError> {
        let variants = found.eval.cases.iter().flat_map(|case| &case.variants);
        let names: BTreeSet<&String> = variants.filter_map(|variant| variant.flow.as_ref()).collect();
        let flow = |name: &String| Ok((name.clone(), Arc::new(self.project.flow(name)?)));
        let flows = names.into_iter().map(flow).collect::<Result<_, ProjectError>>()?;
        let context = Arc::new(self.trial_context(flows, trust).await?);
        let directory = found.path.parent().unwrap_or(Utf8Path::new("."));
        Ok(AgentTrials::new(&found.eval, directory, mode, context))
    }

    /// What trials need of the project and of this process.
    pub async fn trial_context(
        &self,
        flows: BTreeMap<String, Arc<Flow>>,
        trust: bool,
    ) -> Result<TrialContext, ProjectError> {
        let project = &self.project;
        let settings = project.settings()?.clone();
        let mut templates = BTreeMap::new();
        if !flows.is_empty() {
            for name in settings.agent_names() {
                let path = project.directory().join("prompts").join(format!("{name}.md"));
                templates.extend(read_text(&path)?.map(|text| (name, text)));
            }
        }
        Ok(TrialContext {
            settings,
            flows,
            templates,
            cassettes: project.directory().join("cassettes"),
            store: project.store().await?,
            clock: Arc::clone(&project.caller.clock),
            variables: project.caller.environment.clone(),
            program: self.program.clone(),
            trust,
        })
    }

    /// The eval of a run as it was then, and its trials.
    pub fn read(&self, run: &EvalRun) -> Result<(Eval, Vec<Record>), EvalsError> {
        let agent = &self.project.settings()?.agent;
        let path = run.eval_file();
        let text = read_text(&path)?.unwrap_or_default();
        let eval = parse(&text, agent.as_str())
            .map_err(|error| FileError::wrong(error, self.project.shown(&path)))?;
        Ok((eval, run.journal().map_err(EvalsError::Open)?.records().to_vec()))
    }

    /// A run graded again, with the assertions as they are now.
    pub fn grade_again(&self, run: &EvalRun) -> Result<(Eval, Vec<Record>), EvalsError> {
        let (eval, mut records) = self.read(run)?;
        let now = self.find(&[])?.into_iter().find(|found| found.eval.name == eval.name);
        let eval = now.map_or(eval, |found| found.eval);
        for record in &mut records {
            record.grade_again(&eval);
        }
        Ok((eval, records))
    }

    /// Compares two runs, or two agents of one, case by case. Each is `RUN` or `RUN:AGENT`.
    pub fn compare(&self, first: &str, second: &str) -> Result<Comparison, EvalsError> {
        let side = |written: &str| -> Result<(Summary, Variant), EvalsError> {
            let (name, agent) = match written.rsplit_once(':') {
                Some((name, agent)) => (name, Some(agent)),
                None => (written, None),
            };
            let (eval, records) = self.read(&self.runs.find(Some(name))?)?;
            let summary = Summary::of(&eval, &records);
            let variant = summary.variant(agent).cloned().map_err(|error| match error {
                VariantError::Several => EvalsError::SeveralAgents(written.to_owned()),
                VariantError::Unknown => EvalsError::UnknownAgent(written.to_owned()),
            })?;
            Ok((summary, variant))
        };
        let ((first, a), (second, b)) = (side(first)?, side(second)?);
        first.compare(&a, &second, &b, 0).ok_or(EvalsError::NothingInCommon)
    }

    /// Records one run of an agent under a name; without an agent, of the one that a loop uses.
    pub async fn record(
        &self,
        name: &Utf8Path,
        agent: Option<String>,
        task: String,
        trust: bool,
        stop: &CancellationToken,
    ) -> Result<Recorded, EvalsError> {
        let root = &self.project.root;
        let path = path_of(&self.project.caller, name)?;
        let agent =
            agent.map_or_else(|| Ok(self.project.settings()?.agent.to_string()), Ok::<_, ProjectError>)?;
        let at = Git::at(root.clone()).line(&["rev-parse", "HEAD"]).await.map_err(EvalsError::NoCommit)?;
        let task = RecordedTask { agent, task, at };
        let context = Arc::new(self.trial_context(BTreeMap::new(), trust).await?);
        let trial = recorded_run::record(&task, root, &path, context, stop).await;
        Ok(Recorded { cassette: self.project.shown(&path), task, trial: trial.map_err(EvalsError::Trial)? })
    }

    /// Replays what was recorded under a name.
    pub async fn replay(
        &self,
        name: &Utf8Path,
        matching: Matching,
        trust: bool,
        stop: &CancellationToken,
    ) -> Result<Recorded, EvalsError> {
        let path = path_of(&self.project.caller, name)?;
        let cassette = self.project.shown(&path);
        let context = Arc::new(self.trial_context(BTreeMap::new(), trust).await?);
        let played = recorded_run::replay(&self.project.root, &path, matching, context, stop).await;
        let (task, trial) = played.map_err(|error| match error {
            ReplayError::Missing => {
                EvalsError::NoRecording { name: name.to_owned(), cassette: cassette.clone() }
            }
            ReplayError::BrokenTask { path, error } => {
                EvalsError::BrokenTask { file: self.project.shown(&path), error }
            }
            ReplayError::Io(error) => error.into(),
            ReplayError::Trial(error) => EvalsError::Trial(error),
        })?;
        Ok(Recorded { cassette, task, trial })
    }
}
