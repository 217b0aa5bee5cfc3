//! `test`: runs the repository's tests, or reads the output of others, and says what is behind the failures.

mod action;
mod answer;
mod counts;
mod explain;
mod for_model;
mod from;
mod history;
mod live;
mod stop;

use std::str::FromStr;

use camino::Utf8PathBuf;
use clap::{Args, Subcommand, ValueEnum};
use rehearsal_app::testing::Choices;
use rehearsal_core::config::{HumanDuration, SandboxLevel, check_timeout};
use rehearsal_core::nearest;
use rehearsal_testing::Framework;

use super::Done;
use crate::context::Context;
pub(crate) use action::ActionTests;
pub(crate) use answer::{DEFAULT_BUDGET, TestDocument, coloured, for_agent};
pub(crate) use counts::Counts;
#[cfg(all(test, feature = "schema"))]
pub(crate) use explain::ExplainDocument;
pub(crate) use for_model::{LISTED_FOR_MODEL, shorten};
#[cfg(all(test, feature = "schema"))]
pub(crate) use live::TestEvent;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  rehearsal test                                   # everything, in a sandbox
  rehearsal test 'TestCart*' --retries 2
  rehearsal test --affected                        # only what your changes can reach
  rehearsal test --explain                         # what was found, and what would run
  rehearsal test --agent --budget 1000             # failures first, for a coding agent
  rehearsal test --baseline main                   # which failures are new
  rehearsal test --from ci.log --exit 1 --json     # read the output of a run elsewhere
  rehearsal test --action request.json             # the action `run_tests`, answered as JSON
  rehearsal test flaky"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct TestArgs {
    #[command(subcommand)]
    about: Option<AboutTests>,
    /// Only tests that fit: a part of a name, `Test*`, or a file
    pattern: Option<String>,
    /// The runner, if the files do not tell
    #[arg(long, short, value_name = "NAME")]
    framework: Option<FrameworkArg>,
    /// The command to run instead of what was found
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// The longest it may take, at most 15m
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<HumanDuration>,
    /// A variable for the tests; may be given again
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    environment: Vec<(String, String)>,
    /// How many tests at once
    #[arg(long, value_name = "N")]
    parallel: Option<u32>,
    /// How often failed tests are run again; one that then passes is flaky
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Measure how much of the code the tests reach
    #[arg(long)]
    coverage: bool,
    /// Only tests that your branch's changes can reach; none if these files passed before
    #[arg(long)]
    affected: bool,
    /// The same for what changed since this branch or commit
    #[arg(long, value_name = "REV")]
    changed_since: Option<String>,
    /// Say which failures are new since this branch or commit
    #[arg(long, value_name = "REV")]
    baseline: Option<String>,
    /// How much of the sandbox must be there
    #[arg(long, value_enum, value_name = "LEVEL")]
    sandbox: Option<SandboxArg>,
    /// Run again whenever a file changes, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Print each test as it ends, as a line of JSON
    #[arg(long)]
    follow: bool,
    /// Say what was found, from which file, and what would run; run nothing
    #[arg(long)]
    explain: bool,
    /// Do what this request for `run_tests` asks, and answer it; `-` reads it from standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pattern", "from", "explain", "watch", "follow"])]
    action: Option<Utf8PathBuf>,
    #[command(flatten)]
    recorded: from::FromArgs,
    #[command(flatten)]
    form: answer::AnswerArgs,
}

#[derive(Debug, Subcommand)]
enum AboutTests {
    /// List the last runs of the tests
    #[command(after_help = "Example: rehearsal test history --last 10")]
    History {
        /// How many
        #[arg(long, value_name = "N", default_value_t = 20)]
        last: u32,
    },
    /// List tests that gave different results on the same files
    #[command(after_help = "Example: rehearsal test flaky --json")]
    Flaky,
    /// List tests that take longer than they used to, and the slowest ones
    #[command(after_help = "Example: rehearsal test slow")]
    Slow,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SandboxArg {
    /// Confine nothing
    Off,
    /// Confine as far as the system can
    BestEffort,
    /// Confine wholly, or run nothing
    Required,
}

impl From<SandboxArg> for SandboxLevel {
    fn from(arg: SandboxArg) -> Self {
        match arg {
            SandboxArg::Off => Self::Off,
            SandboxArg::BestEffort => Self::BestEffort,
            SandboxArg::Required => Self::Required,
        }
    }
}

impl TestArgs {
    fn choices(&self) -> Choices {
        Choices {
            framework: self.framework.map(|framework| framework.0),
            command: self.command.clone(),
            timeout: self.timeout,
            environment: self.environment.clone(),
            parallel: self.parallel,
            retries: self.retries,
            sandbox: self.sandbox.map(SandboxLevel::from),
        }
    }
}

pub(crate) async fn run(args: TestArgs, context: &Context) -> Done {
    match &args.about {
        Some(AboutTests::History { last }) => return history::runs(*last, context).await,
        Some(AboutTests::Flaky) => return history::flaky(context).await,
        Some(AboutTests::Slow) => return history::slow(context).await,
        None => {}
    }
    if !args.recorded.from.is_empty() {
        return from::run(&args.recorded, args.framework, &args.form, context);
    }
    if let Some(request) = &args.action {
        return action::run(request, &args, context).await;
    }
    if args.explain {
        return explain::run(&args, context).await;
    }
    live::run(&args, context).await
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

fn timeout(text: &str) -> Result<HumanDuration, String> {
    let timeout = text.parse()?;
    check_timeout(timeout)?;
    Ok(timeout)
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}
