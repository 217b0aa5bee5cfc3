//! Random changes, on the store and on a model that fits on a page. Every answer must be the same, word for word.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rehearsal_core::flow::Flow;
use rehearsal_core::transition::{TaskInput, transition};
use rehearsal_core::{
    Actor, Fence, NewTask, Outcome, Priority, Run, RunId, Standing, Task, TaskEdit, TaskId, Timestamp, Wait,
    WorkerId,
};
use rehearsal_store::{Change, Committed, EventQuery, RunQuery, Scope, TaskQuery};

use crate::bench::{Bench, block_on, how_it_ended, new_session, session_name};

const CASES: u32 = 40;
const SESSIONS: [&str; 2] = ["alpha", "beta"];

pub(crate) fn compare_with(make: impl AsyncFn() -> Bench) {
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let steps = vec((vec(change(), 1..4), 0_i64..200_000), 1..25);
    let result = runner.run(&steps, |steps| {
        block_on(async { play(&make().await, steps).await });
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// A change as the dice have it: small numbers stand for ids.
#[derive(Debug, Clone)]
enum Op {
    AddSession(usize),
    AddProgress(usize),
    AddTasks(Vec<(u8, Option<usize>, Priority, Vec<u8>)>),
    Change(u8, Input),
    StartRun(u8),
    EndRun(u8),
}

#[derive(Debug, Clone)]
enum Input {
    Depend(Vec<u8>),
    Prioritise(Priority),
    /// Claims, and means this run.
    Claim(u8),
    /// The fence as it is, off by so much.
    End(i64, Outcome),
    Release(i64),
    Block,
    Unblock,
    Finish,
    Cancel,
    Retry,
}

fn change() -> impl Strategy<Value = Op> {
    let priority = || prop::sample::select(Priority::ALL.to_vec());
    let ids = || vec(0_u8..8, 0..3);
    let task = (0_u8..8, prop::option::weighted(0.5, 0_usize..2), priority(), ids());
    let outcome = prop::sample::select(vec![
        Outcome::Done,
        Outcome::NoChanges,
        Outcome::Cancelled,
        Outcome::Blocked { reason: "a \"key\"".into() },
        Outcome::RateLimited { until: Some(Timestamp(100_000)) },
        Outcome::Overloaded,
        Outcome::Approved,
    ]);
    let off = || prop_oneof![9 => Just(0_i64), 1 => -1_i64..=1];
    let input = prop_oneof![
        ids().prop_map(Input::Depend),
        priority().prop_map(Input::Prioritise),
        (0_u8..6).prop_map(Input::Claim),
        (off(), outcome).prop_map(|(off, outcome)| Input::End(off, outcome)),
        off().prop_map(Input::Release),
        Just(Input::Block),
        Just(Input::Unblock),
        Just(Input::Finish),
        Just(Input::Cancel),
        Just(Input::Retry),
    ];
    prop_oneof![
        1 => (0_usize..2).prop_map(Op::AddSession),
        1 => (0_usize..2).prop_map(Op::AddProgress),
        3 => vec(task, 1..4).prop_map(Op::AddTasks),
        8 => (0_u8..8, input).prop_map(|(id, input)| Op::Change(id, input)),
        2 => (0_u8..8).prop_map(Op::StartRun),
        2 => (0_u8..6).prop_map(Op::EndRun),
    ]
}

fn task_id(number: u8) -> TaskId {
    TaskId::new(format!("t{number}")).unwrap()
}

fn new_run_id(number: u8) -> RunId {
    RunId::new(format!("r{number}")).unwrap()
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
}

async fn play(bench: &Bench, steps: Vec<(Vec<Op>, i64)>) {
    let mut model = Model::default();
    let mut now = Timestamp(0);
    for (ops, passed) in steps {
        now = Timestamp(now.0 + passed);
        // The changes are made out before any of them is applied: as a caller would, from what it knows.
        let changes: Vec<Change> = ops.iter().map(|op| model.change_for(op, bench, now)).collect();
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
    /// The real change behind the numbers.
    fn change_for(&self, op: &Op, bench: &Bench, now: Timestamp) -> Change {
        match op {
            Op::AddSession(number) => new_session(SESSIONS[*number]),
            Op::AddProgress(number) => Change::AddProgress {
                session: session_name(SESSIONS[*number]),
                run: None,
                text: "went on".into(),
            },
            Op::AddTasks(tasks) => {
                let new =
                    |(number, session, priority, depends_on): &(u8, Option<usize>, Priority, Vec<u8>)| {
                        let task = NewTask {
                            title: format!("task {number}"),
                            session: session.map(|number| session_name(SESSIONS[number])),
                            priority: *priority,
                            depends_on: depends_on.iter().map(|number| task_id(*number)).collect(),
                            ..NewTask::default()
                        };
                        (task_id(*number), task)
                    };
                Change::AddTasks { tasks: tasks.iter().map(new).collect(), flow: Arc::clone(&bench.flow) }
            }
            Op::Change(number, input) => {
                let fence = self.task(&task_id(*number)).map_or(Fence(0), |task| task.fence);
                Change::ChangeTask { id: task_id(*number), input: input_for(input, fence) }
            }
            Op::StartRun(number) => {
                let Some(task) = self.task(&task_id(*number)) else {
                    return Change::ChangeTask { id: task_id(*number), input: TaskInput::Finish };
                };
                let run = match &task.standing {
                    Standing::Claimed(claim) => claim.run.to_string(),
                    _ => "r0".into(),
                };
                let mut start = bench.start_of(task, &run);
                start.fence = task.fence;
                start.started_at = now;
                Change::StartRun(start)
            }
            Op::EndRun(number) => {
                Change::EndRun { run: new_run_id(*number), end: Box::new(how_it_ended(Outcome::Done, now)) }
            }
        }
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
                let task = self.task(&start.task).unwrap();
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
            Change::EditSession { .. } | Change::AddTask { .. } => {
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
        let changed = self.tasks[place].depends_on != after.depends_on;
        self.tasks[place] = after.clone();
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
            let is_claimable = match &task.standing {
                Standing::Ready => true,
                Standing::Waiting(Wait { until: Some(until), .. }) => *until <= now,
                _ => false,
            };
            is_claimable
                && session.is_none_or(|name| task.session.as_ref().is_some_and(|of| of.as_str() == name))
                && task.depends_on.iter().all(|id| self.task(id).is_some_and(Task::is_done))
        })
    }
}

fn input_for(input: &Input, fence: Fence) -> TaskInput {
    match input {
        Input::Depend(numbers) => TaskInput::Edit {
            edit: TaskEdit {
                depends_on: Some(numbers.iter().map(|number| task_id(*number)).collect()),
                ..TaskEdit::default()
            },
        },
        Input::Prioritise(priority) => {
            TaskInput::Edit { edit: TaskEdit { priority: Some(*priority), ..TaskEdit::default() } }
        }
        Input::Claim(run) => {
            TaskInput::Claim { worker: WorkerId::new("worker-1").unwrap(), run: new_run_id(*run) }
        }
        Input::End(off, outcome) => {
            TaskInput::EndRun { fence: Fence(fence.0 + off), outcome: outcome.clone() }
        }
        Input::Release(off) => TaskInput::Release { fence: Fence(fence.0 + off) },
        Input::Block => TaskInput::Block { reason: "a key".into() },
        Input::Unblock => TaskInput::Unblock,
        Input::Finish => TaskInput::Finish,
        Input::Cancel => TaskInput::Cancel,
        Input::Retry => TaskInput::Retry,
    }
}
