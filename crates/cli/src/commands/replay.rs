//! `replay`.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum};
use rehearsal_agent::clis::KNOWN;
use rehearsal_app::cassettes::{open_to_play, secrets};
use rehearsal_core::Exit as ProcessExit;
use rehearsal_llm::cassette::{Difference, Matching, Miss, PlayReport, Player, RelaxedUse, Rung};
use rehearsal_stage::{ReplaySpeed, ReplayingPlay, Stage};
use serde::Serialize;

use super::Done;
use super::cassette::told;
use super::performance::{CommandArgs, Input, KeysOf, Performance, Printed};
use super::record::number;
use crate::context::Context;
use crate::error::CliError;
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
    #[arg(long, value_name = "WHAT")]
    relaxed: Option<RungName>,
    /// How fast answers come
    #[arg(long, value_enum, default_value_t = SpeedName::Instant)]
    speed: SpeedName,
}

/// What may differ.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RungName {
    Headers,
    Settings,
    Tools,
    Instructions,
    Texts,
    Everything,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SpeedName {
    Instant,
    Recorded,
}

impl RungName {
    pub(crate) fn rung(self) -> Rung {
        match self {
            Self::Headers => Rung::Headers,
            Self::Settings => Rung::Settings,
            Self::Tools => Rung::Tools,
            Self::Instructions => Rung::Instructions,
            Self::Texts => Rung::Texts,
            Self::Everything => Rung::Everything,
        }
    }
}

impl HowToMatch {
    pub(crate) fn matching(&self) -> Matching {
        self.relaxed.map_or(Matching::Strict, |name| Matching::Relaxed(name.rung()))
    }

    pub(crate) fn speed(&self) -> ReplaySpeed {
        match self.speed {
            SpeedName::Instant => ReplaySpeed::Instant,
            SpeedName::Recorded => ReplaySpeed::Recorded,
        }
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
    relaxed: Vec<RelaxedView>,
    /// How many there were in all.
    relaxations: usize,
    /// Requests that were not recorded: the first hundred.
    misses: Vec<MissView>,
    /// How many there were in all.
    missed: usize,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct UnplayedView {
    number: u32,
    lane: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RelaxedView {
    number: u32,
    /// What had to be allowed.
    rung: Rung,
    differences: Vec<Difference>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MissView {
    method: String,
    target: String,
    why: String,
    /// The recorded request that is most like it.
    nearest: Option<u32>,
    differences: Vec<Difference>,
}

impl From<PlayReport> for ReplayReport {
    fn from(report: PlayReport) -> Self {
        let faithful = report.is_faithful();
        let relaxed = |used: RelaxedUse| {
            let RelaxedUse { number, rung, differences } = used;
            RelaxedView { number, rung, differences }
        };
        let miss = |miss: Miss| {
            let Miss { method, target, why, nearest, differences } = miss;
            MissView { method, target, why, nearest, differences }
        };
        let unplayed = |(number, lane): (u32, rehearsal_llm::cassette::LaneName)| UnplayedView {
            number,
            lane: lane.to_string(),
        };
        Self {
            faithful,
            played: report.played,
            unplayed: report.unplayed.into_iter().map(unplayed).collect(),
            relaxed: report.relaxed.into_iter().map(relaxed).collect(),
            relaxations: report.relaxations,
            missed: report.missed,
            misses: report.misses.into_iter().map(miss).collect(),
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
    let secrets = secrets(context);
    let cassette = open_to_play(context, &args.name, &secrets)?;
    let performance = Performance::prepare(&args.command, &context.directory)?;
    let player =
        Player::new(cassette, args.how.matching(), &KNOWN.model_clients(), &performance.place(), &secrets)
            .map_err(|error| CliError::of(Exit::Internal, &error))?;
    let play = Arc::new(ReplayingPlay::new(player, args.how.speed()));
    let stage = Stage::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Arc::clone(&play) as _)?;
    let ended =
        performance.run(stage.address(), KeysOf::Nobody, Input::Ours, Printed::Shown, context.ui).await?;
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
