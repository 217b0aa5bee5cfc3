//! `runs list|show`.

use std::io::{Read, Seek, SeekFrom};

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Args, Subcommand};
use rehearsal_core::{Blame, Run, SessionName, Timestamp};
use rehearsal_store::{RunQuery, Scope};
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BOLD, harmless, one_line, styled, table};
use crate::words;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  rehearsal runs list --session hello
  rehearsal runs show 7qm")]
pub(crate) enum RunsCommand {
    /// List runs, newest first
    List(ListArgs),
    /// Show one run: how it ended, why, what it changed
    Show(ShowArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal runs list --session hello")]
pub(crate) struct ListArgs {
    /// Only of this session
    #[arg(long, short, conflicts_with = "task")]
    session: Option<SessionName>,
    /// Only of this task
    #[arg(long, short)]
    task: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 20)]
    limit: u32,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal runs show 7qm")]
pub(crate) struct ShowArgs {
    /// The run's id, or a unique prefix of it
    run: String,
}

/// `runs list --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunList {
    /// Newest first.
    runs: Vec<Run>,
}

/// `runs show --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunDocument {
    /// The run.
    run: Run,
    /// Where its files are: prompt, output, activity, result.
    directory: String,
}

pub(crate) async fn run(command: RunsCommand, context: &Context) -> Done {
    match command {
        RunsCommand::List(args) => list(args, context).await,
        RunsCommand::Show(args) => show(args, context).await,
    }
}

async fn list(args: ListArgs, context: &Context) -> Done {
    let store = context.store().await?;
    let scope = match (args.session, args.task) {
        (Some(session), _) => Scope::Session(store.session(&session).await?.name),
        (None, Some(task)) => Scope::Task(store.find_task(&task).await?.id),
        (None, None) => Scope::All,
    };
    let runs = store.runs(&RunQuery { scope, limit: Some(args.limit) }).await?;
    if runs.is_empty() {
        context.ui.say("no runs yet; `rehearsal run SESSION` makes some");
    } else {
        context.ui.say(table_of(&runs, context.now()));
    }
    context.ui.document(RunList { runs });
    Ok(Exit::Ok)
}

/// Runs in columns.
pub(crate) fn table_of(runs: &[Run], now: Timestamp) -> String {
    let row = |run: &Run| {
        let took = run.end.as_ref().map_or(now, |end| end.ended_at).since(run.start.started_at);
        vec![
            run.start.id.to_string(),
            run.start.task.to_string(),
            run.start.agent.to_string(),
            run.outcome().map_or_else(|| "running".to_owned(), |outcome| outcome.name().to_string()),
            run.end.as_ref().map_or_else(|| "-".to_owned(), |end| end.commits.len().to_string()),
            words::duration(took),
            run.end.as_ref().map_or_else(|| "-".to_owned(), |end| words::cost(end.cost_usd)),
            words::relative(run.start.started_at, now),
        ]
    };
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    table(&["RUN", "TASK", "AGENT", "OUTCOME", "COMMITS", "TOOK", "COST", "STARTED"], &rows)
}

/// How much of standard error is looked at, and how many lines of that are shown.
const TAIL_BYTES: u64 = 4 << 10;
const TAIL_LINES: usize = 5;

/// The end of standard error, where a run that went wrong often says why.
fn last_words(run: &Run, directory: &Utf8Path) -> Vec<String> {
    let went_wrong = run.outcome().is_some_and(|outcome| outcome.blame() != Blame::Nobody);
    if !went_wrong {
        return Vec::new();
    }
    let tail = tail_of(&directory.join("stderr.log")).unwrap_or_default();
    let text = String::from_utf8_lossy(&tail);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].iter().map(|line| (*line).to_owned()).collect()
}

fn tail_of(path: &Utf8Path) -> std::io::Result<Vec<u8>> {
    let mut file = fs_err::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(tail)
}

async fn show(args: ShowArgs, context: &Context) -> Done {
    let project = context.project()?;
    let store = project.store().await?;
    let run = store.find_run(&args.run).await?;
    let directory: Utf8PathBuf = project.runs_dir().join(run.start.id.as_str());
    let ui = context.ui;
    let start = &run.start;
    ui.say(format!(
        "{}  task {}, agent {} ({})",
        styled(BOLD, &start.id),
        start.task,
        start.agent,
        start.driver
    ));
    ui.say(format!(
        "started {} ({})",
        words::moment(start.started_at),
        words::relative(start.started_at, context.now())
    ));
    match &run.end {
        None => {
            ui.say("running, or its worker died; the next `rehearsal run` or `rehearsal work` sees to that")
        }
        Some(end) => {
            ui.say(format!(
                "took {}, cost {}, tokens {}",
                words::duration(end.ended_at.since(start.started_at)),
                words::cost(end.cost_usd),
                words::tokens(end.tokens)
            ));
            ui.say(format!("\n{}", styled(BOLD, harmless(&end.verdict.outcome.to_string()))));
            for reason in &end.verdict.because {
                ui.say(format!("- {}", harmless(reason)));
            }
            for commit in &end.commits {
                ui.say(format!("commit {:.10} {}", commit.id, one_line(&commit.subject, 80)));
            }
            for file in end.files_changed.iter().take(50) {
                // A name may hold a line break, and must not look like two lines of ours.
                ui.say(format!("changed {}", harmless(file).replace('\n', "\u{fffd}")));
            }
        }
    }
    let last_words = last_words(&run, &directory);
    if !last_words.is_empty() {
        ui.say("\nlast on its standard error:");
    }
    for line in last_words {
        ui.say(format!("  {}", one_line(&line, 160)));
    }
    let shown = project.shown(&directory);
    ui.say(format!("\nfiles: {shown}"));
    ui.document(RunDocument { run, directory: shown });
    Ok(Exit::Ok)
}
