//! `plan`: a wish becomes tasks for the crew, once someone has approved them.

mod approval;

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_app::command_line::quote;
use rehearsal_app::file::{FileError, read_text};
use rehearsal_app::plan::{self, AddedTask, Planner};
use rehearsal_app::project::Project;
use rehearsal_app::work::WorkDocument;
use rehearsal_core::{SessionName, Tokens};
use rehearsal_crew::plan::{Member, Plan, PlanFile};
use rehearsal_crew::planner::{Planned, Reply};
use serde::Serialize;

use super::Done;
use super::work;
use crate::context::{Context, read_stdin, text_of};
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{BOLD, harmless, one_line, styled, table};
use crate::words;
use approval::Decision;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal plan 'Make the failing test green'               # shows a plan, and asks
  rehearsal plan 'Make the failing test green' --yes --work  # and does it at once
  rehearsal plan 'Which module parses flows?'                # a question gets an answer, and no plan
  rehearsal plan --from plan.json --yes                      # a plan that is there already
  rehearsal plan 'Split the parser' --edit                   # change it in your editor first

A plan is JSON: `rehearsal schema plan` has its form. Each of its tasks is done by the agent that it names, in a worktree of its own; what does \
not depend on each other is done at the same time. Changes of several files, at risky places or of public interfaces are reviewed and checked \
before they are merged: `quality:` in the configuration says which.

The model is chosen as for the crew: see `rehearsal crew run --help`.")]
pub(crate) struct PlanArgs {
    /// What you want, or want to know; `-` reads it from standard input
    #[arg(value_name = "WISH", required_unless_present = "from", allow_hyphen_values = true)]
    wish: Option<String>,
    /// Approve the plan without being asked
    #[arg(long, short)]
    yes: bool,
    /// Open the plan in $VISUAL or $EDITOR first
    #[arg(long)]
    edit: bool,
    /// Take the plan from this file, and ask no model; `-` is standard input
    #[arg(long, value_name = "FILE")]
    from: Option<Utf8PathBuf>,
    /// The model that plans
    #[arg(long, value_name = "VENDOR:NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    model: Option<String>,
    /// The session that the tasks go to; it is made if it is not there [default: a new one]
    #[arg(long, short)]
    session: Option<SessionName>,
    /// Work on the tasks at once, until nothing more can be done
    #[arg(long)]
    work: bool,
}

/// `plan --json`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PlanDocument {
    /// The answer, if the wish was a question.
    answer: Option<String>,
    /// The plan.
    plan: Option<PlanFile>,
    /// Whether it was approved, and so its tasks added.
    approved: bool,
    /// Where the plan is kept that nobody has approved yet.
    kept: Option<String>,
    /// The session of its tasks.
    session: Option<SessionName>,
    /// The tasks, each after all that it depends on.
    tasks: Vec<AddedTask>,
    /// What planning took.
    tokens: Option<Tokens>,
    /// What working on them came to.
    work: Option<WorkDocument>,
}

pub(crate) async fn run(args: PlanArgs, context: &Context) -> Done {
    context.may_change()?;
    let project = context.project()?;
    let members = plan::members(&project)?;
    let wish = args.wish.clone().map(text_of).transpose()?;
    let mut document = PlanDocument::default();
    let plan = match (&args.from, &wish) {
        (Some(file), _) => read_plan(file, &members, context)?,
        (None, wish) => {
            let planned =
                ask(wish.as_deref().unwrap_or_default(), &args, &members, &project, context).await?;
            document.tokens = planned.usage.tokens();
            match planned.reply {
                Reply::Answer(answer) => {
                    context.ui.say(harmless(&answer));
                    context.ui.document(PlanDocument { answer: Some(answer), ..document });
                    return Ok(Exit::Ok);
                }
                Reply::Plan(plan) => plan,
            }
        }
    };
    let decision = approval::decide(plan, &args, &members, &project, context)?;
    let (plan, is_approved) = match decision {
        Decision::Approved(plan) => (plan, true),
        Decision::Rejected(plan) => {
            context.ui.say("the plan is rejected: nothing was added");
            document.plan = Some(plan.file());
            context.ui.document(document);
            return Ok(Exit::Ok);
        }
        Decision::Open(plan) => (plan, false),
    };
    document.plan = Some(plan.file());
    if !is_approved {
        let kept = plan::keep(&project, &plan)?;
        context.ui.say(format!(
            "\nthe plan waits for your approval: nothing was added\nnext: {}",
            approve(&kept, &args)
        ));
        document.kept = Some(kept);
        context.ui.document(document);
        return Ok(Exit::NeedsHuman);
    }
    add_and_work(&plan, wish.as_deref(), &args, document, &project, context).await
}

async fn add_and_work(
    plan: &Plan,
    wish: Option<&str>,
    args: &PlanArgs,
    mut document: PlanDocument,
    project: &Project,
    context: &Context,
) -> Done {
    let added = plan::add(project, plan, wish, args.session.as_ref()).await?;
    let count = words::count(added.tasks.len() as u64, "task");
    context.ui.say(format!("\n{count} added to session {}", styled(BOLD, format!("`{}`", added.session))));
    if let Some(file) = &args.from {
        plan::forget(project, &context.directory.join(file));
    }
    document.approved = true;
    document.session = Some(added.session.clone());
    document.tasks = added.tasks;
    let mut exit = Exit::Ok;
    if args.work {
        let (worked, end) = work::until_idle(&added.session, project, context).await?;
        (document.work, exit) = (Some(worked), end);
    } else {
        context
            .ui
            .say(format!("next: rehearsal work --session {} --until-idle", quote(added.session.as_str())));
    }
    context.ui.document(document);
    Ok(exit)
}

/// Asks the model that plans.
async fn ask(
    wish: &str,
    args: &PlanArgs,
    members: &[Member],
    project: &Project,
    context: &Context,
) -> Result<Planned, CliError> {
    plan::check_goal(wish)?;
    let planner = Planner::new(project, args.model.as_deref())?;
    if context.ui.is_live() {
        context.ui.aside(format!("asking {} for a plan …", planner.model));
    }
    Ok(planner.plan(wish, members).await?)
}

/// A plan that is there already.
fn read_plan(file: &Utf8PathBuf, members: &[Member], context: &Context) -> Result<Plan, CliError> {
    let text = if file == "-" {
        read_stdin()?
    } else {
        read_text(&context.directory.join(file))?.ok_or_else(|| FileError::Missing(file.clone()))?
    };
    plan::read(&text, members).map_err(|error| CliError::from(error).at(file.as_str()))
}

/// The plan as people look at it: each task after all that it depends on.
fn shown(plan: &Plan) -> String {
    let rows: Vec<Vec<String>> = plan
        .in_order()
        .iter()
        .map(|step| {
            let after = if step.task.depends_on.is_empty() {
                "-".to_owned()
            } else {
                step.task.depends_on.join(", ")
            };
            let indent = "  ".repeat(step.depth.min(8));
            vec![
                format!("{indent}{}", step.task.id),
                step.agent.to_string(),
                one_line(&after, 40),
                one_line(step.task.description.trim(), 80),
            ]
        })
        .collect();
    table(&["TASK", "AGENT", "AFTER", "WHAT"], &rows)
}

/// The command that approves a kept plan.
fn approve(kept: &str, args: &PlanArgs) -> String {
    let session = args
        .session
        .as_ref()
        .map_or_else(String::new, |session| format!(" --session {}", quote(session.as_str())));
    let work = if args.work { " --work" } else { "" };
    format!("rehearsal plan --from {} --yes{session}{work}", quote(kept))
}
