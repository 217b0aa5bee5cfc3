//! Cases from the project's own history.

use rehearsal_app::evals::{Evals, ImportHistory, Mined, import_history};
use rehearsal_eval::mining::{CommitResult, MiningStats, TriedCommit};

use super::{ImportArgs, show};
use crate::commands::Done;
use crate::commands::eval::stop_on_signal;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Ui, one_line};
use crate::words;

pub(super) async fn run(args: &ImportArgs, evals: &Evals, context: &Context) -> Done {
    let stop = stop_on_signal()?;
    let wanted = ImportHistory {
        commits: args.last,
        most: args.most.map(|most| most as usize),
        timeout: args.timeout.0,
    };
    let ui = context.ui;
    let mined = import_history(evals, wanted, args.target(), |tried| say(&tried, ui), &stop).await?;
    let document = match mined {
        Mined::Eval(document) => document,
        Mined::Nothing(stats) => {
            ui.aside(summary(&stats, 0));
            if stop.is_cancelled() {
                return Ok(Exit::Interrupted);
            }
            let error =
                CliError::new(Exit::Red, "no commit was found whose tests fail before and pass after");
            return Err(error
                .hint("look further back: --last N; `rehearsal test` shows whether the tests run at all"));
        }
    };
    ui.aside(document.history.as_ref().map_or_else(String::new, |stats| summary(stats, document.cases)));
    show(&document, context);
    ui.document(document);
    if stop.is_cancelled() {
        ui.aside("stopped: what was found until then is written");
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Ok)
}

fn say(tried: &TriedCommit, ui: Ui) {
    if !ui.is_live() {
        return;
    }
    let result = match tried.result {
        CommitResult::Found(tests) => {
            format!("{} fail before and pass after", words::count(tests as u64, "test"))
        }
        CommitResult::WithoutEffect => "no test fails before and passes after".to_owned(),
        CommitResult::Untestable => "its tests cannot be run".to_owned(),
        CommitResult::TooLong => "it took too long".to_owned(),
    };
    let short: String = tried.commit.chars().take(8).collect();
    ui.aside(format!("{short} {}: {result}", one_line(&tried.subject, 60)));
}

fn summary(stats: &MiningStats, found: usize) -> String {
    let mut text = format!(
        "looked at {}: {} touch tests and sources; {found} found",
        words::count(stats.commits, "commit"),
        stats.candidates,
    );
    for (count, what) in [
        (stats.without_effect, "without a test that fails before and passes after"),
        (stats.untestable, "whose tests cannot be run"),
        (stats.too_long, "that took too long"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    if let Some(reason) = &stats.reason {
        text.push_str(&format!(" ({})", one_line(reason, 160)));
    }
    text
}
