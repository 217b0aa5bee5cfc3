//! `crew run`: a member of the crew at work. It is started like any other agent, by the driver `crew`, and speaks our own types.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_agent::CrewLine;
use rehearsal_agent::redact::Redactor;
use rehearsal_app::crew::{CrewError, Member, MemberRequest, Work};
use rehearsal_app::testing::Choices;
use rehearsal_core::config::HumanDuration;
use rehearsal_core::{Activity, WireEnd, WireError, WireErrorKind, WireReport, WireShape};
use rehearsal_crew::Witness;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Done;
use crate::commands::test::ActionTests;
use crate::context::{Context, read_stdin, variables};
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{DIM, ODD, Ui, harmless, one_line, raw_out, styled};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  echo 'Where is the retry policy?' | rehearsal crew run --role search
  rehearsal crew run --role code --model anthropic:claude-sonnet-4-5 < task.md
  rehearsal crew run --role review --timeout 20m --json < task.md

The model is named as `anthropic:NAME`, `openai:NAME` (Chat Completions), `responses:NAME` or `gemini:NAME`. Its address and key come from \
the vendor's usual variables, such as ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY; `rehearsal stage` plays a vendor without a token.")]
pub(crate) struct RunArgs {
    /// Its role; `rehearsal crew list` shows them
    #[arg(long, value_name = "ROLE")]
    role: String,
    /// The model, instead of the role's
    #[arg(long, value_name = "VENDOR:NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// How long it may work; at most 3 times the role's longest
    #[arg(long, value_name = "TIME")]
    timeout: Option<HumanDuration>,
    /// Where your own roles are; `.rehearsal/agents` of the repository otherwise
    #[arg(long, value_name = "DIR")]
    agents_dir: Option<Utf8PathBuf>,
    /// How often it may ask its model, instead of what its role says
    #[arg(long, value_name = "N")]
    max_turns: Option<u64>,
    /// The tokens that it may use, of all requests and answers together
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Text appended to its system prompt
    #[arg(long, value_name = "TEXT")]
    append_system_prompt: Option<String>,
    /// Only look: nothing is written and nothing executed, whatever the role may
    #[arg(long)]
    read_only: bool,
}

pub(super) async fn run(args: RunArgs, context: &Context) -> Done {
    let stdout = Stdout::new(context.ui);
    let report = match prepare(args, context).await {
        Ok(work) => done(work, &stdout).await?,
        Err(error) => {
            // Who started it as an agent reads the report; who started it by hand, the error.
            if context.ui.json {
                stdout.report(not_begun(&error.told, error.kind));
            }
            return Err(error.told);
        }
    };
    let exit = exit_of(report.end.as_ref());
    stdout.report(report);
    Ok(exit)
}

/// Why it did not begin: in words, and what it is for whoever judges the run.
struct NotBegun {
    told: CliError,
    kind: WireErrorKind,
}

impl<E: Into<CliError>> From<E> for NotBegun {
    fn from(error: E) -> Self {
        Self { told: error.into(), kind: WireErrorKind::Permission }
    }
}

async fn prepare(args: RunArgs, context: &Context) -> Result<Work, NotBegun> {
    let request = MemberRequest {
        role: args.role,
        model: args.model,
        agents_dir: args.agents_dir,
        timeout: args.timeout.map(|limit| limit.0),
        max_turns: args.max_turns,
        max_tokens: args.max_tokens,
        append_system_prompt: args.append_system_prompt,
        read_only: args.read_only,
    };
    let member = Member::new(context, request).map_err(|error| match error {
        CrewError::NoModel(_) => NotBegun { told: error.into(), kind: WireErrorKind::Auth },
        error => error.into(),
    })?;
    let task = read_stdin()?;
    if task.trim().is_empty() {
        let error = CliError::usage("there is no task on standard input");
        return Err(error
            .hint("for example: echo 'Where is main?' | rehearsal crew run --role search")
            .into());
    }
    let tests = ActionTests { choices: Choices::default(), context: context.clone() };
    let work = member.with_task(context, task, Arc::new(tests)).await?;
    for note in work.toolbox.notes() {
        context.ui.aside(format!("warning: {note}"));
    }
    Ok(work)
}

/// Works until it is done or interrupted.
async fn done(work: Work, stdout: &Stdout) -> Result<WireReport, CliError> {
    let cancel = CancellationToken::new();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let listening = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancel.cancel();
        std::future::pending().await
    };
    let working = rehearsal_crew::run(work.assignment, &work.client, &work.toolbox, stdout, &cancel);
    Ok(tokio::select! {
        report = working => report,
        report = listening => report,
    })
}

fn not_begun(error: &CliError, kind: WireErrorKind) -> WireReport {
    let error = WireError { kind, status: None, message: error.in_a_line() };
    WireReport { shape: WireShape::Structured, end: Some(WireEnd::Error(error)), ..WireReport::default() }
}

fn exit_of(end: Option<&WireEnd>) -> Exit {
    match end {
        Some(WireEnd::Success) => Exit::Ok,
        Some(WireEnd::BudgetReached) => Exit::Budget,
        Some(WireEnd::TimedOut { .. }) => Exit::Timeout,
        Some(WireEnd::Error(error)) => match error.kind {
            WireErrorKind::RateLimit { .. } | WireErrorKind::Quota { .. } | WireErrorKind::Overloaded => {
                Exit::TryLater
            }
            WireErrorKind::Interrupted => Exit::Interrupted,
            _ => Exit::Agent,
        },
        Some(WireEnd::MaxTurns) | None => Exit::Agent,
    }
}

/// A silent agent would be taken for dead: while the model thinks, there is an empty line now and then.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// Tells what it does. No secret of ours is in it.
struct Stdout {
    ui: Ui,
    redactor: Redactor,
    last: Mutex<Instant>,
}

impl Stdout {
    fn new(ui: Ui) -> Self {
        Self { ui, redactor: Redactor::new(&variables()), last: Mutex::new(Instant::now()) }
    }

    fn report(&self, report: WireReport) {
        if !self.ui.json {
            self.ui.say(told_end(&report));
        }
        self.write(CrewLine::Report(Box::new(report)));
    }

    fn write(&self, line: CrewLine) {
        self.note();
        if self.ui.json {
            self.ui.document(line.redacted(&self.redactor).bounded());
        }
    }

    fn note(&self) {
        *self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Instant::now();
    }
}

impl Witness for Stdout {
    fn saw(&self, activity: Activity) {
        if let Some(text) = told(&activity).filter(|_| !self.ui.json) {
            self.ui.say(self.redactor.redact(&text));
        }
        self.write(CrewLine::Activity(activity));
    }

    fn is_alive(&self) {
        let last = *self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if self.ui.json && last.elapsed() >= SIGN_OF_LIFE {
            self.note();
            raw_out(b"\n");
        }
    }
}

/// For people.
fn told(activity: &Activity) -> Option<String> {
    match activity {
        Activity::Text { text } => Some(harmless(text.trim_end())),
        Activity::ToolCalled { tool, detail, .. } => {
            Some(styled(DIM, format!("{} {}", harmless(tool), one_line(detail, 100))))
        }
        Activity::ToolReturned { tool, is_error: true } => {
            Some(styled(ODD, format!("{} failed", harmless(tool))))
        }
        Activity::Retrying { message } => Some(styled(ODD, format!("retrying: {}", one_line(message, 120)))),
        Activity::Started { .. }
        | Activity::Turn { .. }
        | Activity::ToolReturned { .. }
        | Activity::Usage { .. }
        | Activity::Unreadable { .. } => None,
    }
}

fn told_end(report: &WireReport) -> String {
    let end = match &report.end {
        Some(WireEnd::Success) => "done".to_owned(),
        Some(WireEnd::MaxTurns) => "stopped at its turn limit".to_owned(),
        Some(WireEnd::BudgetReached) => "stopped at its token limit".to_owned(),
        Some(WireEnd::TimedOut { after_ms }) => {
            format!("stopped at its time limit, after {}", HumanDuration(Duration::from_millis(*after_ms)))
        }
        Some(WireEnd::Error(error)) => format!("failed: {}", harmless(&error.message)),
        None => "ended".to_owned(),
    };
    let turns = report.turns.unwrap_or_default();
    let tokens = crate::words::tokens(report.tokens);
    format!("\n{end} ({}, {tokens} tokens)", crate::words::count(turns, "turn"))
}
