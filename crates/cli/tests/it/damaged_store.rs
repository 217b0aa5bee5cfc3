//! What is found where the database should be, and where it may not be written: told, left as it is, and what to do.

use insta::{allow_duplicates, assert_snapshot};

use crate::env::TestEnv;

fn database(env: &TestEnv) -> String {
    env.state_dir().join("rehearsal.db").into_string()
}

/// All that look for the store, but the one that says what to do.
const COMMANDS: [&[&str]; 7] = [
    &["task", "list"],
    &["task", "add", "More", "--session", "greet"],
    &["status"],
    &["run", "greet"],
    &["work", "--until-idle"],
    &["gc"],
    &["doctor", "--store"],
];

/// A repository with many tasks, all of which are in the file of the database and none only in its log.
fn with_tasks() -> TestEnv {
    let env = TestEnv::new().session("greet").agent_script("run: [{ say: hi }]");
    // So much at once makes SQLite bring it from the log into the file.
    let lines: String = (1..=TASKS).map(|n| format!("{{\"title\": \"Task {n}\"}}\n")).collect();
    env.run_with_input(&["task", "import", "-", "--format", "json-lines"], lines).ends_with(0);
    without_log(&env);
    env.must(&["doctor", "--store"]);
    without_log(&env);
    env
}

const TASKS: usize = 15_000;

/// What a copy of the one file would be.
fn without_log(env: &TestEnv) {
    for log in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{log}", database(env)));
    }
}

/// What every command says, which is the same.
fn said_by_all(env: &TestEnv) -> String {
    let said: Vec<String> = COMMANDS.iter().map(|command| env.run(command).to_string()).collect();
    assert!(said.iter().all(|one| *one == said[0]), "{said:#?}");
    said[0].clone()
}

fn what_the_doctor_says(env: &TestEnv) -> String {
    let said = env.run(&["doctor"]).ends_with(3).to_string();
    let lines = said.lines().skip_while(|line| !line.starts_with("bad   store"));
    lines.take(2).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_file_that_is_no_database_is_told_and_kept() {
    let env = with_tasks();
    let other = b"this is something else, and long enough to be looked at\n".repeat(1000);
    env.file(&database(&env), &other);
    assert_snapshot!(said_by_all(&env), @"
    [stderr]
    error: `[STATE]/rehearsal.db` is not a database of this program
    hint: nothing was changed; `rehearsal doctor` says what to do
    [exit 2]
    ");
    assert_snapshot!(what_the_doctor_says(&env), @"
    bad   store               `[STATE]/rehearsal.db` is not a database of this program
          hint: restore the database from a backup, or move it away and begin without tasks
    ");
    assert_eq!(std::fs::read(database(&env)).unwrap(), other);
}

#[test]
fn a_database_that_was_cut_off_or_overwritten_is_told_kept_and_found_again_in_a_backup() {
    let env = with_tasks();
    let whole = std::fs::read(database(&env)).unwrap();
    let mut overwritten = whole.clone();
    overwritten[8192..].fill(0xa5);
    for damaged in [&whole[..100], &whole[..4096], &whole[..whole.len() / 2], &overwritten] {
        env.file(&database(&env), damaged);
        allow_duplicates! {
            assert_snapshot!(said_by_all(&env), @"
            [stderr]
            error: the database is damaged: database disk image is malformed
            hint: nothing was changed; `rehearsal doctor` says what is wrong and what to do
            [exit 1]
            ");
            assert_snapshot!(what_the_doctor_says(&env), @"
            bad   store               the database is damaged: database disk image is malformed
                  hint: restore the database from a backup, or move it away and begin without tasks
            ");
        }
        assert!(std::fs::read(database(&env)).unwrap() == damaged, "it was written to");
    }
    env.file(&database(&env), &whole);
    env.must(&["doctor", "--store"]);
    assert_eq!(env.json(&["task", "list", "--limit", "20000"])["tasks"].as_array().unwrap().len(), TASKS);
}

#[test]
fn a_directory_in_the_place_of_the_database_is_told_and_kept() {
    let env = TestEnv::new().agent_script("run: [{ say: hi }]");
    env.must(&["config", "show"]);
    env.file(&format!("{}/notes.txt", database(&env)), "mine");
    assert_snapshot!(said_by_all(&env), @"
    [stderr]
    error: `[STATE]/rehearsal.db` is not a database of this program
    hint: nothing was changed; `rehearsal doctor` says what to do
    [exit 2]
    ");
    assert_snapshot!(what_the_doctor_says(&env), @"
    bad   store               `[STATE]/rehearsal.db` is not a database of this program
          hint: restore the database from a backup, or move it away and begin without tasks
    ");
    assert_eq!(env.read(format!("{}/notes.txt", database(&env))), "mine");
}

#[test]
fn a_repository_that_may_only_be_read_is_told_and_goes_on_when_it_may_be_written() {
    let env = TestEnv::new()
        .session("greet")
        .agent_script("run: [{ write: { path: hello.txt, content: hi } }, { commit: { message: Hi } }, { task_done: current }, { say: hi }]")
        .task("Say hello");
    let Some(read_only) = env.read_only() else { return };
    let before = env.git(&["status", "--short", "--ignored"]);
    for command in [
        &["task", "add", "More", "--session", "greet"][..],
        &["run", "greet"],
        &["work", "--until-idle"],
        &["init", "--force"],
    ] {
        let said = read_only.run(command).ends_with(2).to_string();
        // The database, or the first file that was to be written.
        assert!(said.to_lowercase().contains("read-only"), "{command:?}: {said}");
        assert!(said.contains("hint: nothing was written; see how its file system is mounted"), "{said}");
    }
    assert_eq!(env.git(&["status", "--short", "--ignored"]), before);
    env.must(&["run", "greet"]);
    assert_eq!(env.task_now(1)["status"], "done");
    env.must(&["doctor", "--store"]);
}

#[test]
fn a_database_whose_log_cannot_be_made_is_told_to_be_read_only() {
    let env = with_tasks();
    let Some(read_only) = env.read_only() else { return };
    assert_snapshot!(read_only.run(&["task", "list"]), @"
    [stderr]
    error: the database cannot be written: it is read-only here
    hint: nothing was written; see how its file system is mounted and what its mode is, and run the command again
    [exit 2]
    ");
    let doctor = read_only.run(&["doctor"]).ends_with(3);
    doctor
        .says("the database cannot be written: it is read-only here")
        .says("hint: nothing was written; see how");
}
