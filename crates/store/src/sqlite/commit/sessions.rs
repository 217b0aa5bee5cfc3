//! Writing sessions and their journals.

use rehearsal_core::{EventKind, NewSession, ProgressEntry, RunId, Session, SessionEdit, SessionName};
use sqlx::query;

use super::Writing;
use crate::sqlite::error::to_json;
use crate::sqlite::log::About;
use crate::sqlite::sessions::{look_up, near};
use crate::{CommitError, check};

impl Writing<'_> {
    pub(super) async fn add_session(&mut self, new: NewSession) -> Result<Session, CommitError> {
        check::new_session(&new)?;
        if look_up(self.connection, &new.name).await?.is_some() {
            return Err(CommitError::SessionExists { name: new.name });
        }
        let session = Session {
            name: new.name.clone(),
            description: new.description.clone(),
            context: new.context.clone(),
            criteria: new.criteria.clone(),
            created_at: self.at,
        };
        query("INSERT INTO sessions (name, created_at, doc) VALUES (?1, ?2, ?3)")
            .bind(session.name.as_str())
            .bind(session.created_at.0)
            .bind(to_json(&session)?)
            .execute(&mut *self.connection)
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
        let session = apply_edit(self.known_session(&name).await?, &edit);
        query("UPDATE sessions SET doc = ?2 WHERE name = ?1")
            .bind(name.as_str())
            .bind(to_json(&session)?)
            .execute(&mut *self.connection)
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
        query("INSERT INTO progress (session, at, run_id, text) VALUES (?1, ?2, ?3, ?4)")
            .bind(session.as_str())
            .bind(self.at.0)
            .bind(run.as_ref().map(RunId::as_str))
            .bind(&text)
            .execute(&mut *self.connection)
            .await?;
        let about = About { session: Some(&session), run: run.as_ref(), task: None };
        let kind = EventKind::ProgressAdded { session: session.clone(), text: text.clone() };
        self.append(about, &kind).await?;
        Ok(ProgressEntry { at: self.at, run, text })
    }

    pub(super) async fn known_session(&mut self, name: &SessionName) -> Result<Session, CommitError> {
        if let Some(session) = look_up(self.connection, name).await? {
            return Ok(session);
        }
        let near = near(self.connection, name).await?;
        Err(CommitError::UnknownSession { name: name.clone(), near })
    }
}

/// What an edit makes of a session.
pub(in crate::sqlite) fn apply_edit(session: Session, edit: &SessionEdit) -> Session {
    Session {
        description: edit.description.clone().unwrap_or(session.description),
        context: edit.context.clone().unwrap_or(session.context),
        criteria: edit.criteria.clone().unwrap_or(session.criteria),
        ..session
    }
}
