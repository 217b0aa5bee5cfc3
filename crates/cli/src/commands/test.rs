//! `test`: runs the repository's tests, or reads the output of others, and says what is behind the failures.

mod answer;
mod from;

use std::str::FromStr;

use clap::Args;
use rehearsal_core::nearest;
use rehearsal_testing::Framework;

use super::Done;
use crate::context::Context;
pub(crate) use answer::TestDocument;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal test --from ci.log --exit 1
  rehearsal test --from target/surefire-reports --framework maven --json")]
pub(crate) struct TestArgs {
    /// The runner, if the files do not tell
    #[arg(long, short, value_name = "NAME")]
    framework: Option<FrameworkArg>,
    #[command(flatten)]
    recorded: from::FromArgs,
    #[command(flatten)]
    form: answer::AnswerArgs,
}

/// A runner's name, with a suggestion for a slip.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameworkArg(Framework);

impl FromStr for FrameworkArg {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Framework::named(name).map(Self).ok_or_else(|| {
            let names = Framework::ALL.map(Framework::name);
            let near = nearest(name, names).map(|near| format!("did you mean `{near}`? "));
            format!("{}there are {}", near.unwrap_or_default(), names.join(", "))
        })
    }
}
