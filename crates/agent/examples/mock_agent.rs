//! The stand-in agent alone, for tests that need it as a process.

use std::process::ExitCode;

use rehearsal_agent::mock::{MockArgs, MockEnv, mock_agent_main};
use rehearsal_core::Timestamp;

fn main() -> ExitCode {
    let args = match MockArgs::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(error) => {
            let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("mock-agent: {error}\n"));
            return ExitCode::from(2);
        }
    };
    let env = MockEnv { vars: std::env::vars().collect(), now: Timestamp(1_800_000_000_000) };
    let status = mock_agent_main(args, &env);
    ExitCode::from(u8::try_from(status.rem_euclid(256)).unwrap_or(1))
}
