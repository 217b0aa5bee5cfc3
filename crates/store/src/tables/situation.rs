//! What goes on: what a claim, and whoever asks why there is none, has to know.

use std::collections::BTreeMap;
use std::time::Duration;

use rehearsal_core::guard::{Hindrance, Limits, Situation, Working, goals, lane_hindrance, task_hindrance};
use rehearsal_core::{AgentName, Fence, Hold, Lane, StateName, Task, TaskId, Timestamp};

use super::flows::FlowCache;
use super::runs;
use super::tasks::read_task;
use crate::claim::LaneKey;
use crate::json::{from_json, to_json};
use crate::link::{Link, Sql, values};
use crate::{Scope, StoreError};

/// What is in work, and what is held: kind, lane, id, document. `$1` is now. The tasks in work are few, and so are the
/// lanes that are held: all of it is read each time. A claim whose lease is over is not in work any more. Sorted, so that
/// PostgreSQL prefers the one index with that order, also where it believes that there are hardly any tasks.
const SITUATION: &str = "SELECT * FROM (SELECT 'working', lane, id, touches FROM tasks
                                       WHERE standing = 'claimed' AND (lease_until IS NULL OR lease_until > $1)
                                       ORDER BY lease_until) AS work
                        UNION ALL
                        SELECT 'hold', lane, NULL, doc FROM holds";

pub(crate) async fn situation(
    link: &mut Link<'_>,
    limits: &Limits,
    now: Timestamp,
) -> Result<Situation, StoreError> {
    let rows: Vec<(String, String, Option<String>, Option<String>)> =
        link.all(SITUATION, values![now.0]).await?;
    let mut situation = Situation { last_starts: last_starts(link, limits).await?, ..Situation::default() };
    for (kind, lane, id, doc) in rows {
        match kind.as_str() {
            "working" => situation.working.push(read_working(lane, id, doc)?),
            _ => situation.holds.push(read_hold(&lane, doc)?),
        }
    }
    in_order(&mut situation);
    Ok(situation)
}

/// The order that answers depend on: of several reasons, which one is told.
pub(crate) fn in_order(situation: &mut Situation) {
    situation.working.sort_by(|a, b| a.task.cmp(&b.task));
    situation.holds.sort_by(|(a, _), (b, _)| a.cmp(b));
}

pub(crate) fn read_working(
    lane: String,
    id: Option<String>,
    touches: Option<String>,
) -> Result<Working, StoreError> {
    let LaneKey { agent, session, .. } = LaneKey::read(lane)?;
    let task = TaskId::new(id.unwrap_or_default())
        .map_err(|error| StoreError::Corrupt { what: error.to_string() })?;
    let touches =
        touches.map(|touches| from_json("what a task touches", &touches)).transpose()?.unwrap_or_default();
    Ok(Working { task, session, agent, touches })
}

pub(crate) fn read_hold(lane: &str, doc: Option<String>) -> Result<(Lane, Hold), StoreError> {
    let lane = lane.parse().map_err(|_| StoreError::Corrupt { what: format!("`{lane}` is no lane") })?;
    Ok((lane, from_json("a hold", &doc.unwrap_or_default())?))
}

/// When an agent began last. A task that is claimed for it and whose run has not begun yet is about to: its worktree is made.
const LAST_START: &str = "SELECT max(at) FROM (
     SELECT max(started_at) AS at FROM runs WHERE agent = $1
     UNION ALL
     SELECT max(updated_at) FROM tasks
     WHERE standing = 'claimed' AND substr(lane, 1, length($1) + 1) = $1 || '/'
       AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.task = tasks.id AND runs.fence = tasks.fence)) AS starts";

pub(crate) async fn last_starts(
    link: &mut Link<'_>,
    limits: &Limits,
) -> Result<BTreeMap<AgentName, Timestamp>, StoreError> {
    let mut starts = BTreeMap::new();
    for (agent, _) in limits.agents.iter().filter(|(_, limits)| limits.interval > Duration::ZERO) {
        let (last,): (Option<i64>,) = link.one(LAST_START, values![agent.as_str()]).await?;
        starts.extend(last.map(|last| (agent.clone(), Timestamp(last))));
    }
    Ok(starts)
}

/// What keeps this very task from being worked on.
pub(crate) async fn hindrance_of_task(
    link: &mut Link<'_>,
    flows: &FlowCache,
    task: &Task,
    situation: &Situation,
) -> Result<Option<Hindrance>, StoreError> {
    let flow = flows.get(link, &task.flow_version).await?;
    let mut counts: BTreeMap<StateName, u32> = BTreeMap::new();
    for state in goals(task, &flow).filter(|state| flow.rooms.contains_key(*state)) {
        let (count,): (i64,) = link
            .one(
                "SELECT count(*) FROM tasks WHERE open = 1 AND flow_version = $1 AND state = $2",
                values![&task.flow_version, state.as_str()],
            )
            .await?;
        counts.insert(state.clone(), u32::try_from(count).unwrap_or(u32::MAX));
    }
    let spent_usd = match task.budget.usd {
        Some(_) => runs::cost(link, &Scope::Task(task.id.clone())).await?.usd,
        None => 0.0,
    };
    Ok(task_hindrance(task, &flow, situation, &counts, spent_usd))
}

pub(crate) async fn hindrance(
    link: &mut Link<'_>,
    flows: &FlowCache,
    task: &Task,
    limits: &Limits,
    now: Timestamp,
) -> Result<Option<Hindrance>, StoreError> {
    let situation = situation(link, limits, now).await?;
    match lane_hindrance(task.next_agent(), task.session.as_ref(), limits, &situation, now) {
        Some(hindrance) => Ok(Some(hindrance)),
        None => hindrance_of_task(link, flows, task, &situation).await,
    }
}

pub(crate) async fn next_wake(link: &mut Link<'_>, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    let (at,): (Option<i64>,) = link
        .one(
            "SELECT min(at) FROM (
                 SELECT min(claimable_at) AS at FROM tasks
                 WHERE claimable_at > 0 AND open_deps = 0 AND claimable_at > $1
                 UNION ALL
                 SELECT min(lease_until) FROM tasks WHERE standing = 'claimed' AND lease_until > $1
                 UNION ALL
                 SELECT min(until) FROM holds WHERE until > $1) AS wakes",
            values![now.0],
        )
        .await?;
    Ok(at.map(Timestamp))
}

pub(crate) async fn leases(link: &mut Link<'_>) -> Result<Vec<(Task, Timestamp)>, StoreError> {
    let rows: Vec<(String, i64)> = link
        .all(
            "SELECT doc, lease_until FROM tasks WHERE standing = 'claimed' AND lease_until IS NOT NULL
             ORDER BY lease_until, num",
            &[],
        )
        .await?;
    rows.iter().map(|(doc, until)| Ok((read_task(doc)?, Timestamp(*until)))).collect()
}

/// The claims are pairs of id and fence. One that somebody else changes at this moment is waited for.
const RENEW: Sql = Sql {
    sqlite: "UPDATE tasks SET lease_until = $2 FROM json_each($1) AS claim
             WHERE tasks.id = claim.value ->> 0 AND tasks.fence = claim.value ->> 1 AND tasks.standing = 'claimed'
             RETURNING tasks.id",
    postgres: "UPDATE tasks SET lease_until = $2 FROM json_array_elements($1::json) AS claim
               WHERE tasks.id = claim ->> 0 AND tasks.fence = (claim ->> 1)::bigint
                 AND tasks.standing = 'claimed'
               RETURNING tasks.id",
};

const STILL_HELD: Sql = Sql {
    sqlite: "SELECT tasks.id FROM json_each($1) AS claim JOIN tasks ON tasks.id = claim.value ->> 0
             WHERE tasks.fence = claim.value ->> 1 AND tasks.standing = 'claimed'",
    postgres:
        "SELECT tasks.id FROM json_array_elements($1::json) AS claim JOIN tasks ON tasks.id = claim ->> 0
               WHERE tasks.fence = (claim ->> 1)::bigint AND tasks.standing = 'claimed'",
};

pub(crate) async fn still_held(
    link: &mut Link<'_>,
    claims: &[(TaskId, Fence)],
) -> Result<Vec<TaskId>, StoreError> {
    ids(link.all(STILL_HELD, values![to_json(&claims)?]).await?)
}

pub(crate) async fn renew(
    link: &mut Link<'_>,
    claims: &[(TaskId, Fence)],
    lease: Duration,
    now: Timestamp,
) -> Result<Vec<TaskId>, StoreError> {
    ids(link.all(RENEW, values![to_json(&claims)?, now.plus(lease).0]).await?)
}

fn ids(rows: Vec<(String,)>) -> Result<Vec<TaskId>, StoreError> {
    rows.into_iter()
        .map(|(id,)| TaskId::new(id).map_err(|error| StoreError::Corrupt { what: error.to_string() }))
        .collect()
}
