//! Writing sessions and their journals.

use rehearsal_core::{EventKind, NewSession, ProgressEntry, RunId, Session, SessionEdit, SessionName};

use super::Writing;
use crate::json::to_json;
use crate::link::values;
use crate::tables::log::About;
use crate::tables::sessions::{look_up, near};
use crate::{CommitError, check};

impl Writing<'_> {
    pub(super) async fn add_session(&mut self, new: NewSession) -> Result<Session, CommitError> {
        check::new_session(&new)?;
        if look_up(&mut self.link, &new.name).await?.is_some() {
            return Err(CommitError::SessionExists { name: new.name });
        }
        let session = Session {
            name: new.name.clone(),
            description: new.description.clone(),
            context: new.context.clone(),
            criteria: new.criteria.clone(),
            created_at: self.at,
        };
        self.link
            .execute(
                "INSERT INTO sessions (name, created_at, doc) VALUES ($1, $2, $3)",
                values![session.name.as_str(), session.created_at.0, to_json(&session)?],
            )
            .await?;
        let about = About { session: Some(&session.name), ..About::default() };
        self.append(about, &EventKind::SessionAdded { session: new }).await?;
        Ok(session)
    }

    pub(super) async fn edit_session(
        &mut self,
        name: SessionName,
        edit: SessionEdit,
    ) -> Result<Session, CommitError> {
        check::session_edit(&edit)?;
        let lock = "SELECT FROM sessions WHERE name = $1 FOR NO KEY UPDATE";
        self.link.on_postgres(lock, values![name.as_str()]).await?;
        let session = apply_edit(self.known_session(&name).await?, &edit);
        self.link
            .execute(
                "UPDATE sessions SET doc = $2 WHERE name = $1",
                values![name.as_str(), to_json(&session)?],
            )
            .await?;
        let about = About { session: Some(&session.name), ..About::default() };
        self.append(about, &EventKind::SessionEdited { session: name, edit }).await?;
        Ok(session)
    }

    pub(super) async fn add_progress(
        &mut self,
        session: SessionName,
        run: Option<RunId>,
        text: String,
    ) -> Result<ProgressEntry, CommitError> {
        check::progress(&text)?;
        self.known_session(&session).await?;
        let entry = ProgressEntry { at: self.at, run, text };
        self.link
            .execute(
                "INSERT INTO progress (session, doc) VALUES ($1, $2)",
                values![session.as_str(), to_json(&entry)?],
            )
            .await?;
        let about = About { session: Some(&session), run: entry.run.as_ref(), task: None };
        let kind = EventKind::ProgressAdded { session: session.clone(), text: entry.text.clone() };
        self.append(about, &kind).await?;
        Ok(entry)
    }

    pub(super) async fn known_session(&mut self, name: &SessionName) -> Result<Session, CommitError> {
        if let Some(session) = look_up(&mut self.link, name).await? {
            return Ok(session);
        }
        let near = near(&mut self.link, name).await?;
        Err(CommitError::UnknownSession { name: name.clone(), near })
    }
}

pub(crate) fn apply_edit(session: Session, edit: &SessionEdit) -> Session {
    Session {
        description: edit.description.clone().unwrap_or(session.description),
        context: edit.context.clone().unwrap_or(session.context),
        criteria: edit.criteria.clone().unwrap_or(session.criteria),
        ..session
    }
}
