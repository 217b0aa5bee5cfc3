//! Where tasks and runs are kept: outside of the working tree, under a key in the git directory.

use insta::assert_snapshot;

use crate::env::TestEnv;

#[test]
fn git_clean_by_an_agent_in_the_checkout_loses_no_task() {
    let script = "runs: [[{ run: { command: 'git clean -fdxq', status: 0 } }, { say: hi }]]";
    let env = TestEnv::new().session("greet").task("Say hello").agent_script(script);
    env.must(&["run", "--iterations", "1"]);
    assert_eq!(env.json(&["task", "list"])["tasks"].as_array().unwrap().len(), 1);
    assert_ne!(env.outcomes(), ["crashed"]);
    assert_eq!(env.git(&["status", "--porcelain", "--ignored"]), "");
}

#[test]
fn a_database_that_vanished_is_an_error_and_no_empty_list() {
    let env = TestEnv::new().session("greet").task("Say hello");
    std::fs::remove_dir_all(env.state_dir()).unwrap();
    for command in [&["task", "list"][..], &["run"], &["work", "--until-idle"]] {
        let said = env.run(command).ends_with(2).to_string();
        insta::allow_duplicates! {
            assert_snapshot!(said, @"
            [stderr]
            error: the tasks of this repository are gone: there is no database in `[STATE]`
            hint: restore the directory from a backup
            hint: or remove `[REPO]/.git/rehearsal-state` to begin without tasks
            [exit 2]
            ");
        }
    }
    env.run(&["doctor"]).says("the tasks of this repository are gone");
}

#[test]
fn a_repository_that_is_moved_keeps_its_tasks_and_a_copy_is_refused() {
    let env = TestEnv::new().session("greet").task("Say hello");
    let moved = env.scratch.join("moved");
    std::fs::rename(&env.repo, &moved).unwrap();
    let list = |repo: &str| env.run_in("/", &["--repo", repo, "task", "list"]);
    list(moved.as_str()).ends_with(0).says("Say hello");
    let copied = env.command_in("/", "/bin/cp").args(["-r", moved.as_str(), env.repo.as_str()]).status();
    assert!(copied.unwrap().success());
    assert_snapshot!(list(env.repo.as_str()), @"
    [stderr]
    error: this repository is a copy of `[SCRATCH]/moved`, and has the key to its tasks
    hint: remove `[REPO]/.git/rehearsal-state`: this copy then begins without tasks
    [exit 2]
    ");
    std::fs::remove_file(env.repo.join(".git/rehearsal-state")).unwrap();
    list(env.repo.as_str()).ends_with(0).never_says("Say hello");
    list(moved.as_str()).ends_with(0).says("Say hello");
}

#[test]
fn a_clone_begins_without_tasks() {
    let env = TestEnv::new().session("greet").task("Say hello");
    let clone = env.scratch.join("clone");
    env.git(&["clone", "--quiet", ".", clone.as_str()]);
    env.run(&["--repo", clone.as_str(), "task", "list"]).ends_with(0).never_says("Say hello");
}

#[test]
fn the_state_of_an_earlier_version_is_moved_out_of_the_working_tree() {
    let env = TestEnv::new().session("greet").task("Say hello");
    let earlier = env.repo.join(".rehearsal/state");
    std::fs::create_dir_all(earlier.parent().unwrap()).unwrap();
    std::fs::rename(env.state_dir(), &earlier).unwrap();
    std::fs::remove_file(env.repo.join(".git/rehearsal-state")).unwrap();
    env.run(&["task", "list"]).ends_with(0).says("Say hello");
    assert!(!earlier.exists());
    assert!(env.state_dir().join("rehearsal.db").exists());
    let document = env.json(&["config", "show"]);
    assert_eq!(document["state"], env.state_dir().as_str());
}

#[test]
fn a_key_that_is_not_one_is_told_with_its_place() {
    let env = TestEnv::new();
    for key in [&b"../../etc\n"[..], b"\xff\xfe"] {
        std::fs::write(env.repo.join(".git/rehearsal-state"), key).unwrap();
        let said = env.run(&["task", "list"]).ends_with(2);
        said.says("error: `[REPO]/.git/rehearsal-state` does not hold the name of a directory")
            .says("or remove `[REPO]/.git/rehearsal-state` to begin without tasks");
    }
}
