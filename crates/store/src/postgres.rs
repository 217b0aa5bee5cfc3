//! The engine on a server, for many machines.

mod commit;
mod error;
mod hints;
mod migrate;
mod patience;
mod server;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rehearsal_core::flow::Flow;
use rehearsal_core::guard::{Hindrance, Limits, Situation};
use rehearsal_core::{
    Actor, Event, Fence, ProgressEntry, Run, Session, SessionName, Task, TaskId, Timestamp,
};
use tokio::sync::watch;

use crate::link::Link;
use crate::tables::flows::FlowCache;
use crate::tables::{find, log, runs, sessions, situation, tasks, tested, verify};
use crate::{
    Change, CommitError, Committed, Cost, Counts, EventQuery, FindError, OpenError, RunQuery, Scope,
    SessionSummary, Store, StoreError, TaskQuery, TestQuery, Tested,
};
use hints::Hints;
use patience::{Patience, Trouble};
use server::Server;

pub(crate) use error::meaning;
pub(crate) use server::in_time;

/// Whose time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeSource {
    /// The server's, whatever time is given: machines have many clocks, and a lease must have one.
    Server,
    /// The one that is given, for tests and rehearsals with a virtual clock.
    Given,
}

/// A store on a PostgreSQL server, shared by the processes of many machines.
///
/// A server that is away for a moment is waited for, and what can be done again safely is done again: reading, prolonging
/// a lease, and a commit that is known not to have happened.
#[derive(Debug)]
pub struct PostgresStore {
    server: Arc<Server>,
    flows: FlowCache,
    time: TimeSource,
    hints: Hints,
}

impl PostgresStore {
    /// Opens the store in a database, by its URL; makes the tables if they are not there.
    pub async fn open(url: &str, time: TimeSource) -> Result<Self, OpenError> {
        let server = Arc::new(Server::new(url)?);
        migrate::migrate(&server).await?;
        let hints = Hints::new(Arc::clone(&server));
        Ok(Self { server, flows: FlowCache::default(), time, hints })
    }

    /// The time that counts.
    async fn now(&self, link: &mut Link<'_>, given: Timestamp) -> Result<Timestamp, StoreError> {
        match self.time {
            TimeSource::Given => Ok(given),
            TimeSource::Server => {
                let (now,) =
                    link.one("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", &[]).await?;
                Ok(Timestamp(now))
            }
        }
    }
}

/// Does something that can be done again, until the connection lasts for all of it or patience is over.
macro_rules! patiently {
    ($store:ident, $link:ident => $done:expr) => {{
        let mut patience = Patience::new();
        loop {
            let mut turn = match $store.server.turn().await {
                Ok(turn) => turn,
                Err(error) if patience.lasts(&error).await => continue,
                Err(error) => return Err(error.into()),
            };
            let $link = &mut turn.link();
            let done = $done.await;
            let trouble = done.as_ref().err().and_then(Trouble::trouble);
            match trouble {
                None => {
                    turn.keep();
                    return done;
                }
                Some(trouble) => {
                    $store.server.heed(trouble);
                    if !patience.lasts(trouble).await {
                        return done;
                    }
                }
            }
        }
    }};
}

#[async_trait]
impl Store for PostgresStore {
    async fn commit(
        &self,
        actor: Actor,
        at: Timestamp,
        changes: Vec<Change>,
    ) -> Result<Vec<Committed>, CommitError> {
        let mut patience = Patience::new();
        loop {
            let answer = self.commit_once(&actor, at, changes.clone()).await;
            let Some(trouble) = answer.as_ref().err().and_then(Trouble::trouble) else {
                return answer;
            };
            self.server.heed(trouble);
            if !patience.lasts(trouble).await {
                return answer;
            }
        }
    }

    async fn renew(
        &self,
        claims: &[(TaskId, Fence)],
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<TaskId>, StoreError> {
        patiently!(self, link => async {
            let now = self.now(link, now).await?;
            situation::renew(link, claims, lease, now).await
        })
    }

    async fn still_held(&self, claims: &[(TaskId, Fence)]) -> Result<Vec<TaskId>, StoreError> {
        patiently!(self, link => situation::still_held(link, claims))
    }

    async fn situation(&self, limits: &Limits, now: Timestamp) -> Result<Situation, StoreError> {
        patiently!(self, link => async {
            let now = self.now(link, now).await?;
            situation::situation(link, limits, now).await
        })
    }

    async fn hindrance(
        &self,
        task: &Task,
        limits: &Limits,
        now: Timestamp,
    ) -> Result<Option<Hindrance>, StoreError> {
        patiently!(self, link => async {
            let now = self.now(link, now).await?;
            situation::hindrance(link, &self.flows, task, limits, now).await
        })
    }

    async fn next_wake(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        patiently!(self, link => async {
            let now = self.now(link, now).await?;
            situation::next_wake(link, now).await
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.hints.changes()
    }

    async fn leases(&self) -> Result<Vec<(Task, Timestamp)>, StoreError> {
        patiently!(self, link => situation::leases(link))
    }

    async fn flow(&self, version: &str) -> Result<Arc<Flow>, StoreError> {
        patiently!(self, link => self.flows.get(link, version))
    }

    async fn session(&self, name: &SessionName) -> Result<Session, FindError> {
        patiently!(self, link => sessions::session(link, name))
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        patiently!(self, link => sessions::sessions(link))
    }

    async fn progress(&self, session: &SessionName, last: u32) -> Result<Vec<ProgressEntry>, StoreError> {
        patiently!(self, link => sessions::progress(link, session, last))
    }

    async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        patiently!(self, link => tasks::task(link, id))
    }

    async fn find_task(&self, prefix: &str) -> Result<Task, FindError> {
        patiently!(self, link => find::task(link, prefix))
    }

    async fn tasks(&self, query: &TaskQuery) -> Result<Vec<Task>, StoreError> {
        patiently!(self, link => tasks::tasks(link, query))
    }

    async fn count_tasks(&self, session: Option<&SessionName>) -> Result<Counts, StoreError> {
        patiently!(self, link => tasks::count(link, session))
    }

    async fn next_task(
        &self,
        session: Option<&SessionName>,
        now: Timestamp,
    ) -> Result<Option<Task>, StoreError> {
        patiently!(self, link => async {
            let now = self.now(link, now).await?;
            tasks::next(link, session, now).await
        })
    }

    async fn find_run(&self, prefix: &str) -> Result<Run, FindError> {
        patiently!(self, link => find::run(link, prefix))
    }

    async fn runs(&self, query: &RunQuery) -> Result<Vec<Run>, StoreError> {
        patiently!(self, link => runs::runs(link, query))
    }

    async fn unfinished_runs(&self) -> Result<Vec<Run>, StoreError> {
        patiently!(self, link => runs::unfinished(link))
    }

    async fn cost_of(&self, scope: &Scope) -> Result<Cost, StoreError> {
        patiently!(self, link => runs::cost(link, scope))
    }

    async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, StoreError> {
        patiently!(self, link => log::events(link, query))
    }

    async fn test_runs(&self, query: &TestQuery) -> Result<Vec<Tested>, StoreError> {
        patiently!(self, link => tested::test_runs(link, query))
    }

    async fn last_event(&self) -> Result<i64, StoreError> {
        patiently!(self, link => log::last(link))
    }

    async fn schema_version(&self) -> Result<i64, StoreError> {
        patiently!(self, link => migrate::version(link))
    }

    async fn verify(&self) -> Result<Vec<String>, StoreError> {
        patiently!(self, link => async {
            link.on_postgres("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", &[]).await?;
            let findings = verify::verify(link, &self.flows).await?;
            link.on_postgres("ROLLBACK", &[]).await?;
            Ok(findings)
        })
    }
}
