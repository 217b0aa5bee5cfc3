//! What only a file can show: what is found where a database should be, and what a doctor finds in one.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Actor, NewTask, Timestamp};
use rehearsal_store::{Change, OpenError, SqliteStore, Store};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, raw_sql};

use crate::bench::{block_on, id, loop_flow, message, titled};

const FILE: &str = "rehearsal.db";

async fn raw(directory: &Path) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(directory.join(FILE))
        .create_if_missing(true)
        .foreign_keys(false)
        .connect()
        .await
        .unwrap()
}

/// Does what no program of ours does.
async fn tamper(directory: &Path, sql: &str) -> Result<(), sqlx::Error> {
    let mut connection = raw(directory).await;
    raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await?;
    connection.close().await
}

async fn store_with_two_tasks(directory: &Path) -> SqliteStore {
    let store = SqliteStore::open(directory).await.unwrap();
    let flow = loop_flow();
    let later = NewTask { depends_on: vec![id("one")], ..titled("two") };
    let tasks = vec![(id("one"), titled("one")), (id("two"), later)];
    let block = TaskInput::Block { reason: "a key".into() };
    let changes = vec![Change::AddTasks { tasks, flow }, Change::ChangeTask { id: id("one"), input: block }];
    store.commit(Actor::User, Timestamp(1), changes).await.unwrap();
    store
}

#[test]
fn what_was_written_is_there_when_the_store_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    block_on(async {
        drop(store_with_two_tasks(directory.path()).await);
        let store = SqliteStore::open(directory.path()).await.unwrap();
        assert_eq!(store.task(&id("one")).await.unwrap().unwrap().status(), "blocked");
        assert_eq!(store.schema_version().await.unwrap(), 1);
        let unblock = Change::ChangeTask { id: id("one"), input: TaskInput::Unblock };
        store.commit(Actor::User, Timestamp(2), vec![unblock]).await.unwrap();
        assert!(store.verify().await.unwrap().is_empty());
    });
}

#[test]
fn the_state_is_kept_from_other_users_and_from_git() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join(".rehearsal/state");
    block_on(SqliteStore::open(&state)).unwrap();
    assert_eq!(std::fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(std::fs::read_to_string(state.join(".gitignore")).unwrap(), "*\n");
}

#[test]
fn a_file_in_the_way_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("state");
    std::fs::write(&file, "").unwrap();
    let error = message(block_on(SqliteStore::open(&file)));
    assert_eq!(error, format!("cannot use the directory `{}`", file.display()));
}

#[test]
fn garbage_is_no_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE);
    std::fs::write(&path, "once upon a time ".repeat(1_000)).unwrap();
    let error = message(block_on(SqliteStore::open(directory.path())));
    assert_eq!(error, format!("`{}` is not a database of this program", path.display()));
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    block_on(async {
        tamper(directory.path(), "CREATE TABLE songs (title TEXT)").await.unwrap();
        match SqliteStore::open(directory.path()).await {
            Err(OpenError::NotOurs { .. }) => {}
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_database_of_a_newer_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    block_on(async {
        drop(store_with_two_tasks(directory.path()).await);
        tamper(directory.path(), "PRAGMA user_version = 7").await.unwrap();
        let error = message(SqliteStore::open(directory.path()).await);
        let path = directory.path().join(FILE);
        let expected = "was made by a newer version of this program (schema 7, this one knows 1)";
        assert_eq!(error, format!("`{}` {expected}", path.display()));
    });
}

#[test]
fn a_database_that_lost_its_mode_gets_it_back() {
    let directory = tempfile::tempdir().unwrap();
    block_on(async {
        drop(store_with_two_tasks(directory.path()).await);
        // The closing of the store's own connections is not awaited by anyone: until then this is refused.
        while tamper(directory.path(), "PRAGMA journal_mode = DELETE").await.is_err() {}
        let store = SqliteStore::open(directory.path()).await.unwrap();
        assert!(store.verify().await.unwrap().is_empty());
        let mut connection = raw(directory.path()).await;
        let mode: String =
            sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut connection).await.unwrap();
        assert_eq!(mode, "wal");
    });
}

#[test]
fn the_log_is_append_only() {
    let directory = tempfile::tempdir().unwrap();
    block_on(async {
        let _store = store_with_two_tasks(directory.path()).await;
        for sql in ["DELETE FROM events WHERE seq = 1", "UPDATE events SET at = 0"] {
            let error = tamper(directory.path(), sql).await.unwrap_err().to_string();
            assert!(error.contains("the log is append-only"), "{error}");
        }
    });
}

#[test]
fn a_doctor_finds_what_does_not_fit_together() {
    let cases = [
        (
            "UPDATE tasks SET doc = json_set(doc, '$.title', 'other') WHERE id = 'one'",
            "task `one` differs from what the log says (I5)",
        ),
        (
            "UPDATE tasks SET priority = 0 WHERE id = 'one'",
            "task `one`: its columns differ from its document",
        ),
        (
            "UPDATE tasks SET open_deps = 0 WHERE id = 'two'",
            "task `two`: its open dependencies are miscounted",
        ),
        (
            "UPDATE task_counts SET total = total + 1 WHERE status = 'todo'",
            "the number of tasks of session `` that are todo is wrong",
        ),
        (
            "UPDATE tasks SET doc = '{' WHERE id = 'one'",
            "the database is damaged: a task cannot be read: EOF while parsing an object at line 1 column 1",
        ),
        (
            "DELETE FROM task_deps; UPDATE tasks SET open_deps = 0",
            "task `two`: its dependencies differ from its document",
        ),
        (
            "DROP TRIGGER events_are_not_removed; DELETE FROM events WHERE kind = 'task_changed'",
            "task `one` differs from what the log says (I5)",
        ),
        (
            "DROP TRIGGER events_are_not_removed; DELETE FROM events WHERE task_id = 'two'",
            "task `two` is not in the log (I1)",
        ),
        (
            "DELETE FROM task_deps; DELETE FROM tasks WHERE id = 'two'",
            "the log has a task `two` that is not there (I1)",
        ),
        (
            "INSERT INTO runs (id, task, fence, agent, started_at, start_doc) VALUES ('r', 'one', 0, 'a', 1, '{}')",
            "the database is damaged: the start of a run cannot be read: missing field `id` at line 1 column 2",
        ),
        (
            "UPDATE tasks SET lease_until = 1 WHERE id = 'one'",
            "task `one` has a lease, and nobody works on it (I2)",
        ),
        (
            "INSERT INTO holds VALUES ('all', 5, '{\"cause\":\"person\",\"reason\":\"\",\"until\":5}')",
            "lane `all` is held otherwise than the log says (I5)",
        ),
        (
            "INSERT INTO task_deps VALUES ('two', 'three')",
            "a row of `task_deps` points to one of `tasks` that is not there",
        ),
        (
            "INSERT INTO sessions (name, created_at, doc) VALUES ('a', 1, '{\"name\":\"a\",\"description\":\"\",\"context\":\"\",\"criteria\":[],\"created_at\":1}')",
            "session `a` is not in the log (I1)",
        ),
    ];
    for (sql, expected) in cases {
        let directory = tempfile::tempdir().unwrap();
        block_on(async {
            let store = store_with_two_tasks(directory.path()).await;
            tamper(directory.path(), sql).await.unwrap();
            assert_eq!(store.verify().await.unwrap(), [expected], "after {sql}");
        });
    }
}

#[test]
fn a_run_that_nobody_started_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let doc = r#"{"id":"r","task":"one","session":null,"fence":1,"agent":"a","driver":"d","model":null,"worker":"w","iteration":1,"started_at":1}"#;
    block_on(async {
        let store = store_with_two_tasks(directory.path()).await;
        let insert = "INSERT INTO runs (id, task, fence, agent, started_at, start_doc)";
        tamper(directory.path(), &format!("{insert} VALUES ('r', 'one', 1, 'a', 1, '{doc}')")).await.unwrap();
        assert_eq!(
            store.verify().await.unwrap(),
            [
                "run `r` has no start in the log (I5)",
                "run `r` has a fence that task `one` never gave out (I8)"
            ]
        );
    });
}

#[test]
fn a_damaged_page_is_found() {
    let directory = tempfile::tempdir().unwrap();
    block_on(async {
        drop(store_with_two_tasks(directory.path()).await);
        // Everything into the file itself, and then nonsense over the middle of it.
        while tamper(directory.path(), "PRAGMA journal_mode = DELETE").await.is_err() {}
        let path = directory.path().join(FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..].fill(0x5a);
        std::fs::write(&path, bytes).unwrap();
        let findings = match SqliteStore::open(directory.path()).await {
            Ok(store) => store.verify().await.unwrap(),
            Err(error) => vec![error.to_string()],
        };
        assert!(findings.iter().all(|finding| finding.contains("is damaged: ")), "{findings:?}");
        assert!(!findings.is_empty());
    });
}
