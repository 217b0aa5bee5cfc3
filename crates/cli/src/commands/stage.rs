//! `stage`.

mod recorded;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_agent::clis::{Endpoint, KNOWN, Retries, StageModel, StageSetup};
use rehearsal_app::stage::scripted;
use rehearsal_core::config::DriverKind;
use rehearsal_stage::{Answered, Play, Report, Stage};
use serde::Serialize;

use super::Done;
use super::replay::{HowToMatch, ReplayReport};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interruption::signalled;
use crate::ui::{Ui, harmless, table};
use crate::words::count;
pub(crate) use recorded::RecordedDocument;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal stage --script turns.yaml
  rehearsal stage --script turns.yaml --port 8080 --json
  rehearsal stage --record greeting --upstream https://api.anthropic.com
  rehearsal stage --replay greeting

A script has an answer for each request:

  turns:
    - say: I write the file.
      do:
        - write_file: { path: hello.txt, content: \"hello\\n\" }
        - run: cat hello.txt
    - fault: { status: { code: 529 } }
    - say: Done.

It plays on the interfaces of Anthropic (Messages), OpenAI (Chat Completions, Responses) and Gemini alike. `rehearsal schema \
stage-script` has all that a script can say. It plays until Ctrl-C; the exit code is 3 when a request came that the \
script has no turn for, when a turn was never asked for, or when there was nothing to record.")]
pub(crate) struct StageArgs {
    #[command(flatten)]
    what: What,
    /// With --record: the vendor to ask
    #[arg(long, value_name = "URL", requires = "record")]
    upstream: Option<String>,
    /// With --record: whose requests they are, which decides what is normalised
    #[arg(long, value_name = "AGENT", default_value = "claude")]
    agent: String,
    #[command(flatten)]
    how: HowToMatch,
    /// The port to listen on; 0 takes any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// The address to listen on; nobody but this machine reaches it unless you say so here
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
}

/// What is played.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Play a script
    #[arg(long, value_name = "FILE")]
    script: Option<Utf8PathBuf>,
    /// Ask the vendor named by --upstream, and record it
    #[arg(long, value_name = "CASSETTE")]
    record: Option<Utf8PathBuf>,
    /// Play what was recorded
    #[arg(long, value_name = "CASSETTE")]
    replay: Option<Utf8PathBuf>,
}

/// So many different troubles are told to people; the document has all of them.
const MOST_TROUBLE: usize = 20;

/// A line of `stage --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum StageEvent {
    /// It listens.
    Opened {
        /// `http://127.0.0.1:PORT`.
        url: String,
        /// What each agent CLI has to be told.
        agents: Vec<AgentSetup>,
    },
    /// It is over.
    Closed {
        /// Whether all that was told was played, and nothing else was asked.
        clean: bool,
        /// What happened.
        report: Report,
    },
    /// A recording is over, and has its name.
    Recorded(RecordedDocument),
    /// A cassette was played.
    Replayed(ReplayReport),
}

/// What an agent CLI has to be told, so that it asks this stage and nobody else.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AgentSetup {
    name: &'static str,
    /// Variables to set.
    variables: Vec<(&'static str, String)>,
    /// Arguments to give before all others.
    arguments: Vec<String>,
    /// Files to write below its home directory, with their content.
    files: Vec<(&'static str, String)>,
}

/// Every agent CLI that we know, in the order of their names.
fn setups(address: SocketAddr) -> Vec<AgentSetup> {
    let url = format!("http://{address}");
    let endpoint = Endpoint { url: &url, model: StageModel::Any, retries: Retries::Default };
    let mut setups: Vec<AgentSetup> = KNOWN
        .0
        .iter()
        .filter(|cli| DriverKind::COMMAND.as_str() != cli.name)
        .map(|cli| {
            let StageSetup { variables, arguments, files, .. } = cli.on_stage(endpoint);
            AgentSetup { name: cli.name, variables, arguments, files }
        })
        .collect();
    setups.sort_by_key(|setup| setup.name);
    setups
}

pub(crate) async fn run(args: StageArgs, context: &Context) -> Done {
    let address = SocketAddr::new(args.host, args.port);
    let script = match (&args.what.script, &args.what.record, &args.what.replay) {
        (_, Some(cassette), _) => return recorded::record(&args, cassette, address, context).await,
        (_, _, Some(cassette)) => return recorded::replay(&args, cassette, address, context).await,
        (Some(script), _, _) => script,
        (None, None, None) => return Err(CliError::usage("there is nothing to play")),
    };
    let play = Arc::new(scripted(context, script)?);
    perform(Arc::clone(&play) as _, address, context.ui).await?;
    let report = play.report();
    let clean = report.is_clean();
    context.ui.say(told(&report));
    context.ui.document(StageEvent::Closed { clean, report });
    Ok(if clean { Exit::Ok } else { Exit::Red })
}

/// Plays until somebody ends it.
async fn perform(play: Arc<dyn Play>, address: SocketAddr, ui: Ui) -> Result<(), CliError> {
    // Before the address is told: whoever reads it may end us at once.
    let ended = signalled()?;
    let stage = Stage::open(address, play).map_err(|error| cannot_listen(address, &error))?;
    tell_opened(ui, stage.address());
    ended.await;
    stage.close().await;
    Ok(())
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> CliError {
    let told = CliError::usage(format!("cannot listen on {address}: {error}"));
    match error.kind() {
        std::io::ErrorKind::AddrInUse => told.hint("`--port 0` takes any port that is free"),
        _ => told,
    }
}

fn tell_opened(ui: Ui, address: SocketAddr) {
    let setups = setups(address);
    let mut text = format!("the stage is open on http://{address}\n");
    for setup in &setups {
        text.push_str(&format!("\n{}\n", setup.name));
        for (name, value) in &setup.variables {
            text.push_str(&format!("  export {name}={}\n", quoted(value)));
        }
        for (path, content) in &setup.files {
            text.push_str(&format!("  in a home directory of its own, ~/{path}: {content}\n"));
        }
        if !setup.arguments.is_empty() {
            let arguments: Vec<String> = setup.arguments.iter().map(|argument| quoted(argument)).collect();
            let subcommand = KNOWN.of_program(setup.name).subcommand.join(" ");
            text.push_str(&format!("  {} {subcommand} {}\n", setup.name, arguments.join(" ")));
        }
    }
    ui.say(text.trim_end());
    if !address.ip().is_loopback() {
        ui.aside("warning: whoever reaches this machine can ask the stage; it has no key");
    }
    ui.document(StageEvent::Opened { url: format!("http://{address}"), agents: setups });
}

/// As a shell takes it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Names and messages come from anywhere.
fn told(report: &Report) -> String {
    let rows = report.turns.iter().map(|turn| {
        let times = turn.times.map_or_else(|| "any".to_owned(), |times| times.to_string());
        let name = harmless(turn.name.as_deref().unwrap_or_default());
        let line = turn.line.map(|line| line.to_string()).unwrap_or_default();
        vec![turn.turn.to_string(), line, turn.played.to_string(), times, name]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut text = String::new();
    if !rows.is_empty() {
        text.push_str(&format!("\n{}\n\n", table(&["TURN", "LINE", "PLAYED", "OF", "NAME"], &rows)));
    }
    text.push_str(&count(report.requests, "request"));
    for (line, times) in trouble(report) {
        let again = if times > 1 { format!(" ({times} times)") } else { String::new() };
        text.push_str(&format!("\n{}{again}", harmless(&line)));
    }
    let unplayed = report.turns.iter().filter(|turn| turn.is_unplayed()).count();
    if unplayed > 0 {
        text.push_str(&format!("\n{} never asked for", count(unplayed as u64, "turn")));
    }
    text
}

/// What was not as it should be, and how often: an agent that is refused asks the same again.
fn trouble(report: &Report) -> Vec<(String, u64)> {
    let mut lines: Vec<(String, u64)> = Vec::new();
    let mut add = |line: String| match lines.iter().position(|(known, _)| *known == line) {
        Some(at) => lines[at].1 += 1,
        None if lines.len() < MOST_TROUBLE => lines.push((line, 1)),
        None => {}
    };
    for exchange in &report.exchanges {
        match &exchange.answered {
            Answered::Miss { message } => add(format!("miss: {} {message}", exchange.path)),
            Answered::UnknownPath => add(format!("not played here: {}", exchange.path)),
            Answered::Turn { .. } | Answered::Side | Answered::Fixed => {}
        }
        exchange.findings.iter().for_each(|finding| add(format!("a vendor would refuse: {finding}")));
    }
    lines
}
