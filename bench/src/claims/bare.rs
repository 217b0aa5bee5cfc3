//! The least that a claim and a completion can be: a fenced update and one event, in one transaction each. Once on tables that
//! have nothing else, and on PostgreSQL once more on the tables that the store has, with documents as it writes them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rehearsal_store::{PostgresStore, Store, TimeSource};
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

/// The same on the store's own tables: what is left of the difference is what the store does beside.
pub(super) struct PostgresTables {
    store: Arc<dyn Store>,
    connections: Vec<Arc<Mutex<PgConnection>>>,
    texts: Arc<Texts>,
}

/// What the store has written for a task that was claimed, and for one that was done.
struct Texts {
    actor: String,
    claimed: (String, String),
    done: (String, String),
}

impl PostgresTables {
    pub(super) async fn open(url: &str, clients: usize) -> Self {
        let store: Arc<dyn Store> = Arc::new(PostgresStore::open(url, TimeSource::Server).await.unwrap());
        super::add(&store, 1).await;
        super::claim_and_complete(&store, 0).await.unwrap();
        let options: PgConnectOptions = url.parse().unwrap();
        // As the store has it: the plans are the same.
        let options = options.options([
            ("search_path", "rehearsal"),
            ("jit", "off"),
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"),
        ]);
        let mut connections = Vec::new();
        for _ in 0..clients {
            connections.push(Arc::new(Mutex::new(options.connect().await.unwrap())));
        }
        let wrote = "SELECT actor, body FROM events WHERE kind = 'task_changed' ORDER BY seq";
        let wrote: Vec<(String, String)> =
            query_as(wrote).fetch_all(&mut *connections[0].lock().await).await.unwrap();
        let (doc,): (String,) =
            query_as("SELECT doc FROM tasks").fetch_one(&mut *connections[0].lock().await).await.unwrap();
        let [(actor, claimed), (_, done)] = wrote.as_slice() else { panic!("a claim and its end") };
        let texts = Texts {
            actor: actor.clone(),
            claimed: (doc.clone(), claimed.clone()),
            done: (doc.clone(), done.clone()),
        };
        Self { store, connections, texts: Arc::new(texts) }
    }

    pub(super) async fn round(&self, tasks: u64, clients: usize) -> Duration {
        super::add(&self.store, tasks).await;
        let start = Instant::now();
        let clients = self.connections.iter().take(clients).map(|connection| {
            let (connection, texts) = (Arc::clone(connection), Arc::clone(&self.texts));
            async move { while claim_and_complete_in_tables(&mut *connection.lock().await, &texts).await {} }
        });
        super::all(clients).await;
        start.elapsed()
    }
}

async fn claim_and_complete_in_tables(connection: &mut PgConnection, texts: &Texts) -> bool {
    let Texts { actor, claimed, done } = texts;
    let taken: Option<(String, i64)> = query_as(
        "WITH j AS (SELECT num FROM tasks WHERE claimable_at IS NOT NULL AND open_deps = 0 AND claimable_at <= 1
                    ORDER BY lane, priority, created_at, num LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED),
              u AS (UPDATE tasks t SET standing = 'claimed', status = 'claimed', claimable_at = NULL, lease_until = 1,
                                       updated_at = 1, fence = fence + 1, doc = $1
                    FROM j WHERE t.num = j.num RETURNING t.id, t.fence),
              e AS (INSERT INTO events (at, actor, kind, task_id, run_id, body)
                    SELECT 1, $2, 'task_changed', id, 'run', $3 FROM u)
         SELECT id, fence FROM u",
    )
    .bind(&claimed.0)
    .bind(actor)
    .bind(&claimed.1)
    .fetch_optional(&mut *connection)
    .await
    .unwrap();
    let Some((id, fence)) = taken else {
        return false;
    };
    query(
        "WITH u AS (UPDATE tasks SET standing = 'ended', status = 'done', open = 0, done = 1, lease_until = NULL,
                                     updated_at = 1, fence = fence + 1, doc = $3
                    WHERE id = $1 AND fence = $2 RETURNING id)
         INSERT INTO events (at, actor, kind, task_id, run_id, body)
         SELECT 1, $4, 'task_changed', id, 'run', $5 FROM u",
    )
    .bind(id)
    .bind(fence)
    .bind(&done.0)
    .bind(actor)
    .bind(&done.1)
    .execute(connection)
    .await
    .unwrap();
    true
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
