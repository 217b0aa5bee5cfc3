//! A flow that changes or goes away while a task is on its way: the task stays with the version that it began with.

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::work::APPROVES;

const FLOW: &str = ".rehearsal/flows/note.yaml";
const REVIEWED: &str = "\
name: note
start: todo
states:
  todo: { agent: implementer, on: { done: review }, otherwise: failed }
  review: { agent: gatekeeper, on: { approved: done, rejected: todo }, otherwise: failed }
  done: { end: success }
  failed: { end: failure }
";
/// Ends in a state that the other one does not have.
const CHANGED: &str = "\
name: note
start: todo
states:
  todo: { agent: implementer, on: { done: second }, otherwise: failed }
  second: { agent: gatekeeper, on: { approved: finished, rejected: todo }, otherwise: failed }
  finished: { end: success }
  failed: { end: failure }
";

/// A task whose agent waits, and a worker that has it.
fn on_its_way() -> TestEnv {
    let env = TestEnv::new();
    env.file(FLOW, REVIEWED);
    let there = env.scratch.join("agent");
    let waits = format!(
        "run: {{ command: 'touch {there}/ready; until [ -e {there}/go ]; do sleep 0.02; done', status: 0 }}"
    );
    env.agent_script(&format!("run: [{{ {waits} }}, {{ result: {{ outcome: success }} }}, {{ say: done }}]"))
        .other_agent("gatekeeper", APPROVES)
        .task_of("note", "Note it", &[])
}

#[test]
fn a_task_stays_with_its_flow_when_the_file_changes_under_it() {
    let env = on_its_way();
    let working = env.start(&["work", "--until-idle"]);
    env.until_the_agent_waits();
    env.file(FLOW, CHANGED);
    assert_snapshot!(env.run(&["task", "show", &env.task_id(1)]), @"
    [TASK-1]  Note it
    working (run [RUN-01]), medium priority, 0 attempts
    flow note, added [TIME] ago
    the flow has changed since (now version [HASH]): the task stays with version [HASH]
    state todo, agent implementer
    worker [UUID] has it, lease ends in [TIME]

    RUN       TASK      AGENT        OUTCOME  COMMITS  TOOK   COST  STARTED
    [RUN-01]  [TASK-1]  implementer  running  -        [TIME]  -     [TIME] ago
    ");
    env.let_the_agent_go_on();
    working.finish().ends_with(0).says("todo → review").says("review → done");
    // A new one goes the new way.
    let env = env.task_of("note", "Note more", &[]);
    env.run(&["work", "--until-idle"]).ends_with(0).says("second → finished");
    assert_eq!(env.task_now(1)["status"], "done");
    assert_eq!(env.task_now(2)["status"], "finished");
    env.must(&["doctor", "--store"]);
}

#[test]
fn a_task_goes_on_when_its_flow_is_broken_or_removed_and_new_ones_are_refused() {
    let env = on_its_way();
    let working = env.start(&["work", "--until-idle"]);
    env.until_the_agent_waits();
    env.file(FLOW, "name: note\nstates: [\n");
    env.run(&["task", "add", "More", "--flow", "note"])
        .ends_with(2)
        .says("--> .rehearsal/flows/note.yaml:2:");
    std::fs::remove_file(env.repo.join(FLOW)).unwrap();
    assert_snapshot!(env.run(&["task", "show", &env.task_id(1)]), @"
    [TASK-1]  Note it
    working (run [RUN-01]), medium priority, 0 attempts
    flow note, added [TIME] ago
    the flow cannot be read any more: the task stays with version [HASH]
    state todo, agent implementer
    worker [UUID] has it, lease ends in [TIME]

    RUN       TASK      AGENT        OUTCOME  COMMITS  TOOK   COST  STARTED
    [RUN-01]  [TASK-1]  implementer  running  -        [TIME]  -     [TIME] ago
    ");
    assert_snapshot!(env.run(&["task", "add", "More", "--flow", "note"]), @"
    [stderr]
    error: there is no flow `note`
    hint: shipped: loop, pull-request, approve, plan, look; your own go to `.rehearsal/flows/NAME.yaml`
    [exit 2]
    ");
    env.let_the_agent_go_on();
    working.finish().ends_with(0).says("review → done");
    env.must(&["doctor", "--store"]);
}
