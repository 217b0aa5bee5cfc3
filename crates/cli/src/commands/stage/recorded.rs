//! `stage --record` and `stage --replay`: the agent is started by somebody else, in the directory of this call.

use std::net::SocketAddr;
use std::sync::Arc;

use camino::Utf8Path;
use rehearsal_app::cassettes::path_of;
use rehearsal_app::stage::{StageError, place_of, recording, replaying};
use rehearsal_llm::cassette::Written;
use serde::Serialize;

use super::{StageArgs, StageEvent, perform};
use crate::commands::Done;
use crate::commands::record::nothing_asked;
use crate::commands::replay::ReplayReport;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::words::count;

/// What was recorded.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RecordedDocument {
    /// The file.
    pub(crate) cassette: String,
    pub(crate) requests: u32,
    frames: u32,
    /// Different secrets that became placeholders.
    pub(crate) secrets: u32,
    pub(crate) bytes: u64,
}

impl RecordedDocument {
    pub(crate) fn new(path: &Utf8Path, written: &Written) -> Self {
        let Written { requests, frames, secrets, bytes, .. } = *written;
        Self { cassette: path.to_string(), requests, frames, secrets, bytes }
    }
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
    let agent = (args.agent.as_str(), None);
    let play = Arc::new(recording(context, &path, agent, &place_of(context), upstream)?);
    perform(Arc::clone(&play) as _, address, context.ui).await?;
    if play.asked() == 0 {
        return Err(nothing_asked(Exit::Red, &path, "no request came")
            .hint("tell the agent where the stage is, as it said when it opened"));
    }
    let written = play.finish().await.map_err(StageError::Record)?;
    context.ui.say(format!("recorded {} in {path}", count(u64::from(written.requests), "request")));
    context.ui.document(StageEvent::Recorded(RecordedDocument::new(&path, &written)));
    Ok(Exit::Ok)
}

pub(super) async fn replay(
    args: &StageArgs,
    cassette: &Utf8Path,
    address: SocketAddr,
    context: &Context,
) -> Done {
    let (matching, speed) = (args.how.matching(), args.how.speed);
    let play = Arc::new(replaying(context, cassette, &place_of(context), matching, speed)?);
    perform(Arc::clone(&play) as _, address, context.ui).await?;
    let report = ReplayReport::from(play.report());
    report.tell(context.ui);
    let is_good = report.is_faithful();
    context.ui.document(StageEvent::Replayed(report));
    Ok(if is_good { Exit::Ok } else { Exit::Red })
}
