//! `check --from FILE…`: reads what compilers and linters printed elsewhere.

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_core::nearest;
use rehearsal_testing::{RecordedCheck, is_known_tool, known_tools, read_check};

use super::answer::{AnswerArgs, answer};
use crate::commands::Done;
use crate::context::Context;
use crate::error::CliError;

/// A run that is over.
#[derive(Debug, Args)]
pub(crate) struct FromArgs {
    /// Read these outputs of a compiler or linter instead of running anything
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(super) from: Vec<Utf8PathBuf>,
    /// Who printed them; without it, the text tells
    #[arg(long, value_name = "NAME", requires = "from", value_parser = tool)]
    tool: Option<String>,
    /// How it exited
    #[arg(long, value_name = "N", requires = "from")]
    exit: Option<i32>,
    /// Where it ran: files are named relative to it
    #[arg(long, value_name = "DIR", requires = "from")]
    root: Option<Utf8PathBuf>,
}

pub(super) fn run(args: &FromArgs, form: &AnswerArgs, context: &Context) -> Done {
    let files: Vec<Utf8PathBuf> = args.from.iter().map(|path| context.directory.join(path)).collect();
    if let Some((given, _)) = args.from.iter().zip(&files).find(|(_, path)| !path.is_file()) {
        return Err(CliError::usage(format!("there is no file `{given}`")));
    }
    let (tool, exit, root) = (args.tool.clone(), args.exit, args.root.clone());
    let report = read_check(&RecordedCheck { files, tool, exit, root })?;
    Ok(answer(report, form, context))
}

/// A tool's name, with a suggestion for a slip.
fn tool(name: &str) -> Result<String, String> {
    if is_known_tool(name) {
        return Ok(name.to_owned());
    }
    let near = nearest(name, known_tools()).map(|near| format!("did you mean `{near}`? "));
    let names: Vec<&str> = known_tools().collect();
    Err(format!("{}there are {}", near.unwrap_or_default(), names.join(", ")))
}
