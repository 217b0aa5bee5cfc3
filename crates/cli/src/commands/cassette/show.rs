//! `cassette show`.

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_llm::cassette::{Body, Cassette, Ended, Entry, Header};
use serde::Serialize;

use super::{Done, open};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{BOLD, harmless, styled, table};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal cassette show greeting                # .rehearsal/cassettes/greeting.jsonl
  rehearsal cassette show greeting --request 2    # all of one exchange
  rehearsal cassette show /tmp/other.jsonl --json")]
pub(crate) struct ShowArgs {
    /// A name in .rehearsal/cassettes, or a file that ends in .jsonl
    cassette: Utf8PathBuf,
    /// Show all of this request and its answer
    #[arg(long, value_name = "N")]
    request: Option<u32>,
}

/// `cassette show --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ShowDocument {
    header: Header,
    exchanges: Vec<ExchangeView>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ExchangeView {
    number: u32,
    lane: String,
    method: String,
    target: String,
    model: Option<String>,
    /// Elements of the conversation so far.
    messages: usize,
    status: u16,
    ended: Ended,
    /// Frames, if the answer was a stream.
    frames: Option<usize>,
    /// Milliseconds from the request to the end of the answer.
    took_ms: u64,
    /// The request's body, normalised; only with `--request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// The answer; only with `--request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
}

pub(super) fn run(args: &ShowArgs, context: &Context) -> Done {
    let cassette = open(context, &args.cassette)?;
    let exchanges = match args.request {
        None => cassette.entries.iter().map(|entry| view(entry, Detail::Row)).collect(),
        Some(number) => vec![view(find(&cassette, number)?, Detail::All)],
    };
    show(&cassette, &exchanges, args.request.is_some(), context);
    context.ui.document(ShowDocument { header: cassette.header, exchanges });
    Ok(Exit::Ok)
}

fn find(cassette: &Cassette, number: u32) -> Result<&Entry, CliError> {
    cassette.entries.iter().find(|entry| entry.number == number).ok_or_else(|| {
        CliError::usage(format!("the cassette has no request {number}"))
            .hint(format!("it has {}: `rehearsal cassette show` lists them", cassette.entries.len()))
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Row,
    All,
}

fn view(entry: &Entry, detail: Detail) -> ExchangeView {
    let response = &entry.response;
    let (frames, took_ms, answer) = match &response.body {
        Body::Whole(text) => (None, response.at_ms, text.clone()),
        Body::Frames(frames) => {
            let text = frames.iter().map(|frame| frame.text.as_str()).collect();
            (Some(frames.len()), frames.last().map_or(response.at_ms, |frame| frame.at_ms), text)
        }
    };
    ExchangeView {
        number: entry.number,
        lane: entry.lane.to_string(),
        method: entry.key.method().to_owned(),
        target: entry.key.target().to_owned(),
        model: entry.key.model(),
        messages: entry.key.messages(),
        status: response.status,
        ended: response.ended,
        frames,
        took_ms,
        body: (detail == Detail::All).then(|| entry.key.body()),
        answer: (detail == Detail::All).then_some(answer),
    }
}

fn show(cassette: &Cassette, exchanges: &[ExchangeView], is_whole: bool, context: &Context) {
    let ui = context.ui;
    let header = &cassette.header;
    let version = header.agent_version.as_deref().unwrap_or("of an unknown version");
    ui.say(format!("recorded with {} {}", harmless(&header.agent), harmless(version)));
    let rules: Vec<String> = header.normalisers.iter().map(ToString::to_string).collect();
    ui.say(format!("normalised: {}", rules.join(" ")));
    if let [exchange] = exchanges
        && is_whole
    {
        ui.say(format!(
            "\n{}",
            styled(BOLD, format!("request {} in lane {}", exchange.number, exchange.lane))
        ));
        ui.say(format!("{} {}", exchange.method, harmless(&exchange.target)));
        ui.say(harmless(exchange.body.as_deref().unwrap_or_default()));
        ui.say(format!("\n{}", styled(BOLD, format!("answer {}", ended(exchange)))));
        ui.say(harmless(exchange.answer.as_deref().unwrap_or_default()).trim_end());
        return;
    }
    let row = |exchange: &ExchangeView| {
        vec![
            exchange.number.to_string(),
            exchange.lane.clone(),
            format!("{} {}", exchange.method, harmless(&exchange.target)),
            exchange.model.as_deref().map_or_else(|| "-".to_owned(), harmless),
            exchange.messages.to_string(),
            ended(exchange),
            exchange.frames.map_or_else(|| "-".to_owned(), |frames| frames.to_string()),
            format!("{} ms", exchange.took_ms),
        ]
    };
    let headings = ["N", "LANE", "REQUEST", "MODEL", "MESSAGES", "ANSWER", "FRAMES", "TOOK"];
    ui.say(table(&headings, &exchanges.iter().map(row).collect::<Vec<_>>()));
}

fn ended(exchange: &ExchangeView) -> String {
    match exchange.ended {
        Ended::Whole => exchange.status.to_string(),
        Ended::Cut => format!("{}, broke off", exchange.status),
    }
}
