//! `session new|list|show|context|progress`.

use clap::{Args, Subcommand};
use rehearsal_app::command_line::quote;
use rehearsal_app::sessions::{self, SessionDocument, SessionView};
use rehearsal_core::{NewSession, SessionEdit, SessionName};

use super::Done;
use crate::context::{Context, text_of};
use crate::exit::Exit;
use crate::ui::{BOLD, harmless, one_line, styled, table};
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
    let NewArgs { name, description, context: told, criteria } = args;
    let session = NewSession { name: name.clone(), description, context: told, criteria };
    let document = sessions::create(&context.project()?, session).await?;
    context.ui.say(format!("session `{name}` is made"));
    context
        .ui
        .say(format!("add tasks with `rehearsal task add \"title\" --session {}`", quote(name.as_str())));
    context.ui.document(document);
    Ok(Exit::Ok)
}

async fn list(context: &Context) -> Done {
    let list = sessions::list(&context.project()?).await?;
    let row = |view: &SessionView| {
        vec![
            view.session.name.to_string(),
            view.tasks.open.to_string(),
            view.tasks.done.to_string(),
            one_line(&view.session.description, 60),
        ]
    };
    let rows: Vec<Vec<String>> = list.sessions.iter().map(row).collect();
    if rows.is_empty() {
        context.ui.say("no sessions yet; make one with `rehearsal session new NAME`");
    } else {
        context.ui.say(table(&["SESSION", "OPEN", "DONE", "ABOUT"], &rows));
    }
    context.ui.document(list);
    Ok(Exit::Ok)
}

async fn show(name: &SessionName, context: &Context) -> Done {
    let document = sessions::show(&context.project()?, name).await?;
    let session = &document.session.session;
    let ui = context.ui;
    ui.say(format!("{} {}", styled(BOLD, &session.name), harmless(&session.description)));
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
    for lane in &document.held {
        ui.say(format!("{} is held: {}", lane.lane, harmless(&lane.hold.reason)));
    }
    if !session.context.is_empty() {
        ui.say(format!("\n{}", harmless(&session.context)));
    }
    for criterion in &session.criteria {
        ui.say(format!("- {}", harmless(criterion)));
    }
    if !document.progress.is_empty() {
        ui.say(format!("\n{}", styled(BOLD, "Journal")));
    }
    for entry in &document.progress {
        ui.say(format!("{}  {}", words::moment(entry.at), harmless(&entry.text)));
    }
    ui.document(document);
    Ok(Exit::Ok)
}

async fn context_of(args: ContextArgs, context: &Context) -> Done {
    let project = context.project()?;
    let document = if args.set.is_none() && args.description.is_none() {
        let document = sessions::show(&project, &args.session).await?;
        context.ui.say(harmless(&document.session.session.context));
        SessionDocument { progress: Vec::new(), ..document }
    } else {
        let text = args.set.map(text_of).transpose()?;
        let edit = SessionEdit { context: text, description: args.description, criteria: None };
        let document = sessions::edit(&project, &args.session, edit).await?;
        context.ui.say(format!("session `{}` is changed", args.session));
        document
    };
    context.ui.document(document);
    Ok(Exit::Ok)
}

async fn progress(args: ProgressArgs, context: &Context) -> Done {
    let document = match args.text {
        Some(text) => sessions::add_progress(context, args.session, text).await?,
        None => sessions::progress(&context.project()?, args.session, args.last).await?,
    };
    if document.reported {
        context.ui.say("noted; it goes to the journal when the run is over");
    }
    for entry in &document.progress {
        context.ui.say(format!("{}  {}", words::moment(entry.at), harmless(&entry.text)));
    }
    context.ui.document(document);
    Ok(Exit::Ok)
}
