//! One word of the real model. This costs tokens.

use std::sync::Arc;
use std::time::Duration;

use rehearsal_agent::probe::Probed;
use rehearsal_agent::{Agent, Permission, ProcessAgent, RunRequest};
use rehearsal_core::config::Profile;
use rehearsal_core::{Outcome, RunId};
use rehearsal_engine::{driver_of, random_bits};
use rehearsal_git::scratch::init_repository;
use tokio_util::sync::CancellationToken;

use super::{Ability, CheckError, CheckRow, Seen};
use crate::places::scratch;
use crate::project::Project;

/// A model that thinks about one word for longer is not there.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) async fn check(
    profile: &Profile,
    project: &Project,
    probed: &Probed,
) -> Result<CheckRow, CheckError> {
    let (scratch, _deleted) = scratch("rehearsal-check-")?;
    // Some CLIs work in a repository only.
    init_repository(&scratch).await?;
    let run_dir = scratch.join("run");
    fs_err::create_dir_all(&run_dir)?;
    let request = RunRequest {
        prompt: "Answer with the one word OK.".to_owned(),
        permission: Permission::Plan,
        timeout: Some(LIMIT),
        ..RunRequest::of_profile(profile, RunId::from_random(random_bits()), scratch, run_dir)
    };
    let driver = driver_of(profile, probed, profile.args.clone(), &project.root);
    let caller = &project.caller;
    let agent = ProcessAgent::new(driver, caller.environment.clone(), Arc::clone(&caller.clock));
    let report = agent.run(request, Arc::new(|_| {}), CancellationToken::new()).await;
    let outcome = &report.verdict.outcome;
    let ok = matches!(outcome, Outcome::Done | Outcome::NoChanges);
    let seen = Seen::Answered { outcome: outcome.to_string(), cost_usd: report.evidence.wire.cost_usd };
    Ok(CheckRow { what: Ability::ModelAnswers, ok, seen })
}
