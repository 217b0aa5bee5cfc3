//! Pausing and resuming: everything, one agent or one session.

use rehearsal_core::{Hold, HoldCause, Lane, Timestamp};
use rehearsal_store::Change;
use serde::Serialize;

use crate::project::{Project, ProjectError};

/// A lane that stands still.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldLane {
    /// Which.
    pub lane: Lane,
    /// Why, and until when.
    pub hold: Hold,
}

/// `pause --json` and `resume --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneDocument {
    /// Which lane was paused or goes on.
    pub lane: Lane,
    /// All that is held now.
    pub held: Vec<HeldLane>,
    /// What held the lane before.
    #[serde(skip)]
    pub before: Option<Hold>,
}

/// Pauses claiming in a lane. What is running continues to its end.
pub async fn pause(
    project: &Project,
    lane: Lane,
    reason: String,
    until: Option<Timestamp>,
) -> Result<LaneDocument, ProjectError> {
    let hold = Hold { cause: HoldCause::Person, reason, until };
    change(project, Change::HoldLane { lane: lane.clone(), hold }, lane).await
}

/// Lets a lane continue.
pub async fn resume(project: &Project, lane: Lane) -> Result<LaneDocument, ProjectError> {
    change(project, Change::FreeLane { lane: lane.clone() }, lane).await
}

async fn change(project: &Project, change: Change, lane: Lane) -> Result<LaneDocument, ProjectError> {
    project.caller.may_decide()?;
    check(project, &lane).await?;
    let before = held(project).await?.into_iter().find(|held| held.lane == lane).map(|held| held.hold);
    project.commit(vec![change]).await?;
    Ok(LaneDocument { lane, held: held(project).await?, before })
}

/// All lanes that stand still.
pub(crate) async fn held(project: &Project) -> Result<Vec<HeldLane>, ProjectError> {
    let now = project.caller.now();
    let situation = project.store().await?.situation(&project.settings()?.limits(), now).await?;
    let holds = situation.holds.into_iter().filter(|(_, hold)| hold.holds_at(now));
    Ok(holds.map(|(lane, hold)| HeldLane { lane, hold }).collect())
}

/// A lane with no one in it would hold nothing.
async fn check(project: &Project, lane: &Lane) -> Result<(), ProjectError> {
    match lane {
        Lane::All => Ok(()),
        Lane::Agent(name) => project.check_agent(name),
        Lane::Session(name) => Ok(project.store().await?.session(name).await.map(drop)?),
    }
}
