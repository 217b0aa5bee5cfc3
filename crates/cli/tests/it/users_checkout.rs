//! `run` works in the user's own checkout: what an agent did to it beside its work is reported, put back, and the agent's fault.

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::env::{TestEnv, WAITS};

/// An agent that runs one command, and then says that it is done.
fn agent_that(command: &str) -> TestEnv {
    TestEnv::new().session("greet").task("Say hello").agent_script(&format!(
        "run:\n  - run: {{ command: '{}', status: 0 }}\n  - say: <promise>DONE</promise>\n",
        command.replace('\'', "''")
    ))
}

fn one_run(env: &TestEnv) -> crate::env::Output {
    env.run(&["run", "--iterations", "1"])
}

#[test]
fn a_reset_that_dropped_a_commit_of_the_users_is_undone() {
    let env =
        agent_that("git reset -q --hard HEAD~1 && echo hi > hello.txt && git add -A && git commit -qm Hello");
    let before = env.git(&["rev-parse", "HEAD"]);
    let output = one_run(&env)
        .ends_with(6)
        .says("violated: dropped commits of branch `main`")
        .says("it was put back as it was before the run");
    assert_eq!(env.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert!(!env.repo.join("hello.txt").exists());
    // What the agent did is not lost.
    let kept = format!("refs/rehearsal/left/{}/work", env.runs()[0]);
    assert!(output.stdout.contains(&kept), "{output}");
    assert_eq!(env.git(&["show", &format!("{kept}:hello.txt")]), "hi");
    assert_eq!(env.task_now(1)["status"], "todo");
    env.run(&["runs", "show", &env.runs()[0]]).says("violated: dropped commits").says("is kept in");
    env.run(&["why", &env.task_id(1)]).says("violated: dropped commits of branch `main`");
}

#[test]
fn the_next_prompt_says_what_did_not_count() {
    let env = TestEnv::new().session("greet").task("Say hello").agent_script(
        "runs:\n  - - run: { command: git reset -q --hard HEAD~1, status: 0 }\n  - - write: { path: hello.txt, content: hi }\n    - say: <promise>DONE</promise>\n",
    );
    env.run(&["run"]).ends_with(0).says("all tasks are done");
    let prompt = env.prompt(2);
    let note = prompt.lines().find(|line| line.starts_with("NOTE:")).unwrap_or(&prompt);
    assert!(note.contains("did not count, because it dropped commits of branch `main`"), "{note}");
}

#[test]
fn another_branch_and_a_detached_head_are_undone() {
    for (command, words) in [
        (
            "git checkout -q -b mine && echo hi > hello.txt && git add -A && git commit -qm Hello",
            "checked out branch `mine` instead of branch `main`",
        ),
        (
            "git checkout -q --detach && echo hi > hello.txt && git add -A && git commit -qm Hello",
            "checked out a detached HEAD instead of branch `main`",
        ),
    ] {
        let env = agent_that(command);
        let before = env.git(&["rev-parse", "HEAD"]);
        one_run(&env).ends_with(6).says(words).says("is kept in");
        assert_eq!(env.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
        assert_eq!(env.git(&["rev-parse", "HEAD"]), before);
        assert_eq!(env.git(&["status", "--porcelain"]), "");
        let kept = format!("refs/rehearsal/left/{}/work:hello.txt", env.runs()[0]);
        assert_eq!(env.git(&["show", &kept]), "hi");
    }
}

#[test]
fn a_dropped_stash_and_branches_come_back() {
    let env = agent_that("git stash drop -q && git branch -q -D theirs && git branch -q -f older HEAD~1");
    env.git(&["branch", "theirs"]);
    env.git(&["branch", "older"]);
    env.file("README.md", "half a thought\n");
    env.git(&["stash", "--quiet"]);
    let (stash, head) = (env.git(&["rev-parse", "stash@{0}"]), env.git(&["rev-parse", "HEAD"]));
    one_run(&env)
        .ends_with(6)
        .says("dropped the stash entry")
        .says("deleted branch `theirs`")
        .says("dropped commits of branch `older`");
    assert_eq!(env.git(&["rev-parse", "stash@{0}"]), stash);
    assert_eq!(env.git(&["rev-parse", "theirs", "older"]), format!("{head}\n{head}"));
}

#[test]
fn a_merge_that_was_left_unfinished_is_ended() {
    let env = agent_that(
        "git checkout -q -b other && echo a > f && git add f && git commit -qm a && git checkout -q main && echo b > f && git add f && git commit -qm b && ! git merge -q other",
    );
    let before = env.git(&["rev-parse", "HEAD"]);
    one_run(&env).ends_with(6).says("left a merge unfinished");
    assert_eq!(env.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert!(!env.repo.join(".git/MERGE_HEAD").exists());
}

#[test]
fn uncommitted_changes_that_an_agent_discarded_come_back() {
    for command in [
        "git checkout -q . && git clean -fdq && echo hi > hello.txt",
        "git stash -q --include-untracked && echo hi > hello.txt",
        "git reset -q --hard HEAD~1 && git clean -fdq",
    ] {
        let env = agent_that(command);
        env.file("README.md", "# Half a thought\n").file("notes.txt", "mine\n");
        one_run(&env)
            .ends_with(6)
            .says("note: you have uncommitted changes in `README.md`, `notes.txt`")
            .says("discarded uncommitted changes in `README.md`, `notes.txt`");
        assert_eq!(env.read("README.md"), "# Half a thought\n", "{command}");
        assert_eq!(env.read("notes.txt"), "mine\n", "{command}");
    }
}

#[test]
fn what_was_staged_is_staged_again() {
    let env = agent_that("git reset -q --hard HEAD~1");
    env.file("README.md", "staged\n");
    env.git(&["add", "README.md"]);
    env.file("README.md", "staged and more\n").file("new.txt", "new\n");
    let before = env.git(&["status", "--porcelain"]);
    one_run(&env).ends_with(6);
    assert_eq!(env.git(&["status", "--porcelain"]), before);
    assert_eq!(env.git(&["show", ":README.md"]), "staged");
    assert_eq!(env.read("README.md"), "staged and more\n");
}

#[test]
fn the_users_changes_in_an_agents_commit_are_named_with_a_way_back() {
    let env = agent_that("echo hi > hello.txt && git add -A && git commit -qm Hello");
    env.file("notes.txt", "mine\n");
    let output = one_run(&env).ends_with(0);
    let run = &env.runs()[0];
    let kept = format!("refs/rehearsal/before/{run}");
    let words = format!("run {run} committed changes that you had not committed, in `notes.txt`");
    assert!(output.stdout.contains(&words) && output.stdout.contains(&kept), "{output}");
    assert_eq!(env.git(&["show", &format!("{kept}:notes.txt")]), "mine");
}

#[test]
fn a_run_that_leaves_the_users_changes_alone_leaves_no_copy_of_them() {
    let env = agent_that("echo hi > hello.txt");
    env.file("README.md", "# Half a thought\n");
    env.run(&["run"]).ends_with(0).says("you have uncommitted changes in `README.md`");
    assert_eq!(env.git(&["for-each-ref", "refs/rehearsal"]), "");
    assert_eq!(env.git(&["status", "--porcelain"]), " M README.md");
    assert_eq!(env.git(&["show", "--name-only", "--format=", "HEAD"]), "hello.txt");
}

#[test]
fn a_run_that_may_only_read_changes_nothing() {
    let env = agent_that("echo hi > hello.txt && git add -A && git commit -qm Hello && echo more > more.txt")
        .agent_setting("permission: plan");
    env.file("README.md", "# Half a thought\n");
    let before = env.git(&["rev-parse", "HEAD"]);
    one_run(&env).ends_with(6).says("though it may only read");
    assert_eq!(env.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(env.git(&["status", "--porcelain"]), " M README.md");
    assert_eq!(env.task_now(1)["status"], "todo");
    // Whoever wants to have it all the same can; it has the user's own edit as well.
    env.git(&["stash"]);
    env.git(&["cherry-pick", &format!("HEAD..refs/rehearsal/left/{}/work", env.runs()[0])]);
    assert_eq!((env.read("hello.txt"), env.read("more.txt")), ("hi\n".to_owned(), "more\n".to_owned()));
}

#[test]
fn a_reviewer_that_may_only_read_has_not_decided_if_it_wrote() {
    let env = TestEnv::new()
        .agent_script("run: [{ write: { path: hello.txt, content: hi } }, { say: <promise>DONE</promise> }]")
        .other_agent(
            "gatekeeper",
            "runs:\n  - - write: { path: sneaky.txt, content: x }\n    - say: <promise>APPROVE</promise>\n  - - say: <promise>APPROVE</promise>\n",
        )
        .config("testing: { command: 'true' }")
        .task_of("pull-request", "Say hello", &[]);
    let config = env
        .read(".rehearsal/config.yaml")
        .replace("  gatekeeper:\n", "  gatekeeper:\n    permission: plan\n");
    env.file(".rehearsal/config.yaml", config).commit("The gatekeeper only reads");
    env.run(&["work", "--until-idle"])
        .ends_with(0)
        .says("violated: changed `sneaky.txt`, though it may only read")
        .says("approved");
    assert_eq!(env.outcomes(), ["done", "violated", "approved"]);
}

#[test]
fn the_work_of_a_killed_run_is_its_tasks_and_nobody_elses() {
    let env = TestEnv::new().session("greet").task("Say hello").task("Say goodbye").agent_script(&format!(
        "runs:
  - - write: {{ path: hello.txt, content: half }}
    - {WAITS}
  - - write: {{ path: goodbye.txt, content: bye }}
    - say: <promise>DONE</promise>
  - - expect_prompt: {{ contains: 'left work on this task uncommitted, in `hello.txt`' }}
    - append: {{ path: hello.txt, content: ' and whole' }}
    - say: <promise>DONE</promise>
",
    ));
    let running = env.start(&["run"]);
    env.until_the_agent_waits();
    running.signal(Signal::KILL);
    running.finish();
    let (hello, goodbye, run) = (env.task_id(1), env.task_id(2), env.runs()[0].clone());
    let words = format!("uncommitted work on task {hello}");
    env.run(&["status"]).says(&env.stable().text(&format!("{words}, left by run {run}: `hello.txt`")));
    // Another task comes first now.
    env.must(&["task", "edit", &goodbye, "--priority", "urgent"]);
    env.run(&["run", "--iterations", "1"])
        .ends_with(0)
        .says(&env.stable().text(&format!("{words} was left by run {run}: `hello.txt`")));
    assert_eq!(env.git(&["show", "--name-only", "--format=", "HEAD"]), "goodbye.txt");
    assert_eq!(env.git(&["status", "--porcelain"]), "?? hello.txt");
    env.run(&["run"]).ends_with(0).says("all tasks are done");
    assert_eq!(env.git(&["show", "--name-only", "--format=%s", "HEAD"]), "Say hello\n\nhello.txt");
    assert_eq!(env.git(&["show", "HEAD:hello.txt"]), "half and whole");
    env.run(&["status"]).never_says("uncommitted work");
}

#[test]
fn what_one_iteration_left_is_committed_when_a_later_one_is_done() {
    let env = TestEnv::new().session("greet").task("Say hello").agent_script(
        "runs:
  - - write: { path: hello.txt, content: hi }
    - say: '<promise>CONTINUE: half of it</promise>'
  - - write: { path: more.txt, content: more }
    - say: <promise>DONE</promise>
",
    );
    env.run(&["run"]).ends_with(0).never_says("not committed").says("all tasks are done");
    assert_eq!(env.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_commit_that_is_made_for_an_agent_says_which_hooks_it_did_not_run() {
    let env = agent_that("echo hi > hello.txt");
    env.script(".git/hooks/pre-commit", "exit 1");
    env.git(&["config", "commit.gpgsign", "true"]);
    let output = env.run(&["run"]).ends_with(0);
    let notes: Vec<&str> = output.stderr.lines().filter(|line| line.contains("hooks")).collect();
    assert_snapshot!(notes.join("\n"), @"    note: the commit of what an agent left ran without your hooks (`pre-commit`) and without a signature");
}

#[test]
fn a_denied_call_is_named_wherever_somebody_asks() {
    let env = TestEnv::new().session("greet").task("Say hello").agent_script(
        "runs:
  - - tool: { name: WebFetch, input: { url: 'https://example.invalid/doc' }, end: refused }
    - write: { path: hello.txt, content: hi }
    - say: '<promise>CONTINUE: the document</promise>'
  - - expect_prompt: { contains: 'NOTE: in the last run for this task `WebFetch` was denied' }
    - say: '<promise>CONTINUE: still</promise>'
",
    );
    let output = env.run(&["run", "--iterations", "1"]);
    assert!(output.stdout.contains("`WebFetch` was denied"), "{output}");
    assert!(output.stderr.contains("`WebFetch` was denied"), "{output}");
    env.run(&["runs", "show", &env.runs()[0]]).says("`WebFetch` was denied");
    env.run(&["why", &env.task_id(1)]).says("`WebFetch` was denied");
    env.run(&["run", "--iterations", "1"]).ends_with(0);
}

#[test]
fn a_reviewer_without_a_decision_says_why() {
    let env = TestEnv::new()
        .agent_script("run: [{ write: { path: hello.txt, content: hi } }, { say: <promise>DONE</promise> }]")
        .other_agent(
            "gatekeeper",
            "run:\n  - tool: { name: Write, input: { file_path: result.json, content: x }, end: refused }\n  - say: I have looked at it.\n",
        )
        .config("testing: { command: 'true' }")
        .task_of("pull-request", "Say hello", &[]);
    let config = env
        .read(".rehearsal/config.yaml")
        .replace("  gatekeeper:\n", "  gatekeeper:\n    permission: plan\n");
    env.file(".rehearsal/config.yaml", config).commit("The gatekeeper only reads");
    env.run(&["work", "--until-idle"]).ends_with(7).says("the reviewer gave no decision: `Write` was denied");
    env.run(&["why", &env.task_id(1)])
        .says("the reviewer gave no decision: `Write` was denied")
        .never_says("state `blocked`");
    assert_eq!(env.task_now(1)["status"], "blocked");
}
