//! `pause` and `resume`: lanes that stand still.

use clap::Args;
use rehearsal_core::config::{HumanDuration, Overrides, Settings};
use rehearsal_core::{Hold, HoldCause, Lane, Timestamp};
use rehearsal_store::{Change, Store};
use serde::Serialize;

use super::Done;
use super::work::{HeldLane, check_agent};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::inside::InsideRun;
use crate::ui::harmless;
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal pause                                     # nothing more is claimed
  rehearsal pause agent:gatekeeper --reason 'away until Monday'
  rehearsal pause session:api --until 2h
  rehearsal pause --until 2027-01-04T08:00

What is under way goes on to its end. `rehearsal run` does not ask lanes: it works on one session, in this checkout.")]
pub(crate) struct PauseArgs {
    /// What to pause: all, agent:NAME or session:NAME
    #[arg(default_value = "all")]
    lane: Lane,
    /// Why, for whoever asks
    #[arg(long, short, value_name = "TEXT", default_value = "paused by hand")]
    reason: String,
    /// Until when: a time like 2h from now, or a moment like 2027-01-04T08:00; without it, until `resume`
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rehearsal resume\n  rehearsal resume agent:gatekeeper")]
pub(crate) struct ResumeArgs {
    /// What goes on: all, agent:NAME or session:NAME
    #[arg(default_value = "all")]
    lane: Lane,
}

/// `pause --json` and `resume --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LaneDocument {
    /// Which lane was paused or goes on.
    lane: Lane,
    /// All that is held now.
    held: Vec<HeldLane>,
}

pub(crate) async fn pause(args: PauseArgs, context: &Context) -> Done {
    InsideRun::refuse_changes()?;
    let project = context.project()?;
    let settings = project.settings(Overrides::default())?;
    let store = project.store().await?;
    check_lane(&args.lane, &settings, &*store).await?;
    let now = context.now();
    let until = args.until.as_deref().map(|text| moment(text, now)).transpose()?;
    let hold = Hold { cause: HoldCause::Person, reason: args.reason, until };
    context.commit(&*store, vec![Change::HoldLane { lane: args.lane.clone(), hold }]).await?;
    let what = in_words(&args.lane);
    context.ui.say(match until {
        Some(until) => {
            format!("{what} is paused until {} ({})", words::moment(until), words::relative(until, now))
        }
        None => format!("{what} is paused"),
    });
    context.ui.say(format!("next: rehearsal resume{}", argument(&args.lane)));
    answer(args.lane, &settings, &*store, context).await
}

pub(crate) async fn resume(args: ResumeArgs, context: &Context) -> Done {
    InsideRun::refuse_changes()?;
    let project = context.project()?;
    let settings = project.settings(Overrides::default())?;
    let store = project.store().await?;
    check_lane(&args.lane, &settings, &*store).await?;
    let before = held(&settings, &*store, context.now()).await?;
    context.commit(&*store, vec![Change::FreeLane { lane: args.lane.clone() }]).await?;
    let what = in_words(&args.lane);
    match before.iter().find(|held| held.lane == args.lane) {
        Some(held) => context.ui.say(format!("{what} goes on; it was held: {}", harmless(&held.hold.reason))),
        None => context.ui.say(format!("{what} was not held")),
    }
    for other in before.iter().filter(|held| held.lane != args.lane) {
        context.ui.say(format!("{} is still held: {}", other.lane, harmless(&other.hold.reason)));
    }
    answer(args.lane, &settings, &*store, context).await
}

async fn answer(lane: Lane, settings: &Settings, store: &dyn Store, context: &Context) -> Done {
    let held = held(settings, store, context.now()).await?;
    context.ui.document(LaneDocument { lane, held });
    Ok(Exit::Ok)
}

/// All lanes that stand still.
pub(crate) async fn held(
    settings: &Settings,
    store: &dyn Store,
    now: Timestamp,
) -> Result<Vec<HeldLane>, CliError> {
    let situation = store.situation(&settings.limits(), now).await?;
    let holds = situation.holds.into_iter().filter(|(_, hold)| hold.holds_at(now));
    Ok(holds.map(|(lane, hold)| HeldLane { lane, hold }).collect())
}

/// A lane that nobody is in would hold nothing.
async fn check_lane(lane: &Lane, settings: &Settings, store: &dyn Store) -> Result<(), CliError> {
    match lane {
        Lane::All => Ok(()),
        Lane::Agent(name) => check_agent(name, settings),
        Lane::Session(name) => Ok(store.session(name).await.map(drop)?),
    }
}

fn in_words(lane: &Lane) -> String {
    match lane {
        Lane::All => "all work".to_owned(),
        Lane::Agent(name) => format!("agent `{name}`"),
        Lane::Session(name) => format!("session `{name}`"),
    }
}

fn argument(lane: &Lane) -> String {
    if *lane == Lane::All { String::new() } else { format!(" {lane}") }
}

/// From now on for so long, or a moment: with a zone, or in the user's.
fn moment(text: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    if let Ok(HumanDuration(duration)) = text.parse() {
        return Ok(now.plus(duration));
    }
    let local = || {
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        Some(civil.to_zoned(jiff::tz::TimeZone::system()).ok()?.timestamp())
    };
    let at = text.parse::<jiff::Timestamp>().ok().or_else(local).ok_or_else(|| {
        CliError::usage(format!("`{text}` is no moment"))
            .hint("write how long from now, like `90m` or `2h`, or when, like `2027-01-04T08:00`")
    })?;
    let at = Timestamp(at.as_millisecond());
    if at <= now {
        return Err(CliError::usage(format!("`{text}` is over already")));
    }
    Ok(at)
}
