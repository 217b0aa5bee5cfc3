//! From a kind of agent to its driver.

pub use rehearsal_core::config::DriverKind;

use super::Driver;
use super::claude::ClaudeDriver;
use super::codex::CodexDriver;
use super::command::CommandDriver;
use super::crew::{CrewDriver, CrewOrder};
use super::flags::Capabilities;
use super::gemini::GeminiDriver;
use super::opencode::OpencodeDriver;
use super::program::Program;

/// The driver of a kind, for a program (or the usual one) with arguments of its own.
pub fn driver_for(kind: DriverKind, program: Option<String>, args: Vec<String>) -> Box<dyn Driver> {
    driver_with(kind, program, args, None)
}

/// As [`driver_for`], for a program that was asked what it can do.
pub fn driver_with(
    kind: DriverKind,
    program: Option<String>,
    args: Vec<String>,
    capabilities: Option<Capabilities>,
) -> Box<dyn Driver> {
    let program = program.unwrap_or_else(|| kind.as_str().to_owned());
    let known = |args| Program::from(program.as_str()).with_args(args).with_capabilities(capabilities);
    match kind {
        DriverKind::Claude => Box::new(ClaudeDriver::new(known(args))),
        DriverKind::Codex => Box::new(CodexDriver::new(known(args))),
        DriverKind::Gemini => Box::new(GeminiDriver::new(known(args))),
        DriverKind::Opencode => Box::new(OpencodeDriver::new(known(args))),
        DriverKind::Crew => Box::new(CrewDriver::new(known(args), CrewOrder::default())),
        DriverKind::Command => Box::new(CommandDriver::new(program, args)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_driven_under_its_name() {
        for kind in DriverKind::ALL {
            assert_eq!(driver_for(kind, None, vec![]).name(), kind.as_str());
        }
    }
}
