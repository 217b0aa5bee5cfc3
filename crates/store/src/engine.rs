//! What the two engines do alike: everything but connecting, committing and hearing of others.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rehearsal_core::flow::Flow;
use rehearsal_core::guard::{Hindrance, Limits, Situation};
use rehearsal_core::{
    Actor, Event, Fence, ProgressEntry, Run, Session, SessionName, Task, TaskId, Timestamp,
};
use tokio::sync::watch;

use crate::link::{Link, Sql};
use crate::patience::{Patience, Trouble};
use crate::tables::flows::FlowCache;
use crate::tables::{find, log, runs, sessions, situation, tasks, tested, verify};
use crate::{
    Change, CommitError, Committed, Cost, Counts, EventQuery, FindError, RunQuery, Scope, SessionSummary,
    Store, StoreError, TaskQuery, TestQuery, Tested,
};

/// One kind of database.
#[async_trait]
pub(crate) trait Engine: Send + Sync {
    /// The statement that reads the version of the layout.
    const VERSION: &'static str;

    fn flows(&self) -> &FlowCache;

    /// Waits for a connection.
    async fn turn(&self, access: Access) -> Result<Box<dyn Turn + '_>, StoreError>;

    /// Whether to try again after this error. Returns after a pause.
    async fn tries_again(&self, _: &mut Patience, _: &StoreError) -> bool {
        false
    }

    /// The time that counts.
    async fn time(&self, _: &mut Link<'_>, given: Timestamp) -> Result<Timestamp, StoreError> {
        Ok(given)
    }

    /// Makes all changes or none, once.
    async fn transact(
        &self,
        actor: &Actor,
        at: Timestamp,
        changes: Vec<Change>,
    ) -> Result<Vec<Committed>, CommitError>;

    fn watch(&self) -> watch::Receiver<u64>;
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A connection in use. One that is dropped and not kept is closed.
pub(crate) trait Turn: Send {
    fn link(&mut self) -> Link<'_>;

    /// Keeps the connection for the next one.
    fn keep(self: Box<Self>);
}

/// Asks something that can be asked again, until there is an answer or patience is over.
macro_rules! ask {
    ($engine:ident, $link:ident => $answer:expr) => {
        ask!($engine, Access::Read, $link => $answer)
    };
    ($engine:ident, $access:expr, $link:ident => $answer:expr) => {{
        let mut patience = Patience::new();
        loop {
            let mut turn = match $engine.turn($access).await {
                Ok(turn) => turn,
                Err(error) if $engine.tries_again(&mut patience, &error).await => continue,
                Err(error) => return Err(error.into()),
            };
            let $link = &mut turn.link();
            let answer = $answer.await;
            let Some(trouble) = answer.as_ref().err().and_then(Trouble::trouble) else {
                turn.keep();
                return answer;
            };
            if !$engine.tries_again(&mut patience, trouble).await {
                return answer;
            }
        }
    }};
}

#[async_trait]
impl<E: Engine> Store for E {
    async fn commit(
        &self,
        actor: Actor,
        at: Timestamp,
        changes: Vec<Change>,
    ) -> Result<Vec<Committed>, CommitError> {
        let mut patience = Patience::new();
        loop {
            let answer = self.transact(&actor, at, changes.clone()).await;
            match answer.as_ref().err().and_then(Trouble::trouble) {
                Some(trouble) if self.tries_again(&mut patience, trouble).await => {}
                _ => return answer,
            }
        }
    }

    async fn renew(
        &self,
        claims: &[(TaskId, Fence)],
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<TaskId>, StoreError> {
        ask!(self, Access::Write, link => async {
            let now = self.time(link, now).await?;
            situation::renew(link, claims, lease, now).await
        })
    }

    async fn still_held(&self, claims: &[(TaskId, Fence)]) -> Result<Vec<TaskId>, StoreError> {
        ask!(self, link => situation::still_held(link, claims))
    }

    async fn situation(&self, limits: &Limits, now: Timestamp) -> Result<Situation, StoreError> {
        ask!(self, link => async {
            let now = self.time(link, now).await?;
            situation::situation(link, limits, now).await
        })
    }

    async fn hindrance(
        &self,
        task: &Task,
        limits: &Limits,
        now: Timestamp,
    ) -> Result<Option<Hindrance>, StoreError> {
        ask!(self, link => async {
            let now = self.time(link, now).await?;
            situation::hindrance(link, self.flows(), task, limits, now).await
        })
    }

    async fn next_wake(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        ask!(self, link => async {
            let now = self.time(link, now).await?;
            situation::next_wake(link, now).await
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.watch()
    }

    async fn leases(&self) -> Result<Vec<(Task, Timestamp)>, StoreError> {
        ask!(self, link => situation::leases(link))
    }

    async fn flow(&self, version: &str) -> Result<Arc<Flow>, StoreError> {
        ask!(self, link => self.flows().get(link, version))
    }

    async fn session(&self, name: &SessionName) -> Result<Session, FindError> {
        ask!(self, link => sessions::session(link, name))
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        ask!(self, link => sessions::sessions(link))
    }

    async fn progress(&self, session: &SessionName, last: u32) -> Result<Vec<ProgressEntry>, StoreError> {
        ask!(self, link => sessions::progress(link, session, last))
    }

    async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        ask!(self, link => tasks::task(link, id))
    }

    async fn find_task(&self, prefix: &str) -> Result<Task, FindError> {
        ask!(self, link => find::task(link, prefix))
    }

    async fn tasks(&self, query: &TaskQuery) -> Result<Vec<Task>, StoreError> {
        ask!(self, link => tasks::tasks(link, query))
    }

    async fn count_tasks(&self, session: Option<&SessionName>) -> Result<Counts, StoreError> {
        ask!(self, link => tasks::count(link, session))
    }

    async fn next_task(
        &self,
        session: Option<&SessionName>,
        now: Timestamp,
    ) -> Result<Option<Task>, StoreError> {
        ask!(self, link => async {
            let now = self.time(link, now).await?;
            tasks::next(link, session, now).await
        })
    }

    async fn find_run(&self, prefix: &str) -> Result<Run, FindError> {
        ask!(self, link => find::run(link, prefix))
    }

    async fn runs(&self, query: &RunQuery) -> Result<Vec<Run>, StoreError> {
        ask!(self, link => runs::runs(link, query))
    }

    async fn unfinished_runs(&self) -> Result<Vec<Run>, StoreError> {
        ask!(self, link => runs::unfinished(link))
    }

    async fn cost_of(&self, scope: &Scope) -> Result<Cost, StoreError> {
        ask!(self, link => runs::cost(link, scope))
    }

    async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, StoreError> {
        ask!(self, link => log::events(link, query))
    }

    async fn test_runs(&self, query: &TestQuery) -> Result<Vec<Tested>, StoreError> {
        ask!(self, link => tested::test_runs(link, query))
    }

    async fn last_event(&self) -> Result<i64, StoreError> {
        ask!(self, link => log::last(link))
    }

    async fn schema_version(&self) -> Result<i64, StoreError> {
        ask!(self, link => async {
            let (version,) = link.one(Sql::from(E::VERSION), &[]).await?;
            Ok(version)
        })
    }

    async fn verify(&self) -> Result<Vec<String>, StoreError> {
        ask!(self, link => verify::verify(link, self.flows()))
    }
}
