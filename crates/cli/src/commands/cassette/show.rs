//! `cassette show`.

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_app::cassettes::{self, ExchangeView, ShowDocument};
use rehearsal_llm::cassette::Ended;

use super::Done;
use crate::context::Context;
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

pub(super) fn run(args: &ShowArgs, context: &Context) -> Done {
    let document = cassettes::show(context, &args.cassette, args.request)?;
    show(&document, args.request.is_some(), context);
    context.ui.document(document);
    Ok(Exit::Ok)
}

fn show(document: &ShowDocument, is_whole: bool, context: &Context) {
    let ui = context.ui;
    let ShowDocument { header, exchanges } = document;
    let version = header.agent_version.as_deref().unwrap_or("of an unknown version");
    ui.say(format!("recorded with {} {}", harmless(&header.agent), harmless(version)));
    let rules: Vec<String> = header.normalisers.iter().map(ToString::to_string).collect();
    ui.say(format!("normalised: {}", rules.join(" ")));
    if let [exchange] = exchanges.as_slice()
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
