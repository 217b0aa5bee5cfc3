//! The stand-in agent as a real process: `rehearsal mock-agent`.
//!
//! What it does is told by the environment (`MOCK_OUTCOME`, `MOCK_COMMITS`, …) or by a script file, which can
//! also make it misbehave in every way that real agents do. What it says comes in the format of a real agent's
//! output, if one is named (`--as claude`), so that the whole way from the command line to the outcome is
//! rehearsed.
//!
//! A script has one run for every call, or one per call:
//!
//! ```yaml
//! runs:
//!   - - say: Working on {task}
//!     - write: { path: hello.txt, content: "hi\n" }
//!     - commit: { message: Add hello }
//!     - task_done: current
//!     - say: <promise>COMPLETE</promise>
//!   - - rate_limit: { retry_after: 30s }
//! ```
//!
//! **Invariant:** it is loud. A script that is wrong, a prompt that is not the expected one, a call more than
//! was scripted: each ends it with a message that says what was expected and what came.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Read, Write};

use camino::Utf8PathBuf;
use rehearsal_core::Timestamp;

mod actions;
mod by_environment;
mod cli;
mod commit;
pub(crate) mod draw;
mod error;
mod files;
mod misbehave;
pub(crate) mod moment;
mod orphan;
mod player;
mod position;
mod report;
mod script;
mod stage_time;
pub mod wire;

pub use actions::Action;
pub use script::{RunScript, ScriptFile, checked};
pub use stage_time::CLOCK_VARIABLE;

use crate::clis::{AgentCli, Clis, KNOWN};
use error::MockError;
use player::Player;
use script::Script;

/// Names the script file, where no `--script` does.
const SCRIPT: &str = "REHEARSAL_MOCK_SCRIPT";
/// Names the file that counts the calls, instead of one next to the script.
const STATE: &str = "REHEARSAL_MOCK_STATE";

/// The command line of the stand-in.
#[derive(Debug, Clone)]
pub struct MockArgs {
    /// The script file.
    pub script: Option<Utf8PathBuf>,
    /// The CLI whose output it imitates; without one, any program, which prints plain text.
    pub cli: &'static AgentCli,
    /// What is meant for the real agent: accepted, and mostly ignored.
    pub foreign: Vec<String>,
}

/// Why a command line of the stand-in cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MockArgsError {
    /// An option lacks its value.
    #[error("`{0}` needs a value")]
    NoValue(&'static str),
    /// There is no such format.
    #[error("`{name}` is not an agent that can be played: expected {expected}")]
    UnknownAgent {
        /// What was asked for.
        name: String,
        /// What there is.
        expected: String,
    },
}

impl MockArgs {
    /// Reads `--script FILE` and `--as AGENT`; everything from the first other argument on is foreign.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, MockArgsError> {
        Self::parse_for(KNOWN, args)
    }

    /// As [`Self::parse`], with these CLIs.
    pub fn parse_for(clis: Clis, args: impl IntoIterator<Item = String>) -> Result<Self, MockArgsError> {
        let mut parsed = Self { script: None, cli: clis.of_program(""), foreign: Vec::new() };
        let mut args = args.into_iter().peekable();
        while let Some(arg) = args.next_if(|arg| is_known(arg)) {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (arg, None),
            };
            let mut value = |name| value.clone().or_else(|| args.next()).ok_or(MockArgsError::NoValue(name));
            if name == "--script" {
                parsed.script = Some(value("--script")?.into());
            } else {
                let agent = value("--as")?;
                parsed.cli = clis.named(&agent).ok_or_else(|| unknown(clis, agent))?;
            }
        }
        args.next_if(|arg| arg == "--");
        parsed.foreign = args.collect();
        Ok(parsed)
    }
}

fn unknown(clis: Clis, name: String) -> MockArgsError {
    MockArgsError::UnknownAgent { name, expected: clis.foreign_in_words() }
}

fn is_known(arg: &str) -> bool {
    matches!(arg.split('=').next(), Some("--script" | "--as"))
}

/// The world around the stand-in, taken once.
#[derive(Debug, Clone)]
pub struct MockEnv {
    /// The environment's variables.
    pub vars: BTreeMap<String, String>,
    /// The time when it started. It only stamps what it says; it sleeps in real time.
    pub now: Timestamp,
}

impl MockEnv {
    /// A variable that is set and not empty.
    fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// Plays the agent to its end and returns its exit status. Reads standard input, writes to standard output
/// and standard error, and may end this very process by a signal: it is meant to be all of a program.
pub fn mock_agent_main(args: MockArgs, env: &MockEnv) -> i32 {
    match play(args, env) {
        Ok(status) => status,
        Err(error) => {
            // Nobody is left to tell if this fails.
            let _ = writeln!(std::io::stderr(), "mock-agent: {error}");
            error.exit_status()
        }
    }
}

fn play(args: MockArgs, env: &MockEnv) -> Result<i32, MockError> {
    if let Some(orders) = env.var(orphan::ORDERS) {
        return orphan::live(orders);
    }
    if let Some(answer) = cli::answer(&args.cli.mock, &args.foreign) {
        std::io::stdout().write_all(answer.as_bytes()).map_err(MockError::output)?;
        return Ok(0);
    }
    let path = args.script.or_else(|| env.var(SCRIPT).map(Utf8PathBuf::from));
    let script = path.map(|path| Script::read(&path).map(|script| (path, script))).transpose()?;
    let prompt = read_prompt()?;
    match script {
        None => by_environment::play(&mut Player::new(env, args.cli, &args.foreign, prompt, 1)?),
        Some((path, script)) => {
            let state = env.var(STATE).map_or_else(|| format!("{path}.state").into(), Utf8PathBuf::from);
            let call = position::advance(&state)?;
            let run = script.run(call, &path, &state)?;
            Player::new(env, args.cli, &args.foreign, prompt, call)?.play(run)
        }
    }
}

/// All of standard input. A person at a terminal is not waited for.
fn read_prompt() -> Result<String, MockError> {
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(String::new());
    }
    let mut prompt = Vec::new();
    stdin
        .read_to_end(&mut prompt)
        .map_err(|source| MockError::Io { what: "read the prompt".into(), source })?;
    Ok(String::from_utf8_lossy(&prompt).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<MockArgs, MockArgsError> {
        MockArgs::parse(args.iter().map(|arg| (*arg).to_owned()))
    }

    #[test]
    fn what_is_meant_for_the_real_agent_is_let_through() {
        let args = parse(&["--as", "claude", "--script=s.yaml", "--", "-p", "--model", "x"]).unwrap();
        assert_eq!(args.cli.name, "claude");
        assert_eq!(args.script, Some("s.yaml".into()));
        assert_eq!(args.foreign, ["-p", "--model", "x"]);
        let args = parse(&["--as=codex", "exec", "--json", "--script", "theirs", "-"]).unwrap();
        assert_eq!((args.script, args.foreign.len()), (None, 5));
    }

    #[test]
    fn a_wrong_command_line_says_what_was_expected() {
        assert_eq!(parse(&["--script"]).unwrap_err().to_string(), "`--script` needs a value");
        assert_eq!(
            parse(&["--as", "clod"]).unwrap_err().to_string(),
            "`clod` is not an agent that can be played: expected claude, codex, gemini or opencode"
        );
    }
}
