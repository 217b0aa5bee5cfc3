//! Random changes, on the store and on a model that fits on a page. Every answer must be the same, word for word.

mod claims;

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rehearsal_core::flow::Flow;
use rehearsal_core::transition::{TaskInput, transition};
use rehearsal_core::{
    Actor, Fence, NewTask, Outcome, Priority, Run, Standing, Task, TaskEdit, TaskId, Timestamp, Wait,
    WorkerId,
};
use rehearsal_store::{Change, Committed, EventQuery, RunQuery, Scope, TaskQuery};

use claims::{Ask, Claims};

use crate::bench::{Bench, block_on, how_it_ended, id, new_session, run_id, session_name};

const CASES: u32 = 40;
const SESSIONS: [&str; 2] = ["alpha", "beta"];

pub(crate) fn compare_with(make: impl AsyncFn() -> Option<Bench>) {
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let steps = vec((op(), prop_oneof![3 => 0_i64..10, 1 => 0_i64..90_000]), 20..50);
    let result = runner.run(&steps, |steps| {
        block_on(async {
            if let Some(bench) = make().await {
                play(&bench, steps).await;
            }
        });
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// What is done, as the dice have it. A [`Pick`] becomes an id when it is known what there is.
#[derive(Debug, Clone)]
enum Op {
    AddSession(usize),
    AddProgress(usize),
    AddTasks(Vec<ThrownTask>),
    Depend(Pick, Vec<Pick>),
    Prioritise(Pick, Priority),
    /// Claims the next task, or some task, and starts its run.
    Begin(Option<Pick>),
    StartRun(Pick),
    /// Ends a run and the claim of its task, the fence off by so much.
    Complete(Pick, i64, Outcome),
    EndRun(Pick),
    Release(Pick, i64),
    /// Another process adopts a claim from this one, the fence off by so much.
    Adopt(Pick, &'static str, i64),
    Plain(Pick, TaskInput),
    /// Takes what is next, under a lease.
    Take(Ask),
    /// Starts the run of a claim that was taken.
    StartClaimed(Pick),
    Renew(Pick, i64),
    /// Holds one of the lanes, for so long.
    Hold(usize, Option<i64>),
    Free(usize),
}

/// Its id, its session, its priority, what it depends on, and what it touches.
type ThrownTask = (Pick, Option<usize>, Priority, Vec<Pick>, Option<&'static str>);

/// A throw: mostly one of what is there, sometimes one that is not.
type Pick = u16;

fn op() -> impl Strategy<Value = Op> {
    let pick = any::<Pick>;
    let picks = || prop_oneof![2 => Just(Vec::new()), 1 => vec(pick(), 1..3)];
    let priority = || prop::sample::select(Priority::ALL.to_vec());
    let session = prop_oneof![3 => Just(None), 3 => Just(Some(0)), 1 => Just(Some(1))];
    let touches = prop_oneof![6 => Just(None), 1 => Just(Some("src/a.rs")), 1 => Just(Some("src/*.rs"))];
    let task = (pick(), session, priority(), picks(), touches);
    let outcome = prop::sample::select(vec![
        Outcome::Done,
        Outcome::Done,
        Outcome::NoChanges,
        Outcome::Cancelled,
        Outcome::Blocked { reason: "a \"key\"".into() },
        Outcome::RateLimited { until: Some(Timestamp(100_000)) },
        Outcome::Overloaded,
    ]);
    let off = || prop_oneof![9 => Just(0_i64), 1 => -1_i64..=1];
    let worker = prop::sample::select(vec!["worker-1", "worker-2", "worker-3"]);
    let plain = prop::sample::select(vec![
        TaskInput::Block { reason: "a key".into() },
        TaskInput::Unblock,
        TaskInput::Finish,
        TaskInput::Cancel,
        TaskInput::Retry,
    ]);
    prop_oneof![
        2 => (0_usize..2).prop_map(Op::AddSession),
        1 => (0_usize..2).prop_map(Op::AddProgress),
        6 => vec(task, 1..4).prop_map(Op::AddTasks),
        3 => (pick(), picks()).prop_map(|(task, on)| Op::Depend(task, on)),
        1 => (pick(), priority()).prop_map(|(task, priority)| Op::Prioritise(task, priority)),
        6 => prop::option::weighted(0.3, pick()).prop_map(Op::Begin),
        1 => pick().prop_map(Op::StartRun),
        5 => (pick(), off(), outcome).prop_map(|(run, off, outcome)| Op::Complete(run, off, outcome)),
        1 => pick().prop_map(Op::EndRun),
        1 => (pick(), off()).prop_map(|(task, off)| Op::Release(task, off)),
        2 => (pick(), worker, off()).prop_map(|(task, from, off)| Op::Adopt(task, from, off)),
        8 => (pick(), plain).prop_map(|(task, input)| Op::Plain(task, input)),
        8 => ask().prop_map(Op::Take),
        3 => pick().prop_map(Op::StartClaimed),
        2 => (pick(), off()).prop_map(|(task, off)| Op::Renew(task, off)),
        1 => (0_usize..4, prop::option::of(0_i64..30_000)).prop_map(|(lane, time)| Op::Hold(lane, time)),
        2 => (0_usize..4).prop_map(Op::Free),
    ]
}

fn ask() -> impl Strategy<Value = Ask> {
    let session = prop_oneof![4 => Just(None), 1 => (0_usize..2).prop_map(Some)];
    let agent = prop_oneof![6 => Just(None), 1 => Just(Some("implementer")), 1 => Just(Some("gatekeeper"))];
    let few = || prop::option::weighted(0.2, 1_u32..4);
    let interval = prop_oneof![5 => Just(0_u64), 1 => Just(5_u64)];
    (session, agent, few(), few(), interval, prop::bool::weighted(0.8)).prop_map(
        |(session, agent, at_once, agent_at_once, interval_ms, may_take_over)| Ask {
            session,
            agent,
            at_once,
            agent_at_once,
            interval_ms,
            may_take_over,
        },
    )
}

/// All that the store should know. `Clone`, so that what is refused half-way can be undone.
#[derive(Clone, Default)]
struct Model {
    sessions: Vec<&'static str>,
    /// In the order of arrival.
    tasks: Vec<Task>,
    runs: Vec<Run>,
    journal: usize,
    events: usize,
    claims: Claims,
}

async fn play(bench: &Bench, steps: Vec<(Op, i64)>) {
    let mut model = Model::default();
    let mut now = Timestamp(0);
    // Begins with something to work on, or most throws would miss.
    let first = |session: Option<usize>| (1, session, Priority::Medium, Vec::new(), None);
    let beginning = [Op::AddSession(0), Op::AddTasks(vec![first(None), first(Some(0)), first(None)])];
    for (op, passed) in beginning.into_iter().map(|op| (op, 1)).chain(steps) {
        now = Timestamp(now.0 + passed);
        if let Op::Renew(pick, off) = op {
            let id = model.pick_task(pick);
            let fence = Fence(model.fence_of(&id).0 + off);
            let renewed = bench.store.renew(&[(id.clone(), fence)], claims::LEASE, now).await.unwrap();
            assert_eq!(renewed, model.renew(&id, fence, now));
        }
        let changes = model.changes_for(&op, bench, now);
        let mut next = model.clone();
        let expected: Result<Vec<Committed>, String> =
            changes.iter().map(|change| next.apply(change, &bench.flow, now)).collect();
        let answer = bench.store.commit(Actor::User, now, changes).await;
        assert_eq!(
            answer.map_err(|error| without_way(error.to_string())),
            expected.clone().map_err(without_way)
        );
        if expected.is_ok() {
            model = next;
        }
        compare_queues(bench, &model, now).await;
        compare_claims(bench, &model, &op, now).await;
    }
    compare_all(bench, &model).await;
}

/// Where there are several ways around, any of them may be shown.
fn without_way(message: String) -> String {
    match message.split_once(": ") {
        Some((what, _)) if what == "these tasks would wait for each other" => what.to_owned(),
        _ => message,
    }
}

async fn compare_queues(bench: &Bench, model: &Model, now: Timestamp) {
    for session in [None, Some("alpha"), Some("beta")] {
        let name = session.map(session_name);
        let next = bench.store.next_task(name.as_ref(), now).await.unwrap();
        assert_eq!(next.as_ref(), model.next(session, now), "next of {session:?} at {now}");
    }
}

async fn compare_claims(bench: &Bench, model: &Model, op: &Op, now: Timestamp) {
    let store = &bench.store;
    assert_eq!(store.next_wake(now).await.unwrap(), model.next_wake(now));
    assert_eq!(store.leases().await.unwrap(), model.leases());
    if let Op::Take(ask) = op {
        let limits = ask.limits();
        assert_eq!(store.situation(&limits, now).await.unwrap(), model.situation(&limits, now));
        if let Some(task) = model.tasks.last() {
            let told = store.hindrance(task, &limits, now).await.unwrap();
            assert_eq!(told, model.hindrance(task, &limits, &bench.flow, now));
        }
    }
}

async fn compare_all(bench: &Bench, model: &Model) {
    let store = &bench.store;
    let listed = store.tasks(&TaskQuery::default()).await.unwrap();
    assert_eq!(listed.iter().collect::<Vec<_>>(), model.ordered());
    let mut words: BTreeMap<String, u64> = BTreeMap::new();
    for task in &model.tasks {
        *words.entry(task.status().to_owned()).or_default() += 1;
    }
    assert_eq!(store.count_tasks(None).await.unwrap().by_status, words);
    let mut runs = store.runs(&RunQuery { scope: Scope::All, limit: None }).await.unwrap();
    runs.reverse();
    assert_eq!(runs, model.runs);
    assert_eq!(store.events(&EventQuery::default()).await.unwrap().len(), model.events);
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
}

impl Model {
    /// The real changes behind the throws.
    fn changes_for(&self, op: &Op, bench: &Bench, now: Timestamp) -> Vec<Change> {
        match op {
            Op::AddSession(number) => vec![new_session(SESSIONS[*number])],
            Op::AddProgress(number) => {
                let session = session_name(SESSIONS[*number]);
                vec![Change::AddProgress { session, run: None, text: "went on".into() }]
            }
            Op::AddTasks(tasks) => vec![self.adding(tasks, bench)],
            Op::Depend(task, on) => {
                let depends_on = Some(on.iter().map(|pick| self.pick_task(*pick)).collect());
                let edit = TaskEdit { depends_on, ..TaskEdit::default() };
                vec![Change::ChangeTask { id: self.pick_task(*task), input: TaskInput::Edit { edit } }]
            }
            Op::Prioritise(task, priority) => {
                let edit = TaskEdit { priority: Some(*priority), ..TaskEdit::default() };
                vec![Change::ChangeTask { id: self.pick_task(*task), input: TaskInput::Edit { edit } }]
            }
            Op::Begin(_) | Op::StartRun(_) | Op::Complete(..) | Op::EndRun(_) => {
                self.run_changes_for(op, bench, now)
            }
            Op::Take(ask) => vec![self.asking(ask)],
            Op::StartClaimed(pick) => self.starting_claimed(*pick, bench, now).into_iter().collect(),
            Op::Renew(..) => Vec::new(),
            Op::Hold(lane, time) => {
                let hold = claims::hold(time.map(|time| Timestamp(now.0 + time)));
                vec![Change::HoldLane { lane: claims::lane(*lane), hold }]
            }
            Op::Free(lane) => vec![Change::FreeLane { lane: claims::lane(*lane) }],
            Op::Release(pick, off) => {
                let id = self.pick_task(*pick);
                let fence = Fence(self.fence_of(&id).0 + off);
                vec![Change::ChangeTask { id, input: TaskInput::Release { fence } }]
            }
            Op::Adopt(pick, from, off) => {
                let id = self.pick_task(*pick);
                let (from, by) = (WorkerId::new(*from).unwrap(), WorkerId::new("worker-3").unwrap());
                let fence = Fence(self.fence_of(&id).0 + off);
                vec![Change::ChangeTask { id, input: TaskInput::Adopt { fence, from, by } }]
            }
            Op::Plain(pick, input) => {
                vec![Change::ChangeTask { id: self.pick_task(*pick), input: input.clone() }]
            }
        }
    }

    fn run_changes_for(&self, op: &Op, bench: &Bench, now: Timestamp) -> Vec<Change> {
        match op {
            Op::Begin(pick) => {
                let next = self.next(None, now).map(|task| task.id.clone());
                let id = pick.map(|pick| self.pick_task(pick)).or(next).unwrap_or_else(|| task_id(0));
                let run = run_id(&format!("r{}", self.runs.len()));
                let worker = WorkerId::new("worker-1").unwrap();
                let claim = Change::ChangeTask { id: id.clone(), input: TaskInput::Claim { worker, run } };
                let fence = self.fence_of(&id).next();
                vec![claim, self.starting(&id, self.runs.len(), fence, bench, now)]
            }
            Op::StartRun(pick) => {
                let id = self.pick_task(*pick);
                vec![self.starting(&id, usize::from(*pick) % 7, self.fence_of(&id), bench, now)]
            }
            Op::Complete(pick, off, outcome) => {
                let Some(run) = self.pick_run(*pick) else {
                    return vec![ending("r0", now)];
                };
                let fence = Fence(run.start.fence.0 + off);
                let input = TaskInput::EndRun { fence, outcome: outcome.clone() };
                vec![
                    ending(run.start.id.as_str(), now),
                    Change::ChangeTask { id: run.start.task.clone(), input },
                ]
            }
            Op::EndRun(pick) => {
                vec![ending(self.pick_run(*pick).map_or("r0", |run| run.start.id.as_str()), now)]
            }
            other => unreachable!("not about a run: {other:?}"),
        }
    }

    fn adding(&self, tasks: &[ThrownTask], bench: &Bench) -> Change {
        let new = |(place, (pick, session, priority, on, touches)): (usize, &ThrownTask)| {
            let id = if pick % 32 == 0 { self.pick_task(*pick) } else { task_id(self.tasks.len() + place) };
            // Sometimes on another new one, before or after it.
            let depends_on = on.iter().map(|pick| match pick % 4 {
                0 => task_id(self.tasks.len() + usize::from(*pick) % tasks.len()),
                _ => self.pick_task(*pick),
            });
            let task = NewTask {
                title: format!("task {pick}"),
                session: session.map(|number| session_name(SESSIONS[number])),
                priority: *priority,
                depends_on: depends_on.collect(),
                touches: touches.iter().map(ToString::to_string).collect(),
                ..NewTask::default()
            };
            (id, task)
        };
        Change::AddTasks { tasks: tasks.iter().enumerate().map(new).collect(), flow: Arc::clone(&bench.flow) }
    }

    fn starting(&self, id: &TaskId, run: usize, fence: Fence, bench: &Bench, now: Timestamp) -> Change {
        let known = self.task(id).cloned();
        let task = known.unwrap_or_else(|| Task::new(NewTask::default(), id.clone(), &bench.flow, now));
        let start = bench.start_of(&task, &format!("r{run}"));
        Change::StartRun(rehearsal_core::RunStart { fence, started_at: now, ..start })
    }

    fn pick_task(&self, pick: Pick) -> TaskId {
        match self.tasks.len() {
            0 => task_id(0),
            _ if pick.is_multiple_of(16) => task_id(999),
            count => self.tasks[usize::from(pick / 16) % count].id.clone(),
        }
    }

    /// Mostly one that still runs.
    fn pick_run(&self, pick: Pick) -> Option<&Run> {
        let running: Vec<&Run> = self.runs.iter().filter(|run| run.end.is_none()).collect();
        match running.len() {
            0 => self.runs.last(),
            _ if pick.is_multiple_of(16) => self.runs.first(),
            count => Some(running[usize::from(pick / 16) % count]),
        }
    }

    fn fence_of(&self, id: &TaskId) -> Fence {
        self.task(id).map_or(Fence(0), |task| task.fence)
    }

    fn apply(&mut self, change: &Change, flow: &Flow, now: Timestamp) -> Result<Committed, String> {
        let committed = match change {
            Change::AddSession(new) => {
                let name = SESSIONS.into_iter().find(|name| *name == new.name.as_str()).unwrap();
                if self.sessions.contains(&name) {
                    return Err(format!("session `{name}` already exists"));
                }
                self.sessions.push(name);
                Committed::Session(rehearsal_core::Session {
                    name: new.name.clone(),
                    description: new.description.clone(),
                    context: new.context.clone(),
                    criteria: new.criteria.clone(),
                    created_at: now,
                })
            }
            Change::AddProgress { session, run, text } => {
                self.known(session.as_str())?;
                self.journal += 1;
                let (run, text) = (run.clone(), text.clone());
                Committed::Progress(rehearsal_core::ProgressEntry { at: now, run, text })
            }
            Change::AddTasks { tasks, .. } => return self.add_tasks(tasks, flow, now),
            Change::ChangeTask { id, input } => {
                Committed::Task(Box::new(self.change_task(id, input, flow, now)?))
            }
            Change::StartRun(start) => {
                if self.runs.iter().any(|run| run.start.id == start.id) {
                    return Err(format!("id `{}` is already taken", start.id));
                }
                let Some(task) = self.task(&start.task) else {
                    return Err(format!("unknown task `{}`", start.task));
                };
                let is_own = matches!(&task.standing, Standing::Claimed(claim) if claim.run == start.id);
                if !is_own || task.fence != start.fence {
                    let (id, given, current) = (&task.id, start.fence, task.fence);
                    return Err(format!("fence {given} of task `{id}` is stale: it is {current} now"));
                }
                self.runs.push(Run { start: start.clone(), end: None });
                Committed::Run(Box::new(self.runs.last().unwrap().clone()))
            }
            Change::EndRun { run, end } => {
                let found = self.runs.iter_mut().find(|known| known.start.id == *run);
                let found = found.ok_or_else(|| format!("unknown run `{run}`"))?;
                if found.end.is_some() {
                    return Err(format!("run `{run}` has already ended"));
                }
                found.end = Some((**end).clone());
                Committed::Run(Box::new(found.clone()))
            }
            Change::ClaimNext(request) => {
                return Ok(Committed::Claimed(self.claim_next(request, flow, now)));
            }
            Change::HoldLane { lane, hold } => {
                self.hold(lane, hold);
                Committed::Lane
            }
            Change::FreeLane { lane } if self.free(lane) => Committed::Lane,
            Change::FreeLane { .. } => return Ok(Committed::Lane),
            Change::EditSession { .. } | Change::AddTask { .. } | Change::AddTestRun { .. } => {
                unreachable!("not among the dice")
            }
        };
        self.events += 1;
        Ok(committed)
    }

    fn add_tasks(
        &mut self,
        new: &[(TaskId, NewTask)],
        flow: &Flow,
        now: Timestamp,
    ) -> Result<Committed, String> {
        if let Some((id, _)) = new.iter().find(|(id, task)| task.depends_on.contains(id)) {
            return Err(format!("task `{id}` cannot depend on itself"));
        }
        for (place, (id, _)) in new.iter().enumerate() {
            if new[..place].iter().any(|(other, _)| other == id) {
                return Err(format!("id `{id}` is already taken"));
            }
        }
        if let Some((id, _)) = new.iter().find(|(id, _)| self.task(id).is_some()) {
            return Err(format!("id `{id}` is already taken"));
        }
        for (_, task) in new {
            if let Some(session) = &task.session {
                self.known(session.as_str())?;
            }
        }
        let mut next = self.clone();
        next.tasks.extend(new.iter().map(|(id, task)| Task::new(task.clone(), id.clone(), flow, now)));
        for (id, task) in new {
            next.check_known(id, &task.depends_on)?;
        }
        for (id, _) in new {
            next.check_cycle(id)?;
        }
        next.events += new.len();
        *self = next;
        Ok(Committed::Tasks(self.tasks[self.tasks.len() - new.len()..].to_vec()))
    }

    fn change_task(
        &mut self,
        id: &TaskId,
        input: &TaskInput,
        flow: &Flow,
        now: Timestamp,
    ) -> Result<Task, String> {
        let place = self.tasks.iter().position(|task| task.id == *id);
        let place = place.ok_or_else(|| format!("unknown task `{id}`"))?;
        let after =
            transition(&self.tasks[place], input, flow, now).map_err(|refusal| refusal.to_string())?;
        let before = std::mem::replace(&mut self.tasks[place], after.clone());
        let changed = before.depends_on != after.depends_on;
        self.end_lease_of(&before, &after);
        if changed {
            self.check_known(id, &after.depends_on)?;
            self.check_cycle(id)?;
        }
        Ok(after)
    }

    fn task(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == *id)
    }

    fn known(&self, session: &str) -> Result<(), String> {
        let is_known = self.sessions.contains(&session);
        is_known.then_some(()).ok_or_else(|| format!("unknown session `{session}`"))
    }

    fn check_known(&self, id: &TaskId, dependencies: &[TaskId]) -> Result<(), String> {
        match dependencies.iter().find(|dependency| self.task(dependency).is_none()) {
            Some(unknown) => Err(format!("task `{id}` depends on `{unknown}`, which does not exist")),
            None => Ok(()),
        }
    }

    /// Depth first, as the dependencies are written.
    fn check_cycle(&self, start: &TaskId) -> Result<(), String> {
        fn walk(model: &Model, way: &mut Vec<TaskId>) -> Option<Vec<TaskId>> {
            let here = way.last().cloned()?;
            for next in &model.task(&here)?.depends_on {
                if let Some(place) = way.iter().position(|id| id == next) {
                    return Some(way[place..].iter().chain([next]).cloned().collect());
                }
                way.push(next.clone());
                if let Some(cycle) = walk(model, way) {
                    return Some(cycle);
                }
                way.pop();
            }
            None
        }
        match walk(self, &mut vec![start.clone()]) {
            None => Ok(()),
            Some(cycle) => {
                let cycle: Vec<String> = cycle.iter().map(|id| format!("`{id}`")).collect();
                Err(format!("these tasks would wait for each other: {}", cycle.join(" -> ")))
            }
        }
    }

    fn ordered(&self) -> Vec<&Task> {
        let mut tasks: Vec<&Task> = self.tasks.iter().collect();
        tasks.sort_by_key(|task| (task.priority, task.created_at));
        tasks
    }

    fn next(&self, session: Option<&str>, now: Timestamp) -> Option<&Task> {
        self.ordered().into_iter().find(|task| {
            self.is_claimable(task, now)
                && session.is_none_or(|name| task.session.as_ref().is_some_and(|of| of.as_str() == name))
        })
    }

    fn is_claimable(&self, task: &Task, now: Timestamp) -> bool {
        let is_claimable = match &task.standing {
            Standing::Ready => true,
            Standing::Waiting(Wait { until: Some(until), .. }) => *until <= now,
            _ => false,
        };
        is_claimable && self.has_all_it_needs(task)
    }

    fn has_all_it_needs(&self, task: &Task) -> bool {
        task.depends_on.iter().all(|id| self.task(id).is_some_and(Task::is_done))
    }
}

fn task_id(number: usize) -> TaskId {
    id(&format!("t{number}"))
}

fn ending(run: &str, now: Timestamp) -> Change {
    Change::EndRun { run: run_id(run), end: Box::new(how_it_ended(Outcome::Done, now)) }
}
