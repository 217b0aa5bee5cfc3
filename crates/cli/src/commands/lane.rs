//! `pause` and `resume`: lanes that stand still.

use clap::Args;
use rehearsal_app::command_line::quote;
use rehearsal_app::lanes;
use rehearsal_core::config::HumanDuration;
use rehearsal_core::{Lane, Timestamp};

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
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

pub(crate) async fn pause(args: PauseArgs, context: &Context) -> Done {
    let now = context.now();
    let until = args.until.as_deref().map(|text| moment(text, now)).transpose()?;
    let document = lanes::pause(&context.project()?, args.lane, args.reason, until).await?;
    let what = in_words(&document.lane);
    context.ui.say(match until {
        Some(until) => {
            format!("{what} is paused until {} ({})", words::moment(until), words::relative(until, now))
        }
        None => format!("{what} is paused"),
    });
    context.ui.say(format!("next: rehearsal resume{}", argument(&document.lane)));
    context.ui.document(document);
    Ok(Exit::Ok)
}

pub(crate) async fn resume(args: ResumeArgs, context: &Context) -> Done {
    let document = lanes::resume(&context.project()?, args.lane).await?;
    let what = in_words(&document.lane);
    match &document.before {
        Some(hold) => context.ui.say(format!("{what} goes on; it was held: {}", harmless(&hold.reason))),
        None => context.ui.say(format!("{what} was not held")),
    }
    for other in &document.held {
        context.ui.say(format!("{} is still held: {}", other.lane, harmless(&other.hold.reason)));
    }
    context.ui.document(document);
    Ok(Exit::Ok)
}

fn in_words(lane: &Lane) -> String {
    match lane {
        Lane::All => "all work".to_owned(),
        Lane::Agent(name) => format!("agent `{name}`"),
        Lane::Session(name) => format!("session `{name}`"),
    }
}

fn argument(lane: &Lane) -> String {
    if *lane == Lane::All { String::new() } else { format!(" {}", quote(&lane.to_string())) }
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
