//! `cassette doctor`.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use rehearsal_app::caller::Caller;
use rehearsal_app::places::scratch;
use rehearsal_app::stage::{KeysOf, Performance, scripted};
use rehearsal_llm::cassette::{Asked, Difference, Heard, Place, Proposal, propose};
use rehearsal_stage::{ListeningPlay, Stage};
use serde::Serialize;

use super::{Done, told};
use crate::commands::performance::{CommandArgs, Input, Printed, our_input};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::words::count;
use rehearsal_git::scratch;

#[derive(Debug, Args)]
#[command(
    after_help = "Example: rehearsal cassette doctor --script turns.yaml -- claude -p 'Write hello.txt'

The command runs twice, each time in a new copy of the repository as it was committed, with a new home. Ends with 3 if the \
two ask for different things in spite of all normalisers."
)]
pub(crate) struct DoctorArgs {
    /// A script that plays the vendor
    #[arg(long, value_name = "FILE")]
    script: Utf8PathBuf,
    #[command(flatten)]
    command: CommandArgs,
}

/// A prompt is shorter.
const MOST_INPUT: usize = 1 << 20;

/// `cassette doctor --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CassetteDoctorDocument {
    /// Whether the two runs asked the same, after normalising.
    repeatable: bool,
    /// The normalisers without which they would not have.
    needed: Vec<String>,
    /// How many requests each run made.
    requests: [usize; 2],
    /// What differs in spite of all normalisers.
    unexplained: Vec<Difference>,
}

pub(super) async fn run(args: &DoctorArgs, context: &Context) -> Done {
    let (root, _scratch) = scratch("rehearsal-doctor-")?;
    let mut input = Vec::new();
    let mut pieces = our_input();
    while let Some(piece) = pieces.recv().await {
        input.extend(piece);
        if input.len() > MOST_INPUT {
            return Err(CliError::usage("the standard input is too long to be given twice"));
        }
    }
    // Names of different lengths: what depends on the length of a path shows.
    let first = listen(args, context, &root.join("one"), &input).await?;
    let second = listen(args, context, &root.join("another"), &input).await?;
    let proposal = propose(&first.performance.rules(), &heard(&first), &heard(&second))
        .map_err(|error| CliError::of(Exit::Internal, &error))?;
    tell(&proposal, context);
    let repeatable = proposal.unexplained.is_empty();
    context.ui.document(CassetteDoctorDocument {
        repeatable,
        needed: proposal.needed.iter().map(ToString::to_string).collect(),
        requests: [proposal.requests.0, proposal.requests.1],
        unexplained: proposal.unexplained,
    });
    Ok(if repeatable { Exit::Ok } else { Exit::Red })
}

/// One run, and what was asked in it.
struct Listened {
    performance: Performance,
    place: Place,
    asked: Vec<rehearsal_stage::Asked>,
    headers: Vec<Vec<(String, String)>>,
}

async fn listen(
    args: &DoctorArgs,
    context: &Context,
    directory: &Utf8Path,
    input: &[u8],
) -> Result<Listened, CliError> {
    match context.project() {
        Ok(project) => scratch::clone_repository(&project.root, directory).await?,
        Err(_) => fs_err::create_dir(directory)?,
    }
    let performance =
        args.command.prepare(&Caller { directory: directory.to_owned(), ..context.caller.clone() })?;
    let play = Arc::new(ListeningPlay::new(Arc::new(scripted(context, &args.script)?)));
    let stage = Stage::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Arc::clone(&play) as _)?;
    let (keys, input) = (KeysOf::Nobody, Input::Given(input.to_vec()));
    args.command.run(&performance, stage.address(), keys, input, Printed::Dropped, context.ui).await?;
    stage.close().await;
    let asked = play.heard();
    let headers = asked.iter().map(rehearsal_stage::Asked::text_headers).collect();
    Ok(Listened { place: performance.place(), performance, asked, headers })
}

fn heard(listened: &Listened) -> Heard<'_> {
    let requests = listened.asked.iter().zip(&listened.headers).map(|(asked, headers)| Asked {
        method: asked.method.as_str(),
        target: &asked.path,
        headers,
        body: &asked.body,
    });
    Heard { requests: requests.collect(), place: listened.place.clone() }
}

fn tell(proposal: &Proposal, context: &Context) {
    let ui = context.ui;
    let (first, second) = proposal.requests;
    ui.say(format!("{}, then {}", count(first as u64, "request"), count(second as u64, "request")));
    if !proposal.unexplained.is_empty() {
        ui.say("the two runs differ in spite of all normalisers:");
        for difference in &proposal.unexplained {
            ui.say(told(difference));
        }
        return;
    }
    if proposal.needed.is_empty() {
        ui.say("the two runs asked the same; nothing needs to be normalised");
        return;
    }
    let names: Vec<String> = proposal.needed.iter().map(ToString::to_string).collect();
    ui.say(format!("the two runs asked the same, with these normalisers: {}", names.join(" ")));
}
