//! `record`.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use rehearsal_agent::clis::VendorApi;
use rehearsal_app::cassettes::path_of;
use rehearsal_app::stage::{KeysOf, Performance, StageError, recording, scripted};
use rehearsal_core::Exit as ProcessExit;
use rehearsal_stage::Stage;
use serde::Serialize;

use super::Done;
use super::performance::{CommandArgs, Input, Printed};
use super::stage::RecordedDocument;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::words::count;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal record greeting -- claude -p 'Write hello.txt'
  rehearsal record greeting --script turns.yaml -- claude -p 'Write hello.txt'    # no vendor, no tokens
  rehearsal record greeting --upstream http://127.0.0.1:8080 -- codex exec 'Write hello.txt'

The agent works here, with a scratch home; it gets your key for its vendor from the environment, and the cassette does \
not. Directories, ids, dates and the like become placeholders, so that the cassette plays anywhere.

Ends with 3 if the agent made no request: nothing is written then, and a cassette that is there stays as it was.")]
pub(crate) struct RecordArgs {
    /// A name in .rehearsal/cassettes, or a file that ends in .jsonl
    name: Utf8PathBuf,
    /// The vendor to ask; without it the one that the agent asks by itself
    #[arg(long, value_name = "URL", conflicts_with = "script")]
    upstream: Option<String>,
    /// A script that plays the vendor
    #[arg(long, value_name = "FILE")]
    script: Option<Utf8PathBuf>,
    #[command(flatten)]
    command: CommandArgs,
}

/// `record --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RecordDocument {
    #[serde(flatten)]
    recorded: RecordedDocument,
    /// How the agent ended: its exit code, or minus the signal.
    agent_exit: i32,
}

pub(crate) async fn run(args: RecordArgs, context: &Context) -> Done {
    let path = path_of(context, &args.name)?;
    let performance = args.command.prepare(context)?;
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut vendor = None;
    let (upstream, keys) = match (&args.script, &args.upstream) {
        (Some(script), _) => {
            let stage = Stage::open(loopback, Arc::new(scripted(context, script)?))?;
            let url = format!("http://{}", stage.address());
            vendor = Some(stage);
            (url, KeysOf::Nobody)
        }
        (None, Some(url)) => (url.clone(), KeysOf::User),
        (None, None) => (vendor_of(&performance)?.to_owned(), KeysOf::User),
    };
    let version = performance.version().await;
    let agent = (performance.agent.as_str(), version.as_deref());
    let recording = Arc::new(recording(context, &path, agent, &performance.place(), &upstream)?);
    let stage = Stage::open(loopback, Arc::clone(&recording) as _)?;
    let (input, printed) = (Input::Ours, Printed::Shown);
    let ended = args.command.run(&performance, stage.address(), keys, input, printed, context.ui).await?;
    stage.close().await;
    if recording.asked() == 0 {
        return Err(silent(&path, ended.exit));
    }
    let written = recording.finish().await.map_err(StageError::Record)?;
    if let Some(vendor) = vendor {
        vendor.close().await;
    }
    tell(context, RecordedDocument::new(&path, &written), ended.exit);
    Ok(if ended.exit == ProcessExit::Code(0) { Exit::Ok } else { Exit::Agent })
}

/// Where an agent asks by itself, if it can be given the user's key for it.
fn vendor_of(performance: &Performance) -> Result<&'static str, CliError> {
    let cli = performance.cli();
    let vendor = cli.vendor.filter(|_| !cli.keys.is_empty());
    vendor.map(VendorApi::own_address).ok_or_else(|| {
        CliError::usage(format!("it is not known which vendor `{}` asks", performance.agent))
            .hint("name it with `--upstream URL`, or play it with `--script FILE`")
    })
}

/// An agent that asked for nothing.
fn silent(path: &Utf8Path, exit: ProcessExit) -> CliError {
    let made = format!("the agent made no request, and ended with {exit}");
    match exit {
        ProcessExit::Code(0) => nothing_asked(Exit::Red, path, &made).hint(
            "say which agent it is with `--agent AGENT`, or let it ask the address in ANTHROPIC_BASE_URL, OPENAI_BASE_URL or \
             GOOGLE_GEMINI_BASE_URL",
        ),
        _ => nothing_asked(Exit::Agent, path, &made).hint("see what it printed, and record again"),
    }
}

/// A recording without any request. It must not take the place of a good one, so it is not written at all.
pub(crate) fn nothing_asked(exit: Exit, path: &Utf8Path, why: &str) -> CliError {
    let kept = if path.exists() { format!("; {path} stays as it was") } else { String::new() };
    CliError::new(exit, format!("nothing was recorded: {why}{kept}"))
}

fn tell(context: &Context, recorded: RecordedDocument, exit: ProcessExit) {
    let kept = match recorded.secrets {
        0 => String::new(),
        secrets => format!(", {} kept out", count(u64::from(secrets), "secret")),
    };
    context.ui.aside(format!(
        "recorded {} in {} ({} KB{kept}); the agent ended with {exit}",
        count(u64::from(recorded.requests), "request"),
        recorded.cassette,
        recorded.bytes.div_ceil(1024)
    ));
    context.ui.document(RecordDocument { recorded, agent_exit: number(exit) });
}

/// An exit as one number.
pub(crate) fn number(exit: ProcessExit) -> i32 {
    match exit {
        ProcessExit::Code(code) => code,
        ProcessExit::Signal(signal) => -signal,
    }
}
