//! `check`: builds, lints and tests the repository, or reads what compilers and linters printed elsewhere.

mod answer;
mod explain;
mod from;
mod live;

use clap::Args;
use rehearsal_core::config::HumanDuration;
use rehearsal_testing::Stage;

use super::Done;
use super::test::SandboxArg;
use crate::context::Context;
#[cfg(all(test, feature = "schema"))]
pub(crate) use explain::CheckExplanation;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal check                                  # build, lint, test; a failed build is the end of it
  rehearsal check --lint                           # only the linters
  rehearsal check --no-test --agent --budget 1000  # for a coding agent, in few words
  rehearsal check --explain                        # what was found, and what would run
  rehearsal check --from lint.log --tool eslint    # read the output of a run elsewhere")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    stages: StageArgs,
    /// The longest each command may take, at most 15m
    #[arg(long, value_name = "DURATION")]
    timeout: Option<HumanDuration>,
    /// How much of the sandbox must be there
    #[arg(long, value_enum, value_name = "LEVEL")]
    sandbox: Option<SandboxArg>,
    /// Say what was found, from which file, and what would run; run nothing
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    recorded: from::FromArgs,
    #[command(flatten)]
    form: answer::AnswerArgs,
}

/// Which stages.
#[derive(Debug, Args)]
struct StageArgs {
    /// Build, and run nothing else that is not asked for
    #[arg(long)]
    build: bool,
    /// Lint, and run nothing else that is not asked for
    #[arg(long)]
    lint: bool,
    /// Leave the tests out
    #[arg(long)]
    no_test: bool,
}

impl StageArgs {
    /// Those that are named, else all.
    fn wanted(&self) -> Vec<Stage> {
        let named = self.build || self.lint;
        let wanted = |stage: &Stage| match stage {
            Stage::Build => self.build || !named,
            Stage::Lint => self.lint || !named,
            Stage::Test => !named && !self.no_test,
        };
        Stage::ALL.into_iter().filter(wanted).collect()
    }
}

pub(crate) async fn run(args: CheckArgs, context: &Context) -> Done {
    if !args.recorded.from.is_empty() {
        return from::run(&args.recorded, &args.form, context);
    }
    if args.explain {
        return explain::run(&args, context).await;
    }
    live::run(&args, context).await
}
