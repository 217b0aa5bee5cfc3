//! `replay`.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use camino::Utf8PathBuf;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rehearsal_app::stage::{KeysOf, replaying};
use rehearsal_core::Exit as ProcessExit;
use rehearsal_llm::cassette::{Difference, LADDER, LaneName, Matching, Miss, PlayReport, RelaxedUse, Rung};
use rehearsal_stage::{ReplaySpeed, Stage};
use serde::Serialize;

use super::Done;
use super::cassette::told;
use super::performance::{CommandArgs, Input, Printed};
use super::record::number;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{Ui, harmless};
use crate::words::count;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal replay greeting -- claude -p 'Write hello.txt'
  rehearsal replay greeting --relaxed texts -- claude -p 'Please write hello.txt'

Ends with 3 if the agent asked for something that was not recorded, or not for all that was.

What may differ with --relaxed, each with all before it: headers, settings (the model, limits), tools (their definitions), \
instructions (the system's), texts (the roles and the tools called must be the same), everything.")]
pub(crate) struct ReplayArgs {
    /// A name in .rehearsal/cassettes, or a file that ends in .jsonl
    name: Utf8PathBuf,
    #[command(flatten)]
    how: HowToMatch,
    #[command(flatten)]
    command: CommandArgs,
}

/// How a cassette is played.
#[derive(Debug, Args)]
pub(crate) struct HowToMatch {
    /// What may differ from the recording; without it nothing may
    #[arg(long, value_name = "WHAT", value_parser = rung())]
    relaxed: Option<Rung>,
    /// How fast answers come
    #[arg(long, default_value = "instant", value_parser = speed())]
    pub(crate) speed: ReplaySpeed,
}

/// What may differ, by its name.
pub(crate) fn rung() -> impl TypedValueParser<Value = Rung> {
    let named = |name: String| LADDER.iter().copied().find(|rung| rung.name() == name).ok_or("unknown");
    PossibleValuesParser::new(LADDER.iter().map(|rung| rung.name())).try_map(named)
}

fn speed() -> impl TypedValueParser<Value = ReplaySpeed> {
    PossibleValuesParser::new(["instant", "recorded"])
        .map(|name| if name == "recorded" { ReplaySpeed::Recorded } else { ReplaySpeed::Instant })
}

impl HowToMatch {
    pub(crate) fn matching(&self) -> Matching {
        self.relaxed.map_or(Matching::Strict, Matching::Relaxed)
    }
}

/// `replay --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ReplayDocument {
    #[serde(flatten)]
    report: ReplayReport,
    /// How the agent ended: its exit code, or minus the signal.
    agent_exit: i32,
}

/// What became of a cassette.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ReplayReport {
    /// Whether it all went as it was recorded.
    faithful: bool,
    /// How many answers were given.
    played: usize,
    /// Recorded requests that nobody asked.
    unplayed: Vec<UnplayedView>,
    /// Answers that were given although something differed: the first hundred.
    relaxed: Vec<RelaxedUse>,
    /// How many there were in all.
    relaxations: usize,
    /// Requests that were not recorded: the first hundred.
    misses: Vec<Miss>,
    /// How many there were in all.
    missed: usize,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct UnplayedView {
    number: u32,
    lane: String,
}

impl From<PlayReport> for ReplayReport {
    fn from(report: PlayReport) -> Self {
        let faithful = report.is_faithful();
        let unplayed = |(number, lane): (u32, LaneName)| UnplayedView { number, lane: lane.to_string() };
        Self {
            faithful,
            played: report.played,
            unplayed: report.unplayed.into_iter().map(unplayed).collect(),
            relaxed: report.relaxed,
            relaxations: report.relaxations,
            missed: report.missed,
            misses: report.misses,
        }
    }
}

impl ReplayReport {
    pub(crate) fn is_faithful(&self) -> bool {
        self.faithful
    }

    /// As people read it.
    pub(crate) fn tell(&self, ui: Ui) {
        let total = self.played + self.unplayed.len();
        ui.aside(format!("played {} of {}", self.played, count(total as u64, "recorded request")));
        for used in &self.relaxed {
            ui.aside(format!("request {} was played although its {} differ:", used.number, used.rung.name()));
            tell_all(&used.differences, ui);
        }
        for miss in self.misses.iter().take(1) {
            ui.aside(format!(
                "miss: {} {} was not recorded: {}",
                miss.method,
                harmless(&miss.target),
                miss.why
            ));
            tell_all(&miss.differences, ui);
        }
        // Agents try again with a little less when they are refused: that says nothing new.
        if let more @ 1.. = self.missed.saturating_sub(1) {
            ui.aside(format!("and {} after it", count(more as u64, "request")));
        }
        if !self.unplayed.is_empty() {
            let numbers: Vec<String> =
                self.unplayed.iter().map(|one| format!("{} ({})", one.number, one.lane)).collect();
            ui.aside(format!("never asked: {}", numbers.join(", ")));
        }
    }
}

fn tell_all(differences: &[Difference], ui: Ui) {
    for difference in differences {
        ui.aside(told(difference));
    }
}

pub(crate) async fn run(args: ReplayArgs, context: &Context) -> Done {
    let performance = args.command.prepare(context)?;
    let (matching, speed) = (args.how.matching(), args.how.speed);
    let play = Arc::new(replaying(context, &args.name, &performance.place(), matching, speed)?);
    let stage = Stage::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Arc::clone(&play) as _)?;
    let (keys, input, printed) = (KeysOf::Nobody, Input::Ours, Printed::Shown);
    let ended = args.command.run(&performance, stage.address(), keys, input, printed, context.ui).await?;
    stage.close().await;
    let report = ReplayReport::from(play.report());
    report.tell(context.ui);
    let is_good = report.is_faithful();
    context.ui.document(ReplayDocument { report, agent_exit: number(ended.exit) });
    Ok(match (is_good, ended.exit) {
        (false, _) => Exit::Red,
        (true, ProcessExit::Code(0)) => Exit::Ok,
        (true, _) => Exit::Agent,
    })
}
