//! The configuration and flows: loud about mistakes, and open about where a setting comes from.

use insta::assert_snapshot;

use crate::env::TestEnv;

fn with_config(text: &str) -> TestEnv {
    let env = TestEnv::new().session("greet").task("Say hello");
    env.file(".rehearsal/config.yaml", text);
    env
}

#[test]
fn broken_yaml_is_shown_with_its_place() {
    assert_snapshot!(with_config("agents:\n  implementer: [\n").run(&["run"]), @r"
    [stderr]
    error: unclosed bracket '['
      --> .rehearsal/config.yaml:2:16
    [exit 2]
    ");
    assert_snapshot!(with_config("agents:\n  implementer:\n    driver: claude\n    driver: codex\n").run(&["run"]), @r"
    [stderr]
    error: duplicate mapping key: driver
      --> .rehearsal/config.yaml:4:5
    [exit 2]
    ");
}

#[test]
fn an_unknown_key_is_an_error_with_what_was_meant() {
    assert_snapshot!(with_config("agnts:\n  implementer: {}\n").run(&["run"]), @"
    [stderr]
    error: unknown field `agnts`, expected one of $schema, base_branch, agent, loop, store, flow, work, worktrees, forge, testing, check, quality, agents
      --> .rehearsal/config.yaml:1:1
    hint: did you mean `agents`?
    [exit 2]
    ");
    assert_snapshot!(with_config("loop:\n  iteration: 3\n").run(&["config", "show"]), @r"
    [stderr]
    error: unknown field `iteration`, expected one of iterations, max_failures, max_cost, max_wait, accept_complete
      --> .rehearsal/config.yaml:2:3
    hint: did you mean `iterations`?
    [exit 2]
    ");
}

#[test]
fn a_wrong_value_says_what_is_right() {
    assert_snapshot!(with_config("agents:\n  implementer:\n    driver: cloude\n").run(&["run"]), @"
    [stderr]
    error: unknown variant `cloude`, expected one of claude, codex, gemini, opencode, crew, command
      --> .rehearsal/config.yaml:3:13
    hint: did you mean `claude`?
    [exit 2]
    ");
    assert_snapshot!(with_config("agents:\n  implementer:\n    timeout: soon\n").run(&["run"]), @r"
    [stderr]
    error: `soon` is not a duration: write `90s`, `30m`, `1h30m` or `2d`
      --> .rehearsal/config.yaml:3:14
    [exit 2]
    ");
    assert_snapshot!(with_config("loop:\n  iterations: many\n").run(&["run"]), @r"
    [stderr]
    error: expected a whole number
      --> .rehearsal/config.yaml:2:15
    [exit 2]
    ");
}

#[test]
fn an_unknown_agent_is_an_error_with_what_was_meant() {
    let env = with_config("agents:\n  reviewer:\n    driver: codex\n");
    assert_snapshot!(env.run(&["run", "--agent", "reviewr"]), @r"
    [stderr]
    error: unknown agent `reviewr`
      --> .rehearsal/config.yaml
    hint: did you mean `reviewer`?
    [exit 2]
    ");
    assert_snapshot!(with_config("agent: nobody\n").run(&["run"]), @"
    [stderr]
    error: unknown agent `nobody`
      --> .rehearsal/config.yaml
    hint: no agents are configured; without a configuration there are `implementer` and the roles of the crew: search, research, code, review, test, qa, docs, init
    [exit 2]
    ");
}

#[test]
fn what_is_no_text_is_refused() {
    let env = TestEnv::new().session("greet");
    env.file(".rehearsal/config.yaml", b"agent: \xff\xfe\n");
    assert_snapshot!(env.run(&["config", "show"]), @r"
    [stderr]
    error: this is not text: it is not valid UTF-8
      --> [REPO]/.rehearsal/config.yaml:1:8
    [exit 2]
    ");
    let env = TestEnv::new();
    env.file(".rehearsal/config.yaml", vec![b'#'; 5 << 20]);
    assert_snapshot!(env.run(&["config", "show"]), @r"
    [stderr]
    error: `[REPO]/.rehearsal/config.yaml` is too large: at most 4 MiB are read
    [exit 2]
    ");
}

#[test]
fn each_setting_says_where_it_comes_from() {
    let env = with_config("agents:\n  implementer:\n    model: sonnet\nloop:\n  iterations: 5\n")
        .var("REHEARSAL_MAX_COST", "2.5");
    std::fs::create_dir_all(env.scratch.join("home/.config/rehearsal")).unwrap();
    std::fs::write(
        env.scratch.join("home/.config/rehearsal/config.yaml"),
        "loop: { iterations: 7, max_failures: 1 }\n",
    )
    .unwrap();
    assert_snapshot!(env.run(&["config", "show", "--origin"]), @"
    SETTING                                   VALUE         ORIGIN
    base_branch                               -             default
    agent                                     implementer   default
    loop.iterations                           5             .rehearsal/config.yaml
    loop.max_failures                         1             [SCRATCH]/home/.config/rehearsal/config.yaml
    loop.max_cost                             2.5           environment
    loop.max_wait                             6h            default
    loop.accept_complete                      false         default
    store                                     -             default
    flow                                      loop          default
    work.workers                              2             default
    work.at_once                              -             default
    work.lease                                1m30s         default
    worktrees.directory                       -             default
    worktrees.setup                           -             default
    worktrees.keep_warm                       4             default
    forge.kind                                auto          default
    forge.remote                              origin        default
    testing.framework                         -             default
    testing.command                           -             default
    testing.timeout                           5m            default
    testing.patterns                          -             default
    testing.exclude                           -             default
    testing.environment                       -             default
    testing.retries                           0             default
    testing.parallel                          -             default
    testing.sandbox.level                     best_effort   default
    testing.sandbox.project                   -             default
    testing.sandbox.allow_network             false         default
    testing.sandbox.max_memory                2GB           default
    testing.sandbox.max_cpus                  2             default
    testing.sandbox.max_processes             1024          default
    testing.sandbox.read                      -             default
    testing.sandbox.write                     -             default
    check.build                               -             default
    check.lint                                -             default
    quality.most_files                        2             default
    quality.risky_paths                       as shipped    default
    quality.risky_words                       as shipped    default
    quality.public_interfaces                 true          default
    agents.implementer.driver                 claude        default
    agents.implementer.role                   -             default
    agents.implementer.program                -             default
    agents.implementer.args                   -             default
    agents.implementer.model                  sonnet        .rehearsal/config.yaml
    agents.implementer.permission             accept_edits  default
    agents.implementer.system_prompt          -             default
    agents.implementer.timeout                1h            default
    agents.implementer.idle_timeout           15m           default
    agents.implementer.repeated_calls         25            default
    agents.implementer.tool_calls             2000          default
    agents.implementer.budget                 -             default
    agents.implementer.pass_env               -             default
    agents.implementer.env                    -             default
    agents.implementer.enabled                true          default
    agents.implementer.fallback               -             default
    agents.implementer.accounts               -             default
    agents.implementer.at_once                -             default
    agents.implementer.interval               0s            default
    agents.implementer.sandbox.level          auto          default
    agents.implementer.sandbox.project        writable      default
    agents.implementer.sandbox.allow_network  true          default
    agents.implementer.sandbox.max_memory     -             default
    agents.implementer.sandbox.max_cpus       -             default
    agents.implementer.sandbox.max_processes  -             default
    agents.implementer.sandbox.read           -             default
    agents.implementer.sandbox.write          -             default

    state: [STATE]
    ");
}

#[test]
fn a_wrong_variable_names_the_environment() {
    let env = TestEnv::new().var("REHEARSAL_ITERATIONS", "many");
    assert_snapshot!(env.run(&["config", "show"]), @r"
    [stderr]
    error: the variable `REHEARSAL_ITERATIONS` cannot be used: expected a whole number
      --> the environment
    [exit 2]
    ");
}

#[test]
fn flows_are_checked_and_drawn() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["flow", "check"]), @"
    loop: ok, 4 states, version [HASH]
    pull-request: ok, 5 states, version [HASH]
    approve: ok, 6 states, version [HASH]
    plan: ok, 7 states, version [HASH]
    look: ok, 4 states, version [HASH]
    ");
    assert_snapshot!(env.run(&["flow", "graph", "loop"]), @"
    stateDiagram-v2
        [*] --> s_todo
        s_todo : todo (implementer → commit_leftovers → rebase → run_tests → push_branch → create_pr → land)
        s_todo --> s_done : done
        s_todo --> s_todo : continue
        s_todo --> s_todo : no_changes
        s_todo --> s_todo : needs_continuation
        s_todo --> s_todo : tests_failed, at most 3
        s_todo --> s_failed : tests_failed, after that
        s_todo --> s_todo : conflict, at most 5
        s_todo --> s_blocked : conflict, after that
        s_todo --> s_todo : merge_failed, at most 3
        s_todo --> s_blocked : merge_failed, after that
        s_todo --> s_blocked : blocked
        s_todo --> s_blocked : budget_reached
        s_todo --> s_todo : failed, at most 3
        s_todo --> s_failed : failed, after that
        s_todo --> s_todo : crashed, at most 3
        s_todo --> s_failed : crashed, after that
        s_blocked : blocked (waits for human)
        s_done --> [*]
        s_failed --> [*]
    ");
    assert_snapshot!(env.run(&["flow", "graph", "loops"]), @"
    [stderr]
    error: there is no flow `loops`
    hint: did you mean `loop`?
    [exit 2]
    ");
    env.file(".rehearsal/flows/review.yaml", "");
    assert_snapshot!(env.run(&["flow", "graph", "reviw"]).stderr, @"
    error: there is no flow `reviw`
    hint: did you mean `review`?
    ");
    assert_snapshot!(env.run(&["flow", "check", "review"]), @"
    [stderr]
    error: there is no flow in this file
      --> .rehearsal/flows/review.yaml
    hint: a flow has `name`, `start` and `states`: `rehearsal flow graph pull-request` draws one, `rehearsal schema flow` has all it can say
    [exit 2]
    ");
    env.file(".rehearsal/flows/review.yaml", "name: review\nstates: { done: { end: success } }\n");
    assert_snapshot!(env.run(&["flow", "check", "review"]), @"
    [stderr]
    error: missing field `start`
      --> .rehearsal/flows/review.yaml:2:1
    hint: add `start: …` here
    [exit 2]
    ");
    std::fs::remove_file(env.repo.join(".rehearsal/flows/review.yaml")).unwrap();
    env.file(".rehearsal/flows/mine.yaml", "name: mine\nstart: todo\nstates:\n  todo:\n    agent: implementer\n    on:\n      done: finished\n  done: { end: success }\n");
    assert_snapshot!(env.run(&["flow", "check"]), @r"
    loop: ok, 4 states, version [HASH]
    pull-request: ok, 5 states, version [HASH]
    approve: ok, 6 states, version [HASH]
    plan: ok, 7 states, version [HASH]
    look: ok, 4 states, version [HASH]
    [stderr]
    error: unknown state `finished`
      --> .rehearsal/flows/mine.yaml:7:13
    hint: known states: todo, done
    [exit 2]
    ");
    assert_snapshot!(env.run(&["flow", "check", ".rehearsal/flows/missing.yaml"]), @r"
    [stderr]
    error: there is no file `.rehearsal/flows/missing.yaml`
    [exit 2]
    ");
}

#[test]
fn all_flows_with_mistakes_are_told_at_once_and_listed() {
    let env = TestEnv::new();
    let flow = |name: &str, to: &str| {
        format!(
            "name: {name}\nstart: todo\nstates:\n  todo: {{ agent: implementer, on: {{ done: {to} }}, otherwise: todo }}\n  done: {{ end: success }}\n"
        )
    };
    env.file(".rehearsal/flows/good.yaml", flow("good", "done"));
    env.file(".rehearsal/flows/mine.yaml", flow("mine", "doen"));
    env.file(".rehearsal/flows/other.yaml", flow("another", "done"));
    assert_snapshot!(env.run(&["flow", "check"]).stderr, @"
    error: 2 flows have mistakes
      because: .rehearsal/flows/mine.yaml:4:43: unknown state `doen` (did you mean `done`?)
      because: .rehearsal/flows/other.yaml: the flow calls itself `another` (write `name: other`, or call the file `another.yaml`)
    ");
    env.run(&["flow", "list"])
        .ends_with(0)
        .says(".rehearsal/flows/mine.yaml:4:43: unknown state `doen`")
        .says("todo, done");
}

#[test]
fn outside_of_a_repository_there_is_nothing_to_work_on() {
    let env = TestEnv::without_repository();
    assert_snapshot!(env.run(&["status"]), @r"
    [stderr]
    error: `[REPO]` is not inside a git repository
    hint: run `git init`, or go to a repository, or name one with `--repo DIR`
    [exit 4]
    ");
    assert_snapshot!(env.run(&["run"]), @r"
    [stderr]
    error: `[REPO]` is not inside a git repository
    hint: run `git init`, or go to a repository, or name one with `--repo DIR`
    [exit 4]
    ");
    assert_snapshot!(env.run(&["status", "--repo", "nowhere"]), @r"
    [stderr]
    error: there is no directory `[REPO]/nowhere`
    [exit 2]
    ");
}
