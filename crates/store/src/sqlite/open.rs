//! The one place that opens connections, and so decides how SQLite behaves.
//!
//! - WAL, so that readers never wait for a writer. It is a property of the file, set when the file is made.
//! - `synchronous=FULL`: with less, a commit can be lost when the power fails, and a fence be given out twice. Only what is a
//!   scratch from the beginning has less.
//! - One writer in a process: writers queue up here and not in SQLite, whose waiting is neither fair nor cheap.
//! - Connections are opened when first used: a command that only reads has one.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{ConnectOptions, Pool, Sqlite};
use tokio::sync::{Mutex, MutexGuard};

use super::error::is_no_database;
use super::migrate;
use super::network;
use crate::engine;
use crate::link::Link;
use crate::policy::{BUSY_TIMEOUT, LARGEST_IDLE_WAL, PAGES_OF_WAL, READERS};
use crate::{Durability, OpenError, StoreError};

pub(super) const FILE_NAME: &str = "rehearsal.db";
const LOCK_NAME: &str = "rehearsal.lock";

/// An open database: some connections that read, one that writes.
#[derive(Debug)]
pub(super) struct Database {
    readers: Pool<Sqlite>,
    writer: Mutex<Option<SqliteConnection>>,
    options: SqliteConnectOptions,
}

/// The turn of one writer. The connection is taken out of its place and put back only when it is known to be in
/// no transaction: if the writer fails or is dropped half-way, the connection is closed, and SQLite rolls back.
pub(super) struct Turn<'a> {
    place: MutexGuard<'a, Option<SqliteConnection>>,
    pub(super) connection: SqliteConnection,
}

/// A connection that only reads.
pub(super) struct Reader(pub(super) PoolConnection<Sqlite>);

impl engine::Turn for Reader {
    fn link(&mut self) -> Link<'_> {
        Link::Sqlite(&mut self.0)
    }

    fn keep(self: Box<Self>) {}
}

impl engine::Turn for Turn<'_> {
    fn link(&mut self) -> Link<'_> {
        Link::Sqlite(&mut self.connection)
    }

    fn keep(self: Box<Self>) {
        Turn::keep(*self);
    }
}

impl Turn<'_> {
    /// Keeps the connection for the next writer.
    pub(super) fn keep(mut self) {
        *self.place = Some(self.connection);
    }
}

impl Database {
    pub(super) async fn reader(&self) -> Result<Reader, StoreError> {
        Ok(Reader(self.readers.acquire().await?))
    }

    #[cfg(test)]
    pub(super) fn options(&self) -> &SqliteConnectOptions {
        &self.options
    }

    /// Waits for the turn to write, first come, first served.
    pub(super) async fn writer(&self) -> Result<Turn<'_>, StoreError> {
        let mut place = self.writer.lock().await;
        let connection = match place.take() {
            Some(connection) => connection,
            None => self.options.connect().await?,
        };
        Ok(Turn { place, connection })
    }
}

/// Opens the database in a directory; makes both if they are not there.
pub(super) async fn open(directory: &Path, durability: Durability) -> Result<Database, OpenError> {
    let path = directory.join(FILE_NAME);
    let unusable = |source| OpenError::Directory { path: directory.to_owned(), source };
    let is_new = !path.exists();
    if is_new {
        prepare(directory).map_err(unusable)?;
    }
    if let Some(kind) = network::kind_of(directory).map_err(unusable)? {
        return Err(OpenError::NetworkFileSystem { path: directory.to_owned(), kind });
    }
    if path.is_dir() {
        return Err(OpenError::NotOurs { place: path.display().to_string() });
    }
    let options = options(&path, durability);
    let database = Database {
        readers: readers(options.clone()),
        writer: Mutex::new(None),
        options: options.create_if_missing(true),
    };
    if is_new || !is_current(&database, &path).await? {
        let _lock = lock(directory).await.map_err(unusable)?;
        let mut turn = database.writer().await?;
        migrate::migrate(&mut turn.connection, &path).await?;
        turn.keep();
    }
    Ok(database)
}

fn options(path: &Path, durability: Durability) -> SqliteConnectOptions {
    let synchronous = match durability {
        Durability::Full => SqliteSynchronous::Full,
        Durability::UntilPowerFails => SqliteSynchronous::Off,
    };
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        .synchronous(synchronous)
        .pragma("journal_size_limit", LARGEST_IDLE_WAL)
        .pragma("wal_autocheckpoint", PAGES_OF_WAL)
        .disable_statement_logging()
}

fn readers(options: SqliteConnectOptions) -> Pool<Sqlite> {
    PoolOptions::new()
        .max_connections(READERS)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .connect_lazy_with(options.pragma("query_only", "ON"))
}

async fn is_current(database: &Database, path: &Path) -> Result<bool, OpenError> {
    let looked = async {
        let mut reader = database.readers.acquire().await?;
        migrate::look(&mut reader).await
    };
    let found = looked.await.map_err(|error| {
        if is_read_only(path) { StoreError::ReadOnly.into() } else { not_ours_or(error, path) }
    })?;
    found.check(path)
}

/// Who only reads writes too: SQLite keeps an index of the log beside the file, and says no more than that it cannot
/// open the file where it may not make one.
fn is_read_only(path: &Path) -> bool {
    let directory = path.parent().unwrap_or(path);
    matches!(rustix::fs::access(directory, rustix::fs::Access::WRITE_OK), Err(Errno::ROFS | Errno::ACCESS))
}

/// A file full of something else shows only when its first page is read.
pub(super) fn not_ours_or(error: sqlx::Error, path: &Path) -> OpenError {
    if is_no_database(&error) {
        return OpenError::NotOurs { place: path.display().to_string() };
    }
    OpenError::Store(error.into())
}

/// What is in the directory is nobody else's business: not other users', not git's.
fn prepare(directory: &Path) -> io::Result<()> {
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    match File::create_new(directory.join(".gitignore")) {
        Ok(mut file) => file.write_all(b"*\n"),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Only one process at a time makes or migrates the database: to switch a file to WAL, SQLite needs it for itself
/// and does not wait for it. The lock falls with the process.
async fn lock(directory: &Path) -> io::Result<File> {
    let path: PathBuf = directory.join(LOCK_NAME);
    let locked = tokio::task::spawn_blocking(move || {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        file.lock()?;
        Ok(file)
    });
    locked.await.map_err(io::Error::other)?
}
