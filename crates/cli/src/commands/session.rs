//! `session new|list|show|context|progress`.

use clap::{Args, Subcommand};
use rehearsal_agent::result_file::ReportLine;
use rehearsal_core::config::Overrides;
use rehearsal_core::{Lane, NewSession, ProgressEntry, Session, SessionEdit, SessionName};
use rehearsal_store::{Change, Counts};
use serde::Serialize;

use super::Done;
use super::lane::held;
use super::work::HeldLane;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::inside::InsideRun;
use crate::project::read_stdin;
use crate::ui::{BOLD, styled, table};
use crate::words;

#[derive(Debug, Subcommand)]
#[command(
    after_help = "Example: rehearsal session new greetings --description 'Say hello in three languages'"
)]
pub(crate) enum SessionCommand {
    /// Make a session
    New(NewArgs),
    /// List all sessions
    #[command(after_help = "Example: rehearsal session list")]
    List,
    /// Show a session, its tasks and the last lines of its journal
    #[command(after_help = "Example: rehearsal session show api")]
    Show {
        /// Its name
        session: SessionName,
    },
    /// Print the context that every run of a session is told, or set it
    Context(ContextArgs),
    /// Print a session's journal, or write a line to it
    Progress(ProgressArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: rehearsal session new api --description 'The new API' --criterion 'all tests pass'"
)]
pub(crate) struct NewArgs {
    /// Its name: letters, digits, `-`, `_` and `.`
    name: SessionName,
    /// What it is about
    #[arg(long, short, default_value = "")]
    description: String,
    /// What every run must know
    #[arg(long, default_value = "")]
    context: String,
    /// What must hold for each of its tasks; may be given again
    #[arg(long = "criterion", value_name = "TEXT")]
    criteria: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rehearsal session context api\n  rehearsal session context api --set 'We use axum.'\n  rehearsal session context api --set - < NOTES.md"
)]
pub(crate) struct ContextArgs {
    session: SessionName,
    /// The new text; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    set: Option<String>,
    /// A new description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rehearsal session progress 'The parser is done' --session api\n  rehearsal session progress --session api"
)]
pub(crate) struct ProgressArgs {
    /// The line to write; without it the journal is printed
    text: Option<String>,
    /// Which session; can be left out if there is only one, and inside a run
    #[arg(long, short)]
    session: Option<SessionName>,
    /// How many lines to print
    #[arg(long, default_value_t = 50)]
    last: u32,
}

/// How many tasks a session has.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TaskCounts {
    open: u64,
    done: u64,
    total: u64,
    by_status: std::collections::BTreeMap<String, u64>,
}

impl From<Counts> for TaskCounts {
    fn from(counts: Counts) -> Self {
        Self { open: counts.open, done: counts.done, total: counts.total, by_status: counts.by_status }
    }
}

/// A session with its counts.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SessionView {
    #[serde(flatten)]
    session: Session,
    tasks: TaskCounts,
}

/// `session list --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SessionList {
    sessions: Vec<SessionView>,
}

/// `session show --json`, and what `new` and `context` answer.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SessionDocument {
    session: SessionView,
    /// The last lines of the journal, oldest first.
    progress: Vec<ProgressEntry>,
}

/// `session progress --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ProgressDocument {
    /// Oldest first.
    progress: Vec<ProgressEntry>,
    /// Whether the line was only reported, because an agent wrote it.
    reported: bool,
}

pub(crate) async fn run(command: SessionCommand, context: &Context) -> Done {
    match command {
        SessionCommand::New(args) => new(args, context).await,
        SessionCommand::List => list(context).await,
        SessionCommand::Show { session } => show(&session, context).await,
        SessionCommand::Context(args) => context_of(args, context).await,
        SessionCommand::Progress(args) => progress(args, context).await,
    }
}

async fn new(args: NewArgs, context: &Context) -> Done {
    InsideRun::refuse_changes()?;
    let store = context.store().await?;
    let name = args.name.clone();
    let session = NewSession {
        name: args.name,
        description: args.description,
        context: args.context,
        criteria: args.criteria,
    };
    context.commit(&*store, vec![Change::AddSession(session)]).await?;
    context.ui.say(format!("session `{name}` is made"));
    context.ui.say(format!("add tasks with `rehearsal task add \"title\" --session {name}`"));
    context.ui.document(document(&*store, &name, 0).await?);
    Ok(Exit::Ok)
}

async fn list(context: &Context) -> Done {
    let store = context.store().await?;
    let sessions = store.sessions().await?;
    let rows: Vec<Vec<String>> = sessions
        .iter()
        .map(|summary| {
            vec![
                summary.session.name.to_string(),
                summary.counts.open.to_string(),
                summary.counts.done.to_string(),
                crate::ui::one_line(&summary.session.description, 60),
            ]
        })
        .collect();
    if rows.is_empty() {
        context.ui.say("no sessions yet; make one with `rehearsal session new NAME`");
    } else {
        context.ui.say(table(&["SESSION", "OPEN", "DONE", "ABOUT"], &rows));
    }
    let sessions = sessions
        .into_iter()
        .map(|summary| SessionView { session: summary.session, tasks: summary.counts.into() })
        .collect();
    context.ui.document(SessionList { sessions });
    Ok(Exit::Ok)
}

async fn show(name: &SessionName, context: &Context) -> Done {
    let store = context.store().await?;
    let document = document(&*store, name, 10).await?;
    let session = &document.session.session;
    let ui = context.ui;
    ui.say(format!("{} {}", styled(BOLD, &session.name), crate::ui::harmless(&session.description)));
    ui.say(format!(
        "{} open, {} done, made {}",
        words::count(document.session.tasks.open, "task"),
        document.session.tasks.done,
        words::relative(session.created_at, context.now())
    ));
    let statuses = &document.session.tasks.by_status;
    if !statuses.is_empty() {
        let words: Vec<String> = statuses.iter().map(|(status, count)| format!("{count} {status}")).collect();
        ui.say(words.join(", "));
    }
    for lane in held_lanes(name, &*store, context).await? {
        ui.say(format!("{} is held: {}", lane.lane, crate::ui::harmless(&lane.hold.reason)));
    }
    if !session.context.is_empty() {
        ui.say(format!("\n{}", crate::ui::harmless(&session.context)));
    }
    for criterion in &session.criteria {
        ui.say(format!("- {}", crate::ui::harmless(criterion)));
    }
    if !document.progress.is_empty() {
        ui.say(format!("\n{}", styled(BOLD, "Journal")));
    }
    for entry in &document.progress {
        ui.say(format!("{}  {}", words::moment(entry.at), crate::ui::harmless(&entry.text)));
    }
    ui.document(document);
    Ok(Exit::Ok)
}

/// What keeps the session's tasks from being claimed.
async fn held_lanes(
    name: &SessionName,
    store: &dyn rehearsal_store::Store,
    context: &Context,
) -> Result<Vec<HeldLane>, CliError> {
    let settings = context.project()?.settings(Overrides::default())?;
    let mut lanes = held(&settings, store, context.now()).await?;
    lanes.retain(|held| match &held.lane {
        Lane::All => true,
        Lane::Session(session) => session == name,
        Lane::Agent(_) => false,
    });
    Ok(lanes)
}

async fn document(
    store: &dyn rehearsal_store::Store,
    name: &SessionName,
    last: u32,
) -> Result<SessionDocument, CliError> {
    let session = store.session(name).await?;
    let counts = store.count_tasks(Some(name)).await?;
    let progress = store.progress(name, last).await?;
    Ok(SessionDocument { session: SessionView { session, tasks: counts.into() }, progress })
}

async fn context_of(args: ContextArgs, context: &Context) -> Done {
    let store = context.store().await?;
    if args.set.is_none() && args.description.is_none() {
        let session = store.session(&args.session).await?;
        context.ui.say(crate::ui::harmless(&session.context));
    } else {
        InsideRun::refuse_changes()?;
        let text = match args.set.as_deref() {
            Some("-") => Some(read_stdin()?),
            other => other.map(ToOwned::to_owned),
        };
        let edit = SessionEdit { context: text, description: args.description, criteria: None };
        context.commit(&*store, vec![Change::EditSession { name: args.session.clone(), edit }]).await?;
        context.ui.say(format!("session `{}` is changed", args.session));
    }
    context.ui.document(document(&*store, &args.session, 0).await?);
    Ok(Exit::Ok)
}

async fn progress(args: ProgressArgs, context: &Context) -> Done {
    if let (Some(text), Some(inside)) = (&args.text, InsideRun::detect()) {
        inside.report(&ReportLine::Progress { text: text.clone() })?;
        context.ui.say("noted; it goes to the journal when the run is over");
        context.ui.document(ProgressDocument { progress: Vec::new(), reported: true });
        return Ok(Exit::Ok);
    }
    let store = context.store().await?;
    let session = the_session(&*store, args.session).await?;
    let mut last = args.last;
    if let Some(text) = args.text {
        let change = Change::AddProgress { session: session.clone(), run: None, text };
        context.commit(&*store, vec![change]).await?;
        last = 1;
    }
    let progress = store.progress(&session, last).await?;
    for entry in &progress {
        context.ui.say(format!("{}  {}", words::moment(entry.at), crate::ui::harmless(&entry.text)));
    }
    context.ui.document(ProgressDocument { progress, reported: false });
    Ok(Exit::Ok)
}

/// The session that is meant when none is named: the only one.
pub(crate) async fn the_session(
    store: &dyn rehearsal_store::Store,
    named: Option<SessionName>,
) -> Result<SessionName, CliError> {
    if let Some(name) = named {
        return Ok(store.session(&name).await?.name);
    }
    let mut sessions = store.sessions().await?;
    match (sessions.pop(), sessions.is_empty()) {
        (Some(only), true) => Ok(only.session.name),
        (None, _) => {
            Err(CliError::usage("there is no session yet").hint("make one with `rehearsal session new NAME`"))
        }
        (Some(last), false) => {
            let mut names: Vec<String> =
                sessions.iter().map(|summary| summary.session.name.to_string()).collect();
            names.push(last.session.name.to_string());
            Err(CliError::usage("there is more than one session")
                .hint(format!("name one with `--session`: {}", names.join(", "))))
        }
    }
}
