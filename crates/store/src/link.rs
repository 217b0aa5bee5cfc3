//! One connection of either engine. What stands above it is written once; where the languages of the engines
//! differ, a statement has two texts.

use std::borrow::Cow;

use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{FromRow, Postgres, Sqlite, query};

use crate::StoreError;
use crate::postgres::in_time;

/// A connection, for as long as someone has it.
#[derive(Debug)]
pub(crate) enum Link<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
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

impl Link<'_> {
    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    pub(crate) async fn all<T: Readable>(
        &mut self,
        sql: impl Into<Sql>,
        values: &[Value<'_>],
    ) -> Result<Vec<T>, StoreError> {
        let sql = sql.into();
        match self {
            Self::Sqlite(connection) => {
                let rows = for_sqlite(sql.sqlite, values).fetch_all(&mut **connection).await?;
                Ok(rows.iter().map(T::from_row).collect::<Result<_, _>>()?)
            }
            Self::Postgres(connection) => {
                let answer = for_postgres(sql.postgres, values).fetch_all(&mut **connection);
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
        match self {
            Self::Sqlite(connection) => {
                let row = for_sqlite(sql.sqlite, values).fetch_optional(&mut **connection).await?;
                Ok(row.as_ref().map(T::from_row).transpose()?)
            }
            Self::Postgres(connection) => {
                let answer = for_postgres(sql.postgres, values).fetch_optional(&mut **connection);
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

    /// Executes a statement and returns how many rows it changed.
    pub(crate) async fn execute(
        &mut self,
        sql: impl Into<Sql>,
        values: &[Value<'_>],
    ) -> Result<u64, StoreError> {
        let sql = sql.into();
        match self {
            Self::Sqlite(connection) => {
                let done = for_sqlite(sql.sqlite, values).execute(&mut **connection).await?;
                Ok(done.rows_affected())
            }
            Self::Postgres(connection) => {
                let answer = for_postgres(sql.postgres, values).execute(&mut **connection);
                Ok(in_time(async { Ok(answer.await?) }).await?.rows_affected())
            }
        }
    }

    /// Executes a statement that only PostgreSQL needs, such as a lock: there, others write at the same time.
    pub(crate) async fn on_postgres(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<(), StoreError> {
        if self.is_postgres() {
            self.execute(sql, values).await?;
        }
        Ok(())
    }
}

fn for_sqlite<'q>(sql: &'static str, values: &'q [Value<'q>]) -> Query<'q, Sqlite, SqliteArguments> {
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
