//! From what PostgreSQL says to what it means.

use sqlx::postgres::PgDatabaseError;

use crate::StoreError;

/// What is known about an error of PostgreSQL, by its code: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
pub(crate) fn meaning(error: &PgDatabaseError) -> Option<StoreError> {
    let what = || error.message().to_owned();
    Some(match error.code() {
        // Serialization failure, deadlock, a lock not to be had; and a unique row that two made at once, of whom the
        // second finds out when it looks again.
        "40001" | "40P01" | "55P03" | "23505" => StoreError::Contended,
        // Shutdown, crash, start-up, too many connections; a transaction that idled for too long.
        "57P01" | "57P02" | "57P03" | "57P05" | "53300" | "25P03" => StoreError::Unreachable { what: what() },
        "57014" => StoreError::Unanswered,
        "53100" => StoreError::DiskFull,
        "XX001" | "XX002" => StoreError::Corrupt { what: what() },
        "3D000" | "42501" => StoreError::Denied { what: what() },
        code if code.starts_with("08") => StoreError::Unreachable { what: what() },
        code if code.starts_with("28") => StoreError::Denied { what: what() },
        _ => return None,
    })
}
