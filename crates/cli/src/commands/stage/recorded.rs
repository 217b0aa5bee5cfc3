//! `stage --record` and `stage --replay`: the agent is started by somebody else, in the directory of this call.

use std::net::SocketAddr;
use std::sync::Arc;

use camino::Utf8Path;
use rehearsal_agent::clis::KNOWN;
use rehearsal_app::cassettes::{open_to_play, path_of, secrets};
use rehearsal_llm::cassette::{Normaliser, Place, Player, Recorder, Rule, Written};
use rehearsal_stage::{RecordingPlay, ReplayingPlay, Upstreams};
use serde::Serialize;

use super::{StageArgs, StageEvent, perform};
use crate::commands::Done;
use crate::commands::record::{failed, nothing_asked};
use crate::commands::replay::ReplayReport;
use crate::context::{Context, variables};
use crate::error::CliError;
use crate::exit::Exit;
use crate::words::count;

/// What was recorded.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RecordedDocument {
    /// The file.
    cassette: String,
    requests: u32,
    frames: u32,
    /// Different secrets that became placeholders.
    secrets: u32,
    bytes: u64,
}

pub(super) async fn record(
    args: &StageArgs,
    cassette: &Utf8Path,
    address: SocketAddr,
    context: &Context,
) -> Done {
    let Some(upstream) = &args.upstream else {
        return Err(CliError::usage("it is not said whom to ask")
            .hint("name the vendor with `--upstream URL`, as `https://api.anthropic.com`"));
    };
    let path = path_of(context, cassette)?;
    let internal = |error: &dyn std::error::Error| CliError::of(Exit::Internal, error);
    let secrets = secrets(context);
    let rules = Rule::for_client(KNOWN.of_program(&args.agent).requests.as_ref());
    let normaliser = Normaliser::new(&rules, &here(context), &secrets).map_err(|error| internal(&error))?;
    let recorder = Recorder::create(path.as_std_path(), &args.agent, None, normaliser, &secrets)
        .map_err(|error| CliError::of(Exit::Usage, &error))?;
    let play =
        Arc::new(RecordingPlay::new(recorder, Upstreams::one(upstream)).map_err(|error| failed(&error))?);
    perform(Arc::clone(&play) as _, address, context.ui).await?;
    if play.asked() == 0 {
        return Err(nothing_asked(Exit::Red, &path, "no request came")
            .hint("tell the agent where the stage is, as it said when it opened"));
    }
    let Written { requests, frames, secrets, bytes, .. } =
        play.finish().await.map_err(|error| failed(&error))?;
    context.ui.say(format!("recorded {} in {path}", count(u64::from(requests), "request")));
    let cassette = path.to_string();
    let document = RecordedDocument { cassette, requests, frames, secrets, bytes };
    context.ui.document(StageEvent::Recorded(document));
    Ok(Exit::Ok)
}

pub(super) async fn replay(
    args: &StageArgs,
    cassette: &Utf8Path,
    address: SocketAddr,
    context: &Context,
) -> Done {
    let secrets = secrets(context);
    let cassette = open_to_play(context, cassette, &secrets)?;
    let player = Player::new(cassette, args.how.matching(), &KNOWN.model_clients(), &here(context), &secrets)
        .map_err(|error| CliError::of(Exit::Internal, &error))?;
    let play = Arc::new(ReplayingPlay::new(player, args.how.speed()));
    perform(Arc::clone(&play) as _, address, context.ui).await?;
    let report = ReplayReport::from(play.report());
    report.tell(context.ui);
    let is_good = report.is_faithful();
    context.ui.document(StageEvent::Replayed(report));
    Ok(if is_good { Exit::Ok } else { Exit::Red })
}

/// Where an agent works that is started beside us.
fn here(context: &Context) -> Place {
    let variables = variables();
    let named = |name: &str, otherwise: &'static str| variables.get(name).map_or(otherwise, String::as_str);
    Place::resolved(context.directory.as_str(), named("HOME", "/root"), named("TMPDIR", "/tmp"))
}
