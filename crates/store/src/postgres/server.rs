//! The one place that connects to a server, and so decides how PostgreSQL behaves.
//!
//! - A connection is taken, used and put back only when it is known to be in no transaction. Whoever fails or is
//!   dropped half-way leaves it to be closed, and the server rolls back.
//! - Each statement has a limit of time, on the server and here; the server also looks after connections that are dead.
//! - READ COMMITTED: what must not change meanwhile is locked, row by row.

use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rehearsal_core::Timestamp;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Row, raw_sql};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::engine;
use crate::link::Link;
use crate::policy::{CONNECTIONS, LONGEST_SILENCE, STATEMENT_TIMEOUT};
use crate::{OpenError, StoreError};

/// The schema that has our tables, and the name under which the server lists us.
pub(super) const SCHEMA: &str = "rehearsal";

/// The server's clock, in milliseconds.
macro_rules! server_time {
    () => {
        "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}
pub(super) use server_time;

/// A server, and the connections to it that nobody uses now.
#[derive(Debug)]
pub(super) struct Server {
    options: PgConnectOptions,
    idle: Mutex<Vec<PgConnection>>,
    permits: Semaphore,
}

/// A connection in use.
pub(super) struct Turn<'a> {
    server: &'a Server,
    pub(super) connection: PgConnection,
    _permit: SemaphorePermit<'a>,
}

impl Turn<'_> {
    pub(super) fn link(&mut self) -> Link<'_> {
        Link::Postgres(&mut self.connection)
    }

    /// Puts the connection back for the next one.
    pub(super) fn keep(self) {
        self.server.idle().push(self.connection);
    }

    /// Begins a transaction and returns the server's time, in one round trip.
    pub(super) async fn begin(&mut self) -> Result<Timestamp, StoreError> {
        let begin = raw_sql(concat!("BEGIN; ", server_time!())).fetch_one(&mut self.connection);
        let row = in_time(async { Ok(begin.await?) }).await?;
        Ok(Timestamp(row.try_get(0)?))
    }

    /// Executes statements without parameters, in one round trip.
    pub(super) async fn run(&mut self, sql: &'static str) -> Result<(), StoreError> {
        in_time(async { Ok(raw_sql(sql).execute(&mut self.connection).await?) }).await?;
        Ok(())
    }
}

impl engine::Turn for Turn<'_> {
    fn link(&mut self) -> Link<'_> {
        Turn::link(self)
    }

    fn keep(self: Box<Self>) {
        Turn::keep(*self);
    }
}

impl Server {
    pub(super) fn new(url: &str) -> Result<Self, OpenError> {
        // The parser takes any: what is no host there may be a name, or a secret, that is told as one.
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(OpenError::Address { why: "it does not begin with `postgres://`".to_owned() });
        }
        let options = PgConnectOptions::from_str(url).map_err(|error| OpenError::Address {
            why: std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string),
        })?;
        let limit = format!("{}ms", STATEMENT_TIMEOUT.as_millis());
        let options = options
            .application_name(SCHEMA)
            .options([
                ("search_path", SCHEMA),
                ("statement_timeout", &limit),
                ("idle_in_transaction_session_timeout", &limit),
                ("default_transaction_isolation", "read committed"),
                ("standard_conforming_strings", "on"),
                ("tcp_keepalives_idle", "30"),
                ("tcp_keepalives_interval", "10"),
                ("tcp_keepalives_count", "3"),
                // Our statements take less time than it would take to compile them, or to plan them each time anew: none
                // has a better plan for one value than for another.
                ("jit", "off"),
                ("plan_cache_mode", "force_generic_plan"),
                // A plan is made once, and the table may have grown a thousandfold until PostgreSQL has counted it again. All
                // that is asked for often has its index.
                ("enable_seqscan", "off"),
                ("enable_bitmapscan", "off"),
            ])
            .disable_statement_logging();
        Ok(Self { options, idle: Mutex::default(), permits: Semaphore::new(CONNECTIONS) })
    }

    /// Where it is, without any secret.
    pub(super) fn place(&self) -> String {
        let options = &self.options;
        let host = options.get_socket().map_or_else(
            || format!("{}:{}", options.get_host(), options.get_port()),
            |socket| socket.display().to_string(),
        );
        let database = options.get_database().unwrap_or_else(|| options.get_username());
        format!("postgres://{}@{host}/{database}", options.get_username())
    }

    pub(super) fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// Waits for a connection, first come, first served.
    pub(super) async fn turn(&self) -> Result<Turn<'_>, StoreError> {
        let permit = self.permits.acquire().await.map_err(|error| StoreError::Other(Box::new(error)))?;
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(Turn { server: self, connection, _permit: permit })
    }

    /// Who cannot be reached is named: the address may be wrong.
    async fn connect(&self) -> Result<PgConnection, StoreError> {
        let connected = in_time(async { Ok(self.options.connect().await?) }).await;
        connected.map_err(|error| match error {
            StoreError::Unreachable { what } => {
                StoreError::Unreachable { what: format!("{}: {what}", self.place()) }
            }
            error => error,
        })
    }

    /// After one connection broke, those that nobody uses are likely broken, too.
    pub(super) fn heed(&self, trouble: &StoreError) {
        if matches!(trouble, StoreError::Unreachable { .. }) {
            self.idle().clear();
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<PgConnection>> {
        // A list is whole even if someone panicked beside it.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server that is gone without a word is not waited for without end.
pub(crate) async fn in_time<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let limit: Duration = LONGEST_SILENCE;
    timeout(limit, answer).await.unwrap_or(Err(StoreError::Unanswered))
}
