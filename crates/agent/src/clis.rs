//! The agent CLIs: one description each, in a folder of its own.
//!
//! A description is plain data and functions. It knows how the CLI is called and read, what it needs of the machine, how to
//! make it ask a stage instead of its vendor, what its requests look like, and how a stand-in imitates it. Everything else
//! in the program takes a description, or looks one up in a [`Clis`].

use rehearsal_core::ModelClient;
use rehearsal_core::config::DriverKind;

use crate::driver::check::Requirement;
use crate::driver::{CommandLine, Here, Offer, WireParser};
use crate::environment::Variables;
use crate::mock::wire::MockCli;
use crate::{OwnPlaces, RunRequest};

mod claude;
mod codex;
mod command;
pub(crate) mod crew;
mod gemini;
mod native;
mod opencode;
mod stage;

pub use stage::{Endpoint, Retries, StageModel, StageSetup, VendorApi};

/// The CLIs that this program knows.
pub static KNOWN: Clis =
    Clis(&[&claude::CLI, &codex::CLI, &gemini::CLI, &opencode::CLI, &crew::CLI, &command::CLI]);

/// One agent CLI.
#[derive(Debug)]
pub struct AgentCli {
    /// The driver's name in the configuration, and the program's on the PATH.
    pub name: &'static str,
    /// The command that installs it; none for our own and for any program. A CLI that can be installed is asked for its
    /// version and its flags.
    pub install: Option<&'static str>,
    /// Native binaries behind its launcher, the likeliest first: paths below `node_modules`, with `{node}` and `{rust}` for
    /// the machine's architecture as each of them spells it.
    pub native_binaries: &'static [&'static str],
    /// The command of the CLI that runs an agent without a terminal; its `--help` lists the flags.
    pub subcommand: &'static [&'static str],
    /// The flags that `command` uses.
    pub flags: &'static [Requirement],
    /// Builds the command line for a run.
    pub command: fn(Offer<'_>, &RunRequest) -> CommandLine,
    /// A reader for one run's output. Time and place anchor waits that are given as durations and times of day.
    pub parser: fn(Here) -> Box<dyn WireParser>,
    /// What it does with sessions.
    pub sessions: Sessions,
    /// Variables of the environment that it needs to reach its model: keys, addresses, where its login is.
    pub variables: &'static [&'static str],
    /// What it keeps in the home directory, seen from this environment.
    pub places: fn(&Variables) -> OwnPlaces,
    /// Whose interface it speaks; none if that depends on its model or on the program.
    pub vendor: Option<VendorApi>,
    /// Makes it ask a stage and nobody else.
    pub stage: fn(&Endpoint<'_>) -> StageSetup,
    /// For a recording: variables with the user's keys, and under which name it gets each on a stage.
    pub keys: &'static [(&'static str, &'static str)],
    /// What its requests look like; none for a program of which nothing is known.
    pub requests: Option<ModelClient>,
    /// Whether it runs every command in a sandbox of its own, so that it needs none around it.
    pub confines_itself: bool,
    /// Arguments with which it runs a command that does nothing in its own sandbox; none if it has none to try.
    pub try_own_sandbox: Option<&'static [&'static str]>,
    /// How a stand-in imitates it.
    pub mock: MockCli,
}

impl AgentCli {
    /// A program of which nothing is known: it reads the prompt and prints text. The rest of a description starts from it.
    pub const PLAIN: Self = command::PLAIN;
}

/// What a CLI does with sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sessions {
    /// Whether one can be resumed by its id.
    pub can_resume: bool,
    /// Whether cost and tokens are those of the whole session once it is resumed, not of the invocation. Turns and
    /// durations are those of the invocation with every CLI.
    pub reports_whole_session: bool,
}

/// A list of CLIs, by name.
#[derive(Debug, Clone, Copy)]
pub struct Clis(pub &'static [&'static AgentCli]);

impl Clis {
    /// The CLI of this name.
    pub fn named(self, name: &str) -> Option<&'static AgentCli> {
        self.0.iter().copied().find(|cli| cli.name == name)
    }

    /// The CLI of this name; any other name is one of any program.
    pub fn of_program(self, name: &str) -> &'static AgentCli {
        self.named(name).unwrap_or(&command::CLI)
    }

    /// The names of the CLIs that others make.
    pub fn foreign(self) -> impl Iterator<Item = &'static str> {
        self.0.iter().filter(|cli| cli.install.is_some()).map(|cli| cli.name)
    }

    /// Their names as a person says them: `a, b or c`.
    pub fn foreign_in_words(self) -> String {
        let names: Vec<&str> = self.foreign().collect();
        match names.as_slice() {
            [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            names => names.concat(),
        }
    }

    /// What the requests of each look like.
    pub fn model_clients(self) -> Vec<&'static ModelClient> {
        self.0.iter().filter_map(|cli| cli.requests.as_ref()).collect()
    }
}

/// The CLI behind a driver of the configuration.
pub fn cli_of(kind: DriverKind) -> &'static AgentCli {
    // Every name that a configuration can have is in the list: see the test.
    KNOWN.of_program(kind.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_driver_of_the_configuration_is_described_under_its_name() {
        let drivers: Vec<&str> = DriverKind::all().map(DriverKind::as_str).collect();
        let described: Vec<&str> = KNOWN.0.iter().map(|cli| cli.name).collect();
        assert_eq!(drivers, described);
    }
}
