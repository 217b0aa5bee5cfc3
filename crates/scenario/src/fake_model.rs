//! A fake model API in this process, for crew agents that are scripted by their model's answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rehearsal_agent::driver::Program;
use rehearsal_agent::{CrewOrder, Driver, cli_of};
use rehearsal_core::AgentName;
use rehearsal_core::config::{DriverKind, Settings};
use rehearsal_stage::{Answered, Script, ScriptedPlay, Stage};

use crate::scenario::Scenario;

/// A stage that plays the scenario's script.
pub(crate) struct FakeModel {
    stage: Stage,
    play: Arc<ScriptedPlay>,
}

/// The stage accepts any key.
const KEY: &str = "a-key-for-the-stage";

impl FakeModel {
    /// Listens on a free local port.
    pub(crate) fn open(script: Arc<Script>) -> std::io::Result<Self> {
        let play = Arc::new(ScriptedPlay::new(script, &[]));
        let stage = Stage::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Arc::clone(&play) as _)?;
        Ok(Self { stage, play })
    }

    /// The variables that connect an agent to it.
    pub(crate) fn variables(&self) -> [(String, String); 2] {
        let address = format!("http://{}", self.stage.address());
        [("ANTHROPIC_BASE_URL".to_owned(), address), ("ANTHROPIC_API_KEY".to_owned(), KEY.to_owned())]
    }

    /// Describes unexpected requests and unused turns.
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

/// Whether an agent is a crew agent without calls, so that the fake model plays it.
pub(crate) fn is_staged(name: &AgentName, scenario: &Scenario) -> bool {
    let role = scenario.agents.get(name).map(|role| &role.0);
    let is_crew = |kind: Option<DriverKind>| kind == Some(DriverKind::CREW);
    scenario.stage.is_some() && role.is_some_and(|role| is_crew(role.plays) && role.calls.is_empty())
}

/// The driver of such an agent: this binary.
pub(crate) fn driver(name: &AgentName, program: &str, settings: &Settings) -> Driver {
    let role = settings.profile_of(name).and_then(|profile| profile.role.clone());
    let order = CrewOrder { role: role.unwrap_or_else(|| name.to_string()), ..CrewOrder::default() };
    Driver::new(cli_of(DriverKind::CREW), Program::from(program).with_args(order.arguments()))
}
