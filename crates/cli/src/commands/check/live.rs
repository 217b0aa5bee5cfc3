//! Running a check while someone watches.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rehearsal_app::testing::{self, Choices};
use rehearsal_engine::{CheckWanted, Checker, Wanted};
use rehearsal_testing::{Progress, RunEvent, RunWatcher};
use tokio_util::sync::CancellationToken;

use super::CheckArgs;
use super::answer::answer;
use crate::commands::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::one_line;

/// The checker as the command line wants it.
pub(super) async fn checker(args: &CheckArgs, context: &Context) -> Result<Checker, CliError> {
    let sandbox = args.sandbox.map(Into::into);
    let choices = Choices { timeout: args.timeout, sandbox, ..Choices::default() };
    Ok(testing::checker(&context.project()?, choices).await?)
}

pub(super) fn wanted(args: &CheckArgs) -> CheckWanted {
    CheckWanted { stages: args.stages.wanted(), tests: Wanted::default() }
}

pub(super) async fn run(args: &CheckArgs, context: &Context) -> Done {
    let checker = checker(args, context).await?;
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let interrupted = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    let bar = bar(context);
    let checked = testing::check(&checker, &wanted(args), &showing(bar.clone()), &cancel).await;
    interrupted.abort();
    bar.finish_and_clear();
    let exit = answer(checked?, &args.form, context);
    Ok(if cancel.is_cancelled() { Exit::Interrupted } else { exit })
}

/// A line that changes, on a terminal; nothing elsewhere.
fn bar(context: &Context) -> ProgressBar {
    if context.ui.json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn showing(bar: ProgressBar) -> RunWatcher {
    RunWatcher::new(move |event| match event {
        RunEvent::Started(plan) => {
            bar.set_prefix(one_line(&plan.command.to_string(), 80));
            bar.set_message("");
        }
        RunEvent::Progress(Progress::Finished(test)) => bar.set_message(one_line(&test.name, 60)),
        _ => {}
    })
}
