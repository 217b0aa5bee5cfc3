//! What was seen of an agent's CLI, and what to do about it.

use std::time::Duration;

use rehearsal_agent::cli_of;
use rehearsal_app::agents::{Ability, CheckDocument, CheckRow, Seen};
use rehearsal_core::config::DriverKind;

use super::{bounds, cost, duration};
use crate::ui::one_line;

/// What an agent must be able to do.
pub(crate) fn ability(what: Ability) -> &'static str {
    match what {
        Ability::Found => "found",
        Ability::Version => "version",
        Ability::Flags => "flags",
        Ability::Confinement => "confinement",
        Ability::Edits => "edits",
        Ability::RunsTests => "runs the tests",
        Ability::Commits => "commits",
        Ability::Reports => "reports",
        Ability::Decides => "decides",
        Ability::EndsWhenKilled => "ends when killed",
        Ability::ModelAnswers => "the model answers",
    }
}

/// What was seen of it.
pub(crate) fn seen(row: &CheckRow, document: &CheckDocument) -> String {
    match &row.seen {
        Seen::Works => worked(row.what, document),
        Seen::Program { path } => path.clone(),
        Seen::NotStarted { error } => error.clone(),
        Seen::Version { version } => version.clone(),
        Seen::NoVersion => "no answer to `--version`".to_owned(),
        Seen::NoAnswer => "no answer to `--help` and `--version` in time".to_owned(),
        Seen::FlagsMissing { flags } => format!("missing: {}", flags.join(", ")),
        Seen::CommittedForIt => "not by itself: the engine commits for it".to_owned(),
        Seen::Refused { returned } => format!("its tool returned: {returned}"),
        Seen::NotDone { said } => format!("not done; its last words: {}", one_line(said, 80)),
        Seen::Failed { outcome } => format!("not done: the run ended with {outcome}"),
        Seen::TooLong { limit_ms } => {
            format!("not done within {}", duration(Duration::from_millis(*limit_ms)))
        }
        Seen::NotTried => "not tried, because of what failed before".to_owned(),
        Seen::Left { processes } => format!("{processes} processes left"),
        Seen::Answered { outcome, cost_usd } => format!("{outcome} ({})", cost(*cost_usd)),
    }
}

fn worked(what: Ability, document: &CheckDocument) -> String {
    match what {
        Ability::Flags => "all that are needed".to_owned(),
        Ability::Confinement => {
            document.bounds.as_ref().map_or_else(String::new, |it| bounds::confined(&it.by))
        }
        Ability::Edits => "changed a file".to_owned(),
        Ability::RunsTests => "ran the test command".to_owned(),
        Ability::Commits => "committed its work".to_owned(),
        Ability::Reports => "said that it is done".to_owned(),
        Ability::Decides => "approved a change".to_owned(),
        Ability::EndsWhenKilled => "ended while a command ran, nothing left".to_owned(),
        Ability::Found | Ability::Version | Ability::ModelAnswers => "yes".to_owned(),
    }
}

/// What to do about it; none if it works, or if something else comes first.
pub(crate) fn remedy(row: &CheckRow, document: &CheckDocument) -> Option<String> {
    let install = || document.driver.parse::<DriverKind>().ok().and_then(|driver| cli_of(driver).install);
    if row.ok {
        return None;
    }
    Some(match (row.what, &row.seen) {
        (_, Seen::NotTried) => return None,
        (_, Seen::TooLong { .. }) => {
            "give it more time with `--timeout 2m`; `rehearsal run --dry-run` shows its command, to try by hand".to_owned()
        }
        (Ability::Edits | Ability::RunsTests | Ability::Commits | Ability::Reports | Ability::Decides, Seen::Failed { .. }) => {
            "`args:`, `env:` or a wrapper of its program keep it from the fake model; `rehearsal run --dry-run` shows its command, to try by hand".to_owned()
        }
        (Ability::Found, _) => match install() {
            Some(install) => format!("install it with `{install}`, or set `program:` for this agent"),
            None => "set `program:` for this agent".to_owned(),
        },
        (Ability::Version, _) => "run the program with `--version` by hand, and install it again if it does not answer".to_owned(),
        (Ability::Flags, _) => match install() {
            Some(install) => format!("install a version that has them: `{install}`"),
            None => "install a version that has them".to_owned(),
        },
        (Ability::Confinement, _) => {
            "`rehearsal doctor` shows what the sandbox needs; with `sandbox: auto` the agent also runs without it".to_owned()
        }
        (Ability::Edits | Ability::RunsTests | Ability::Commits, _) => {
            "remove what forbids it from `args:`, `env:` and `permission:` of this agent, or run it in the sandbox: `sandbox: auto`".to_owned()
        }
        (Ability::Reports | Ability::Decides, _) => {
            "its last message must have the signal that the prompt asks for: see what `args:`, `system_prompt:` and a wrapper of the program change".to_owned()
        }
        (Ability::EndsWhenKilled, Seen::Left { .. }) => {
            "agents of this kind leave processes behind: run them with `sandbox: required`".to_owned()
        }
        (Ability::EndsWhenKilled, _) => "it ended by itself before it could be killed: look at the rows above".to_owned(),
        (Ability::ModelAnswers, _) => "set its key in your environment, or log its CLI in".to_owned(),
    })
}
