//! The stand-in by its environment: one call, told by `MOCK_…` variables.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::commit::commit;
use super::error::MockError;
use super::files::{read_or_empty, write};
use super::player::Player;
use super::report::write_result;

const CHANGES: &str = "mock-changes.txt";

/// `result.json` with whatever the variables say, also what no agent should write.
#[derive(Serialize)]
struct EnvResult<'a> {
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

pub(super) fn play(player: &mut Player<'_>) -> Result<i32, MockError> {
    let env = player.env;
    if env.var("MOCK_CRASH") == Some("true") {
        return Ok(1);
    }
    let sleep = number(player, "MOCK_SLEEP", 0)?;
    let commits = number(player, "MOCK_COMMITS", 1)?;
    player.begin()?;
    player.time.sleep(Duration::from_secs(sleep))?;
    for i in 1..=commits {
        let changes = player.worktree.join(CHANGES);
        let line = format!("change {i} at {}\n", player.time.now().0 / 1000);
        write(&changes, &(read_or_empty(&changes)? + &line))?;
        let message = format!("mock commit {i}");
        commit(&player.worktree, CHANGES, &message, player.time.commit_date())?;
        player.ran(format!("git add {CHANGES} && git commit -m '{message}'"))?;
    }
    let result = EnvResult {
        outcome: env.var("MOCK_OUTCOME").unwrap_or("success"),
        decision: env.var("MOCK_DECISION"),
        comment: env.var("MOCK_COMMENT"),
        reason: env.var("MOCK_REASON"),
    };
    write_result(env, &result)?;
    let mut text = format!("Mock agent: {}, {commits} commits.", result.outcome);
    if let Some(decision) = result.decision {
        let _ = write!(text, " Decision: {decision}.");
    }
    player.say(&text)?;
    player.finish()
}

fn number(player: &Player<'_>, name: &'static str, default: u64) -> Result<u64, MockError> {
    let Some(value) = player.env.var(name) else {
        return Ok(default);
    };
    let wrong = || MockError::Value { name, value: value.to_owned(), expected: "a whole number" };
    value.parse().map_err(|_| wrong())
}
