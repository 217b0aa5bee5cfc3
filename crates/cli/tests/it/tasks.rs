//! `task` and `session`: what they say, and what they refuse.

use insta::assert_snapshot;

use crate::env::TestEnv;

#[test]
fn a_session_is_made_filled_and_shown() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["session", "list"]), @"no sessions yet; make one with `rehearsal session new NAME`");
    assert_snapshot!(env.run(&["task", "list"]), @"no tasks; add one with `rehearsal task add TITLE`, or see `--all` for those that are over");
    assert_snapshot!(env.run(&["session", "new", "api", "-d", "The new API", "--criterion", "all tests pass"]), @r#"
    session `api` is made
    add tasks with `rehearsal task add "title" --session api`
    "#);
    assert_snapshot!(env.run(&["session", "context", "api", "--set", "We use axum."]), @"session `api` is changed");
    assert_snapshot!(env.run(&["session", "context", "api"]), @"We use axum.");
    assert_snapshot!(env.run(&["session", "progress", "The parser is done"]), @"[MOMENT]  The parser is done");
    assert_snapshot!(env.run(&["session", "show", "api"]), @r"
    api The new API
    0 tasks open, 0 done, made [TIME] ago

    We use axum.
    - all tests pass

    Journal
    [MOMENT]  The parser is done
    ");
    assert_snapshot!(env.run(&["session", "list"]), @r"
    SESSION  OPEN  DONE  ABOUT
    api      0     0     The new API
    ");
}

#[test]
fn a_task_goes_through_all_that_a_person_can_do_with_it() {
    let env = TestEnv::new().session("greet").task_with(
        "Say hello",
        &["-b", "In three languages.", "-c", "it is polite", "-p", "high", "-l", "api", "--max-cost", "2"],
    );
    let id = env.task_id(1);
    assert_snapshot!(env.run(&["task", "show", &id[..5]]), @r"
    [TASK-1]  Say hello
    todo, high priority, 0 attempts
    session greet, flow loop, added [TIME] ago
    labels: api
    a run may cost $2.00
    - it is polite

    In three languages.
    ");
    assert_snapshot!(env.run(&["task", "edit", &id, "--title", "Say hello, world", "--priority", "urgent"]), @"[TASK-1] is changed: Say hello, world");
    assert_snapshot!(env.run(&["task", "block", &id, "--reason", "needs a translator"]), @"[TASK-1] waits for a human: Say hello, world");
    assert_snapshot!(env.run(&["task", "show", &id]), @"
    [TASK-1]  Say hello, world
    blocked: needs a translator, urgent priority, 0 attempts
    session greet, flow loop, added [TIME] ago
    blocked by [PERSON] [TIME] ago
    labels: api
    a run may cost $2.00
    - it is polite

    In three languages.
    ");
    assert_snapshot!(env.run(&["task", "unblock", &id]), @"[TASK-1] continues: Say hello, world");
    assert_snapshot!(env.run(&["task", "done", &id]), @"[TASK-1] is done: Say hello, world");
    assert_snapshot!(env.run(&["task", "done", &id]), @r"
    [stderr]
    error: task `[TASK-1]` is already done
    hint: `rehearsal task retry [TASK-1]` begins it anew
    [exit 2]
    ");
    assert_snapshot!(env.run(&["task", "retry", &id]), @"[TASK-1] begins anew: Say hello, world");
    assert_snapshot!(env.run(&["task", "cancel", &id]), @"[TASK-1] is cancelled: Say hello, world");
    assert_snapshot!(env.run(&["task", "list"]), @"no tasks; add one with `rehearsal task add TITLE`, or see `--all` for those that are over");
    assert_snapshot!(env.run(&["task", "list", "--all"]), @r"
    ID        STATUS     PRIORITY  SESSION  TITLE
    [TASK-1]  cancelled  urgent    greet    Say hello, world
    ");
}

#[test]
fn listings_are_filtered_and_paged() {
    let env = TestEnv::new()
        .session("greet")
        .task_with("Low", &["-p", "low"])
        .task_with("High", &["-p", "high", "-l", "api"])
        .session("other")
        .task_with("Medium", &["-b", "a needle in a haystack"]);
    assert_snapshot!(env.run(&["task", "list"]), @r"
    ID        STATUS  PRIORITY  SESSION  TITLE
    [TASK-2]  todo    high      greet    High
    [TASK-3]  todo    medium    other    Medium
    [TASK-1]  todo    low       greet    Low
    ");
    assert_snapshot!(env.run(&["task", "list", "--label", "api"]), @r"
    ID        STATUS  PRIORITY  SESSION  TITLE
    [TASK-2]  todo    high      greet    High
    ");
    assert_snapshot!(env.run(&["task", "list", "--text", "needle"]), @r"
    ID        STATUS  PRIORITY  SESSION  TITLE
    [TASK-3]  todo    medium    other    Medium
    ");
    assert_snapshot!(env.run(&["task", "list", "--session", "greet", "--limit", "1"]), @r"
    ID        STATUS  PRIORITY  SESSION  TITLE
    [TASK-2]  todo    high      greet    High
    … more than 1; `--limit` shows more of them
    ");
    assert_snapshot!(env.run(&["task", "list", "--from", &env.task_id(2)]), @r"
    ID        STATUS  PRIORITY  SESSION  TITLE
    [TASK-3]  todo    medium    other    Medium
    [TASK-1]  todo    low       greet    Low
    ");
}

#[test]
fn a_wrong_id_and_an_ambiguous_prefix_are_told_apart() {
    let env = TestEnv::new().session("greet");
    let lines: String = (0..40).map(|n| format!("{{\"title\": \"Task {n}\"}}\n")).collect();
    env.run_with_input(&["task", "import", "-", "--format", "json-lines"], &lines).ends_with(0);
    assert_snapshot!(env.run(&["task", "show", "uuuuuuuu"]), @r"
    [stderr]
    error: there is no task `uuuuuuuu`
    hint: `rehearsal task list` shows what there is
    [exit 2]
    ");
    // Forty ids of 32 letters: two of them begin with the same one.
    let tasks = env.json(&["task", "list"])["tasks"].clone();
    let mut firsts: Vec<char> = tasks
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["id"].as_str().unwrap().chars().next().unwrap())
        .collect();
    firsts.sort_unstable();
    let twice = firsts.windows(2).find(|pair| pair[0] == pair[1]).unwrap()[0].to_string();
    env.run(&["task", "show", &twice])
        .ends_with(2)
        .says(&format!("error: `{twice}` could be any of these tasks: "))
        .says("hint: give more characters of the id");
}

#[test]
fn an_unknown_session_is_told_with_what_was_meant() {
    let env = TestEnv::new().session("greetings");
    assert_snapshot!(env.run(&["session", "show", "greting"]), @r"
    [stderr]
    error: there is no session `greting`
    hint: did you mean `greetings`?
    [exit 2]
    ");
    assert_snapshot!(env.run(&["task", "add", "Say hello", "--session", "nothing-like-it"]), @r"
    [stderr]
    error: there is no session `nothing-like-it`
    hint: `rehearsal session list` shows what there is
    [exit 2]
    ");
    assert_snapshot!(env.run(&["run", "greting"]), @r"
    [stderr]
    error: there is no session `greting`
    hint: did you mean `greetings`?
    [exit 2]
    ");
    assert_snapshot!(env.run(&["session", "new", "greetings"]), @r"
    [stderr]
    error: session `greetings` already exists
    hint: look at it with `rehearsal session show greetings`
    [exit 2]
    ");
    assert_snapshot!(env.run(&["session", "new", "no spaces"]), @r"
    [stderr]
    error: invalid value 'no spaces' for '<NAME>': `no spaces` is not a valid session name: only letters, digits, `-`, `_` and `.` are allowed

    For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn which_session_is_meant_must_be_clear() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["task", "add", "Say hello"]), @r"
    [stderr]
    error: there is no session yet
    hint: make one with `rehearsal session new NAME`
    [exit 2]
    ");
    let env = env.session("one").session("two");
    assert_snapshot!(env.run(&["task", "add", "Say hello"]), @r"
    [stderr]
    error: there is more than one session
    hint: name one with `--session`: one, two
    [exit 2]
    ");
}

#[test]
fn a_task_cannot_wait_for_itself_or_for_nothing() {
    let env = TestEnv::new().session("greet").task("Say hello").task("Say goodbye");
    env.must(&["task", "edit", &env.task_id(2), "--after", &env.task_id(1)]);
    assert_snapshot!(env.run(&["task", "edit", &env.task_id(1), "--after", &env.task_id(2)]), @r"
    [stderr]
    error: these tasks would wait for each other: `[TASK-1]` -> `[TASK-2]` -> `[TASK-1]`
    [exit 2]
    ");
    assert_snapshot!(env.run(&["task", "add", "Third", "--after", "nosuchid"]), @r"
    [stderr]
    error: there is no task `nosuchid`
    hint: `rehearsal task list` shows what there is
    [exit 2]
    ");
    assert_snapshot!(env.run(&["task", "edit", &env.task_id(1)]), @"
    [stderr]
    error: the following required arguments were not provided:
      <--title <TITLE>|--body <BODY>|--criterion <TEXT>|--priority <PRIORITY>|--label <LABEL>|--after <TASK>|--max-cost <USD>|--touches <GLOB>>

    Usage: rehearsal task edit <--title <TITLE>|--body <BODY>|--criterion <TEXT>|--priority <PRIORITY>|--label <LABEL>|--after <TASK>|--max-cost <USD>|--touches <GLOB>> <TASK>

    For more information, try '--help'.
    [exit 2]
    ");
    assert_snapshot!(env.run(&["task", "add", ""]), @r"
    [stderr]
    error: a task needs a title
    [exit 2]
    ");
}

#[test]
fn control_characters_of_others_do_not_reach_the_terminal() {
    let env = TestEnv::new().session("greet").task("Say \u{1b}]0;owned\u{7} hello");
    let output = env.run(&["task", "list"]).ends_with(0);
    assert!(!output.stdout.contains('\u{1b}') && !output.stdout.contains('\u{7}'), "{output}");
}

#[test]
fn runs_and_logs_of_nothing_say_so() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["runs", "list"]), @"no runs yet; `rehearsal run SESSION` makes some");
    assert_snapshot!(env.run(&["runs", "show", "abc"]), @r"
    [stderr]
    error: there is no run `abc`
    hint: `rehearsal runs list` shows what there is
    [exit 2]
    ");
    assert_snapshot!(env.run(&["logs", "abc"]), @r"
    [stderr]
    error: there is no run `abc`
    hint: `rehearsal runs list` shows what there is
    [exit 2]
    ");
    assert_snapshot!(env.run(&["status"]), @r"
    nothing is in work
    no sessions yet; make one with `rehearsal session new NAME`
    ");
    assert_snapshot!(env.run(&["why", "abc"]), @r"
    [stderr]
    error: there is no task `abc`
    hint: `rehearsal task list` shows what there is
    [exit 2]
    ");
}

#[test]
fn tasks_are_listed_by_the_state_of_their_flow_and_words_that_there_are_not_are_told() {
    let env = TestEnv::new().session("greet").task("Say hello");
    env.run(&["task", "list", "--state", "todo"]).ends_with(0).says("Say hello");
    env.run(&["task", "list", "--state", "review"]).ends_with(0).says("no tasks");
    assert_snapshot!(env.run(&["task", "list", "--status", "wating"]), @"
    [stderr]
    error: unknown status `wating`
    hint: did you mean `waiting`?
    [exit 2]
    ");
    assert_snapshot!(env.run(&["task", "list", "--state", "toto"]), @"
    [stderr]
    error: unknown state `toto`
    hint: did you mean `todo`?
    [exit 2]
    ");
}
