use rstest::rstest;

use crate::stage::{Ended, Stage, ended};

fn run(stage: &Stage, env: &[(&str, &str)]) -> Ended {
    ended(stage.mock(&[], env).spawn().unwrap(), "go")
}

#[rstest]
#[case::defaults(&[], r#"{"outcome":"success"}"#, 1)]
#[case::two_commits(&[("MOCK_OUTCOME", "success"), ("MOCK_COMMITS", "2")], r#"{"outcome":"success"}"#, 2)]
#[case::approves(
    &[("MOCK_DECISION", "approve"), ("MOCK_COMMITS", "0")],
    r#"{"outcome":"success","decision":"approve"}"#,
    0
)]
#[case::rejects(
    &[("MOCK_DECISION", "reject"), ("MOCK_COMMENT", "Tests \"fail\" on line 42"), ("MOCK_COMMITS", "0")],
    r#"{"outcome":"success","decision":"reject","comment":"Tests \"fail\" on line 42"}"#,
    0
)]
#[case::fails(
    &[("MOCK_OUTCOME", "failure"), ("MOCK_REASON", "Could not parse requirements")],
    r#"{"outcome":"failure","reason":"Could not parse requirements"}"#,
    1
)]
#[case::goes_on(&[("MOCK_OUTCOME", "needs_continuation")], r#"{"outcome":"needs_continuation"}"#, 1)]
#[case::empty_is_unset(&[("MOCK_DECISION", ""), ("MOCK_SLEEP", "0")], r#"{"outcome":"success"}"#, 1)]
fn the_variables_decide_the_result_and_the_commits(
    #[case] env: &[(&str, &str)],
    #[case] result: &str,
    #[case] commits: usize,
) {
    let stage = Stage::new();
    run(&stage, env).well();
    assert_eq!(stage.read("task/result.json").trim_end(), result);
    let subjects = stage.git(&["log", "--reverse", "--format=%an <%ae> %s"]);
    let expected: Vec<String> =
        (1..=commits).map(|i| format!("Mock Agent <mock-agent@example.invalid> mock commit {i}")).collect();
    assert_eq!(subjects.lines().skip(1).collect::<Vec<_>>(), expected);
    assert_eq!(stage.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_crash_leaves_nothing_behind() {
    let stage = Stage::new();
    let crashed = run(&stage, &[("MOCK_CRASH", "true"), ("MOCK_COMMITS", "2")]);
    assert_eq!((crashed.code(), crashed.stdout.as_str()), (1, ""));
    assert!(!stage.task_dir.join("result.json").exists());
    assert_eq!(stage.git(&["rev-list", "--count", "HEAD"]), "1");
}

#[test]
fn hooks_of_the_repository_do_not_stop_it() {
    let stage = Stage::new();
    let hook = stage.repo.join(".git/hooks/pre-commit");
    fs_err::create_dir_all(hook.parent().unwrap()).unwrap();
    fs_err::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    fs_err::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    run(&stage, &[]).well();
}

#[test]
fn a_number_that_is_none_is_refused() {
    let stage = Stage::new();
    let refused = run(&stage, &[("MOCK_COMMITS", "two")]);
    assert_eq!(refused.code(), 2);
    assert_eq!(refused.stderr, "mock-agent: `MOCK_COMMITS` is `two`: expected a whole number\n");
}

#[test]
fn a_place_that_is_no_repository_is_told() {
    let stage = Stage::new();
    let refused = run(&stage, &[("TASK_WORKTREE", stage.root.as_str())]);
    assert_eq!(refused.code(), 2);
    assert!(refused.stderr.contains("is not in a git repository"), "{}", refused.stderr);
}

#[test]
fn it_sleeps_in_real_time() {
    let stage = Stage::new();
    let before = std::time::Instant::now();
    run(&stage, &[("MOCK_SLEEP", "1"), ("MOCK_COMMITS", "0")]).well();
    assert!(before.elapsed() >= std::time::Duration::from_secs(1));
}

#[test]
fn it_speaks_the_format_that_is_asked_for() {
    let stage = Stage::new();
    let spoken =
        ended(stage.mock(&["--as", "codex", "exec", "--json", "-"], &[]).spawn().unwrap(), "go").well();
    let last = spoken.stdout.lines().last().unwrap();
    assert!(last.starts_with(r#"{"type":"turn.completed""#), "{last}");
    assert!(spoken.stdout.contains("Mock agent: success, 1 commits."), "{}", spoken.stdout);
}
