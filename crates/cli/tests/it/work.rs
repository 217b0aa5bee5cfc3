//! `work`: tasks from a worktree to the base branch, through the real program.

use insta::assert_snapshot;

use serde_json::Value;

use crate::env::TestEnv;
use crate::json::{schema, validate};

/// An implementer that makes the tests pass, and a gatekeeper that says yes.
pub(crate) fn a_team() -> TestEnv {
    let env = TestEnv::new()
        .agent_script("run: [{ run: { command: echo hi >> hello.txt, status: 0 } }, { commit: { message: Say hi } }, { usage: { input: 1, output: 1, cost_usd: 0.5 } }, { say: done }]")
        .other_agent("gatekeeper", APPROVES)
        .config("testing: { command: sh run-tests }");
    env.file("run-tests", "if [ -e hello.txt ]; then echo ok; else echo 'FAIL: no greeting'; exit 1; fi\n")
        .commit("A test");
    env
}

pub(crate) const APPROVES: &str = "run: [{ result: { decision: approve, comment: good } }, { say: good }]";

#[test]
fn a_task_goes_from_incoming_to_merged_where_there_is_no_remote() {
    let env = a_team().task_of("pull-request", "Say hello", &["--touches", "hello.txt"]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"

    TASK      STATUS  BRANCH              PULL REQUEST  MERGED      RUNS  COST   TITLE
    [TASK-1]  done    rehearsal/[TASK-1]  #1            [COMMIT10]  2     $0.50  Say hello

    2 runs in [TIME], cost $0.50
    1 task done
    next: git pull --no-rebase --no-edit [SCRATCH]/home/.local/share/rehearsal/remotes/repo-[HASH].git main
    [stderr]
    work at most 2 tasks at once
    [TASK-1]  incoming: implementer (run [RUN-01])  Say hello
    [TASK-1]  done in [TIME], 1 commit, cost $0.50
    [TASK-1]  commit_leftovers: done
    [TASK-1]  rebase: done
    [TASK-1]  run_tests: done
    [TASK-1]  push_branch: done
    [TASK-1]  create_pr: done
    [TASK-1]  incoming → provisional
    [TASK-1]  provisional: gatekeeper (run [RUN-02])  Say hello
    [TASK-1]  approved in [TIME], 0 commits, cost $0.00
    [TASK-1]  check_conflicts: done
    [TASK-1]  merge_pr: done
    [TASK-1]  provisional → done
    ");
    assert_snapshot!(env.run(&["task", "list", "--all"]), @"
    ID        STATUS  FLOW/STATE         AGENT  PULL REQUEST  PRIORITY  SESSION  TITLE
    [TASK-1]  done    pull-request/done  -      #1            medium    -        Say hello
    ");
    assert_snapshot!(env.run(&["task", "show", &env.task_id(1)]), @"
    [TASK-1]  Say hello
    done, medium priority, 2 attempts
    flow pull-request, added [TIME] ago
    state done
    branch rehearsal/[TASK-1]
    pull request #1 [SCRATCH]/home/.local/share/rehearsal/remotes/repo-[HASH].git#1
    merged as [SHA]
    touches: hello.txt

    RUN       TASK      AGENT        OUTCOME   COMMITS  TOOK   COST   STARTED
    [RUN-01]  [TASK-1]  gatekeeper   approved  0        [TIME]  $0.00  [TIME] ago
    [RUN-02]  [TASK-1]  implementer  done      1        [TIME]  $0.50  [TIME] ago
    ");
    assert_eq!(env.git(&["status", "--short"]), "", "the checkout is not touched");
    let document = env.json(&["work", "--until-idle"]);
    assert_eq!(document["end"], "idle");
    env.git(&["pull", "--quiet", &own_remote(&env), "main"]);
    assert_eq!(env.read("hello.txt"), "hi\n");
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 2, "one is kept warm");
    env.run(&["doctor", "--store"]).ends_with(0);
}

pub(crate) fn own_remote(env: &TestEnv) -> String {
    let remotes = env.scratch.join("home/.local/share/rehearsal/remotes");
    let first = std::fs::read_dir(remotes).unwrap().next().unwrap().unwrap();
    first.path().to_str().unwrap().to_owned()
}

#[test]
fn a_task_that_fails_ends_with_6_and_says_what_to_look_at() {
    let env = TestEnv::new()
        .agent_script("run: [{ result: { outcome: failure, reason: the file is missing } }, { say: no }]")
        .task_of("pull-request", "Say hello", &[]);
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"

    TASK      STATUS  BRANCH  PULL REQUEST  MERGED  RUNS  COST   TITLE
    [TASK-1]  failed  -       -             -       1     $0.00  Say hello
    [TASK-1]: it failed after 1 attempt; its last run ended with failed: the file is missing

    1 run in [TIME], cost $0.00
    1 task failed, 0 done
    next: rehearsal runs list --task [TASK-1]
    [stderr]
    work at most 2 tasks at once
    [TASK-1]  incoming: implementer (run [RUN-01])  Say hello
    [TASK-1]  failed: the file is missing in [TIME], 0 commits, cost $0.00
    [TASK-1]  incoming → failed
    [exit 6]
    ");
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @"
    [TASK-1]  Say hello is failed
    - it failed after 1 attempt; its last run ended with failed: the file is missing
    next: rehearsal runs list --task [TASK-1]
    next: rehearsal task retry [TASK-1]
    ");
}

#[test]
fn two_workers_share_the_tasks_and_do_each_once() {
    let env = a_team();
    let env = (1..=4).fold(env, |env, n| env.task_of("pull-request", &format!("Task {n}"), &[]));
    let env = env.agent_script("run: [{ run: { command: 'touch $TASK_ID.txt hello.txt', status: 0 } }, { commit: { message: Add a file } }, { say: done }]");
    let (one, two) = (env.start(&["work", "--until-idle"]), env.start(&["work", "--until-idle"]));
    one.finish().ends_with(0);
    two.finish().ends_with(0);
    for number in 1..=4 {
        assert_eq!(env.task_now(number)["status"], "done");
    }
    let mut outcomes = env.outcomes();
    outcomes.sort();
    assert_eq!(outcomes, [["approved"; 4], ["done"; 4]].concat());
    env.run(&["doctor", "--store"]).ends_with(0);
}

#[test]
fn every_event_is_a_line_and_the_summary_comes_last() {
    let env = a_team().task_of("pull-request", "Say hello", &[]);
    let lines = env.run(&["work", "--until-idle", "--json", "--follow"]).ends_with(0);
    let of_events = schema(&env, "work-event");
    let mut documents: Vec<Value> =
        lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = documents.pop().unwrap();
    for event in &documents {
        validate(&of_events, event);
    }
    validate(&schema(&env, "work"), &summary);
    assert_eq!(summary["tasks"][0]["status"], "done");
    assert_eq!(summary["cost_usd"], 0.5);
}

#[test]
fn a_loop_leaves_tasks_of_other_flows_alone() {
    let env = a_team().session("greet").task_of("pull-request", "Say hello", &[]);
    assert_snapshot!(env.run(&["run", "greet"]), @"
    [stderr]
    error: task `[TASK-1]` is of flow `pull-request`, which is not for a loop: it has 2 working states, and a loop works in one
    hint: `rehearsal work` takes tasks of any flow; `--session NAME` keeps it to one session
    [exit 2]
    ");
}

#[test]
fn wishes_that_cannot_be_met_are_errors() {
    let env = a_team();
    assert_snapshot!(env.run(&["work", "--agent", "gatekeper"]), @"
    [stderr]
    error: unknown agent `gatekeper`
    hint: did you mean `gatekeeper`?
    [exit 2]
    ");
    assert_snapshot!(env.run(&["work", "--session", "nowhere"]), @"
    [stderr]
    error: there is no session `nowhere`
    hint: `rehearsal session list` shows what there is
    [exit 2]
    ");
    assert_snapshot!(env.run(&["work", "--workers", "0"]), @"
    [stderr]
    error: invalid value '0' for '--workers <N>': 0 is not in 1..=1000

    For more information, try '--help'.
    [exit 2]
    ");
    env.file(".rehearsal/config.yaml", "work: { workers: 0 }\n");
    assert_snapshot!(env.run(&["work"]), @"
    [stderr]
    error: `work.workers` is 0 (.rehearsal/config.yaml): nothing would be done
    hint: `rehearsal pause` lets nothing more be claimed, and `rehearsal resume` lets it go on
    [exit 2]
    ");
    let env = env.config("base_branch: main");
    assert_snapshot!(env.run(&["task", "add", "x", "--flow", "pull-requests"]), @"
    [stderr]
    error: there is no flow `pull-requests`
    hint: did you mean `pull-request`?
    [exit 2]
    ");
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"

    there is nothing to do
    next: rehearsal task add TITLE --flow pull-request
    [stderr]
    work at most 2 tasks at once
    ");
    let env = env.config("flow: review");
    env.file(".rehearsal/flows/review.yaml", "name: review\nstart: a\nstates:\n  a: { agent: judge, on: { approved: b, rejected: a, crashed: a } }\n  b: { end: success }\n");
    assert_snapshot!(env.run(&["task", "add", "x"]), @"
    [stderr]
    error: unknown agent `judge`
      --> .rehearsal/flows/review.yaml:4:15
    hint: add `judge` under `agents:` in the configuration
    [exit 2]
    ");
    let env = env.agent_setting("permission: trust");
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"
    [stderr]
    error: `permission: trust` in .rehearsal/config.yaml needs your word
    hint: run it with `--trust`, or set `permission: accept_edits`
    [exit 2]
    ");
}

#[test]
fn a_store_that_cannot_be_reached_says_so_and_never_tells_a_password() {
    let env = TestEnv::new().var("REHEARSAL_STORE", "postgres://ada:secret@127.0.0.1:1/tasks");
    let output = env.run(&["task", "list"]);
    assert!(!output.all().contains("secret"), "{output}");
    assert_ne!(output.code, 0);
    let doctor = env.run(&["doctor"]);
    assert!(!doctor.all().contains("secret"), "{doctor}");
    doctor.says("(postgres://ada@127.0.0.1:1/tasks)");
    let env = TestEnv::new().var("REHEARSAL_STORE", "mysql://ada:secret@db/tasks");
    assert_snapshot!(env.run(&["task", "list"]), @"
    [stderr]
    error: `store` is `mysql://ada@db/tasks` (environment), which is no address of a store
    hint: write `postgres://USER@HOST/DATABASE`, or leave it out: tasks are then kept on this machine; `rehearsal config show` says where
    [exit 2]
    ");
}

#[test]
fn the_demo_shows_a_rejection_and_a_merge() {
    let env = TestEnv::without_repository();
    let demo = env.run(&["demo", "--flow", "pull-request"]).ends_with(0);
    let task = demo.stdout.split("task ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let story: Vec<String> = demo
        .to_string()
        .lines()
        .take_while(|line| !line.starts_with("[stderr]"))
        .map(|line| line.replace(&task, "[TASK-1]"))
        .collect();
    assert_snapshot!(story.join("\n"), @"
    a scratch repository with failing tests, and a local forge: 0 passed, 2 failed

    What happened
    +[TIME]  task [TASK-1]  incoming  (Greet by name)
    +[TIME]  task [TASK-1]  incoming → claimed  (implementer)
    +[TIME]  task [TASK-1]    implementer: done, 1 commit
    +[TIME]  task [TASK-1]    commit_leftovers
    +[TIME]  task [TASK-1]    rebase
    +[TIME]  task [TASK-1]    run_tests
    +[TIME]  task [TASK-1]    push_branch
    +[TIME]  task [TASK-1]  claimed → provisional  (create_pr #1)
    +[TIME]  task [TASK-1]  provisional → claimed  (gatekeeper)
    +[TIME]  task [TASK-1]  claimed → incoming  (gatekeeper: rejected: without a name it says `Hello, !`; greet the world then, and test it)
    +[TIME]  task [TASK-1]  incoming → claimed  (implementer)
    +[TIME]  task [TASK-1]    implementer: done, 2 commits
    +[TIME]  task [TASK-1]    commit_leftovers
    +[TIME]  task [TASK-1]    rebase
    +[TIME]  task [TASK-1]    run_tests
    +[TIME]  task [TASK-1]    push_branch
    +[TIME]  task [TASK-1]  claimed → provisional  (create_pr #1)
    +[TIME]  task [TASK-1]  provisional → claimed  (gatekeeper)
    +[TIME]  task [TASK-1]    gatekeeper: approved
    +[TIME]  task [TASK-1]    check_conflicts
    +[TIME]  task [TASK-1]  claimed → done  (merge_pr [COMMIT10])

    What landed on main
      [SHORT] Test it
      [SHORT] Greet the world if there is no name
      [SHORT] Greet by name

    tests before: 0 passed, 2 failed
    tests after:  3 passed, 0 failed
    4 runs in [TIME] (the agents were scripted: no tokens)

    Now in a repository of yours:
      rehearsal init                                        # look around, write a configuration
      rehearsal doctor                                      # where work is done, and where it goes
      rehearsal task add 'The first thing to do' --flow pull-request
      rehearsal work --until-idle

    `rehearsal demo --flow pull-request --keep DIR` keeps it to look around in.
    ");
}
