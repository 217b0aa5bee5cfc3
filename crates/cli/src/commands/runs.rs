//! `runs list|show`.

use clap::{Args, Subcommand};
use rehearsal_app::runs::{self, RunsOf};
use rehearsal_core::{Run, SessionName, Timestamp};

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

pub(crate) async fn run(command: RunsCommand, context: &Context) -> Done {
    match command {
        RunsCommand::List(args) => list(args, context).await,
        RunsCommand::Show(args) => show(args, context).await,
    }
}

async fn list(args: ListArgs, context: &Context) -> Done {
    let of = match (args.session, args.task) {
        (Some(session), _) => RunsOf::Session(session),
        (None, Some(task)) => RunsOf::Task(task),
        (None, None) => RunsOf::All,
    };
    let list = runs::list(&context.project()?, of, args.limit).await?;
    if list.runs.is_empty() {
        context.ui.say("no runs yet; `rehearsal run SESSION` makes some");
    } else {
        context.ui.say(table_of(&list.runs, context.now()));
    }
    context.ui.document(list);
    Ok(Exit::Ok)
}

/// Runs in columns.
pub(crate) fn table_of(runs: &[Run], now: Timestamp) -> String {
    let row = |run: &Run| {
        let started = run.start.started_at;
        let took = run.end.as_ref().map_or_else(|| now.since(started), |end| end.took(started));
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

async fn show(args: ShowArgs, context: &Context) -> Done {
    let document = runs::show(&context.project()?, &args.run).await?;
    let ui = context.ui;
    let start = &document.run.start;
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
    match &document.run.end {
        None if document.worker_died => {
            ui.say("its worker died; the next `rehearsal run` or `rehearsal work` puts it in order");
        }
        None => ui.say("running"),
        Some(end) => {
            ui.say(format!(
                "took {}, cost {}, tokens {}, turns {}",
                words::duration(end.took(start.started_at)),
                words::cost(end.cost_usd),
                words::tokens(end.tokens),
                end.turns.map_or_else(|| "unknown".to_owned(), |turns| turns.to_string()),
            ));
            let model = end.model.as_ref().or(start.model.as_ref());
            ui.say(format!(
                "model {}, agent session {}",
                model.map_or_else(|| "unknown".to_owned(), |model| one_line(model, 80)),
                end.agent_session.as_ref().map_or_else(|| "unknown".to_owned(), |id| one_line(id, 80)),
            ));
            ui.say(format!("\n{}", styled(BOLD, harmless(&end.verdict.outcome.to_string()))));
            for reason in &end.verdict.because {
                ui.say(format!("- {}", harmless(reason)));
            }
            for notice in &end.notices {
                ui.say(format!("- note: {}", harmless(&words::notice(notice))));
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
    if let Some(end) = document.run.end.as_ref().filter(|end| !end.said.is_empty()) {
        ui.say("\nfinal message:");
        for line in final_message(&end.said) {
            ui.say(format!("  {line}"));
        }
    }
    if !document.last_words.is_empty() {
        ui.say("\nlast on its standard error:");
    }
    for line in &document.last_words {
        ui.say(format!("  {}", one_line(line, 160)));
    }
    ui.say(format!("\nfiles: {}", document.directory));
    ui.document(document);
    Ok(Exit::Ok)
}

/// The first lines of what an agent said last. All of it is in the document, and in the run's files.
fn final_message(said: &str) -> Vec<String> {
    const LINES: usize = 20;
    let mut lines: Vec<String> = said.lines().take(LINES).map(|line| one_line(line, 160)).collect();
    let hidden = said.lines().count().saturating_sub(LINES);
    if hidden > 0 {
        lines.push(format!("… {} more", words::count(hidden as u64, "line")));
    }
    lines
}
