//! What people see of a rehearsal: what is wrong, where, and what to do.

use insta::assert_snapshot;

use crate::stage::Stage;

const GREET: &str = "
name: greet
tasks: [{ id: t, title: Add a greeting }]
agents:
  implementer: [{ commits: 1 }]
  gatekeeper: [{ decision: approve }]
expect:
  tasks: { t: { status: done } }
";

/// What comes of a scenario that was changed: exit code, and all that is said.
fn changed(from: &str, to: &str) -> (i32, String) {
    assert!(GREET.contains(from), "{from}");
    let stage = Stage::new();
    stage.write("greet.yaml", &GREET.replace(from, to));
    let said = stage.run(&["rehearse", "greet.yaml"]);
    // How long it took is another each time.
    let timeless = |line: &str| match line.split_once(" in ") {
        Some((before, after)) if after.ends_with(" ms") => format!("{before} in TIME"),
        _ => line.to_owned(),
    };
    let told: Vec<String> = said.stdout.lines().chain(said.stderr.lines()).map(timeless).collect();
    (said.code, told.join("\n"))
}

#[test]
fn an_expectation_that_is_missed_shows_both_sides() {
    let (code, told) = changed("status: done", "status: failed, attempts: 1");
    assert_eq!(code, 3);
    assert_snapshot!(told, @"
    FAILED greet  0.0 s in TIME
      --> greet.yaml
      task t: status
        - expected: failed
        + found   : done
      task t: attempts
        - expected: 1
        + found   : 2

    0 passed, 1 failed; 0.0 s rehearsed
    ");
}

#[test]
fn an_agent_that_is_asked_more_than_it_was_told_fails_the_rehearsal() {
    let (code, told) = changed("decision: approve", "decision: reject");
    assert_eq!(code, 3);
    assert_snapshot!(told, @"
    FAILED greet  0.0 s in TIME
      --> greet.yaml
      agent `implementer` was asked for task t more often than the scenario tells
      task t: status
        - expected: done
        + found   : working

    0 passed, 1 failed; 0.0 s rehearsed
    ");
}

#[test]
fn an_agent_that_is_not_asked_fails_the_rehearsal() {
    let (code, told) = changed("[{ commits: 1 }]", "[{ commits: 1 }, { commits: 1 }]");
    assert_eq!(code, 3);
    assert_snapshot!(told, @"
    FAILED greet  0.0 s in TIME
      --> greet.yaml
      call 2 of agent `implementer` was never asked for

    0 passed, 1 failed; 0.0 s rehearsed
    ");
}

#[test]
fn a_moment_that_never_comes_fails_the_rehearsal() {
    let (code, told) = changed(
        "expect:",
        "meanwhile: [{ when: { moment: step_done, step: check_ci }, do: { kill_worker: {} } }]\nexpect:",
    );
    assert_eq!(code, 3);
    assert_snapshot!(told, @"
    FAILED greet  0.0 s in TIME
      --> greet.yaml
      the moment step_done of step check_ci never came

    0 passed, 1 failed; 0.0 s rehearsed
    ");
}

#[test]
fn mistakes_are_shown_with_their_place() {
    assert_snapshot!(changed("commits: 1", "comits: 1").1, @"
    error: unknown field `comits`, expected one of task, outcome, decision, comment, reason, commits, crash, sleep, script
      --> greet.yaml:5:19
    hint: did you mean `commits`?
    ");
    assert_snapshot!(changed("{ t: {", "{ u: {").1, @"
    error: there is no task `u` in this scenario
      --> greet.yaml:8:12
    hint: did you mean `t`?
    ");
    assert_snapshot!(changed("name: greet\n", "name: greet\nflow: pul-request\n").1, @"
    error: there is no flow `pul-request`
      --> greet.yaml:3:7
    hint: did you mean `pull-request`?
    ");
    assert_snapshot!(changed("status: done", "status: doen").1, @"
    error: no task of flow `pull-request` has the status `doen`
      --> greet.yaml:8:25
    hint: did you mean `done`?
    ");
    assert_snapshot!(changed("status: done", "status: merged").1, @"
    error: no task of flow `pull-request` has the status `merged`
      --> greet.yaml:8:25
    hint: there are incoming, provisional, blocked, done, failed, working, waiting, needs_continuation, cancelled
    ");
    assert_snapshot!(changed("expect:", "meanwhile: [{ do: { cancel: t } }]\nexpect:").1, @"
    error: expected exactly one of `at` and `when`
      --> greet.yaml:7:13
    hint: `at: 10s` after the beginning, or `when: { moment: run_started, task: ID }`
    ");
    assert_snapshot!(changed("[{ id: t, title: Add a greeting }]", "[]").1, @"
    error: a scenario needs at least one task
      --> greet.yaml:2:7
    ");
}

#[test]
fn the_starter_set_passes_and_is_not_written_over() {
    let stage = Stage::new();
    assert_eq!(stage.run(&["rehearse", "--init"]).code, 0);
    stage.write(".rehearsal/scenarios/mine.yaml", &GREET.replace("name: greet", "name: mine"));
    let played = stage.run(&["rehearse", "--junit", "report.xml"]);
    assert_eq!(played.code, 0, "{}{}", played.stdout, played.stderr);
    assert!(played.stdout.contains("\n4 passed, none failed"), "{}", played.stdout);
    let report = std::fs::read_to_string(stage.path().join("report.xml")).unwrap();
    assert!(report.contains("<testsuites name=\"rehearsal\" tests=\"4\" failures=\"0\""), "{report}");
    assert!(stage.run(&["rehearse", "--init"]).stdout.starts_with("all of them are there already"));
}

#[test]
fn without_scenarios_it_says_how_to_get_some() {
    let said = Stage::new().run(&["rehearse"]);
    assert_eq!(said.code, 2);
    assert_snapshot!(said.stderr, @"
    error: there are no scenarios in `.rehearsal/scenarios`
    hint: `rehearsal rehearse --init` writes a few to begin with
    ");
}

#[test]
fn a_real_run_becomes_a_scenario_that_passes() {
    let stage = Stage::new();
    stage.write("README.md", "# A repository\n");
    stage.write(".gitignore", "agent.yaml.state\n");
    stage.write(
        "agent.yaml",
        "run:
  - write: { path: hello.txt, content: \"hello\\n\" }
  - commit: { message: \"Add hello: \\\"world\\\"\" }
  - patch: { path: hello.txt, find: hello, replace: good morning }
  - commit: { message: Be polite }
  - task_done: current
  - result: { outcome: success }
",
    );
    let config = format!(
        "agents:\n  implementer:\n    driver: claude\n    program: {}\n    args: [mock-agent, --as, claude, --script, agent.yaml]\n",
        env!("CARGO_BIN_EXE_rehearsal")
    );
    stage.write(".rehearsal/config.yaml", &config);
    stage.git(&["add", "--all"]);
    stage.git(&["commit", "--quiet", "--message", "The beginning"]);
    for args in [&["session", "new", "s"][..], &["task", "add", "Add a greeting", "--session", "s"]] {
        assert_eq!(stage.run(args).code, 0);
    }
    let ran = stage.run(&["run", "s"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let listed = stage.run(&["runs", "list"]).stdout;
    let run = listed.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let promoted = stage.run(&["promote", &run, "--name", "promoted"]);
    assert_eq!(promoted.code, 0, "{}", promoted.stderr);
    let played = stage.run(&["rehearse", "--filter", "promoted"]);
    assert_eq!(played.code, 0, "{}{}", played.stdout, played.stderr);
    let again = stage.run(&["promote", &run, "--name", "promoted"]);
    assert_eq!((again.code, again.stderr.contains("is already there")), (2, true), "{}", again.stderr);
}

#[test]
fn a_terminal_shows_what_is_being_played() {
    let stage = Stage::new();
    stage.write("greet.yaml", GREET);
    let Some(shown) = stage.run_in_a_terminal("rehearse greet.yaml") else { return };
    assert!(shown.contains("0 of 1 scenarios played · greet"), "{shown}");
    assert!(shown.contains("ok     greet"), "{shown}");
    // Elsewhere there is nothing but what came of it.
    assert_eq!(stage.run(&["rehearse", "greet.yaml"]).stderr, "");
}
