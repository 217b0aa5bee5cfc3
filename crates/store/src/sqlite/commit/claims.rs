//! Taking the next task, and holding lanes.

use std::collections::BTreeMap;

use rehearsal_core::guard::Situation;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Claim, EventKind, Hold, Lane, RunEnd, RunId, SessionName, Standing, Task};
use sqlx::{query, query_as, query_scalar};

use super::Writing;
use crate::claim::{Candidate, ClaimRequest, Claimed, LaneKey, put_in_order};
use crate::policy::CANDIDATES;
use crate::sqlite::error::to_json;
use crate::sqlite::log::About;
use crate::sqlite::situation;
use crate::sqlite::tasks::read_task;
use crate::{CommitError, StoreError, check};

impl Writing<'_> {
    pub(super) async fn claim_next(&mut self, request: ClaimRequest) -> Result<Option<Claimed>, CommitError> {
        let situation = situation::situation(self.connection, &request.limits, self.at).await?;
        let mut candidates = Vec::new();
        for lane in self.lanes().await? {
            if lane.is_open(&request, &situation, self.at) {
                candidates.extend(self.candidates(&lane).await?);
            }
        }
        if request.may_take_over {
            candidates.extend(self.run_out(&request, &situation).await?);
        }
        put_in_order(&mut candidates, &situation, &self.turns().await?);
        for candidate in candidates {
            if let Some(claimed) = self.try_claim(&candidate, &request, &situation).await? {
                return Ok(Some(claimed));
            }
        }
        Ok(None)
    }

    /// The lanes that have something claimable. Jumps from one to the next in the index.
    async fn lanes(&mut self) -> Result<Vec<LaneKey>, StoreError> {
        let lanes: Vec<String> = query_scalar(
            "WITH RECURSIVE lanes (lane) AS (
                 SELECT min(lane) FROM tasks WHERE claimable_at IS NOT NULL AND open_deps = 0
                 UNION ALL
                 SELECT (SELECT min(lane) FROM tasks
                         WHERE claimable_at IS NOT NULL AND open_deps = 0 AND lane > lanes.lane)
                 FROM lanes WHERE lane IS NOT NULL)
             SELECT lane FROM lanes WHERE lane IS NOT NULL",
        )
        .fetch_all(&mut *self.connection)
        .await?;
        lanes.into_iter().map(LaneKey::read).collect()
    }

    async fn candidates(&mut self, lane: &LaneKey) -> Result<Vec<Candidate>, StoreError> {
        let rows: Vec<(i64, i64, i64)> = query_as(
            "SELECT num, priority, created_at FROM tasks
             WHERE lane = ?1 AND claimable_at IS NOT NULL AND open_deps = 0 AND claimable_at <= ?2
             ORDER BY priority, created_at, num LIMIT ?3",
        )
        .bind(&lane.text)
        .bind(self.at.0)
        .bind(CANDIDATES)
        .fetch_all(&mut *self.connection)
        .await?;
        let session = lane.session.as_ref().map_or("", SessionName::as_str);
        let candidate = |(num, priority, created_at)| Candidate {
            num,
            session: session.to_owned(),
            priority,
            created_at,
        };
        Ok(rows.into_iter().map(candidate).collect())
    }

    /// Tasks whose worker let the lease run out. They are claimable like others, but nobody has told them yet.
    async fn run_out(
        &mut self,
        request: &ClaimRequest,
        situation: &Situation,
    ) -> Result<Vec<Candidate>, StoreError> {
        let rows: Vec<(i64, i64, i64, String)> = query_as(
            "SELECT num, priority, created_at, lane FROM tasks
             WHERE standing = 'claimed' AND lease_until <= ?1 ORDER BY lease_until LIMIT ?2",
        )
        .bind(self.at.0)
        .bind(CANDIDATES)
        .fetch_all(&mut *self.connection)
        .await?;
        let mut candidates = Vec::new();
        for (num, priority, created_at, lane) in rows {
            let lane = LaneKey::read(lane)?;
            if lane.is_open(request, situation, self.at) {
                let session = lane.session.map_or_else(String::new, |session| session.to_string());
                candidates.push(Candidate { num, session, priority, created_at });
            }
        }
        Ok(candidates)
    }

    async fn turns(&mut self) -> Result<BTreeMap<String, i64>, StoreError> {
        let rows: Vec<(String, i64)> =
            query_as("SELECT session, turn FROM turns").fetch_all(&mut *self.connection).await?;
        Ok(rows.into_iter().collect())
    }

    async fn try_claim(
        &mut self,
        candidate: &Candidate,
        request: &ClaimRequest,
        situation: &Situation,
    ) -> Result<Option<Claimed>, CommitError> {
        let doc: String = query_scalar("SELECT doc FROM tasks WHERE num = ?1")
            .bind(candidate.num)
            .fetch_one(&mut *self.connection)
            .await?;
        let before = read_task(&doc)?;
        if situation::hindrance_of_task(self.connection, self.flows, &before, situation).await?.is_some() {
            return Ok(None);
        }
        let (worker, run) = (request.worker.clone(), request.run.clone());
        let (taken_from, input) = match &before.standing {
            Standing::Claimed(Claim { run: lost, .. }) => {
                (Some(lost.clone()), TaskInput::TakeOver { worker, run, stale: before.fence })
            }
            Standing::Ready | Standing::Waiting(_) | Standing::Ended { .. } => {
                (None, TaskInput::Claim { worker, run })
            }
        };
        let task = self.change(before, input).await?;
        if let Some(lost) = &taken_from {
            self.end_lost_run(lost).await?;
        }
        // A task that lost too many workers is given up instead.
        if !matches!(task.standing, Standing::Claimed(_)) {
            return Ok(None);
        }
        self.lease(&task, request).await?;
        Ok(Some(Claimed { task, taken_from }))
    }

    async fn lease(&mut self, task: &Task, request: &ClaimRequest) -> Result<(), StoreError> {
        query("UPDATE tasks SET lease_until = ?2 WHERE id = ?1")
            .bind(task.id.as_str())
            .bind(self.at.plus(request.lease).0)
            .execute(&mut *self.connection)
            .await?;
        query(
            "INSERT INTO turns (session, turn) SELECT ?1, coalesce(max(turn), 0) + 1 FROM turns WHERE true
             ON CONFLICT DO UPDATE SET turn = excluded.turn",
        )
        .bind(task.session.as_ref().map_or("", SessionName::as_str))
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }

    /// The run of a worker that was lost is over. One that only did steps has no row.
    async fn end_lost_run(&mut self, run: &RunId) -> Result<(), CommitError> {
        let end = RunEnd::without_blame(
            "its worker let the lease run out, and another took over".to_owned(),
            self.at,
        );
        match self.end_run(run.clone(), Box::new(end)).await {
            Ok(_) | Err(CommitError::UnknownRun { .. } | CommitError::RunEnded { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn hold_lane(&mut self, lane: Lane, hold: Hold) -> Result<(), CommitError> {
        check::hold(&hold)?;
        query("INSERT INTO holds (lane, doc) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET doc = excluded.doc")
            .bind(lane.to_string())
            .bind(to_json(&hold)?)
            .execute(&mut *self.connection)
            .await?;
        let session = session_of(&lane).cloned();
        let about = About { session: session.as_ref(), ..About::default() };
        Ok(self.append(about, &EventKind::LaneHeld { lane, hold }).await?)
    }

    pub(super) async fn free_lane(&mut self, lane: Lane) -> Result<(), CommitError> {
        let freed = query("DELETE FROM holds WHERE lane = ?1")
            .bind(lane.to_string())
            .execute(&mut *self.connection)
            .await?;
        if freed.rows_affected() == 0 {
            return Ok(());
        }
        let session = session_of(&lane).cloned();
        let about = About { session: session.as_ref(), ..About::default() };
        Ok(self.append(about, &EventKind::LaneFreed { lane }).await?)
    }
}

fn session_of(lane: &Lane) -> Option<&SessionName> {
    match lane {
        Lane::Session(session) => Some(session),
        Lane::All | Lane::Agent(_) => None,
    }
}
