//! A store to try things on, and short words for what is done with it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rehearsal_core::flow::{Flow, parse};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    Actor, AgentName, NewSession, NewTask, Outcome, Run, RunEnd, RunId, RunStart, SessionName, Standing,
    Task, TaskId, Timestamp, Verdict, WorkerId,
};
use rehearsal_store::{
    Change, CommitError, Committed, PostgresStore, SqliteStore, Store, TaskQuery, TimeSource,
};

/// A flow without steps: what an agent did is done.
pub(crate) fn loop_flow() -> Arc<Flow> {
    let text = "
name: loop
start: todo
states:
  todo:
    agent: implementer
    on:
      done: done
      continue: todo
      no_changes: todo
      needs_continuation: todo
      blocked: blocked
      failed: { to: todo, at_most: 3, then: failed }
      crashed: { to: todo, at_most: 3, then: failed }
  blocked: { wait: human }
  done: { end: success }
  failed: { end: failure }
";
    Arc::new(parse(text).unwrap())
}

/// A fresh store.
pub(crate) struct Bench {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) flow: Arc<Flow>,
    now: AtomicI64,
    _keep: Box<dyn Any>,
}

/// A fresh store in a file.
pub(crate) async fn sqlite() -> Option<Bench> {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).await.unwrap();
    Some(Bench {
        store: Arc::new(store),
        flow: loop_flow(),
        now: AtomicI64::new(1_000),
        _keep: Box::new(directory),
    })
}

/// A fresh store in a database of its own, on the server that all tests of this process share.
pub(crate) async fn postgres() -> Option<Bench> {
    let url = crate::server::server()?.database().await.unwrap();
    let store = PostgresStore::open(&url, TimeSource::Given).await.unwrap();
    Some(Bench { store: Arc::new(store), flow: loop_flow(), now: AtomicI64::new(1_000), _keep: Box::new(()) })
}

/// Plays a story on a fresh store; whatever happens in it, the store must be sound at its end.
pub(crate) fn play(make: impl AsyncFnOnce() -> Option<Bench>, story: impl AsyncFnOnce(&Bench)) {
    block_on(async {
        let Some(bench) = make().await else { return };
        story(&bench).await;
        assert_eq!(bench.store.verify().await.unwrap(), Vec::<String>::new());
    });
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn id(text: &str) -> TaskId {
    TaskId::new(text).unwrap()
}

pub(crate) fn run_id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

pub(crate) fn session_name(text: &str) -> SessionName {
    SessionName::new(text).unwrap()
}

pub(crate) fn titled(title: &str) -> NewTask {
    NewTask { title: title.into(), ..NewTask::default() }
}

pub(crate) fn after(dependencies: &[&str]) -> NewTask {
    NewTask { depends_on: dependencies.iter().map(|text| id(text)).collect(), ..titled("later") }
}

pub(crate) fn new_session(name: &str) -> Change {
    Change::AddSession(NewSession {
        name: session_name(name),
        description: "a test".into(),
        context: "be brief".into(),
        criteria: vec!["it works".into()],
    })
}

pub(crate) fn how_it_ended(outcome: Outcome, at: Timestamp) -> RunEnd {
    RunEnd {
        verdict: Verdict { outcome, because: vec!["the test says so".into()] },
        exit: None,
        promise: None,
        cost_usd: None,
        tokens: None,
        turns: None,
        agent_session: None,
        commits: Vec::new(),
        files_changed: Vec::new(),
        said: String::new(),
        model: None,
        denials: Vec::new(),
        tries: 1,
        notices: Vec::new(),
        ended_at: at,
        took_ms: None,
    }
}

impl Bench {
    /// The time, which moves on with every commit.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }

    /// Time goes by.
    pub(crate) fn pass(&self, time: Duration) {
        self.now.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    pub(crate) async fn commit(&self, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError> {
        let at = Timestamp(self.now.fetch_add(1, Ordering::SeqCst) + 1);
        self.store.commit(Actor::User, at, changes).await
    }

    pub(crate) fn adding(&self, name: &str, task: NewTask) -> Change {
        Change::AddTask { task: Box::new(task), id: id(name), flow: Arc::clone(&self.flow) }
    }

    pub(crate) async fn add(&self, name: &str, task: NewTask) -> Result<Task, CommitError> {
        let committed = self.commit(vec![self.adding(name, task)]).await?;
        Ok(committed.into_iter().next().unwrap().task().unwrap())
    }

    pub(crate) async fn change(&self, name: &str, input: TaskInput) -> Result<Task, CommitError> {
        let committed = self.commit(vec![Change::ChangeTask { id: id(name), input }]).await?;
        Ok(committed.into_iter().next().unwrap().task().unwrap())
    }

    /// Claims a task for a run that begins with it.
    pub(crate) async fn claim(&self, name: &str, run: &str) -> Result<Run, CommitError> {
        let task = self.task(name).await;
        let start = self.start_of(&task, run);
        let worker = start.worker.clone();
        let input = TaskInput::Claim { worker, run: start.id.clone() };
        let changes = vec![Change::ChangeTask { id: task.id, input }, Change::StartRun(start)];
        match self.commit(changes).await?.pop() {
            Some(Committed::Run(run)) => Ok(*run),
            other => panic!("not a run: {other:?}"),
        }
    }

    /// How a run of a task would start that is claimed next.
    pub(crate) fn start_of(&self, task: &Task, run: &str) -> RunStart {
        RunStart {
            id: run_id(run),
            task: task.id.clone(),
            session: task.session.clone(),
            fence: task.fence.next(),
            agent: AgentName::new("implementer").unwrap(),
            driver: "scripted".into(),
            model: None,
            worker: WorkerId::new("worker-1").unwrap(),
            iteration: 1,
            started_at: self.now(),
        }
    }

    /// How a run starts under a claim.
    pub(crate) fn start_under(&self, task: &Task, run: &str) -> RunStart {
        RunStart { fence: task.fence, ..self.start_of(task, run) }
    }

    /// Ends a run and what it means for its task.
    pub(crate) async fn end(&self, run: &Run, outcome: Outcome) -> Result<Task, CommitError> {
        let end = Box::new(how_it_ended(outcome.clone(), self.now()));
        let input = TaskInput::EndRun { fence: run.start.fence, outcome };
        let changes = vec![
            Change::EndRun { run: run.start.id.clone(), end },
            Change::ChangeTask { id: run.start.task.clone(), input },
        ];
        Ok(self.commit(changes).await?.pop().unwrap().task().unwrap())
    }

    pub(crate) async fn task(&self, name: &str) -> Task {
        self.store.task(&id(name)).await.unwrap().unwrap()
    }

    /// The id of the task that a worker would take.
    pub(crate) async fn next(&self) -> Option<String> {
        self.store.next_task(None, self.now()).await.unwrap().map(|task| task.id.to_string())
    }

    pub(crate) async fn listed(&self, query: TaskQuery) -> Vec<String> {
        self.store.tasks(&query).await.unwrap().into_iter().map(|task| task.id.to_string()).collect()
    }

    pub(crate) async fn event_names(&self) -> Vec<&'static str> {
        let events = self.store.events(&rehearsal_store::EventQuery::default()).await.unwrap();
        events.iter().map(|event| event.kind.name()).collect()
    }
}

/// The fence under which a task is claimed.
pub(crate) fn is_claimed(task: &Task) -> bool {
    matches!(task.standing, Standing::Claimed(_))
}

/// What a refused commit says.
pub(crate) fn message<T: std::fmt::Debug, E: std::fmt::Display>(result: Result<T, E>) -> String {
    match result {
        Ok(value) => panic!("not refused: {value:?}"),
        Err(error) => error.to_string(),
    }
}
