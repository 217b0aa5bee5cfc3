//! Checking everything against everything, for a doctor.
//!
//! The log is the truth: each row must equal the fold of its events. All of it reads one moment of the database,
//! a thousand rows at a time. A finding that breaks one of the invariants names it:
//!
//! - I1: no task is lost. I2: fences rise, and each belongs to one claim. I4: an end is an end.
//! - I5: what is there is what the events lead to. I8: a run counts only under the fence of its own claim.

mod claims;
mod runs;
mod sessions;
mod tasks;

use sqlx::Connection;

use super::flows::FlowCache;
use crate::StoreError;
use crate::link::Link;
use crate::policy::MOST_FINDINGS;

/// What is wrong, in words.
pub(crate) async fn verify(link: &mut Link<'_>, flows: &FlowCache) -> Result<Vec<String>, StoreError> {
    match link {
        Link::Sqlite(connection) => {
            let mut moment = connection.begin().await?;
            verify_moment(&mut Link::Sqlite(&mut moment), flows).await
        }
        Link::Postgres(connection) => {
            let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
            let mut moment = connection.begin_with(begin).await?;
            verify_moment(&mut Link::Postgres(&mut moment), flows).await
        }
    }
}

async fn verify_moment(link: &mut Link<'_>, flows: &FlowCache) -> Result<Vec<String>, StoreError> {
    let mut findings = Findings::default();
    if !link.is_postgres() {
        match check_file(link, &mut findings).await {
            // Whoever reads on in a damaged file finds nonsense.
            Err(StoreError::Corrupt { what }) => {
                return Ok(vec![format!("the file is damaged: {what}")]);
            }
            result => result?,
        }
    }
    if findings.0.is_empty() {
        sessions::check(link, &mut findings).await?;
        tasks::check(link, flows, &mut findings).await?;
        runs::check(link, &mut findings).await?;
        claims::check(link, &mut findings).await?;
        if !link.is_postgres() {
            check_counts(link, &mut findings).await?;
        }
    }
    Ok(findings.0)
}

/// A list that does not grow without end.
#[derive(Debug, Default)]
struct Findings(Vec<String>);

impl Findings {
    fn add(&mut self, finding: impl Into<String>) {
        if self.0.len() < MOST_FINDINGS {
            self.0.push(finding.into());
        } else if self.0.len() == MOST_FINDINGS {
            self.0.push("and more".to_owned());
        }
    }

    /// What a document or an event says, or the finding that it cannot be read.
    fn readable<T>(&mut self, read: Result<T, StoreError>) -> Option<T> {
        read.map_err(|error| self.add(error.to_string())).ok()
    }
}

/// The counts that SQLite's triggers keep must be what a count finds.
async fn check_counts(link: &mut Link<'_>, findings: &mut Findings) -> Result<(), StoreError> {
    let wrong: Vec<(String, String)> = link
        .all(
            "SELECT session, status FROM (
                 SELECT session, status, open, done, total FROM task_counts WHERE total <> 0
                 UNION ALL
                 SELECT coalesce(session, ''), status, open, done, -count(*)
                 FROM tasks GROUP BY 1, 2, 3, 4
             ) GROUP BY session, status, open, done HAVING sum(total) <> 0 LIMIT 20",
            &[],
        )
        .await?;
    for (session, status) in wrong {
        findings.add(format!("the number of tasks of session `{session}` that are {status} is wrong"));
    }
    Ok(())
}

async fn check_file(link: &mut Link<'_>, findings: &mut Findings) -> Result<(), StoreError> {
    let lines: Vec<(String,)> = link.all("PRAGMA integrity_check(20)", &[]).await?;
    for (line,) in lines.into_iter().filter(|(line,)| line != "ok") {
        findings.add(format!("the file is damaged: {line}"));
    }
    let dangling: Vec<(String, String)> =
        link.all("SELECT \"table\", parent FROM pragma_foreign_key_check LIMIT 20", &[]).await?;
    for (table, parent) in dangling {
        findings.add(format!("a row of `{table}` points to one of `{parent}` that is not there"));
    }
    Ok(())
}
