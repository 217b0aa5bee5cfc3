//! The least that a claim and a completion can be: a fenced update and one event, in one transaction each.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, query, query_as, raw_sql};
use tokio::sync::Mutex;

const DOC: &str =
    r#"{"title":"Task with a title of a usual length","criteria":["the tests pass"],"standing":"x"}"#;

pub(super) struct Sqlite(Arc<Mutex<SqliteConnection>>);

impl Sqlite {
    pub(super) async fn open(path: &Path) -> Self {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
        let mut connection = options.connect().await.unwrap();
        let tables = "CREATE TABLE tasks (num INTEGER PRIMARY KEY, state TEXT, priority INTEGER, fence INTEGER, doc TEXT);
                      CREATE INDEX ready ON tasks (priority, num) WHERE state = 'ready';
                      CREATE TABLE events (seq INTEGER PRIMARY KEY, task INTEGER, at INTEGER, body TEXT);";
        raw_sql(tables).execute(&mut connection).await.unwrap();
        Self(Arc::new(Mutex::new(connection)))
    }

    pub(super) async fn round(&self, tasks: u64) -> Duration {
        let insert = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
                      INSERT INTO tasks (state, priority, fence, doc) SELECT 'ready', 2, 0, ?2 FROM n";
        let inserting = query(insert).bind(tasks.cast_signed()).bind(DOC);
        inserting.execute(&mut *self.0.lock().await).await.unwrap();
        let start = Instant::now();
        let shared = Arc::clone(&self.0);
        super::all(std::iter::once(async move {
            let connection = &mut *shared.lock().await;
            for _ in 0..tasks {
                claim_and_complete_in_sqlite(connection).await;
            }
        }))
        .await;
        start.elapsed()
    }
}

async fn claim_and_complete_in_sqlite(connection: &mut SqliteConnection) {
    query("BEGIN IMMEDIATE").execute(&mut *connection).await.unwrap();
    let (num, fence): (i64, i64) = query_as(
        "UPDATE tasks SET state = 'claimed', fence = fence + 1, doc = ?1
         WHERE num = (SELECT num FROM tasks WHERE state = 'ready' ORDER BY priority, num LIMIT 1)
         RETURNING num, fence",
    )
    .bind(DOC)
    .fetch_one(&mut *connection)
    .await
    .unwrap();
    event(connection, num).await;
    query("COMMIT").execute(&mut *connection).await.unwrap();

    query("BEGIN IMMEDIATE").execute(&mut *connection).await.unwrap();
    query("UPDATE tasks SET state = 'done', fence = fence + 1, doc = ?3 WHERE num = ?1 AND fence = ?2")
        .bind(num)
        .bind(fence)
        .bind(DOC)
        .execute(&mut *connection)
        .await
        .unwrap();
    event(connection, num).await;
    query("COMMIT").execute(&mut *connection).await.unwrap();
}

async fn event(connection: &mut SqliteConnection, task: i64) {
    query("INSERT INTO events (task, at, body) VALUES (?1, 1, ?2)")
        .bind(task)
        .bind(DOC)
        .execute(connection)
        .await
        .unwrap();
}

pub(super) struct Postgres {
    connections: Vec<Arc<Mutex<PgConnection>>>,
}

impl Postgres {
    pub(super) async fn open(url: &str, clients: usize) -> Self {
        let options: PgConnectOptions = url.parse().unwrap();
        let mut connections = Vec::new();
        for _ in 0..clients {
            connections.push(Arc::new(Mutex::new(options.connect().await.unwrap())));
        }
        let tables = "CREATE TABLE tasks (num BIGSERIAL PRIMARY KEY, state TEXT, priority BIGINT, fence BIGINT, doc TEXT);
                      CREATE INDEX ready ON tasks (priority, num) WHERE state = 'ready';
                      CREATE TABLE events (seq BIGSERIAL PRIMARY KEY, task BIGINT, at BIGINT, body TEXT);";
        raw_sql(tables).execute(&mut *connections[0].lock().await).await.unwrap();
        Self { connections }
    }

    pub(super) async fn round(&self, tasks: u64, clients: usize) -> Duration {
        let insert = "INSERT INTO tasks (state, priority, fence, doc) SELECT 'ready', 2, 0, $2 FROM generate_series(1, $1)";
        let mut first = self.connections[0].lock().await;
        query(insert).bind(tasks.cast_signed()).bind(DOC).execute(&mut *first).await.unwrap();
        drop(first);
        let start = Instant::now();
        let clients = self.connections.iter().take(clients).map(|connection| {
            let connection = Arc::clone(connection);
            async move { while claim_and_complete(&mut *connection.lock().await).await {} }
        });
        super::all(clients).await;
        start.elapsed()
    }
}

/// Each of the two is one statement, and so one transaction.
async fn claim_and_complete(connection: &mut PgConnection) -> bool {
    let claimed: Option<(i64, i64)> = query_as(
        "WITH j AS (SELECT num FROM tasks WHERE state = 'ready' ORDER BY priority, num LIMIT 1
                    FOR UPDATE SKIP LOCKED),
              u AS (UPDATE tasks t SET state = 'claimed', fence = fence + 1, doc = $1 FROM j WHERE t.num = j.num
                    RETURNING t.num, t.fence),
              e AS (INSERT INTO events (task, at, body) SELECT num, 1, $1 FROM u)
         SELECT num, fence FROM u",
    )
    .bind(DOC)
    .fetch_optional(&mut *connection)
    .await
    .unwrap();
    let Some((num, fence)) = claimed else {
        return false;
    };
    query(
        "WITH u AS (UPDATE tasks SET state = 'done', fence = fence + 1, doc = $3 WHERE num = $1 AND fence = $2
                    RETURNING num)
         INSERT INTO events (task, at, body) SELECT num, 1, $3 FROM u",
    )
    .bind(num)
    .bind(fence)
    .bind(DOC)
    .execute(connection)
    .await
    .unwrap();
    true
}
