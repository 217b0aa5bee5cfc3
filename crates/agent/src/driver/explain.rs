//! Says how a recorded run ended, and why, from its output alone.

use std::io::{self, Read};

use rehearsal_core::config::DriverKind;
use rehearsal_core::{Blame, Evidence, Exit, GitFacts, Verdict, WireReport, judge};
use serde::{Deserialize, Serialize};

use super::Here;
use super::bounds::{ACTIVITY_TEXT, keep_ends};
use crate::clis::cli_of;

/// The version of [`Explanation`]'s form.
pub const EXPLANATION_VERSION: u32 = 1;

const CHUNK: usize = 64 << 10;

/// What is known of a run beside its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExplainFacts {
    /// Whether it changed the repository; none if nobody looked.
    pub changed: Option<bool>,
    /// Whether it was only to look.
    pub read_only: bool,
}

/// How a run ended, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The version of this form.
    pub schema_version: u32,
    /// The kind of agent whose output it is.
    pub driver: DriverKind,
    /// The outcome, and why.
    pub verdict: Verdict,
    /// Whose failure it is.
    pub blame: Blame,
    /// Whether it would use up one of a task's attempts.
    pub costs_attempt: bool,
    /// What the output said. The final text is cut.
    pub wire: WireReport,
}

/// Explains a run that ended now and here. Reads the output as it comes, so that its size does not matter.
pub fn explain(
    kind: DriverKind,
    mut stdout: impl Read,
    stderr: &[u8],
    exit: Exit,
    facts: ExplainFacts,
    here: &Here,
) -> io::Result<Explanation> {
    let mut parser = (cli_of(kind).parser)(here.clone());
    let mut activities = Vec::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match stdout.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => parser.push(&chunk[..read], &mut activities),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        activities.clear();
    }
    parser.push_stderr(stderr, &mut activities);
    let evidence = Evidence {
        exit: Some(exit),
        wire: parser.finish(Some(exit), stderr),
        git: facts.changed.map(git_facts),
        read_only: facts.read_only,
        ..Evidence::default()
    };
    let verdict = judge(&evidence);
    let mut wire = evidence.wire;
    wire.final_text = keep_ends(wire.final_text.into(), ACTIVITY_TEXT);
    let name = verdict.outcome.name();
    Ok(Explanation {
        schema_version: EXPLANATION_VERSION,
        driver: kind,
        verdict,
        blame: name.blame(),
        costs_attempt: name.costs_attempt(),
        wire,
    })
}

/// As little as git can say.
fn git_facts(changed: bool) -> GitFacts {
    let files_changed = if changed { vec!["unknown".to_owned()] } else { Vec::new() };
    GitFacts { files_changed, uncommitted: changed, ..GitFacts::default() }
}

/// The exit that a recorded number stands for: a negative one is the signal that ended the process.
pub fn parse_exit(number: i32) -> Exit {
    if number < 0 { Exit::Signal(number.saturating_neg()) } else { Exit::Code(number) }
}
