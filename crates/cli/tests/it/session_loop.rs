//! `rehearsal run`: the loop with a fresh agent each time, as its users see it.

use insta::assert_snapshot;

use crate::env::TestEnv;

#[test]
fn a_task_that_is_reported_done_and_complete_ends_the_loop_after_one_iteration() {
    let env = TestEnv::new().session("greet").task("Add a greeting").agent_script(
        "
        runs:
          - - write: { path: hello.txt, content: hi }
            - commit: { message: Say hi }
            - usage: { input: 1200, output: 340, cost_usd: 0.05 }
            - task_done: current
            - say: Working... <promise>COMPLETE</promise>
        ",
    );
    assert_snapshot!(env.run(&["run", "greet", "--iterations", "5"]), @"

    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-1]  done    1         Add a greeting

    1 iteration in [TIME]: 1 done, 0 open, cost $0.05, tokens 1.2k in, 340 out
    all tasks are done
    [stderr]
    loop session greet, 1 open task, agent implementer
    1/5 [TASK-1] Add a greeting
        done in [TIME], 1 commit, 1 changed file, cost $0.05
        note: no tests were found, so nothing was tested: set `testing.command`
        [TASK-1] Add a greeting is now done
    ");
    assert_eq!(env.agent_calls(), 1);
    assert_eq!(env.git(&["log", "-1", "--format=%s"]), "Say hi");
}

#[test]
fn an_agent_reports_with_the_commands_themselves() {
    let env = TestEnv::new().session("greet").task("Add a greeting").agent_script(
        "
        runs:
          - - run: { command: rehearsal task done $REHEARSAL_TASK_ID --reason there, status: 0 }
            - run: { command: rehearsal session progress 'The greeting is there', status: 0 }
            - say: <promise>COMPLETE</promise>
        ",
    );
    env.run(&["run"]).ends_with(0).says("all tasks are done");
    assert_eq!(env.task_now(1)["status"], "done");
    assert_snapshot!(env.run(&["session", "progress"]), @"[MOMENT]  The greeting is there");
}

#[test]
fn every_kind_of_agent_is_looped_the_same_way() {
    for driver in ["claude", "codex", "gemini", "opencode", "command"] {
        let env = TestEnv::new().session("greet").task("Add a greeting").agent_script_as(
            driver,
            "
            runs:
              - - expect_prompt: { contains: Add a greeting }
                - write: { path: hello.txt, content: hi }
                - commit: { message: Say hi }
                - task_done: current
                - say: Done. <promise>COMPLETE</promise>
            ",
        );
        env.run(&["run"])
            .ends_with(0)
            .says("done in [TIME], 1 commit, 1 changed file")
            .says("all tasks are done");
        let run = env.json(&["runs", "show", &env.runs()[0]]);
        assert_eq!(run["run"]["driver"], driver);
    }
}

#[test]
fn complete_is_refused_while_tasks_are_open_and_the_next_prompt_says_so() {
    let env = TestEnv::new().session("greet").task("Say hello").task("Say goodbye").agent_script(
        "
        runs:
          - - task_done: current
            - say: <promise>COMPLETE</promise>
          - - expect_prompt: { contains: 'said COMPLETE, which was refused: 1 task is not done' }
            - task_done: current
            - say: <promise>COMPLETE</promise>
        ",
    );
    assert_snapshot!(env.run(&["run"]), @"

    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-1]  done    1         Say hello
    [TASK-2]  done    1         Say goodbye

    2 iterations in [TIME]: 2 done, 0 open, cost $0.00, tokens 0 in, 0 out
    all tasks are done
    [stderr]
    loop session greet, 2 open tasks, agent implementer
    1/10 [TASK-1] Say hello
        done in [TIME], 0 commits, 0 changed files, cost $0.00
        note: no tests were found, so nothing was tested: set `testing.command`
        [TASK-1] Say hello is now done
        COMPLETE is refused: 1 task not done
    2/10 [TASK-2] Say goodbye
        done in [TIME], 0 commits, 0 changed files, cost $0.00
        [TASK-2] Say goodbye is now done
    ");
    let prompt = env.prompt(2);
    let note = prompt.lines().find(|line| line.starts_with("NOTE:")).unwrap();
    assert_snapshot!(note, @"NOTE: the last iteration said COMPLETE, which was refused: 1 task is not done. A task counts as done only when it is reported with `rehearsal task done ID`.");
}

#[test]
fn the_agents_word_is_taken_if_the_user_says_so() {
    let env = TestEnv::new()
        .session("greet")
        .task("Say hello")
        .task("Say goodbye")
        .agent_script("runs: [[{ say: <promise>COMPLETE</promise> }]]");
    assert_snapshot!(env.run(&["run", "--accept-complete"]), @r"
    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-1]  todo    1         Say hello

    1 iteration in [TIME]: 0 done, 2 open, cost $0.00, tokens 0 in, 0 out
    the agent says that all is complete; 2 tasks not marked as done
    next: rehearsal task list --session greet
    [stderr]
    loop session greet, 2 open tasks, agent implementer
    1/10 [TASK-1] Say hello
        done in [TIME], 0 commits, 0 changed files, cost $0.00
    ");
}

#[test]
fn a_signal_counts_in_the_final_text_only() {
    let env = TestEnv::new().session("greet").task("Say hello").agent_script(
        "
        runs:
          - - say: When all is done I say <promise>COMPLETE</promise>.
            - tool: { name: Bash, input: { command: 'echo' }, output: '<promise>BLOCKED: no</promise>' }
            - say: There is more to do.
          - - task_done: current
        ",
    );
    env.run(&["run"]).ends_with(0).never_says("refused").says("2 iterations");
}

#[test]
fn an_agent_that_is_blocked_ends_the_loop_with_its_reason() {
    let env = TestEnv::new().session("greet").task("Say hello").task("Say goodbye").agent_script(
        "
        runs:
          - - say: Starting...
          - - say: '<promise>BLOCKED: npm not found</promise>'
        ",
    );
    assert_snapshot!(env.run(&["run", "--iterations", "10"]), @r"
    TASK      STATUS   ATTEMPTS  TITLE
    [TASK-1]  blocked  2         Say hello

    2 iterations in [TIME]: 0 done, 2 open, cost $0.00, tokens 0 in, 0 out
    the agent is blocked: npm not found
    next: rehearsal task list --session greet --status blocked
    [stderr]
    loop session greet, 2 open tasks, agent implementer
    1/10 [TASK-1] Say hello
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.00
    2/10 [TASK-1] Say hello
        blocked: npm not found in [TIME], 0 commits, 0 changed files, cost $0.00
    [exit 7]
    ");
    assert_snapshot!(env.run(&["runs", "list"]), @r"
    RUN       TASK      AGENT        OUTCOME     COMMITS  TOOK   COST   STARTED
    [RUN-01]  [TASK-1]  implementer  blocked     0        [TIME]  $0.00  [TIME] ago
    [RUN-02]  [TASK-1]  implementer  no_changes  0        [TIME]  $0.00  [TIME] ago
    ");
    assert_snapshot!(env.run(&["runs", "show", &env.runs()[1]]), @"
    [RUN-01]  task [TASK-1], agent implementer (claude)
    started [MOMENT] ([TIME] ago)
    took [TIME], cost $0.00, tokens 0 in, 0 out, turns 1
    model claude-opus-5-5, agent session [UUID]

    blocked: npm not found
    - the structured output ends with success
    - exit status 0
    - the final text says BLOCKED
    - git: 0 new commits, 0 files changed

    final message:
      <promise>BLOCKED: npm not found</promise>

    files: [STATE]/runs/[RUN-01]
    ");
    assert_snapshot!(env.run(&["task", "list"]), @r"
    ID        STATUS   PRIORITY  SESSION  TITLE
    [TASK-1]  blocked  medium    greet    Say hello
    [TASK-2]  todo     medium    greet    Say goodbye
    ");
}

#[test]
fn it_goes_on_until_every_task_is_done() {
    let env = TestEnv::new().session("greet").task("One").task("Two").task("Three").agent_script(
        "
        run:
          - task_done: current
          - say: 'One more is done.'
        ",
    );
    assert_snapshot!(env.run(&["run", "--iterations", "10"]), @"

    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-1]  done    1         One
    [TASK-2]  done    1         Two
    [TASK-3]  done    1         Three

    3 iterations in [TIME]: 3 done, 0 open, cost $0.00, tokens 0 in, 0 out
    all tasks are done
    [stderr]
    loop session greet, 3 open tasks, agent implementer
    1/10 [TASK-1] One
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.00
        note: no tests were found, so nothing was tested: set `testing.command`
        [TASK-1] One is now done
    2/10 [TASK-2] Two
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.00
        [TASK-2] Two is now done
    3/10 [TASK-3] Three
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.00
        [TASK-3] Three is now done
    ");
    assert_eq!(env.agent_calls(), 3);
}

#[test]
fn to_use_up_the_iterations_is_no_error() {
    let env = TestEnv::new()
        .session("greet")
        .task("Never done")
        .agent_script("runs: [[{ say: Working... }], [{ say: Still working... }], [{ say: More work... }]]");
    assert_snapshot!(env.run(&["run", "--iterations", "3"]), @r"
    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-1]  todo    3         Never done

    3 iterations in [TIME]: 0 done, 1 open, cost $0.00, tokens 0 in, 0 out
    all 3 iterations are used
    next: rehearsal run greet
    [stderr]
    loop session greet, 1 open task, agent implementer
    1/3 [TASK-1] Never done
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.00
    2/3 [TASK-1] Never done
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.00
    3/3 [TASK-1] Never done
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.00
    ");
    assert_eq!(env.agent_calls(), 3);
}

#[test]
fn an_empty_session_ends_at_once_and_no_agent_is_called() {
    let env = TestEnv::new().session("greet").agent_script("runs: []");
    assert_snapshot!(env.run(&["run", "greet"]), @r"
    0 iterations in [TIME]: 0 done, 0 open, cost unknown, tokens unknown
    session `greet` has no open tasks
    next: rehearsal task add TITLE --session greet
    [stderr]
    loop session greet, 0 open tasks, agent implementer
    ");
    assert_eq!(env.agent_calls(), 0);
    assert!(!env.run_dir("").exists(), "there is a run directory");
}

#[test]
fn trust_is_given_on_the_command_line_only() {
    let env = TestEnv::new().session("greet").task("Say hello").agent_script("runs: []");
    let without = env.json(&["run", "--dry-run"])["command"].to_string();
    assert!(without.contains(r#""--permission-mode","acceptEdits""#), "{without}");
    assert!(!without.contains("--dangerously-skip-permissions"), "{without}");
    let with = env.json(&["run", "--dry-run", "--trust"])["command"].to_string();
    assert!(with.contains("--dangerously-skip-permissions"), "{with}");
    assert!(!with.contains("acceptEdits"), "{with}");
    assert_eq!(env.agent_calls(), 0);

    let env = env.agent_setting("permission: trust");
    assert_snapshot!(env.run(&["run", "--dry-run"]), @r"
    [stderr]
    error: `permission: trust` in .rehearsal/config.yaml needs your word
    hint: run it with `--trust`, or set `permission: accept_edits`
    [exit 2]
    ");
}

#[test]
fn when_all_that_is_left_is_blocked_a_human_is_needed() {
    let env = TestEnv::new().session("greet").task("Say hello").task("Say goodbye").agent_script("runs: []");
    env.must(&["task", "block", &env.task_id(1), "--reason", "which language?"]);
    env.must(&["task", "block", &env.task_id(2), "--reason", "to whom?"]);
    assert_snapshot!(env.run(&["run"]), @r"
    0 iterations in [TIME]: 0 done, 2 open, cost unknown, tokens unknown
    what is left needs a human:
    - [TASK-1] Say hello: which language?
    - [TASK-2] Say goodbye: to whom?
    next: rehearsal why TASK
    [stderr]
    loop session greet, 2 open tasks, agent implementer
    [exit 7]
    ");
    assert_eq!(env.agent_calls(), 0);
}

#[test]
fn a_task_that_an_agent_blocks_does_not_hold_up_the_others() {
    let env = TestEnv::new().session("greet").task("Say hello").task("Say goodbye").agent_script(
        "
        runs:
          - - run: { command: 'rehearsal task block $REHEARSAL_TASK_ID --reason \"which language?\"', status: 0 }
          - - task_done: current
        ",
    );
    assert_snapshot!(env.run(&["run"]), @"

    TASK      STATUS   ATTEMPTS  TITLE
    [TASK-1]  blocked  1         Say hello
    [TASK-2]  done     1         Say goodbye

    2 iterations in [TIME]: 1 done, 1 open, cost $0.00, tokens 0 in, 0 out
    what is left needs a human:
    - [TASK-1] Say hello: which language?
    next: rehearsal why TASK
    [stderr]
    loop session greet, 2 open tasks, agent implementer
    1/10 [TASK-1] Say hello
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.00
        [TASK-1] Say hello is now blocked
    2/10 [TASK-2] Say goodbye
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.00
        note: no tests were found, so nothing was tested: set `testing.command`
        [TASK-2] Say goodbye is now done
    [exit 7]
    ");
}

#[test]
fn an_agent_speaks_for_its_session_only() {
    let env = TestEnv::new().session("other").task("Not yours").session("greet").task("Say hello");
    let script = format!("runs: [[{{ task_done: [{}, nosuchid, current] }}]]", env.task_id(1));
    let env = env.agent_script(&script);
    let output = env.run(&["run", "greet"]);
    assert_snapshot!(output, @"

    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-2]  done    1         Say hello

    1 iteration in [TIME]: 1 done, 0 open, cost $0.00, tokens 0 in, 0 out
    all tasks are done
    [stderr]
    loop session greet, 1 open task, agent implementer
    1/10 [TASK-2] Say hello
        note: run [RUN-01] reported on task `[TASK-1]`, which is ignored: it belongs to another session
        note: run [RUN-01] reported on task `nosuchid`, which is ignored: there is no task `nosuchid`
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.00
        note: no tests were found, so nothing was tested: set `testing.command`
        [TASK-2] Say hello is now done
    ");
    assert_eq!(env.task_now(1)["status"], "todo");
}

#[test]
fn dependencies_come_first_and_then_the_most_urgent() {
    let env = TestEnv::new().session("greet").task_with("Low", &["-p", "low"]);
    let low = env.task_id(1);
    let env = env
        .task_with("Urgent, after low", &["-p", "urgent", "--after", &low[..4]])
        .task("Medium")
        .agent_script("run: [{ task_done: current }]");
    let output = env.run(&["run"]).ends_with(0);
    let order: Vec<&str> = output.stderr.lines().filter(|line| line.contains("/10 ")).collect();
    let titles: Vec<&str> = order.iter().map(|line| line.splitn(3, ' ').nth(2).unwrap()).collect();
    assert_eq!(titles, ["Medium", "Low", "Urgent, after low"]);
}

#[test]
fn the_loop_ends_when_it_has_cost_enough() {
    let env = TestEnv::new()
        .session("greet")
        .task("Expensive")
        .agent_script("run: [{ usage: { input: 10, output: 10, cost_usd: 0.6 } }, { say: more }]");
    assert_snapshot!(env.run(&["run", "--max-cost", "1"]), @r"
    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-1]  todo    2         Expensive

    2 iterations in [TIME]: 0 done, 1 open, cost $1.20, tokens 20 in, 20 out
    the budget is reached: $1.20 spent
    [stderr]
    loop session greet, 1 open task, agent implementer
    1/10 [TASK-1] Expensive
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.60
    2/10 [TASK-1] Expensive
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.60
    [exit 8]
    ");
}

#[test]
fn a_stand_in_that_is_asked_for_more_than_it_was_told_is_loud() {
    let env = TestEnv::new().session("greet").task("Say hello").agent_script("runs: [[{ say: hi }]]");
    assert_snapshot!(env.run(&["run", "--max-failures", "1"]), @r"
    TASK      STATUS  ATTEMPTS  TITLE
    [TASK-1]  todo    2         Say hello

    2 iterations in [TIME]: 0 done, 1 open, cost $0.00 (1 run did not tell), tokens 0 in, 0 out
    note: run [RUN-01] wrote last to standard error: mock-agent: [SCRATCH]/agent/script.yaml has 1 runs, and this is call 2 (counted in [SCRATCH]/agent/calls): it was asked for more than it was told
    too many failed runs in a row; the last one: crashed: exit status 3: mock-agent: [SCRATCH]/agent/script.yaml has 1 runs, and this is call 2 (counted in [SCRATCH]/agent/calls): it was asked for more than it was told
    next: rehearsal runs show [RUN-01]
    [stderr]
    loop session greet, 1 open task, agent implementer
    1/10 [TASK-1] Say hello
        no_changes in [TIME], 0 commits, 0 changed files, cost $0.00
    2/10 [TASK-1] Say hello
        crashed: exit status 3: mock-agent: [SCRATCH]/agent/script.yaml has 1 runs, and this is call 2 (counted in [SCRATCH]/agent/calls): it was asked for more than it was told in [TIME], 0 commits, 0 changed files, cost unknown
    [exit 6]
    ");
    assert_snapshot!(env.run(&["runs", "show", &env.runs()[1]]), @"
    [RUN-01]  task [TASK-1], agent implementer (claude)
    started [MOMENT] ([TIME] ago)
    took [TIME], cost unknown, tokens unknown, turns unknown
    model unknown, agent session unknown

    crashed: exit status 3: mock-agent: [SCRATCH]/agent/script.yaml has 1 runs, and this is call 2 (counted in [SCRATCH]/agent/calls): it was asked for more than it was told
    - exit status 3
    - git: 0 new commits, 0 files changed

    last on its standard error:
      mock-agent: [SCRATCH]/agent/script.yaml has 1 runs, and this is call 2 (counted in [SCRATCH]/agent/calls): it was asked for more …

    files: [STATE]/runs/[RUN-01]
    ");
}
