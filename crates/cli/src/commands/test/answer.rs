//! What `test` answers: for people, programs, agents, and files of other tools.

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use rehearsal_testing::{AgentBudget, FailureAnalysis, FailureContext, TestReport, Verdict, agent_report, analyse};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// In which form the answer is wanted.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// Also write the results as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<Utf8PathBuf>,
    /// Also write the results as CTRF JSON
    #[arg(long, value_name = "FILE")]
    pub(super) ctrf: Option<Utf8PathBuf>,
    /// Answer for a coding agent: failures first, each once, in few words
    #[arg(long)]
    pub(super) agent: bool,
    /// How many tokens that answer may have
    #[arg(long, value_name = "TOKENS", default_value_t = 2000, requires = "agent")]
    pub(super) budget: u32,
}

/// `test --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TestDocument<'a> {
    #[serde(flatten)]
    report: &'a TestReport,
    /// What is behind the failures; none if nothing failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    analysis: Option<&'a FailureAnalysis>,
}

/// Gives the answer, and says how the command ends.
pub(super) fn answer(
    report: &TestReport,
    facts: &FailureContext<'_>,
    args: &AnswerArgs,
    context: &Context,
) -> Result<Exit, CliError> {
    let analysis = analyse(report, facts);
    write_file(args.junit.as_deref(), context, |to| rehearsal_testing::write::junit(report, to))?;
    write_file(args.ctrf.as_deref(), context, |to| rehearsal_testing::write::ctrf(report, to))?;
    if args.agent && !context.ui.json {
        let budget = AgentBudget { tokens: args.budget, runner_text: Some(report.raw_output.len() as u64) };
        context.ui.say(agent_report(report, &analysis, budget).trim_end());
    } else {
        context.ui.say(summary(report, &analysis));
    }
    let analysis = (!report.success).then_some(&analysis);
    context.ui.document(TestDocument { report, analysis });
    Ok(exit_of(report))
}

fn write_file(
    path: Option<&Utf8Path>,
    context: &Context,
    write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>,
) -> Result<(), CliError> {
    let Some(path) = path else { return Ok(()) };
    let mut file = std::io::BufWriter::new(fs_err::File::create(context.directory.join(path))?);
    write(&mut file)?;
    std::io::Write::flush(&mut file)?;
    Ok(())
}

/// A red run is a red gate; that a program is missing is a matter of set-up.
pub(super) fn exit_of(report: &TestReport) -> Exit {
    match report.verdict {
        Verdict::Passed => Exit::Ok,
        Verdict::TimedOut => Exit::Timeout,
        Verdict::RunnerMissing => Exit::Usage,
        _ => Exit::Red,
    }
}
