//! New ids for what is added.

use rehearsal_core::Actor;
use rehearsal_store::{Change, CommitError, Committed};

use crate::project::{Project, ProjectError};

/// Short ids are drawn at random, so one may be taken already. More than this is not bad luck.
const DRAWS: usize = 8;

/// Commits what `draw` returns, with new ids each time, until none of them is taken.
pub(crate) async fn commit_drawn<T, E>(
    project: &Project,
    mut draw: impl AsyncFnMut() -> Result<(Vec<Change>, T), E>,
) -> Result<(Vec<Committed>, T), E>
where
    E: From<ProjectError>,
{
    let store = project.store().await?;
    let mut draws = 0;
    loop {
        draws += 1;
        let (changes, drawn) = draw().await?;
        match store.commit(Actor::Person(project.caller.person.clone()), project.caller.now(), changes).await
        {
            Err(CommitError::IdTaken { .. }) if draws < DRAWS => {}
            Err(error) => return Err(E::from(error.into())),
            Ok(committed) => return Ok((committed, drawn)),
        }
    }
}
