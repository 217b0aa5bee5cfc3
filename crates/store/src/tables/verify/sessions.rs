//! Sessions against their events.

use std::collections::BTreeMap;

use rehearsal_core::{EventKind, Session};

use super::Findings;
use crate::StoreError;
use crate::link::{Link, values};
use crate::policy::PAGE;
use crate::tables::commit::apply_edit;
use crate::tables::log::{EventRow, read_event};
use crate::tables::sessions::read_session;

pub(super) async fn check(link: &mut Link<'_>, findings: &mut Findings) -> Result<(), StoreError> {
    let mut folded = fold(link, findings).await?;
    let rows: Vec<(String, i64, String)> =
        link.all("SELECT name, created_at, doc FROM sessions ORDER BY name", &[]).await?;
    for (name, created_at, doc) in rows {
        let Some(session) = findings.readable(read_session(&name, &doc)) else {
            continue;
        };
        if session.name.as_str() != name || session.created_at.0 != created_at {
            findings.add(format!("session `{name}`: its columns differ from its document"));
        }
        match folded.remove(&name) {
            None => findings.add(format!("session `{name}` is not in the log (I1)")),
            Some(fold) if fold != session => {
                findings.add(format!("session `{name}` differs from what the log says (I5)"));
            }
            Some(_) => {}
        }
    }
    for name in folded.keys() {
        findings.add(format!("the log has a session `{name}` that is not there (I1)"));
    }
    check_journals(link, findings).await
}

/// Sessions are few: all of them fit into memory, their events need not.
async fn fold(link: &mut Link<'_>, findings: &mut Findings) -> Result<BTreeMap<String, Session>, StoreError> {
    let mut sessions: BTreeMap<String, Session> = BTreeMap::new();
    let mut after = 0;
    loop {
        let rows: Vec<EventRow> = link
            .all(
                "SELECT seq, at, actor, body FROM events
                 WHERE seq > $1 AND kind IN ('session_added', 'session_edited') ORDER BY seq LIMIT $2 + 0",
                values![after, PAGE],
            )
            .await?;
        let Some(last) = rows.last() else {
            return Ok(sessions);
        };
        after = last.0;
        for row in rows {
            if let Some(event) = findings.readable(read_event(row)) {
                fold_event(&mut sessions, event, findings);
            }
        }
    }
}

fn fold_event(
    sessions: &mut BTreeMap<String, Session>,
    event: rehearsal_core::Event,
    findings: &mut Findings,
) {
    match event.kind {
        EventKind::SessionAdded { session } => {
            let session = Session {
                name: session.name,
                description: session.description,
                context: session.context,
                criteria: session.criteria,
                created_at: event.at,
            };
            sessions.insert(session.name.to_string(), session);
        }
        EventKind::SessionEdited { session: name, edit } => match sessions.remove(name.as_str()) {
            Some(session) => {
                sessions.insert(name.to_string(), apply_edit(session, &edit));
            }
            None => findings.add(format!("event {} changes session `{name}` before it was added", event.seq)),
        },
        _ => findings.add(format!("event {} is not what its kind says", event.seq)),
    }
}

async fn check_journals(link: &mut Link<'_>, findings: &mut Findings) -> Result<(), StoreError> {
    let names: Vec<(String,)> = link
        .all(
            "SELECT name FROM sessions s
             WHERE (SELECT count(*) FROM progress WHERE session = s.name)
                <> (SELECT count(*) FROM events WHERE session = s.name AND kind = 'progress_added')
             ORDER BY name",
            &[],
        )
        .await?;
    for (name,) in names {
        findings.add(format!("the journal of session `{name}` has not as many lines as the log says"));
    }
    Ok(())
}
