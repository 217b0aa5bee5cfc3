//! The vendor of a rehearsal: a stage in this process, for agents of the crew that are to be played by a model's answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rehearsal_agent::driver::{CrewDriver, CrewOrder, Program};
use rehearsal_core::AgentName;
use rehearsal_core::config::{DriverKind, Settings};
use rehearsal_stage::{Answered, Script, ScriptedPlay, Stage};

use crate::scenario::Scenario;

/// A vendor that says what it was told.
pub(crate) struct Vendor {
    stage: Stage,
    play: Arc<ScriptedPlay>,
}

/// No vendor takes it, and the stage takes any.
const KEY: &str = "a-key-for-the-stage";

impl Vendor {
    /// Listens on a port of this machine that is free.
    pub(crate) fn open(script: Script) -> std::io::Result<Self> {
        let play = Arc::new(ScriptedPlay::new(script));
        let stage = Stage::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Arc::clone(&play) as _)?;
        Ok(Self { stage, play })
    }

    /// What an agent has to be told.
    pub(crate) fn variables(&self) -> [(String, String); 2] {
        let address = format!("http://{}", self.stage.address());
        [("ANTHROPIC_BASE_URL".to_owned(), address), ("ANTHROPIC_API_KEY".to_owned(), KEY.to_owned())]
    }

    /// What it was asked that it was not told, and told that it was not asked.
    pub(crate) fn problems(&self) -> Vec<String> {
        let report = self.play.report();
        let misses = report.exchanges.iter().filter_map(|exchange| match &exchange.answered {
            Answered::Miss { message } => {
                Some(format!("the stage was asked for more than it was told: {message}"))
            }
            Answered::UnknownPath => {
                Some(format!("the stage was asked for `{}`, which it does not know", exchange.path))
            }
            Answered::Turn { .. } | Answered::Side | Answered::Fixed => None,
        });
        let unplayed = report.turns.iter().filter(|turn| turn.is_unplayed());
        let unplayed = unplayed.map(|turn| format!("turn {} of the stage was never asked for", turn.turn));
        misses.chain(unplayed).collect()
    }
}

/// Whether an agent is of the crew and played by the stage: nothing else was told for it.
pub(crate) fn is_staged(name: &AgentName, scenario: &Scenario) -> bool {
    let role = scenario.agents.get(name).map(|role| &role.0);
    let is_crew = |kind: Option<DriverKind>| kind == Some(DriverKind::Crew);
    scenario.stage.is_some() && role.is_some_and(|role| is_crew(role.plays) && role.calls.is_empty())
}

/// The driver of such an agent: our own program, as ever.
pub(crate) fn driver(name: &AgentName, program: &str, settings: &Settings) -> CrewDriver {
    let role = settings.profile_of(name).and_then(|profile| profile.role.clone());
    let order = CrewOrder { role: role.unwrap_or_else(|| name.to_string()), ..CrewOrder::default() };
    CrewDriver::new(Program::from(program), order)
}
