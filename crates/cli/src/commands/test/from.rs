//! `test --from FILE…`: reads what a run elsewhere left behind.

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_engine::TestedProject;
use rehearsal_testing::{Ending, FailureContext, Recorded, analyse, read};

use super::FrameworkArg;
use super::answer::{AnswerArgs, answer};
use crate::commands::Done;
use crate::context::Context;
use crate::error::CliError;

/// A run that is over.
#[derive(Debug, Args)]
pub(crate) struct FromArgs {
    /// Read these outputs and reports of a run instead of running anything; a directory stands for its reports
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(super) from: Vec<Utf8PathBuf>,
    /// How that run ended: its exit status; negative, or above 128, for a signal; 124 for a timeout
    #[arg(long, value_name = "N", requires = "from", allow_negative_numbers = true)]
    exit: Option<i32>,
    /// Where that run ran: files are named relative to it
    #[arg(long, value_name = "DIR", requires = "from")]
    root: Option<Utf8PathBuf>,
}

pub(super) fn run(
    args: &FromArgs,
    framework: Option<FrameworkArg>,
    form: &AnswerArgs,
    context: &Context,
) -> Done {
    let files: Vec<Utf8PathBuf> = args.from.iter().map(|path| context.directory.join(path)).collect();
    if let Some((given, _)) = args.from.iter().zip(&files).find(|(_, path)| !path.exists()) {
        return Err(CliError::usage(format!("there is no file `{given}`")));
    }
    let status = |status: i32| Ending::of_status(if status < 0 { 128 - status } else { status });
    let recorded = Recorded {
        files,
        framework: framework.map(|framework| framework.0),
        root: args.root.clone(),
        ending: args.exit.map_or_else(Ending::default, status),
    };
    let report = read(&recorded)?;
    let facts = FailureContext { root: args.root.as_deref(), ..FailureContext::default() };
    let analysis = analyse(&report, &facts);
    answer(vec![TestedProject { report, analysis, comparison: None }], &[], form, context)
}
