//! `gc`: clears away what is not needed any more, and says why it keeps the rest.

use clap::Args;
use rehearsal_app::gc::{Fate, GcDocument, gc};
use rehearsal_forge::GcMode;

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::harmless;
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rehearsal gc --dry-run      # only say what would go\n  rehearsal gc

Removes worktrees that no open task needs, warm ones too, and what processes that were killed have left: references \
under refs/rehearsal that are older than a day, and traces of dead workers. Work that is nowhere else is never removed: \
not uncommitted files, not commits that nothing else has.")]
pub(crate) struct GcArgs {
    /// Only say what would be removed
    #[arg(long, short = 'n')]
    dry_run: bool,
}

pub(crate) async fn run(args: GcArgs, context: &Context) -> Done {
    let mode = if args.dry_run { GcMode::DryRun } else { GcMode::Delete };
    let document = gc(&context.project()?, mode).await?;
    show(&document, context);
    context.ui.document(document);
    Ok(Exit::Ok)
}

fn show(document: &GcDocument, context: &Context) {
    let ui = context.ui;
    let verb = if document.dry_run { "would be removed" } else { "removed" };
    for worktree in &document.worktrees {
        let whose =
            worktree.task.as_ref().map_or_else(|| "no task".to_owned(), |task| format!("task {task}"));
        let fate = worktree.because.as_ref().map_or_else(|| verb.to_owned(), |why| format!("kept: {why}"));
        ui.say(harmless(&format!("{} ({whose}): {fate}", worktree.path)));
    }
    for name in &document.references {
        ui.say(harmless(&format!("{name}: {verb}")));
    }
    for worker in &document.workers {
        ui.say(format!("trace of the dead worker {worker}: {verb}"));
    }
    let gone = document.worktrees.iter().filter(|worktree| worktree.fate == Fate::Removed).count()
        + document.references.len()
        + document.workers.len();
    let kept = document.worktrees.len() + document.references.len() + document.workers.len() - gone;
    ui.say(format!("{} {verb}, {kept} kept", words::count(gone as u64, "thing")));
}
