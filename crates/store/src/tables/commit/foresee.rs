//! Claims on PostgreSQL that hold nothing until they are made: a look, and one statement that claims what was found, if that is
//! still as it was. Who claims one after the other in a single lane looks ahead, and claims the next one without a new look.

use std::collections::BTreeMap;

use rehearsal_core::Task;
use rehearsal_core::guard::Situation;

use super::claims::{Look, LookRow, around, next, turn_due};
use super::tasks::{AtOnce, update_and_append_if_same, update_task};
use super::{Writing, insert_event};
use crate::StoreError;
use crate::claim::{Candidate, ClaimRequest, LaneKey, Order};
use crate::link::values;
use crate::policy::LARGEST_AHEAD;
use crate::tables::lanes::{first_of_lanes, lanes};
use crate::tables::situation;
use crate::tables::tasks::read_task;

/// What a look comes to.
pub(crate) enum Foreseen {
    /// Nothing can be claimed.
    Nothing,
    /// This claim, of the task with this number; and what comes after it.
    Claim { num: i64, planned: Box<AtOnce>, ahead: Vec<Ahead> },
    /// It takes more than one statement to say.
    Unclear,
}

/// A task that is next when those before it are claimed, if nothing else changes.
#[derive(Debug)]
pub(crate) struct Ahead {
    pub(crate) num: i64,
    lane: String,
    doc: String,
    /// The last turn that any session took.
    last_turn: i64,
}

impl Writing<'_> {
    /// The claim that one statement can make, as things are now. Tasks that are `in_hand` are looked past. With it come up to so
    /// many that are next.
    pub(crate) async fn foresee_claim(
        &mut self,
        request: &ClaimRequest,
        in_hand: &str,
        ahead: i64,
    ) -> Result<Foreseen, StoreError> {
        let values = values![self.at.0, in_hand, ahead, LARGEST_AHEAD];
        let mut rows: Vec<LookRow> = self.link.all(FORESEE, values).await?;
        let then: Vec<LookRow> = rows.extract_if(.., |(kind, ..)| kind == "then").collect();
        let Look { situation, mut candidates, turns } = Look::read(rows, BTreeMap::new(), request, self.at)?;
        let Some(candidate) = Order::new(&situation, &turns).take_next(&mut candidates) else {
            return Ok(Foreseen::Nothing);
        };
        let Candidate { doc: Some(doc), num, session, .. } = candidate else {
            return Ok(Foreseen::Unclear);
        };
        let task = read_task(&doc)?;
        let turn = turn_due(&session, &turns);
        let is_new = turn.is_some() && !turns.contains_key(&session);
        if is_new || self.is_unclear(&task, &situation).await? {
            return Ok(Foreseen::Unclear);
        }
        let planned = match turn {
            Some(turn) => {
                self.plan_claim(CLAIM_AND_TURN, &task, doc, request, values![&session, turn]).await?
            }
            None => self.plan_claim(CLAIM, &task, doc, request, &[]).await?,
        };
        let Some(planned) = planned else { return Ok(Foreseen::Unclear) };
        let last_turn = turn.or(turns.values().copied().max()).unwrap_or(0);
        let ahead = then
            .into_iter()
            .filter_map(|(_, lane, _, doc, num, ..)| Some(Ahead { num, lane, doc: doc?, last_turn }))
            .collect();
        Ok(Foreseen::Claim { num, planned, ahead })
    }

    /// The claim of a task that was seen ahead. The statement looks for itself whether it is next now. Nothing if it takes more
    /// to say.
    pub(crate) async fn plan_ahead(
        &mut self,
        request: &ClaimRequest,
        Ahead { num, lane, doc, last_turn }: Ahead,
        in_hand: &str,
    ) -> Result<Option<Box<AtOnce>>, StoreError> {
        // As it is if the statement finds it so: nothing is held, and what others work on does not matter.
        let situation = Situation::default();
        let task = read_task(&doc)?;
        if !LaneKey::read(lane)?.is_open(request, &situation, self.at)
            || self.is_unclear(&task, &situation).await?
        {
            return Ok(None);
        }
        self.plan_claim(CLAIM_AHEAD, &task, doc, request, values![num, in_hand, last_turn]).await
    }

    /// Whether something keeps it from being claimed, or may do so.
    async fn is_unclear(&mut self, task: &Task, situation: &Situation) -> Result<bool, StoreError> {
        let hindrance = situation::hindrance_of_task(&mut self.link, self.flows, task, situation);
        Ok(hindrance.await?.is_some() || self.depends_on_others(task).await?)
    }
}

/// All that a claim has to know. `$1` is now, `$2` are the numbers of tasks to look past, `$3` is how many to look ahead, where
/// there is one lane, and `$4` the size of those that are too large to keep.
const FORESEE: &str = concat!(
    lanes!(postgres, " AND num <> ALL ((SELECT $2::bigint[])::bigint[])"),
    around!(),
    next!(),
    first_of_lanes!(postgres),
    " UNION ALL
     (SELECT 'then', lane, NULL, doc, num, priority, created_at FROM tasks
      WHERE $3 > 0 AND (SELECT count(*) FROM firsts) = 1
        AND lane >= (SELECT min(lane) FROM firsts) AND lane <= (SELECT min(lane) FROM firsts)
        AND claimable_at IS NOT NULL AND open_deps = 0 AND claimable_at <= $1
        AND num <> ALL ((SELECT $2::bigint[])::bigint[]) AND length(doc) < $4
      ORDER BY lane, priority, created_at, num OFFSET 1 LIMIT $3)"
);

/// Who is beaten to it waits until the other one has it: the next look tells of that.
const CLAIM: &str = concat!("WITH ", update_and_append_if_same!(" AND open_deps = 0"));

/// The session `$24` takes the turn `$25`, unless that is in other hands at this moment.
const CLAIM_AND_TURN: &str = concat!(
    "WITH ",
    update_and_append_if_same!(
        " AND open_deps = 0",
        ", turned AS (UPDATE turns SET turn = $25
                      WHERE EXISTS (SELECT FROM changed)
                        AND session IN (SELECT session FROM turns WHERE session = $24 FOR UPDATE SKIP LOCKED))"
    )
);

/// `$24` is the number of the task, which must be the first of the only lane; `$25` are those to look past; `$26` is the last
/// turn: nobody else has had one since.
const CLAIM_AHEAD: &str = concat!(
    lanes!(postgres, " AND num <> ALL ((SELECT $25::bigint[])::bigint[])"),
    ", ",
    update_and_append_if_same!(
        " AND open_deps = 0 AND ARRAY(SELECT num FROM firsts) = ARRAY[$24]
          AND NOT EXISTS (SELECT FROM holds) AND NOT EXISTS (SELECT FROM turns WHERE turn > $26)
          AND NOT EXISTS (SELECT FROM tasks WHERE standing = 'claimed' AND lease_until <= $1)"
    )
);
