//! What `check` answers: for people, programs and agents.

use clap::Args;
use rehearsal_testing::{CheckReport, CheckVerdict, check_page, check_page_for_agents};

use crate::commands::test::coloured;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::harmless;

/// In which form the answer is wanted.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// Answer for a coding agent: what is to be mended, in few words
    #[arg(long)]
    agent: bool,
    /// How many tokens that answer may have
    #[arg(long, value_name = "TOKENS", default_value_t = 2000, requires = "agent")]
    budget: u32,
}

/// Gives the answer, and says how the command ends.
pub(super) fn answer(report: CheckReport, args: &AnswerArgs, context: &Context) -> Exit {
    if args.agent {
        context.ui.say(harmless(check_page_for_agents(&report, args.budget).trim_end()));
    } else {
        context.ui.say(coloured(&check_page(&report)).trim_end());
        if let Some(hint) = hint(&report) {
            context.ui.say(format!("hint: {hint}"));
        }
    }
    let exit = exit_of(report.verdict);
    context.ui.document(report);
    exit
}

/// What to do where nothing is wrong, and nothing says that all is well.
fn hint(report: &CheckReport) -> Option<&'static str> {
    if report.verdict != CheckVerdict::NothingToCheck {
        return None;
    }
    Some(if report.stages.is_empty() {
        "name commands under `check.build` and `check.lint` in .rehearsal/config.yaml"
    } else {
        "`--no-test` leaves the tests out"
    })
}

/// A red check is a red gate; that a program is missing is a matter of set-up.
fn exit_of(verdict: CheckVerdict) -> Exit {
    match verdict {
        CheckVerdict::Passed => Exit::Ok,
        CheckVerdict::ToolMissing => Exit::Usage,
        CheckVerdict::TimedOut => Exit::Timeout,
        CheckVerdict::Cancelled => Exit::Interrupted,
        CheckVerdict::NothingToCheck | CheckVerdict::Crashed | CheckVerdict::Failed => Exit::Red,
    }
}
