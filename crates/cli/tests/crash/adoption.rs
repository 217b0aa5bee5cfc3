//! A worker is killed while its agent works. The agent goes on, and the next worker with it.

use std::process::Child;

use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Actor, Clock, EventKind, Outcome, Run, Standing, Task};
use rehearsal_engine::SystemClock;
use rehearsal_store::{Change, EventQuery, RunQuery, Scope};

use crate::checker::{check, nothing_lives};
use crate::processes::{eventually, is_dead};
use crate::stage::{IMPLEMENTER, Stage, server, wait_for};

impl Stage {
    /// A stage with one task, whose agent waits in the middle of its work until it is let go on.
    fn with_a_patient_agent(machines: usize, url: Option<String>) -> Self {
        let stage = Self::new(machines, url);
        let root = stage.root();
        let waits = format!(
            "run:\n  - say: begun\n  - run:\n      status: 0\n      command: |\n        \
             echo $PPID >> {root}/agents; until [ -e {root}/go ]; do sleep 0.02; done\n",
        );
        stage.play("implementer", &IMPLEMENTER.replace("\nrun:\n", &waits));
        stage.add_tasks("pull-request", std::iter::once("be patient".to_owned()));
        stage
    }

    /// The process numbers of the agents that have begun so far.
    fn agents(&self) -> Vec<i32> {
        let noted = fs_err::read_to_string(self.root().join("agents")).unwrap_or_default();
        noted.lines().map(|pid| pid.parse().unwrap()).collect()
    }

    fn until_agents_wait(&self, count: usize) {
        eventually("the agent waits", || self.agents().len() == count);
    }

    fn let_agents_go_on(&self) {
        fs_err::write(self.root().join("go"), "").unwrap();
    }

    fn task(&self) -> Task {
        self.tasks().pop().unwrap()
    }

    /// The runs of the implementer, oldest first.
    fn implementer_runs(&self) -> Vec<Run> {
        let all = RunQuery { scope: Scope::All, limit: None };
        let mut runs = wait_for(async { self.store().await.runs(&all).await.unwrap() });
        runs.retain(|run| run.start.agent.as_str() == "implementer");
        runs.reverse();
        runs
    }

    fn adoptions(&self) -> usize {
        let events = wait_for(async { self.store().await.events(&EventQuery::default()).await.unwrap() });
        let is_adoption =
            |kind: &EventKind| matches!(kind, EventKind::TaskChanged { input: TaskInput::Adopt { .. }, .. });
        events.iter().filter(|event| is_adoption(&event.kind)).count()
    }
}

fn kill(mut worker: Child) {
    worker.kill().unwrap();
    worker.wait().unwrap();
}

#[test]
fn an_agent_whose_worker_is_killed_goes_on_with_the_next_as_if_nothing_had_happened() {
    goes_on(&Stage::with_a_patient_agent(1, None));
}

#[test]
fn the_same_on_a_server() {
    let Some((_server, url)) = server() else { return };
    goes_on(&Stage::with_a_patient_agent(1, Some(url)));
}

/// Three workers die over one agent.
fn goes_on(stage: &Stage) {
    let machine = stage.first();
    kill_when_it_waits(stage, machine.start_work(&[]));
    let agent = stage.agents()[0];
    for adoptions in 1..=2 {
        let worker = machine.start_work(&[]);
        eventually("it is adopted", || stage.adoptions() == adoptions);
        kill(worker);
        assert!(!is_dead(agent));
    }
    let mut worker = machine.start_work(&[]);
    eventually("it is adopted", || stage.adoptions() == 3);
    stage.let_agents_go_on();
    assert!(worker.wait().unwrap().success(), "{}", machine.said());
    let said = machine.said();
    assert!(said.contains("goes on (run "), "{said}");
    assert_eq!(stage.agents(), [agent], "the agent was begun once");
    let runs = stage.implementer_runs();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].end.as_ref().unwrap().verdict.outcome, Outcome::Done);
    assert_eq!(runs[0].end.as_ref().unwrap().commits.len(), 1, "its work is its own");
    let task = stage.task();
    assert_eq!((task.losses, task.rejections), (0, 0));
    let log = machine.state_dir().join("runs").join(runs[0].start.id.as_str()).join("stdout.log");
    let log = fs_err::read_to_string(log).unwrap();
    assert_eq!(log.matches("begun").count(), 1, "each of its words was heard once: {log}");
    check(stage);
}

fn kill_when_it_waits(stage: &Stage, worker: Child) {
    stage.until_agents_wait(1);
    kill(worker);
    assert!(!is_dead(stage.agents()[0]), "it does not die with its worker");
}

#[test]
fn what_its_agent_did_while_no_worker_was_there_counts() {
    let stage = Stage::with_a_patient_agent(1, None);
    kill_when_it_waits(&stage, stage.first().start_work(&[]));
    stage.let_agents_go_on();
    eventually("it ends", || is_dead(stage.agents()[0]));
    stage.first().work();
    assert_eq!((stage.agents().len(), stage.implementer_runs().len()), (1, 1));
    check(&stage);
}

#[test]
fn all_agents_of_a_dead_worker_go_on_also_if_the_next_would_begin_fewer() {
    let stage = Stage::with_a_patient_agent(1, None);
    stage.add_tasks("pull-request", std::iter::once("be patient, too".to_owned()));
    let worker = stage.first().start_work(&["--workers", "2"]);
    stage.until_agents_wait(2);
    kill(worker);
    let mut worker = stage.first().start_work(&["--workers", "1"]);
    eventually("both are adopted", || stage.adoptions() == 2);
    stage.let_agents_go_on();
    assert!(worker.wait().unwrap().success(), "{}", stage.first().said());
    assert_eq!((stage.agents().len(), stage.implementer_runs().len()), (2, 2));
    check(&stage);
}

#[test]
fn an_agent_whose_task_was_taken_away_meanwhile_is_ended_and_changes_nothing() {
    let stage = Stage::with_a_patient_agent(1, None);
    kill_when_it_waits(&stage, stage.first().start_work(&[]));
    let task = stage.task();
    let Standing::Claimed(claim) = &task.standing else { panic!("it is not held") };
    // As if another machine had found the claim to be over.
    let input = TaskInput::Lose { stale: task.fence, of: claim.worker.clone() };
    let lose = vec![Change::ChangeTask { id: task.id.clone(), input }];
    wait_for(async { stage.store().await.commit(Actor::User, SystemClock.now(), lose).await.unwrap() });
    let mut worker = stage.first().start_work(&[]);
    stage.until_agents_wait(2);
    assert!(is_dead(stage.agents()[0]), "two never work on one task");
    stage.let_agents_go_on();
    assert!(worker.wait().unwrap().success(), "{}", stage.first().said());
    assert_eq!((stage.adoptions(), stage.task().status()), (0, "done"));
}

#[test]
fn without_a_successor_an_agent_ends_with_its_lease_and_another_machine_does_its_task() {
    let Some((_server, url)) = server() else { return };
    let stage = Stage::with_a_patient_agent(2, Some(url));
    for machine in &stage.machines {
        let config = machine.repo.join(".rehearsal/config.yaml");
        let text = fs_err::read_to_string(&config).unwrap();
        fs_err::write(config, format!("{text}work: {{ lease: 2s }}\n")).unwrap();
    }
    kill_when_it_waits(&stage, stage.first().start_work(&[]));
    let mut worker = stage.machines[1].start_work(&[]);
    stage.until_agents_wait(2);
    assert!(is_dead(stage.agents()[0]), "its lease was over before another could take its task");
    stage.let_agents_go_on();
    assert!(worker.wait().unwrap().success(), "{}", stage.machines[1].said());
    assert_eq!((stage.adoptions(), stage.task().status(), stage.task().losses), (0, "done", 0));
    nothing_lives(&stage);
}
