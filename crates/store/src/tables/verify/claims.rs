//! Claims against what must hold for them: leases, fences, and the lanes that are held.

use std::collections::BTreeMap;

use rehearsal_core::{EventKind, Hold, Standing};

use super::Findings;
use crate::StoreError;
use crate::json::from_json;
use crate::link::{Link, values};
use crate::policy::PAGE;
use crate::tables::runs::{RunRow, read_run};
use crate::tables::tasks::read_task;

pub(super) async fn check(link: &mut Link<'_>, findings: &mut Findings) -> Result<(), StoreError> {
    check_leases(link, findings).await?;
    check_fences(link, findings).await?;
    check_unfinished(link, findings).await?;
    check_holds(link, findings).await
}

async fn check_leases(link: &mut Link<'_>, findings: &mut Findings) -> Result<(), StoreError> {
    let sql = "SELECT id FROM tasks WHERE lease_until IS NOT NULL AND standing <> 'claimed' ORDER BY id LIMIT $1 + 0";
    let ids: Vec<(String,)> = link.all(sql, values![PAGE]).await?;
    for (id,) in ids {
        findings.add(format!("task `{id}` has a lease, and nobody works on it (I2)"));
    }
    Ok(())
}

/// Each run of a task has a higher fence than those before it, and none has one that was not given out.
async fn check_fences(link: &mut Link<'_>, findings: &mut Findings) -> Result<(), StoreError> {
    let falling: Vec<(String, String)> = link
        .all(
            "SELECT id, task FROM (
                 SELECT num, id, task, fence, lag(fence) OVER (PARTITION BY task ORDER BY num) AS last FROM runs
             ) AS fenced WHERE fence <= last ORDER BY num LIMIT $1 + 0",
            values![PAGE],
        )
        .await?;
    for (run, task) in falling {
        findings.add(format!("run `{run}` of task `{task}` has no higher fence than the one before it (I2)"));
    }
    let beyond: Vec<(String, String)> = link
        .all(
            "SELECT r.id, r.task FROM runs r JOIN tasks t ON t.id = r.task WHERE r.fence > t.fence
             ORDER BY r.num LIMIT $1 + 0",
            values![PAGE],
        )
        .await?;
    for (run, task) in beyond {
        findings.add(format!("run `{run}` has a fence that task `{task}` never gave out (I8)"));
    }
    Ok(())
}

/// A claim has at most one run under way: the one that it names.
async fn check_unfinished(link: &mut Link<'_>, findings: &mut Findings) -> Result<(), StoreError> {
    let mut after = 0;
    loop {
        let rows: Vec<(i64, String, Option<String>, String)> = link
            .all(
                "SELECT r.num, r.start_doc, r.end_doc, t.doc FROM runs r JOIN tasks t ON t.id = r.task
                 WHERE r.end_doc IS NULL AND r.fence = t.fence AND t.standing = 'claimed' AND r.num > $1
                 ORDER BY r.num LIMIT $2 + 0",
                values![after, PAGE],
            )
            .await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = last.0;
        for (_, start, end, doc) in rows {
            let run: RunRow = (start, end);
            // What cannot be read was told already.
            if let (Ok(run), Ok(task)) = (read_run(&run), read_task(&doc))
                && let Standing::Claimed(claim) = &task.standing
                && claim.run != run.start.id
            {
                let (run, task, own) = (&run.start.id, &task.id, &claim.run);
                findings.add(format!(
                    "run `{run}` of task `{task}` is under way in the claim of run `{own}` (I2)"
                ));
            }
        }
    }
}

/// The lanes that are held are those that the log says. They are few; their events need not be.
async fn check_holds(link: &mut Link<'_>, findings: &mut Findings) -> Result<(), StoreError> {
    let mut folded: BTreeMap<String, Hold> = BTreeMap::new();
    let mut after = 0;
    loop {
        let rows: Vec<(i64, String)> = link
            .all(
                "SELECT seq, body FROM events WHERE seq > $1 AND kind IN ('lane_held', 'lane_freed')
                 ORDER BY seq LIMIT $2 + 0",
                values![after, PAGE],
            )
            .await?;
        let Some(last) = rows.last() else { break };
        after = last.0;
        for (seq, body) in rows {
            match findings.readable(from_json(&format!("event {seq}"), &body)) {
                Some(EventKind::LaneHeld { lane, hold }) => {
                    folded.insert(lane.to_string(), hold);
                }
                Some(EventKind::LaneFreed { lane }) => {
                    folded.remove(&lane.to_string());
                }
                Some(_) => findings.add(format!("event {seq} is not what its kind says")),
                None => {}
            }
        }
    }
    let rows: Vec<(String, Option<i64>, String)> =
        link.all("SELECT lane, until, doc FROM holds ORDER BY lane", &[]).await?;
    for (lane, until, doc) in rows {
        let Some(hold) = findings.readable(from_json::<Hold>(&format!("the hold of lane `{lane}`"), &doc))
        else {
            continue;
        };
        if hold.until.map(|until| until.0) != until {
            findings.add(format!("the hold of lane `{lane}`: its columns differ from its document"));
        }
        if folded.remove(&lane) != Some(hold) {
            findings.add(format!("lane `{lane}` is held otherwise than the log says (I5)"));
        }
    }
    for lane in folded.keys() {
        findings.add(format!("lane `{lane}` is not held, and the log says that it is (I5)"));
    }
    Ok(())
}
