//! Cases from the project's own history.

use std::collections::BTreeMap;

use rehearsal_app::evals::Evals;
use rehearsal_eval::import::history;
use rehearsal_eval::mining::{CommitResult, MiningLimits, MiningStats, TriedCommit, mine};

use super::{ImportArgs, Target};
use crate::commands::Done;
use crate::commands::eval::stop_on_signal;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Ui, one_line};
use crate::words;

/// As many cases as a first eval needs.
const MOST_CASES: usize = 20;

pub(super) async fn run(args: &ImportArgs, target: &Target, evals: &Evals, context: &Context) -> Done {
    let stop = stop_on_signal()?;
    let surroundings = evals.trial_context(BTreeMap::new(), false).await?;
    let root = &evals.project.root;
    let limits = MiningLimits {
        commits: args.last,
        cases: args.most.map_or(MOST_CASES, |most| most as usize),
        timeout: args.timeout.0,
    };
    let ui = context.ui;
    let mined = mine(root, limits, &surroundings, |tried| say(&tried, ui), &stop).await;
    let (mined, stats) = mined.map_err(|error| CliError::of(Exit::Git, &error))?;
    ui.aside(summary(&stats, mined.len()));
    if mined.is_empty() {
        if stop.is_cancelled() {
            return Ok(Exit::Interrupted);
        }
        let error = CliError::new(Exit::Red, "no commit was found whose tests fail before and pass after");
        return Err(
            error.hint("look further back: --last N; `rehearsal test` shows whether the tests run at all")
        );
    }
    // Where the eval is not in the repository, `.` would be another one.
    let directory = target.directory(root);
    let real = directory.canonicalize_utf8();
    let is_inside = real.as_deref().unwrap_or(directory).starts_with(root);
    let path = if is_inside { "." } else { root.as_str() };
    let text =
        history(&target.name, path, &mined).map_err(|error| CliError::in_file(error, &target.shown))?;
    target.write(&text)?;
    target.tell(&text, mined.len(), context);
    let mut document = target.document(&text, mined.len(), Vec::new());
    document.history = Some(stats);
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
