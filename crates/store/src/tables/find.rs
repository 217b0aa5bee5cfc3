//! Finding tasks and runs by the beginning of their ids.

use rehearsal_core::{Run, Task, nearest};

use super::runs::{RunRow, read_run};
use super::tasks::read_task;
use crate::link::{Link, values};
use crate::policy::MOST_CANDIDATES;
use crate::{FindError, StoreError};

/// A shorter beginning is near to everything.
const SHORTEST_WITH_NEIGHBOURS: usize = 3;

struct Ids {
    what: &'static str,
    in_range: &'static str,
    all: &'static str,
}

const TASKS: Ids = Ids {
    what: "task",
    in_range: "SELECT id FROM tasks WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3 + 0",
    all: "SELECT id FROM tasks ORDER BY id",
};

const RUNS: Ids = Ids {
    what: "run",
    in_range: "SELECT id FROM runs WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3 + 0",
    all: "SELECT id FROM runs ORDER BY id",
};

pub(crate) async fn task(link: &mut Link<'_>, prefix: &str) -> Result<Task, FindError> {
    let id = find(link, &TASKS, prefix).await?;
    let (doc,): (String,) = link.one("SELECT doc FROM tasks WHERE id = $1", values![id]).await?;
    Ok(read_task(&doc)?)
}

pub(crate) async fn run(link: &mut Link<'_>, prefix: &str) -> Result<Run, FindError> {
    let id = find(link, &RUNS, prefix).await?;
    let row: RunRow = link.one("SELECT start_doc, end_doc FROM runs WHERE id = $1", values![id]).await?;
    Ok(read_run(&row)?)
}

async fn find(link: &mut Link<'_>, ids: &Ids, prefix: &str) -> Result<String, FindError> {
    let candidates: Vec<(String,)> = if prefix.is_empty() {
        Vec::new()
    } else {
        let end = format!("{prefix}{}", char::MAX);
        link.all(ids.in_range, values![prefix, end, MOST_CANDIDATES]).await?
    };
    let mut candidates: Vec<String> = candidates.into_iter().map(|(id,)| id).collect();
    // The whole id comes before all that begin with it.
    match candidates.first() {
        Some(first) if first == prefix || candidates.len() == 1 => Ok(candidates.swap_remove(0)),
        Some(_) => Err(FindError::Ambiguous { what: ids.what, prefix: prefix.to_owned(), candidates }),
        None => {
            let near = near(link, ids, prefix).await?;
            Err(FindError::NotFound { what: ids.what, text: prefix.to_owned(), near })
        }
    }
}

/// The id whose beginning differs by a slip of the finger.
async fn near(link: &mut Link<'_>, ids: &Ids, prefix: &str) -> Result<Option<String>, StoreError> {
    let length = prefix.chars().count();
    if length < SHORTEST_WITH_NEIGHBOURS {
        return Ok(None);
    }
    let known: Vec<(String,)> = link.all(ids.all, &[]).await?;
    let beginnings = known.iter().filter_map(|(id,)| id.get(..length.min(id.len())));
    let Some(beginning) = nearest(prefix, beginnings) else {
        return Ok(None);
    };
    Ok(known.iter().map(|(id,)| id).find(|id| id.starts_with(beginning)).cloned())
}
