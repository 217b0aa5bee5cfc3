//! Taking the next task, and holding lanes.

use std::collections::BTreeMap;

use rehearsal_core::guard::{Situation, goals};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    AgentName, Claim, EventKind, Hold, Lane, RunEnd, RunId, SessionName, Standing, Task, Timestamp,
};

use super::Writing;
use crate::claim::{Candidate, ClaimRequest, Claimed, Found, LaneKey, Order};
use crate::json::to_json;
use crate::link::{Sql, values};
use crate::policy::CANDIDATES;
use crate::tables::lanes::{first_of_lanes, lanes};
use crate::tables::log::About;
use crate::tables::situation;
use crate::tables::tasks::read_task;
use crate::{CommitError, StoreError, check};

/// What a claim has to know, all of one moment.
#[derive(Default)]
struct Look {
    situation: Situation,
    /// The first of each lane that is open, and what ran out in such lanes.
    candidates: Vec<Candidate>,
    turns: BTreeMap<String, i64>,
}

impl Look {
    fn read(
        rows: Vec<LookRow>,
        last_starts: BTreeMap<AgentName, Timestamp>,
        request: &ClaimRequest,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let mut look = Self::default();
        look.situation.last_starts = last_starts;
        let mut found = Vec::new();
        for (kind, lane, id, doc, num, priority, created_at) in rows {
            match kind.as_str() {
                "working" => look.situation.working.push(situation::read_working(lane, id, doc)?),
                "hold" => look.situation.holds.push(situation::read_hold(&lane, doc)?),
                "turn" => {
                    look.turns.insert(lane, num);
                }
                "run_out" if !request.may_take_over => {}
                "run_out" => found.push((LaneKey::read(lane)?, None, (num, priority, created_at))),
                _ => found.push((LaneKey::read(lane)?, Some(doc), (num, priority, created_at))),
            }
        }
        situation::in_order(&mut look.situation);
        for (lane, waiting, (num, priority, created_at)) in found {
            if lane.is_open(request, &look.situation, now) {
                let session = lane.session_text().to_owned();
                let (found, doc) = match waiting {
                    Some(doc) => (Found::InLane { lane: lane.text, before: 0 }, doc),
                    None => (Found::RunOut, None),
                };
                look.candidates.push(Candidate { found, session, priority, created_at, num, doc });
            }
        }
        Ok(look)
    }
}

/// Whether others may claim at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Company {
    Welcome,
    /// What this claim depends on does not change until it is made.
    None,
}

/// What came of a try.
enum Tried {
    Claimed(Box<Claimed>),
    /// Something keeps it from being claimed.
    Hindered,
    /// Whether it may be claimed depends on what others claim.
    NeedsSolitude,
}

impl Writing<'_> {
    pub(super) async fn claim_next(&mut self, request: ClaimRequest) -> Result<Option<Claimed>, CommitError> {
        if !request.counts()
            && let Some(claimed) = self.claim_in(Company::Welcome, &request).await?
        {
            return Ok(claimed);
        }
        self.link.on_postgres("SELECT pg_advisory_xact_lock($1)", values![CLAIMING]).await?;
        Ok(self.claim_in(Company::None, &request).await?.flatten())
    }

    /// Nothing: it has to be tried again without company.
    async fn claim_in(
        &mut self,
        company: Company,
        request: &ClaimRequest,
    ) -> Result<Option<Option<Claimed>>, CommitError> {
        let Look { situation, mut candidates, turns } = self.look(request).await?;
        let order = Order::new(&situation, &turns);
        while let Some(mut candidate) = order.take_next(&mut candidates) {
            let Some(before) = self.pick(&mut candidate).await? else {
                continue;
            };
            match self.try_claim(before, request, &situation, company).await? {
                Tried::Claimed(claimed) => {
                    self.take_turn(&candidate.session, &turns).await?;
                    return Ok(Some(Some(*claimed)));
                }
                Tried::NeedsSolitude => return Ok(None),
                Tried::Hindered => candidates.extend(self.next_of_lane(candidate).await?),
            }
        }
        Ok(Some(None))
    }

    async fn look(&mut self, request: &ClaimRequest) -> Result<Look, StoreError> {
        let rows = self.link.all(LOOK, values![self.at.0]).await?;
        let last_starts = situation::last_starts(&mut self.link, &request.limits).await?;
        Look::read(rows, last_starts, request, self.at)
    }

    /// The one that follows in the same lane. If very many in a row are held back each for itself, the lane can wait.
    async fn next_of_lane(&mut self, tried: Candidate) -> Result<Option<Candidate>, StoreError> {
        let Candidate { found: Found::InLane { lane, before }, session, priority, created_at, num, .. } =
            tried
        else {
            return Ok(None);
        };
        if before + 1 >= CANDIDATES {
            return Ok(None);
        }
        let next: Option<(i64, i64, i64)> =
            self.link.optional(NEXT_OF_LANE, values![&lane, self.at.0, priority, created_at, num]).await?;
        Ok(next.map(|(num, priority, created_at)| {
            let found = Found::InLane { lane, before: before + 1 };
            Candidate { found, session, priority, created_at, num, doc: None }
        }))
    }

    /// The task of a candidate, if it is one still and in nobody else's hands; of a lane the next that is.
    async fn pick(&mut self, candidate: &mut Candidate) -> Result<Option<Task>, StoreError> {
        if let Some(doc) = candidate.doc.take() {
            return read_task(&doc).map(Some);
        }
        let picked: Option<(String, i64, i64, i64)> = match &candidate.found {
            Found::InLane { lane, .. } => {
                let Candidate { priority, created_at, num, .. } = &*candidate;
                let values = values![lane, self.at.0, *priority, *created_at, *num];
                self.link.optional(PICK_IN_LANE, values).await?
            }
            Found::RunOut => self.link.optional(PICK_RUN_OUT, values![candidate.num, self.at.0]).await?,
        };
        let Some((doc, num, priority, created_at)) = picked else {
            return Ok(None);
        };
        (candidate.num, candidate.priority, candidate.created_at) = (num, priority, created_at);
        read_task(&doc).map(Some)
    }

    async fn try_claim(
        &mut self,
        before: Task,
        request: &ClaimRequest,
        situation: &Situation,
        company: Company,
    ) -> Result<Tried, CommitError> {
        if company == Company::Welcome && self.link.is_postgres() && self.depends_on_others(&before).await? {
            return Ok(Tried::NeedsSolitude);
        }
        let hindrance = situation::hindrance_of_task(&mut self.link, self.flows, &before, situation).await?;
        if hindrance.is_some() {
            return Ok(Tried::Hindered);
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
        let task = self.change(before, input, Some(self.at.plus(request.lease))).await?;
        if let Some(lost) = &taken_from {
            self.end_lost_run(lost).await?;
        }
        // A task that lost too many workers is given up instead.
        if !matches!(task.standing, Standing::Claimed(_)) {
            return Ok(Tried::Hindered);
        }
        Ok(Tried::Claimed(Box::new(Claimed { task, taken_from })))
    }

    /// Whether the rules for this task count or compare with what others work on.
    async fn depends_on_others(&mut self, task: &Task) -> Result<bool, StoreError> {
        if !task.touches.is_empty() {
            return Ok(true);
        }
        let flow = self.flows.get(&mut self.link, &task.flow_version).await?;
        Ok(goals(task, &flow).any(|state| flow.rooms.contains_key(state)))
    }

    /// A session whose turn it was last already stays the last one: most claims write nothing here. In PostgreSQL one
    /// that is in other hands at this moment is left to them.
    async fn take_turn(&mut self, session: &str, turns: &BTreeMap<String, i64>) -> Result<(), StoreError> {
        const TAKE: Sql = Sql {
            sqlite: "UPDATE turns SET turn = $2 WHERE session = $1",
            postgres:
                "UPDATE turns SET turn = $2
                       WHERE session IN (SELECT session FROM turns WHERE session = $1 FOR UPDATE SKIP LOCKED)",
        };
        let Some(turn) = turn_due(session, turns) else { return Ok(()) };
        let sql = match turns.get(session) {
            Some(_) => TAKE,
            None => "INSERT INTO turns (session, turn) VALUES ($1, $2) ON CONFLICT DO NOTHING".into(),
        };
        self.link.execute(sql, values![session, turn]).await?;
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
        self.link
            .execute(
                "INSERT INTO holds (lane, until, doc) VALUES ($1, $2, $3)
                 ON CONFLICT (lane) DO UPDATE SET until = excluded.until, doc = excluded.doc",
                values![lane.to_string(), hold.until.map(|until| until.0), to_json(&hold)?],
            )
            .await?;
        let session = session_of(&lane).cloned();
        let about = About { session: session.as_ref(), ..About::default() };
        Ok(self.append(about, &EventKind::LaneHeld { lane, hold }).await?)
    }

    pub(super) async fn free_lane(&mut self, lane: Lane) -> Result<(), CommitError> {
        let freed = self.link.execute("DELETE FROM holds WHERE lane = $1", values![lane.to_string()]).await?;
        if freed == 0 {
            return Ok(());
        }
        let session = session_of(&lane).cloned();
        let about = About { session: session.as_ref(), ..About::default() };
        Ok(self.append(about, &EventKind::LaneFreed { lane }).await?)
    }
}

/// The turn that a session takes with a claim. None if it has the last one already.
fn turn_due(session: &str, turns: &BTreeMap<String, i64>) -> Option<i64> {
    let last = turns.values().copied().max();
    (last.is_none() || turns.get(session).copied() != last).then(|| last.unwrap_or(0) + 1)
}

/// The lock in PostgreSQL for claims that must not be made at once: `claims` in letters.
const CLAIMING: i64 = 0x636c_6169_6d73;

/// Kind, lane (or session), id, document, number (or turn), priority, time of creation.
type LookRow = (String, String, Option<String>, Option<String>, i64, i64, i64);

/// What goes on, and what ran out. All numbers are of one type: PostgreSQL would convert each row otherwise. Sorted, as
/// in [`situation`].
macro_rules! around {
    () => {
        " SELECT * FROM (SELECT CASE WHEN lease_until <= $1 THEN 'run_out' ELSE 'working' END,
                                lane, id, touches, num, priority, created_at
                         FROM tasks WHERE standing = 'claimed' ORDER BY lease_until) AS work
          UNION ALL
          SELECT 'hold', lane, NULL, doc, CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT) FROM holds
          UNION ALL
          SELECT 'turn', session, NULL, NULL, turn, CAST(0 AS BIGINT), CAST(0 AS BIGINT) FROM turns
          UNION ALL "
    };
}

/// All that a claim has to know, in one statement. `$1` is now.
///
/// In SQLite nobody else writes meanwhile: the first of each lane comes with its document. In PostgreSQL a task has to be
/// picked.
const LOOK: Sql = Sql {
    sqlite: concat!(
        lanes!(sqlite),
        around!(),
        "SELECT 'next', t.lane, NULL, t.doc, t.num, t.priority, t.created_at FROM ",
        first_of_lanes!(sqlite)
    ),
    postgres: concat!(
        lanes!(postgres),
        around!(),
        "SELECT 'next', lane, NULL, NULL, num, priority, created_at FROM firsts"
    ),
};

/// What follows in a lane. All of its columns are compared and sorted by, the lane too: only one index can yield that.
macro_rules! in_lane {
    ($than:literal) => {
        concat!(
            "lane <= $1 AND (lane, priority, created_at, num) ",
            $than,
            " ($1, $3, $4, $5) AND claimable_at IS NOT NULL AND open_deps = 0 AND claimable_at <= $2
             ORDER BY lane, priority, created_at, num LIMIT 1"
        )
    };
}

const NEXT_OF_LANE: &str = concat!("SELECT num, priority, created_at FROM tasks WHERE ", in_lane!(">"));

macro_rules! pick {
    ($condition:expr) => {
        Sql {
            sqlite: concat!("SELECT doc, num, priority, created_at FROM tasks WHERE ", $condition),
            postgres: concat!(
                "SELECT doc, num, priority, created_at FROM tasks WHERE ",
                $condition,
                " FOR NO KEY UPDATE SKIP LOCKED"
            ),
        }
    };
}

const PICK_IN_LANE: Sql = pick!(in_lane!(">="));
const PICK_RUN_OUT: Sql = pick!("num = $1 AND standing = 'claimed' AND lease_until <= $2");

fn session_of(lane: &Lane) -> Option<&SessionName> {
    match lane {
        Lane::Session(session) => Some(session),
        Lane::All | Lane::Agent(_) => None,
    }
}
