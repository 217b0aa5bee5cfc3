//! What goes on: what a claim, and whoever asks why there is none, has to know.

use std::collections::BTreeMap;
use std::time::Duration;

use rehearsal_core::guard::{Hindrance, Limits, Situation, Working, goals, lane_hindrance, task_hindrance};
use rehearsal_core::{AgentName, Fence, Hold, Lane, StateName, Task, TaskId, Timestamp};
use sqlx::sqlite::SqliteConnection;
use sqlx::{query_as, query_scalar};

use super::error::{from_json, to_json};
use super::flows::FlowCache;
use super::runs;
use super::tasks::read_task;
use crate::claim::LaneKey;
use crate::{Scope, StoreError};

/// The tasks in work are few, and so are the lanes that are held: all of it is read each time. A claim whose lease is
/// over is not in work any more.
pub(super) async fn situation(
    connection: &mut SqliteConnection,
    limits: &Limits,
    now: Timestamp,
) -> Result<Situation, StoreError> {
    let rows: Vec<(String, String, Option<String>)> = query_as(
        "SELECT id, lane, doc ->> 'touches' FROM tasks
         WHERE standing = 'claimed' AND (lease_until IS NULL OR lease_until > ?1)",
    )
    .bind(now.0)
    .fetch_all(&mut *connection)
    .await?;
    let working = rows.into_iter().map(read_working).collect::<Result<_, _>>()?;
    Ok(Situation {
        working,
        holds: holds(connection).await?,
        last_starts: last_starts(connection, limits).await?,
    })
}

fn read_working((id, lane, touches): (String, String, Option<String>)) -> Result<Working, StoreError> {
    let LaneKey { agent, session, .. } = LaneKey::read(lane)?;
    let task = TaskId::new(id).map_err(|error| StoreError::Corrupt { what: error.to_string() })?;
    let touches =
        touches.map(|touches| from_json("what a task touches", &touches)).transpose()?.unwrap_or_default();
    Ok(Working { task, session, agent, touches })
}

async fn holds(connection: &mut SqliteConnection) -> Result<Vec<(Lane, Hold)>, StoreError> {
    let rows: Vec<(String, String)> =
        query_as("SELECT lane, doc FROM holds ORDER BY lane").fetch_all(connection).await?;
    rows.into_iter()
        .map(|(lane, doc)| {
            let lane =
                lane.parse().map_err(|_| StoreError::Corrupt { what: format!("`{lane}` is no lane") })?;
            Ok((lane, from_json("a hold", &doc)?))
        })
        .collect()
}

async fn last_starts(
    connection: &mut SqliteConnection,
    limits: &Limits,
) -> Result<BTreeMap<AgentName, Timestamp>, StoreError> {
    let mut starts = BTreeMap::new();
    for (agent, _) in limits.agents.iter().filter(|(_, limits)| limits.interval > Duration::ZERO) {
        let last: Option<i64> = query_scalar("SELECT max(started_at) FROM runs WHERE agent = ?1")
            .bind(agent.as_str())
            .fetch_one(&mut *connection)
            .await?;
        starts.extend(last.map(|last| (agent.clone(), Timestamp(last))));
    }
    Ok(starts)
}

/// What keeps this very task from being worked on.
pub(super) async fn hindrance_of_task(
    connection: &mut SqliteConnection,
    flows: &FlowCache,
    task: &Task,
    situation: &Situation,
) -> Result<Option<Hindrance>, StoreError> {
    let flow = flows.get(connection, &task.flow_version).await?;
    let mut counts: BTreeMap<StateName, u32> = BTreeMap::new();
    for state in goals(task, &flow).filter(|state| flow.rooms.contains_key(*state)) {
        let count: i64 = query_scalar(
            "SELECT count(*) FROM tasks WHERE standing <> 'ended' AND flow_version = ?1 AND state = ?2",
        )
        .bind(&task.flow_version)
        .bind(state.as_str())
        .fetch_one(&mut *connection)
        .await?;
        counts.insert(state.clone(), u32::try_from(count).unwrap_or(u32::MAX));
    }
    let spent_usd = match task.budget.usd {
        Some(_) => runs::cost(connection, &Scope::Task(task.id.clone())).await?.usd,
        None => 0.0,
    };
    Ok(task_hindrance(task, &flow, situation, &counts, spent_usd))
}

pub(super) async fn hindrance(
    connection: &mut SqliteConnection,
    flows: &FlowCache,
    task: &Task,
    limits: &Limits,
    now: Timestamp,
) -> Result<Option<Hindrance>, StoreError> {
    let situation = situation(connection, limits, now).await?;
    match lane_hindrance(task.next_agent(), task.session.as_ref(), limits, &situation, now) {
        Some(hindrance) => Ok(Some(hindrance)),
        None => hindrance_of_task(connection, flows, task, &situation).await,
    }
}

pub(super) async fn next_wake(
    connection: &mut SqliteConnection,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let at: Option<i64> = query_scalar(
        "SELECT min(at) FROM (
             SELECT min(claimable_at) AS at FROM tasks WHERE claimable_at > 0 AND open_deps = 0 AND claimable_at > ?1
             UNION ALL
             SELECT min(lease_until) FROM tasks WHERE standing = 'claimed' AND lease_until > ?1
             UNION ALL
             SELECT min(doc ->> 'until') FROM holds WHERE doc ->> 'until' > ?1)",
    )
    .bind(now.0)
    .fetch_one(connection)
    .await?;
    Ok(at.map(Timestamp))
}

pub(super) async fn leases(connection: &mut SqliteConnection) -> Result<Vec<(Task, Timestamp)>, StoreError> {
    let rows: Vec<(String, i64)> = query_as(
        "SELECT doc, lease_until FROM tasks WHERE standing = 'claimed' AND lease_until IS NOT NULL
         ORDER BY lease_until, num",
    )
    .fetch_all(connection)
    .await?;
    rows.iter().map(|(doc, until)| Ok((read_task(doc)?, Timestamp(*until)))).collect()
}

pub(super) async fn renew(
    connection: &mut SqliteConnection,
    claims: &[(TaskId, Fence)],
    lease: Duration,
    now: Timestamp,
) -> Result<Vec<TaskId>, StoreError> {
    let held: Vec<String> = query_scalar(
        "UPDATE tasks SET lease_until = ?2
         FROM json_each(?1) AS claim
         WHERE tasks.id = claim.value ->> 0 AND tasks.fence = claim.value ->> 1 AND tasks.standing = 'claimed'
         RETURNING tasks.id",
    )
    .bind(to_json(&claims)?)
    .bind(now.plus(lease).0)
    .fetch_all(connection)
    .await?;
    held.into_iter()
        .map(|id| TaskId::new(id).map_err(|error| StoreError::Corrupt { what: error.to_string() }))
        .collect()
}
