//! A task and a review in a scratch repository, by the worker that does real ones, with a model that is a script.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::clis::KNOWN;
use rehearsal_agent::environment::Variables;
use rehearsal_agent::probe::Probed;
use rehearsal_core::config::{Profile, QualitySettings, TestingSettings};
use rehearsal_core::flow::parse;
use rehearsal_core::guard::Limits;
use rehearsal_core::{
    Actor, AgentName, Blame, Exit, NewTask, Outcome, OutcomeName, Priority, Promise, RunEnd, RunId, Task,
    TaskId,
};
use rehearsal_engine::{
    AgentSetup, Policy, QueuePolicy, Reach, Role, Roles, SetupError, StopSwitch, Undisturbed, WorkEvent,
    WorkOptions, Worker, Workspace,
};
use rehearsal_forge::{WorktreeSettings, Worktrees};
use rehearsal_git::scratch::{commit_all, init_repository};
use rehearsal_process::processes_of_run;
use rehearsal_stage::{Answered, Report, Script, ScriptedPlay, Stage};
use rehearsal_store::{Change, RunQuery, SqliteStore, Store};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, sleep_until};

use super::profile::{environment, on_stage};
use super::{Ability, CheckError, CheckRow, Part, Seen};
use crate::caller::Caller;
use crate::file::FileError;
use crate::outlet::Destination;
use crate::places::scratch_outside_tmp;
use crate::project::{DIRECTORY, Project};

const SCRIPT: &str = include_str!("stage.yaml");
/// How the tests are run.
const TEST_COMMAND: &str = "sh check";
/// What the test command leaves when it waits.
const WAITING: &str = "waiting";
/// The script that plays the tests. What it leaves says that the agent really ran it; the engine runs no tests here.
const TESTS: &str = "if [ \"$1\" = wait ]; then touch waiting; exec sleep 600; fi\n\
                     grep --quiet hello hello.txt && echo passed >tested.txt && echo passed\n";
const WORK: &str = include_str!("work.yaml");
const REVIEW: &str = include_str!("review.yaml");
/// The tasks, in order: their names, titles and flows.
const TASKS: [(&str, &str, &str, Priority); 3] = [
    (WORKED, "Say hello in hello.txt", WORK, Priority::High),
    (REVIEWED, "Say hello in hello.txt", REVIEW, Priority::Medium),
    (KILLED, "Wait until you are stopped", WORK, Priority::Low),
];
const WORKED: &str = "work";
const REVIEWED: &str = "review";
const KILLED: &str = "kill";
/// A claim that is kept for longer than the check may take.
const LEASE: Duration = Duration::from_secs(600);
/// How often to look whether the command that is to be killed runs.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// All that a tryout needs. It is deleted with it.
pub(super) struct Tryout {
    caller: Caller,
    limit: Duration,
    root: Utf8PathBuf,
    role: Role,
    play: Arc<ScriptedPlay>,
    variables: Variables,
    _stage: Stage,
    _deleted: TempDir,
}

impl Tryout {
    /// Makes a repository whose test fails, and opens the stage.
    pub(super) async fn prepare(
        profile: &Profile,
        project: &Project,
        probed: &Probed,
        limit: Duration,
    ) -> Result<Self, CheckError> {
        let caller = project.caller.clone();
        let (root, deleted) = scratch_outside_tmp("rehearsal-check-")?;
        let [repository, home, temp] = ["repository", "home", "tmp"].map(|name| root.join(name));
        for directory in [&repository, &home, &temp] {
            fs_err::create_dir(directory)?;
        }
        fs_err::write(repository.join("check"), TESTS)?;
        copy_roles(&project.directory().join("agents"), &repository.join(DIRECTORY).join("agents"))?;
        init_repository(&repository).await?;
        commit_all(&repository, "Expect a greeting").await?;
        let script = Script::parse(SCRIPT).map_err(|error| FileError::wrong(error, "stage.yaml"))?;
        let play = Arc::new(ScriptedPlay::new(script, &KNOWN.model_clients()));
        let stage = Stage::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Arc::clone(&play) as _)?;
        let url = format!("http://{}", stage.address());
        let profile = on_stage(profile, &caller, &url, &home, limit / 2)?;
        let variables = environment(&caller, &home, &temp);
        let (ours, clock) = (variables.clone(), Arc::clone(&caller.clock));
        let setup = AgentSetup::of_probed(&profile, probed, ours, clock, &repository, Reach::Stage)?;
        let role = Role { agent: setup.agent(), profile, template: None };
        Ok(Self { caller, limit, root, role, play, variables, _stage: stage, _deleted: deleted })
    }

    /// Has the agent do its part, and says what came of it.
    pub(super) async fn run(self, part: Part, deadline: Instant) -> Result<Vec<CheckRow>, CheckError> {
        let state = self.root.join("state");
        fs_err::create_dir(&state)?;
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(state.as_std_path()).await?);
        self.add_tasks(part, &*store).await?;
        let watched = Watched::default();
        let worker = self.worker(Arc::clone(&store), &watched).await?;
        let is_late = {
            let mut working = Box::pin(worker.run());
            let (is_late, ended) = tokio::select! {
                ended = &mut working => (false, Some(ended)),
                () = watched.command_runs() => (false, None),
                () = sleep_until(deadline) => (true, None),
            };
            watched.stop.now.cancel();
            match ended {
                Some(ended) => ended?,
                None => working.await?,
            };
            is_late
        };
        let mut found = Found { limit: self.limit, is_late, report: self.play.report(), runs: Vec::new() };
        for run in store.runs(&RunQuery::default()).await? {
            let task = store.task(&run.start.task).await?;
            found.runs.extend(task.zip(run.end).map(|(task, end)| (run.start.id, task, end)));
        }
        Ok(found.rows(part))
    }

    async fn add_tasks(&self, part: Part, store: &dyn Store) -> Result<(), CheckError> {
        let is_wanted = |name: &str| part == Part::All || name == REVIEWED;
        let mut changes = Vec::new();
        for (name, title, flow, priority) in TASKS.iter().filter(|(name, ..)| is_wanted(name)) {
            let flow = parse(flow).map_err(|error| FileError::wrong(error, *name))?;
            let task = NewTask { title: (*title).to_owned(), priority: *priority, ..NewTask::default() };
            let id = TaskId::new(*name).map_err(|error| std::io::Error::other(error.to_string()))?;
            changes.push(Change::AddTask { task: Box::new(task), id, flow: Arc::new(flow) });
        }
        store.commit(Actor::User, self.caller.now(), changes).await?;
        Ok(())
    }

    async fn worker(&self, store: Arc<dyn Store>, watched: &Watched) -> Result<Worker, CheckError> {
        let repository = self.root.join("repository");
        let settings = WorktreeSettings { setup: None, keep_warm: 0 };
        let worktrees = Arc::new(Worktrees::open(&repository, &self.root.join("worktrees"), settings)?);
        let destination = Destination::ours(&repository, "main", self.root.join("remote.git"));
        let (outlet, _) = destination.open().await?;
        Ok(Worker {
            store,
            clock: Arc::clone(&self.caller.clock),
            roles: Arc::new(OneRole(self.role.clone())),
            workspace: Workspace::Worktrees { worktrees, outlet },
            state_dir: self.root.join("state"),
            testing: TestingSettings { command: Some(TEST_COMMAND.to_owned()), ..TestingSettings::default() },
            quality: QualitySettings::default().rules(),
            variables: self.variables.clone(),
            options: WorkOptions {
                policy: Policy::Queue(QueuePolicy {
                    at_once: 1,
                    agents: None,
                    session: None,
                    until_idle: true,
                    once: false,
                }),
                max_cost: None,
                lease: LEASE,
                limits: Limits::default(),
                look_every: None,
                seed: None,
            },
            reporter: watched.reporter(),
            stop: watched.stop.clone(),
            moments: Arc::new(Undisturbed),
        })
    }
}

/// The user's own roles of the crew.
fn copy_roles(from: &Utf8Path, to: &Utf8Path) -> std::io::Result<()> {
    let Ok(entries) = from.read_dir_utf8() else { return Ok(()) };
    fs_err::create_dir_all(to)?;
    for entry in entries.flatten().filter(|entry| entry.path().is_file()) {
        fs_err::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// One agent, whatever name it is called by.
struct OneRole(Role);

#[async_trait]
impl Roles for OneRole {
    async fn role(&self, _name: &AgentName) -> Option<Result<Role, SetupError>> {
        Some(Ok(self.0.clone()))
    }
}

/// What is seen of the worker while it works.
#[derive(Default)]
struct Watched {
    stop: StopSwitch,
    /// Where the agent is that is to be killed.
    place: Arc<Mutex<Option<Utf8PathBuf>>>,
}

impl Watched {
    fn reporter(&self) -> rehearsal_engine::WorkReporter {
        let (stop, place) = (self.stop.clone(), Arc::clone(&self.place));
        Arc::new(move |event| match event {
            WorkEvent::Prepared { task, worktree, .. } if task.as_str() == KILLED => {
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(worktree.into());
            }
            // What is wrong with the system is so for the other tasks, too: nothing is waited for.
            WorkEvent::RunEnded { outcome, .. } if outcome.blame() == Blame::System => stop.now.cancel(),
            _ => {}
        })
    }

    /// Returns when the command runs during which the agent is to be killed.
    async fn command_runs(&self) {
        loop {
            let place = self.place.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if place.is_some_and(|place| place.join(WAITING).exists()) {
                return;
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

/// What came of the tasks.
struct Found {
    limit: Duration,
    /// Whether it was stopped because it took too long.
    is_late: bool,
    report: Report,
    runs: Vec<(RunId, Task, RunEnd)>,
}

impl Found {
    fn rows(&self, part: Part) -> Vec<CheckRow> {
        let mut rows = vec![self.confinement()];
        if part == Part::All {
            let worked = self.run_of(WORKED);
            let changed = |file: &str| {
                worked.is_some_and(|(_, _, end)| end.files_changed.iter().any(|changed| changed == file))
            };
            rows.push(self.row(Ability::Edits, changed("hello.txt"), WORKED, "edit"));
            rows.push(self.row(Ability::RunsTests, changed("tested.txt"), WORKED, "test"));
            rows.push(self.commits());
            let reported = worked.is_some_and(|(_, _, end)| matches!(end.promise, Some(Promise::Done(_))));
            rows.push(self.row(Ability::Reports, reported, WORKED, "report"));
        }
        let decided = self.run_of(REVIEWED).is_some_and(|(_, task, _)| task.is_done());
        rows.push(self.row(Ability::Decides, decided, REVIEWED, "decide"));
        if part == Part::All {
            rows.push(self.kill());
        }
        rows
    }

    fn run_of(&self, task: &str) -> Option<&(RunId, Task, RunEnd)> {
        self.runs.iter().find(|(_, of, _)| of.id.as_str() == task)
    }

    /// Whether the first run started at all.
    fn confinement(&self) -> CheckRow {
        let outcome = self.runs.iter().map(|(_, _, end)| &end.verdict.outcome);
        let mut refused = outcome.filter(|outcome| outcome.name() == OutcomeName::SandboxUnavailable);
        let seen =
            refused.next().map_or(Seen::Works, |outcome| Seen::NotStarted { error: outcome.to_string() });
        CheckRow { what: Ability::Confinement, ok: seen == Seen::Works, seen }
    }

    fn row(&self, what: Ability, ok: bool, task: &str, turn: &str) -> CheckRow {
        let seen = if ok { Seen::Works } else { self.why_not(task, turn) };
        CheckRow { what, ok, seen }
    }

    /// What the tool returned that the turn of the model wanted; or how the run ended.
    fn why_not(&self, task: &str, turn: &str) -> Seen {
        let Some((_, _, end)) = self.run_of(task) else {
            return if self.is_late { self.too_long() } else { Seen::NotTried };
        };
        if let Some(returned) = self.returned(turn) {
            return Seen::Refused { returned };
        }
        let outcome = &end.verdict.outcome;
        match outcome {
            Outcome::Cancelled if self.is_late => self.too_long(),
            Outcome::TimedOut { after_ms, .. } => Seen::TooLong { limit_ms: *after_ms },
            // A reviewer that ended well and gave no decision has said something else.
            Outcome::ProtocolError { .. }
                if end.exit.is_some_and(Exit::is_success) && !end.said.is_empty() =>
            {
                Seen::NotDone { said: end.said.clone() }
            }
            _ if outcome.blame() == Blame::Nobody => Seen::NotDone { said: end.said.clone() },
            _ => Seen::Failed { outcome: outcome.to_string() },
        }
    }

    fn too_long(&self) -> Seen {
        Seen::TooLong { limit_ms: u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX) }
    }

    /// What the tools of a turn returned, if any were called.
    fn returned(&self, turn: &str) -> Option<String> {
        let number = self.report.turns.iter().find(|it| it.name.as_deref() == Some(turn))?.turn;
        let mut main = self.report.exchanges.iter().filter(|exchange| exchange.lane == "main");
        main.find(|exchange| exchange.answered == Answered::Turn { turn: number })?;
        main.next().map(|next| next.returned.clone()).filter(|returned| !returned.is_empty())
    }

    fn commits(&self) -> CheckRow {
        let worked = self.run_of(WORKED);
        let (by_itself, for_it) = worked.map_or((false, false), |(_, task, end)| {
            (!end.commits.is_empty(), task.is_done() && !end.files_changed.is_empty())
        });
        let row = self.row(Ability::Commits, by_itself, WORKED, "commit");
        if !by_itself && for_it { CheckRow { ok: true, seen: Seen::CommittedForIt, ..row } } else { row }
    }

    fn kill(&self) -> CheckRow {
        let seen = match self.run_of(KILLED) {
            None => self.why_not(KILLED, "wait"),
            Some((run, _, end)) => match processes_of_run(run).len() {
                0 if end.verdict.outcome.name() == OutcomeName::Cancelled && !self.is_late => Seen::Works,
                0 => self.why_not(KILLED, "wait"),
                processes => Seen::Left { processes },
            },
        };
        CheckRow { what: Ability::EndsWhenKilled, ok: seen == Seen::Works, seen }
    }
}
