//! One connection of either engine. What stands above it is written once; where the languages of the engines
//! differ, a statement has two texts.

use std::borrow::Cow;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, FromRow, Postgres, SqlSafeStr, SqlStr, Sqlite, query};

use crate::StoreError;
use crate::postgres::{Backend, in_time};

/// A connection, for as long as someone has it.
#[derive(Debug)]
pub(crate) struct Link<'c> {
    connection: Connection<'c>,
    /// What goes before the next statement, on the same way.
    opening: Option<&'static str>,
    /// What has to be written, and goes with the statement that follows, or with the end.
    later: Option<Later>,
    /// What came with the beginning of a transaction: the answer to the first that is asked in it.
    ahead: Option<Ahead>,
}

/// A read of which it is known beforehand that a transaction begins with it. PostgreSQL is asked for it on the same way.
#[derive(Debug)]
pub(crate) struct FirstRead {
    pub(crate) sql: &'static str,
    /// Its first parameter is the time at which the transaction begins, before the values.
    pub(crate) is_timed: bool,
    pub(crate) values: Vec<Value<'static>>,
}

#[derive(Debug)]
struct Ahead {
    sql: &'static str,
    rows: Vec<PgRow>,
}

#[derive(Debug)]
enum Connection<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut Backend),
}

/// A write that nobody waits for.
#[derive(Debug)]
struct Later {
    sql: Write,
    values: Vec<Value<'static>>,
}

/// A statement in both languages. Parameters are written `$1` in both. A limit is `$1 + 0`: for one that is a parameter
/// and nothing else SQLite looks at its value, and compiles the statement anew each time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sql {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self { sqlite: text, postgres: text }
    }
}

/// What is to be written, in both languages: in SQLite several statements, which share their parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    pub(crate) sqlite: [&'static str; 2],
    pub(crate) postgres: &'static str,
}

/// How SQLite begins to write: a transaction that begins by reading cannot always go on to write.
const BEGIN: &str = "BEGIN IMMEDIATE; ";

/// A parameter. PostgreSQL wants to know the type also of what is null.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Text(Option<Cow<'a, str>>),
    Int(Option<i64>),
    Real(Option<f64>),
}

macro_rules! value_from {
    ($($from:ty => |$given:ident| $value:expr;)*) => {
        $(impl<'a> From<$from> for Value<'a> {
            fn from($given: $from) -> Self {
                $value
            }
        })*
    };
}

impl Value<'_> {
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Text(text) => Value::Text(text.map(|text| Cow::Owned(text.into_owned()))),
            Self::Int(number) => Value::Int(number),
            Self::Real(number) => Value::Real(number),
        }
    }
}

value_from! {
    &'a str => |text| Self::Text(Some(Cow::Borrowed(text)));
    &'a String => |text| Self::Text(Some(Cow::Borrowed(text)));
    String => |text| Self::Text(Some(Cow::Owned(text)));
    Option<&'a str> => |text| Self::Text(text.map(Cow::Borrowed));
    Option<String> => |text| Self::Text(text.map(Cow::Owned));
    i64 => |number| Self::Int(Some(number));
    Option<i64> => |number| Self::Int(number);
    Option<f64> => |number| Self::Real(number);
}

/// The parameters of a statement, in their order.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        &[$($crate::link::Value::from($value)),*]
    };
}
pub(crate) use values;

/// What a row of either engine can be read into: tuples of texts and numbers.
pub(crate) trait Readable:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

impl<T> Readable for T where T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

impl<'c> Link<'c> {
    pub(crate) fn postgres(connection: &'c mut Backend) -> Self {
        Self { connection: Connection::Postgres(connection), opening: None, later: None, ahead: None }
    }

    /// A transaction that has begun with a read.
    pub(crate) fn postgres_after(connection: &'c mut Backend, read: Option<(FirstRead, Vec<PgRow>)>) -> Self {
        let ahead = read.map(|(read, rows)| Ahead { sql: read.sql, rows });
        Self { ahead, ..Self::postgres(connection) }
    }

    pub(crate) fn sqlite(connection: &'c mut SqliteConnection) -> Self {
        Self { connection: Connection::Sqlite(connection), opening: None, later: None, ahead: None }
    }

    /// A transaction that writes. A statement goes to SQLite's thread and back: it begins with the first one, and ends
    /// with the last.
    pub(crate) fn writing_sqlite(connection: &'c mut SqliteConnection) -> Self {
        Self { opening: Some(BEGIN), ..Self::sqlite(connection) }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.connection, Connection::Postgres(_))
    }

    /// All rows.
    pub(crate) async fn all<T: Readable>(
        &mut self,
        sql: impl Into<Sql>,
        values: &[Value<'_>],
    ) -> Result<Vec<T>, StoreError> {
        let sql = sql.into();
        if let Some(Ahead { rows, .. }) = self.ahead.take_if(|ahead| ahead.sql == sql.postgres) {
            return Ok(rows.iter().map(T::from_row).collect::<Result<_, _>>()?);
        }
        self.settle().await?;
        let opening = self.opening.take();
        match &mut self.connection {
            Connection::Sqlite(connection) => {
                let rows = for_sqlite(sql.after(opening), values).fetch_all(&mut **connection).await?;
                Ok(rows.iter().map(T::from_row).collect::<Result<_, _>>()?)
            }
            Connection::Postgres(connection) => {
                let answer = for_postgres(sql.postgres, values).fetch_all(&mut connection.wire);
                let rows = in_time(async { Ok(answer.await?) }).await?;
                Ok(rows.iter().map(T::from_row).collect::<Result<_, _>>()?)
            }
        }
    }

    /// The first row, if there is one.
    pub(crate) async fn optional<T: Readable>(
        &mut self,
        sql: impl Into<Sql>,
        values: &[Value<'_>],
    ) -> Result<Option<T>, StoreError> {
        let sql = sql.into();
        if let Some(Ahead { rows, .. }) = self.ahead.take_if(|ahead| ahead.sql == sql.postgres) {
            return Ok(rows.first().map(T::from_row).transpose()?);
        }
        self.settle().await?;
        let opening = self.opening.take();
        match &mut self.connection {
            Connection::Sqlite(connection) => {
                let row = for_sqlite(sql.after(opening), values).fetch_optional(&mut **connection).await?;
                Ok(row.as_ref().map(T::from_row).transpose()?)
            }
            Connection::Postgres(connection) => {
                let answer = for_postgres(sql.postgres, values).fetch_optional(&mut connection.wire);
                let row = in_time(async { Ok(answer.await?) }).await?;
                Ok(row.as_ref().map(T::from_row).transpose()?)
            }
        }
    }

    /// The row of a statement that always has one.
    pub(crate) async fn one<T: Readable>(
        &mut self,
        sql: impl Into<Sql>,
        values: &[Value<'_>],
    ) -> Result<T, StoreError> {
        let row = self.optional(sql, values).await?;
        row.ok_or_else(|| StoreError::Other(Box::new(sqlx::Error::RowNotFound)))
    }

    /// Does something; how many rows it changed.
    pub(crate) async fn execute(
        &mut self,
        sql: impl Into<Sql>,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        self.settle().await?;
        // By itself: SQLite counts for a statement that changes nothing what the one before it changed.
        self.open().await?;
        let sql = sql.into();
        match &mut self.connection {
            Connection::Sqlite(connection) => {
                let done = for_sqlite(sql.after(None), values).execute(&mut **connection).await?;
                Ok(done.rows_affected())
            }
            Connection::Postgres(connection) => {
                let answer = for_postgres(sql.postgres, values).execute(&mut connection.wire);
                Ok(in_time(async { Ok(answer.await?) }).await?.rows_affected())
            }
        }
    }

    /// Does something that only PostgreSQL needs: where many write at once, what is read must stay as it is.
    pub(crate) async fn on_postgres(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<(), StoreError> {
        self.settle().await?;
        if let Connection::Postgres(connection) = &mut self.connection {
            let answer = for_postgres(sql, values).execute(&mut connection.wire);
            in_time(async { Ok(answer.await?) }).await?;
        }
        Ok(())
    }

    /// Writes together with whatever follows. It must fail if it does not do what it should: nobody looks.
    pub(crate) async fn later(&mut self, sql: Write, values: Vec<Value<'_>>) -> Result<(), StoreError> {
        self.settle().await?;
        self.later = Some(Later { sql, values: values.into_iter().map(Value::into_owned).collect() });
        Ok(())
    }

    /// Ends the transaction, with all that is still to be written in it.
    pub(crate) async fn commit(&mut self) -> Result<(), StoreError> {
        let later = self.later.take();
        match (&mut self.connection, later) {
            (Connection::Postgres(connection), None) => connection.run("COMMIT").await,
            (Connection::Postgres(connection), Some(Later { sql, values })) => {
                connection.write_and_commit(sql.postgres, &values).await
            }
            (Connection::Sqlite(_), None) => self.in_sqlite("COMMIT".to_owned(), &[]).await,
            (Connection::Sqlite(_), Some(Later { sql: Write { sqlite: [first, second], .. }, values })) => {
                self.in_sqlite(format!("{first}; {second}; COMMIT"), &values).await
            }
        }
    }

    /// Writes what was to be written. What came ahead and was not asked for first is not true any more.
    async fn settle(&mut self) -> Result<(), StoreError> {
        self.ahead = None;
        let Some(Later { sql, values }) = self.later.take() else {
            return Ok(());
        };
        match &mut self.connection {
            Connection::Postgres(connection) => {
                let answer = for_postgres(sql.postgres, &values).execute(&mut connection.wire);
                in_time(async { Ok(answer.await?) }).await?;
                Ok(())
            }
            Connection::Sqlite(_) => self.in_sqlite(sql.sqlite.join("; "), &values).await,
        }
    }

    async fn open(&mut self) -> Result<(), StoreError> {
        match self.opening.take() {
            Some(opening) => self.in_sqlite(opening.to_owned(), &[]).await,
            None => Ok(()),
        }
    }

    async fn in_sqlite(&mut self, sql: String, values: &[Value<'_>]) -> Result<(), StoreError> {
        let sql = match self.opening.take() {
            Some(opening) => format!("{opening}{sql}"),
            None => sql,
        };
        if let Connection::Sqlite(connection) = &mut self.connection {
            for_sqlite(AssertSqlSafe(sql).into_sql_str(), values).execute(&mut **connection).await?;
        }
        Ok(())
    }
}

impl Sql {
    /// For SQLite, with something before it.
    fn after(self, opening: Option<&str>) -> SqlStr {
        match opening {
            Some(opening) => AssertSqlSafe(format!("{opening}{}", self.sqlite)).into_sql_str(),
            None => self.sqlite.into_sql_str(),
        }
    }
}

fn for_sqlite<'q>(sql: SqlStr, values: &'q [Value<'q>]) -> Query<'q, Sqlite, SqliteArguments> {
    values.iter().fold(query(sql), |query, value| match value {
        Value::Text(text) => query.bind(text.as_deref()),
        Value::Int(number) => query.bind(*number),
        Value::Real(number) => query.bind(*number),
    })
}

fn for_postgres<'q>(sql: &'static str, values: &'q [Value<'q>]) -> Query<'q, Postgres, PgArguments> {
    values.iter().fold(query(sql), |query, value| match value {
        // PostgreSQL has no text with a NUL in it. We store none either, since JSON escapes it: this can only be a
        // text that is looked for, and not found.
        Value::Text(Some(text)) if text.contains('\0') => query.bind(text.replace('\0', "\u{1}")),
        Value::Text(text) => query.bind(text.as_deref()),
        Value::Int(number) => query.bind(*number),
        Value::Real(number) => query.bind(*number),
    })
}
