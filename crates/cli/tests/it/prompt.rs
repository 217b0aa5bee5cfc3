//! What an agent is told, and what a dry run shows of it.

use insta::assert_snapshot;

use crate::env::TestEnv;

#[test]
fn the_prompt_has_all_that_an_agent_must_know() {
    let env = TestEnv::new()
        .session_with("greet", &["-d", "Epic description", "--context", "Custom context\nMultiple lines"])
        .task_with("Build feature X", &["-c", "Criterion A", "-c", "Criterion B", "-p", "high", "-l", "api"])
        .task_with("Later", &["-b", "With a description"])
        .agent_script("runs: [[{ task_done: [current] }], [{ task_done: [current] }]]");
    env.must(&["session", "progress", "Prior work done"]);
    env.run(&["run", "--message", "Mind the gap."]).ends_with(0);
    assert_snapshot!(env.stable().text(&env.prompt(1)), @r#"
    <context>
    Epic description

    Custom context
    Multiple lines
    </context>

    <progress>
    Prior work done
    </progress>

    <tasks>
    ## Build feature X (this iteration)

    - id: [TASK-1]
    - state: working
    - priority: high
    - labels: api
    - acceptance criteria:
      - Criterion A
      - Criterion B

    ## Later

    - id: [TASK-2]
    - state: todo
    - priority: medium

    With a description

    Done so far: 0 of 2 tasks.
    </tasks>

    <instructions>
    ONE TASK PER ITERATION. This is iteration 1 of at most 10. Work on task
    `[TASK-1]` (Build feature X) and on no other. Each iteration begins with a fresh context: what is not
    committed, reported or written to the progress journal is forgotten.

    1. Read what is there: the code, `git log`, the progress above.
    2. Do the task, all of it, so that every acceptance criterion holds.
    3. Run the repository's tests and fix what you broke.
    4. Commit your work with a message that says what changed. If you cannot commit, leave the files as they are: they are committed for you. Do not push, and do not change branches.
    5. For what the next iteration should know, run `[PROGRAM] session progress "one line"`.
    6. End your last message with a line that has one of these signals:
       - `<promise>DONE</promise>` when this task is done, or `<promise>DONE: why</promise>` when nothing had to change for it
       - `<promise>CONTINUE: message</promise>` when there is more to do; the message goes to the next iteration
       - `<promise>BLOCKED: why</promise>` when you cannot go on without a human
       - `<promise>COMPLETE</promise>` when all tasks of the session are done, and you reported each with `[PROGRAM] task done ID`
       Without a signal the next iteration begins.

    Mind the gap.
    </instructions>
    "#);
}

#[test]
fn criteria_of_the_session_hold_for_each_of_its_tasks() {
    let env = TestEnv::new()
        .session_with("greet", &["--criterion", "all tests pass"])
        .task_with("Say hello", &["-c", "it says hello"])
        .agent_script("runs: [[{ task_done: current }]]");
    env.run(&["run"]).ends_with(0);
    let prompt = env.prompt(1);
    assert!(
        prompt.contains("  - it says hello\n  - all tests pass (holds for every task of this session)\n"),
        "{prompt}"
    );
}

#[test]
fn a_users_own_template_makes_the_prompt() {
    let env =
        TestEnv::new().session("greet").task("Say hello").agent_script("runs: [[{ task_done: current }]]");
    env.file(".rehearsal/prompts/loop.md", "Do {{ current.title }} now.\n");
    env.run(&["run"]).ends_with(0);
    assert_eq!(env.prompt(1), "Do Say hello now.");
    let env = env.task("Another");
    env.file(".rehearsal/prompts/loop.md", "First line\nDo {{ curent.title }} now.\n");
    assert_snapshot!(env.run(&["run"]), @r"
    [stderr]
    error: the prompt template cannot be used: undefined value: `curent` is undefined
      --> .rehearsal/prompts/loop.md:2
    hint: `rehearsal run SESSION --dry-run` renders it and runs nothing
    [exit 2]
    ");
    assert_eq!(env.task_now(2)["status"], "todo", "nobody works on it");
    assert_eq!(env.task_now(2)["task"]["attempts"], 0);
    env.run(&["run"]).ends_with(2).never_says("dead worker");
}

#[test]
fn a_dry_run_shows_the_command_and_the_prompt_and_runs_nothing() {
    let env = TestEnv::new()
        .session("greet")
        .task("Say hello")
        .agent_setting("model: sonnet")
        .agent_setting("system_prompt: Be brief.")
        .agent_setting("budget: { usd: 2 }")
        .agent_script("runs: []");
    env.file(".rehearsal/prompts/loop.md", "Do {{ current.title }} now.\n");
    assert_snapshot!(env.run(&["run", "--dry-run"]), @"
    # command (the prompt goes to its standard input)
    [PROGRAM] mock-agent --as claude --script [SCRATCH]/agent/script.yaml --print --output-format stream-json --verbose --permission-mode acceptEdits --allowedTools 'Bash(git add:*),Bash(git commit:*),Bash(rehearsal:*),Bash([PROGRAM]:*)' --add-dir [STATE]/runs/[RUN] --setting-sources '' --disable-slash-commands --model sonnet --append-system-prompt 'Be brief.' --max-budget-usd 2
    # not confined: `sandbox: off`; only the agent's own permission rules apply
    #   `permission: accept_edits`: it may edit files
    #   may write: [REPO], [STATE]/runs/[RUN]
    #   allowed commands: git add, git commit, rehearsal, [PROGRAM]

    # prompt for task [TASK-1]
    Do Say hello now.
    ");
    assert_eq!(env.agent_calls(), 0);
    assert!(env.runs().is_empty());
}

#[test]
fn a_dry_run_needs_no_program() {
    let env = TestEnv::new().session("greet").task_with("Say hello", &["--max-cost", "1.5"]);
    env.file(
        ".rehearsal/config.yaml",
        "agents:\n  implementer:\n    driver: claude\n    program: no-such-claude\n    system_prompt: Be brief.\n",
    );
    env.file(".rehearsal/prompts/loop.md", "Do {{ current.title }} now.\n");
    // Our own program is named where it is in a home.
    let output = env.run(&["run", "--dry-run"]).to_string().replace(", [PROGRAM]\n", "\n");
    assert_snapshot!(output, @"
    # command (the prompt goes to its standard input)
    no-such-claude --print --output-format stream-json --verbose --dangerously-skip-permissions --setting-sources '' --disable-slash-commands --append-system-prompt 'Be brief.' --max-budget-usd 1.5
    # confined by the full sandbox; the agent's own permission rules are off
    #   can write: [REPO], [STATE]/runs/[RUN], [REPO]/.git
    #   except: [REPO]/.rehearsal/config.yaml, [REPO]/.rehearsal/prompts, [REPO]/.git/hooks, [REPO]/.git/config, [REPO]/.git/rehearsal-state
    #   can also read: [SCRATCH]/bin
    #   network: allowed
    # note: `no-such-claude` was not found, so it could not be asked which of these flags it has

    # prompt for task [TASK-1]
    Do Say hello now.
    ");
    env.run(&["run"]).ends_with(6).says("program `no-such-claude` was not found");
}

#[test]
fn a_message_of_an_iteration_goes_to_the_next() {
    let env = TestEnv::new().session("greet").task("Say hello").agent_script(
        "
        runs:
          - - say: '<promise>CONTINUE: the parser is half done</promise>'
          - - expect_prompt: { contains: 'the last iteration says: the parser is half done' }
            - task_done: current
        ",
    );
    env.run(&["run"]).ends_with(0).says("continue: the parser is half done").says("all tasks are done");
}
