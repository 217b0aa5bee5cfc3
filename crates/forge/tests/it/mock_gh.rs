//! The stand-in for `gh`, and our GitHub played by it.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_forge::mock_gh::{Fault, FaultKind, MockChecks, MockGhEnv, MockState, run};
use rehearsal_forge::{
    Checks, Comment, ErrorClass, Forge, ForgeError, GitHub, Mergeable, PrState, Review, ReviewVerdict,
};

use crate::env::{TestEnv, git, head};
use crate::local_forge::{new_pr, pushed};

/// Tells the helper that it is `gh`.
const HELPER: &str = "REHEARSAL_TEST_GH";

/// A call without a memory: its exit status, standard output and standard error.
fn gh(vars: &[(&str, &str)], args: &[&str]) -> (u8, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let dir = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
    let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run(&args, &MockGhEnv { vars, dir }, &mut std::io::empty(), &mut out, &mut err);
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn the_scripts_of_old_find_what_they_know() {
    let said = |text: &str| (0, format!("{text}\n"), String::new());
    assert_eq!(gh(&[], &["pr", "create"]), said("https://github.com/test/repo/pull/99"));
    let number = [("GH_MOCK_PR_NUMBER", "42")];
    assert_eq!(gh(&number, &["pr", "create"]), said("https://github.com/test/repo/pull/42"));
    assert_eq!(gh(&[], &["pr", "merge", "99", "--merge"]), said("✓ Merged"));
    let failed = (1, String::new(), "! Pull request merge failed\n".to_owned());
    assert_eq!(gh(&[("GH_MOCK_MERGE_FAIL", "true")], &["pr", "merge"]), failed);
    let view = r#"{"mergeStateStatus":"CLEAN","number":42,"url":"https://github.com/test/repo/pull/42"}"#;
    assert_eq!(gh(&number, &["pr", "view"]), said(view));
    let conflict = [("GH_MOCK_PR_NUMBER", "42"), ("GH_MOCK_MERGE_STATUS", "CONFLICTING")];
    let args = ["pr", "view", "42", "--json", "mergeStateStatus,mergeable", "--jq", ".mergeStateStatus"];
    assert_eq!(gh(&conflict, &args), said("CONFLICTING"));
    let exists = "a pull request for branch \"x\" into branch \"main\" already exists:\n\
                  https://github.com/test/repo/pull/99\n";
    let created = gh(&[("GH_MOCK_PR_EXISTS", "true")], &["pr", "create", "--head", "x"]);
    assert_eq!(created, (1, String::new(), exists.to_owned()));
    let (code, _, told) = gh(&[("GH_MOCK_CREATE_FAIL", "true")], &["pr", "create"]);
    assert_eq!((code, told.starts_with("pull request create failed: ")), (1, true));
    assert_eq!(gh(&[], &["auth", "status"]).0, 0);
}

#[test]
fn what_it_does_not_play_it_refuses_loudly() {
    let refused = |args: &[&str]| gh(&[], args);
    let (code, out, told) = refused(&["pr", "ready", "7"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(told.starts_with("mock-gh: `pr ready 7` is not played: expected pr create, pr view, "), "{told}");
    let (code, _, told) = refused(&["api", "repos/a/b/issues"]);
    let played = "repos/OWNER/REPO/commits/SHA/check-runs, repos/OWNER/REPO/commits/SHA/status";
    assert_eq!(
        (code, told),
        (2, format!("mock-gh: `api repos/a/b/issues` is not played: expected {played}\n"))
    );
    let (code, _, told) = refused(&["pr", "view", "7", "--json", "stars"]);
    assert_eq!(code, 2);
    assert!(told.starts_with("mock-gh: there is no field `stars`: expected "), "{told}");
    let (code, _, told) = gh(&[("GH_MOCK_CHECKS", "blue")], &["pr", "checks", "7"]);
    let expected = "mock-gh: `GH_MOCK_CHECKS` has `blue`: expected none, pending, red, green or unreadable\n";
    assert_eq!((code, told.as_str()), (2, expected));
}

#[test]
fn checks_of_a_pull_request_end_with_their_status() {
    let checks = |told: &str| gh(&[("GH_MOCK_CHECKS", told)], &["pr", "checks", "7"]).0;
    assert_eq!(["pending", "red", "green", "none"].map(checks), [8, 1, 0, 1]);
}

#[test]
fn what_github_refuses_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("state.json");
    let gh = |args: &[&str]| gh(&[("GH_STATE_FILE", file.to_str().unwrap())], args);
    let no_such =
        "GraphQL: Could not resolve to a PullRequest with the number of 1. (repository.pullRequest)\n";
    assert_eq!(gh(&["pr", "checks", "1"]), (1, String::new(), no_such.to_owned()));
    assert_eq!(gh(&["pr", "create", "--head", "x", "--title", "Greet"]).0, 0);
    assert_eq!(gh(&["pr", "merge", "99", "--merge"]).0, 0);
    let merged = "X Pull request test/repo#99 (Greet) can't be closed because it was already merged\n";
    assert_eq!(gh(&["pr", "close", "99"]), (1, String::new(), merged.to_owned()));
    let (_, state, _) = gh(&["pr", "view", "99", "--json", "state", "--jq", ".state"]);
    assert_eq!(state, "MERGED\n");
    assert_eq!(gh(&["pr", "create", "--head", "y"]).0, 0);
    assert_eq!([0, 1].map(|_| gh(&["pr", "close", "100"]).0), [0, 0], "what is closed stays closed");
}

/// Not a test of its own: `gh`, as the script of the tests starts it.
#[test]
fn helper_is_gh() {
    let Ok(args) = std::env::var(HELPER) else { return };
    let args: Vec<String> = fs_err::read_to_string(args).unwrap().split('\0').map(str::to_owned).collect();
    let vars: BTreeMap<String, String> = std::env::vars().collect();
    let dir = Utf8PathBuf::from_path_buf(std::env::current_dir().unwrap()).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run(&args, &MockGhEnv { vars: vars.clone(), dir }, &mut std::io::stdin(), &mut out, &mut err);
    for (name, text) in [("REHEARSAL_TEST_OUT", &out), ("REHEARSAL_TEST_ERR", &err)] {
        fs_err::File::create(&vars[name]).unwrap().write_all(text).unwrap();
    }
    fs_err::write(&vars["REHEARSAL_TEST_CODE"], code.to_string()).unwrap();
}

/// A repository whose GitHub is played.
struct Stage {
    env: TestEnv,
    variables: Vec<(String, String)>,
}

impl Stage {
    fn new(state: &MockState) -> Self {
        let env = TestEnv::new();
        fs_err::write(env.root.join("gh.json"), serde_json::to_string(state).unwrap()).unwrap();
        let exe = std::env::current_exe().unwrap();
        // The test program's own words must not mix with those of `gh`.
        let script = format!(
            "#!/bin/bash\nt=$(mktemp -d)\nprintf '%s\\0' \"$@\" | head -c -1 > $t/args\n\
             {HELPER}=$t/args REHEARSAL_TEST_OUT=$t/out REHEARSAL_TEST_ERR=$t/err REHEARSAL_TEST_CODE=$t/code \
             '{}' --exact mock_gh::helper_is_gh --nocapture > $t/log 2>&1 || {{ cat $t/log >&2; exit 70; }}\n\
             cat $t/out; cat $t/err >&2; code=$(cat $t/code); rm -r $t; exit $code\n",
            exe.display()
        );
        fs_err::write(env.root.join("gh"), script).unwrap();
        fs_err::set_permissions(env.root.join("gh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let variable = |name: &str, file: &str| (name.to_owned(), env.root.join(file).to_string());
        let variables = vec![variable("GH_STATE_FILE", "gh.json"), variable("GH_MOCK_LOG", "gh.log")];
        Self { env, variables }
    }

    fn with_fault(on: &str, kind: FaultKind) -> Self {
        let fault = Fault { on: on.into(), kind, retry_after: Some(30), times: 1 };
        Self::new(&MockState { faults: vec![fault], ..MockState::default() })
    }

    fn forge(&self) -> GitHub {
        self.forge_with(&[])
    }

    fn forge_with(&self, more: &[(&str, &str)]) -> GitHub {
        let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let variables = self.variables.iter().cloned().chain(more).collect();
        GitHub::new(self.env.root.join("gh"), &self.env.repo).with_variables(variables)
    }

    /// How often a verb was called.
    fn calls(&self, verb: &str) -> usize {
        let log = fs_err::read_to_string(self.env.root.join("gh.log")).unwrap();
        let words: Vec<String> = verb.split(' ').map(|word| format!("\"{word}\"")).collect();
        let begins = format!("{{\"args\":[{}", words.join(","));
        log.lines().filter(|line| line.starts_with(&begins)).count()
    }

    fn state(&self) -> MockState {
        serde_json::from_str(&fs_err::read_to_string(self.env.root.join("gh.json")).unwrap()).unwrap()
    }
}

#[tokio::test]
async fn a_pull_request_on_github_lives_from_branch_to_merge() {
    let stage = Stage::new(&MockState::default());
    let commit = pushed(&stage.env, "t1", "a.txt", "a\n").await;
    let forge = stage.forge();
    assert_eq!(forge.find_pr("agent/t1").await.unwrap(), None);
    let opened = forge.create_pr(&new_pr("t1")).await.unwrap();
    assert_eq!((opened.pull_request.number, opened.adopted), (99, false));
    assert!(forge.create_pr(&new_pr("t1")).await.unwrap().adopted);
    let shown = forge.view(99).await.unwrap();
    assert_eq!(
        (shown.title.as_str(), &shown.state, &shown.mergeable),
        ("Do t1", &PrState::Open, &Mergeable::Clean)
    );
    assert_eq!(
        (shown.head_commit, shown.body),
        (Some(commit.clone()), "With \"evidence\"\nand more\n".to_owned())
    );
    let comment = Comment { key: "t1/3".into(), body: "12 passed".into() };
    forge.comment(99, &comment).await.unwrap();
    forge.comment(99, &comment).await.unwrap();
    assert_eq!(stage.calls("pr comment"), 1);
    forge
        .review(99, &Review { verdict: ReviewVerdict::RequestChanges, body: "line 42".into() })
        .await
        .unwrap();
    assert_eq!(stage.state().pull_requests[0].reviews[0].state, "CHANGES_REQUESTED");
    let stale = head(&stage.env.repo);
    let error = forge.merge(99, &stale).await.unwrap_err();
    assert!(matches!(error, ForgeError::HeadMoved { found: Some(found), .. } if found == commit));
    let merged = forge.merge(99, &commit).await.unwrap();
    assert!(!merged.already);
    assert_eq!(git(&stage.env.remote, &["rev-parse", "main"]), merged.commit.unwrap().as_str());
    assert!(forge.merge(99, &commit).await.unwrap().already);
    assert_eq!(stage.calls("pr merge"), 1);
}

#[tokio::test]
async fn an_answer_that_is_lost_after_its_effect_does_not_do_it_twice() {
    let stage = Stage::with_fault("pr create", FaultKind::ServerErrorAfter);
    let commit = pushed(&stage.env, "t1", "a.txt", "a\n").await;
    let forge = stage.forge();
    assert_eq!(forge.create_pr(&new_pr("t1")).await.unwrap().pull_request.number, 99);
    assert_eq!(stage.state().pull_requests.len(), 1);

    let stage = Stage::with_fault("pr merge", FaultKind::ServerErrorAfter);
    let again = pushed(&stage.env, "t1", "a.txt", "a\n").await;
    let forge = stage.forge();
    forge.create_pr(&new_pr("t1")).await.unwrap();
    assert!(!forge.merge(99, &again).await.unwrap().already);
    assert_eq!(stage.calls("pr merge"), 1);
    assert_ne!(commit, head(&stage.env.repo));

    let stage = Stage::with_fault("pr comment", FaultKind::ServerErrorAfter);
    pushed(&stage.env, "t1", "a.txt", "a\n").await;
    let forge = stage.forge();
    forge.create_pr(&new_pr("t1")).await.unwrap();
    forge.comment(99, &Comment { key: "k".into(), body: "b".into() }).await.unwrap();
    assert_eq!(stage.state().pull_requests[0].comments.len(), 1);
}

#[tokio::test]
async fn a_review_whose_answer_is_lost_is_for_a_human() {
    let stage = Stage::with_fault("pr review", FaultKind::ServerErrorAfter);
    pushed(&stage.env, "t1", "a.txt", "a\n").await;
    let forge = stage.forge();
    forge.create_pr(&new_pr("t1")).await.unwrap();
    let review = Review { verdict: ReviewVerdict::Approve, body: "good".into() };
    let error = forge.review(99, &review).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unknown);
    assert!(error.to_string().starts_with("nobody knows whether the forge did review: HTTP 502"), "{error}");
}

#[tokio::test]
async fn each_fault_of_the_server_belongs_to_someone() {
    let transient = ErrorClass::Transient { retry_after: None };
    let pause = ErrorClass::Transient { retry_after: Some(Duration::from_secs(30)) };
    for (kind, class) in [
        (FaultKind::ServerErrorBefore, transient),
        (FaultKind::RateLimit, pause),
        (FaultKind::Unauthorized, ErrorClass::Systemic),
        (FaultKind::NotFound, ErrorClass::Task),
        (FaultKind::HeadChanged, ErrorClass::Task),
    ] {
        let stage = Stage::with_fault("pr merge", kind);
        let commit = pushed(&stage.env, "t1", "a.txt", "a\n").await;
        let forge = stage.forge();
        forge.create_pr(&new_pr("t1")).await.unwrap();
        let error = forge.merge(99, &commit).await.unwrap_err();
        assert_eq!(error.class(), class, "{kind:?}: {error}");
        forge.merge(99, &commit).await.unwrap();
    }
}

#[tokio::test]
async fn a_merge_that_is_refused_leaves_it_open() {
    let stage = Stage::new(&MockState::default());
    let commit = pushed(&stage.env, "t1", "README.md", "mine\n").await;
    stage.forge().create_pr(&new_pr("t1")).await.unwrap();
    let error = stage.forge_with(&[("GH_MOCK_MERGE_FAIL", "true")]).merge(99, &commit).await.unwrap_err();
    assert_eq!(error.to_string(), "pull request 99 cannot be merged: ! Pull request merge failed");
    stage.env.lands("README.md", "theirs\n");
    assert_eq!(stage.forge().view(99).await.unwrap().mergeable, Mergeable::Conflicting);
    let error = stage.forge().merge(99, &commit).await.unwrap_err();
    assert!(matches!(error, ForgeError::NotMergeable { .. }), "{error}");
    stage.forge().close(99).await.unwrap();
    assert_eq!(stage.forge().view(99).await.unwrap().state, PrState::Closed);
    assert_eq!(stage.forge().view(7).await.unwrap_err().class(), ErrorClass::Task);
}

#[tokio::test]
async fn checks_that_wait_fail_pass_and_cannot_be_read_are_different_things() {
    let checks = vec![MockChecks::Pending, MockChecks::Red, MockChecks::Unreadable, MockChecks::Green];
    let stage = Stage::new(&MockState { checks, ..MockState::default() });
    let commit = head(&stage.env.repo);
    let forge = stage.forge();
    let ci = || vec!["ci".to_owned()];
    assert_eq!(forge.checks(&commit).await.unwrap(), Checks::Pending { names: ci() });
    assert_eq!(forge.checks(&commit).await.unwrap(), Checks::Failed { names: ci() });
    assert!(matches!(forge.checks(&commit).await.unwrap(), Checks::Unfetchable { .. }));
    assert_eq!(forge.checks(&commit).await.unwrap(), Checks::Passed { count: 1 });
    assert_eq!(Stage::new(&MockState::default()).forge().checks(&commit).await.unwrap(), Checks::None);
}

#[tokio::test]
async fn without_the_program_nobody_is_blamed() {
    let env = TestEnv::new();
    let error = GitHub::new("/nowhere/gh", &env.repo).find_pr("x").await.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.class()),
        ("`/nowhere/gh` was not found", ErrorClass::Systemic)
    );
}

#[tokio::test]
async fn a_branch_that_was_not_pushed_has_no_pull_request() {
    let stage = Stage::new(&MockState::default());
    let error = stage.forge().create_pr(&new_pr("t1")).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Task);
    let refused =
        stage.forge_with(&[("GH_MOCK_CREATE_FAIL", "true")]).create_pr(&new_pr("t1")).await.unwrap_err();
    assert!(refused.to_string().starts_with("the forge refused to open a pull request: "), "{refused}");
}
