//! A connection to a server, and what was prepared on it by name.
//!
//! sqlx sends one statement at a time and waits for its answer. Several go on one way only as plain text, without
//! parameters: there a statement that was prepared before is executed by its name, and its values are written out.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr, raw_sql};

use super::server::in_time;
use crate::StoreError;
use crate::link::Value;

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

    /// The last statement of a transaction together with its end.
    pub(crate) async fn write_and_commit(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<(), StoreError> {
        let known = self.prepared.iter().position(|prepared| *prepared == sql);
        let name = known.unwrap_or(self.prepared.len());
        let literals: Vec<String> = values.iter().map(literal).collect();
        let mut text = format!("EXECUTE rehearsal_{name}({}); COMMIT", literals.join(", "));
        if known.is_none() {
            let types: Vec<&str> = values.iter().map(type_of).collect();
            text.insert_str(0, &format!("PREPARE rehearsal_{name}({}) AS {sql}; ", types.join(", ")));
        }
        self.send(AssertSqlSafe(text).into_sql_str()).await?;
        if known.is_none() {
            self.prepared.push(sql);
        }
        Ok(())
    }

    async fn send(&mut self, sql: SqlStr) -> Result<(), StoreError> {
        in_time(async { Ok(raw_sql(sql).execute(&mut self.wire).await?) }).await?;
        Ok(())
    }
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
