//! A connection to a server, and what was prepared on it by name.
//!
//! sqlx sends one statement at a time and waits for its answer. Several go on one way only as plain text, without
//! parameters: there a statement that was prepared before is executed by its name, and its values are written out.

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr, raw_sql};

use super::server::in_time;
use crate::StoreError;
use crate::link::{FirstRead, Value};

/// A connection. A statement that was prepared is known by its place in the list.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) wire: PgConnection,
    prepared: Vec<&'static str>,
}

impl Backend {
    pub(super) fn new(wire: PgConnection) -> Self {
        Self { wire, prepared: Vec::new() }
    }

    /// Statements without parameters, in one go.
    pub(crate) async fn run(&mut self, sql: &'static str) -> Result<(), StoreError> {
        self.send(sql.into_sql_str()).await
    }

    /// The beginning of a transaction, together with what is read first in it. The rows of both.
    pub(super) async fn begin_and_read(
        &mut self,
        opening: &'static str,
        time: &str,
        first: Option<&FirstRead>,
    ) -> Result<Vec<PgRow>, StoreError> {
        let Some(FirstRead { sql, is_timed, values }) = first else {
            return in_time(async { Ok(raw_sql(opening).fetch_all(&mut self.wire).await?) }).await;
        };
        let timed = is_timed.then(|| ("bigint", time.to_owned()));
        let execute = self.by_name(sql, timed.into_iter().chain(written(values)));
        let text = AssertSqlSafe(format!("{opening}; {execute}")).into_sql_str();
        let rows = in_time(async { Ok(raw_sql(text).fetch_all(&mut self.wire).await?) }).await?;
        self.is_prepared(sql);
        Ok(rows)
    }

    /// The last statement of a transaction together with its end.
    pub(crate) async fn write_and_commit(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<(), StoreError> {
        let execute = self.by_name(sql, written(values));
        self.send(AssertSqlSafe(format!("{execute}; COMMIT")).into_sql_str()).await?;
        self.is_prepared(sql);
        Ok(())
    }

    /// A statement by its name, and before it what gives it the name, if it has none yet. Each value comes with its type.
    fn by_name(&self, sql: &str, values: impl Iterator<Item = (&'static str, String)>) -> String {
        let known = self.prepared.iter().position(|prepared| *prepared == sql);
        let name = known.unwrap_or(self.prepared.len());
        let (types, literals): (Vec<&str>, Vec<String>) = values.unzip();
        let execute = format!("EXECUTE rehearsal_{name}({})", literals.join(", "));
        match known {
            Some(_) => execute,
            None => format!("PREPARE rehearsal_{name}({}) AS {sql}; {execute}", types.join(", ")),
        }
    }

    fn is_prepared(&mut self, sql: &'static str) {
        if !self.prepared.contains(&sql) {
            self.prepared.push(sql);
        }
    }

    async fn send(&mut self, sql: SqlStr) -> Result<(), StoreError> {
        in_time(async { Ok(raw_sql(sql).execute(&mut self.wire).await?) }).await?;
        Ok(())
    }
}

/// Values as they are written in a statement, each with its type.
fn written(values: &[Value<'_>]) -> impl Iterator<Item = (&'static str, String)> {
    values.iter().map(|value| (type_of(value), literal(value)))
}

fn type_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Text(_) => "text",
        Value::Int(_) => "bigint",
        Value::Real(_) => "double precision",
    }
}

/// A value as it is written in a statement. Within quotes nothing but a quote means anything: the connection has
/// `standard_conforming_strings`.
fn literal(value: &Value<'_>) -> String {
    match value {
        // As where it is a parameter: there is no text with a NUL in it.
        Value::Text(Some(text)) => format!("'{}'", text.replace('\0', "\u{1}").replace('\'', "''")),
        Value::Int(Some(number)) => number.to_string(),
        Value::Real(Some(number)) => format!("'{number}'"),
        Value::Text(None) | Value::Int(None) | Value::Real(None) => "NULL".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_end_its_own_quotes() {
        let written = |text: &'static str| literal(&Value::from(text));
        assert_eq!(written("it's"), "'it''s'");
        assert_eq!(written(r"\'; DROP TABLE tasks; --"), r"'\''; DROP TABLE tasks; --'");
        assert_eq!(written("a\0b"), "'a\u{1}b'");
        assert_eq!(written("$1 $tag$ \n é 😀"), "'$1 $tag$ \n é 😀'");
        assert_eq!(literal(&Value::Int(Some(i64::MIN))), "-9223372036854775808");
        assert_eq!(literal(&Value::Text(None)), "NULL");
    }
}
