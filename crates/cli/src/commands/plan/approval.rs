//! Whether a plan is to be done: a person says so, at a terminal or by a flag.

use std::io::{BufRead, IsTerminal, Write};

use rehearsal_app::command_line::quote;
use rehearsal_app::file::read_text;
use rehearsal_app::plan;
use rehearsal_app::project::Project;
use rehearsal_crew::plan::{Member, Plan};
use rehearsal_process::run_in_terminal;

use super::{PlanArgs, shown};
use crate::context::Context;
use crate::error::CliError;

/// What was decided on a plan.
pub(super) enum Decision {
    /// It is to be done.
    Approved(Plan),
    /// It is not.
    Rejected(Plan),
    /// Nobody was there to be asked.
    Open(Plan),
}

/// Shows the plan, and finds out. Nobody is asked who does not sit at a terminal.
pub(super) fn decide(
    mut plan: Plan,
    args: &PlanArgs,
    members: &[Member],
    project: &Project,
    context: &Context,
) -> Result<Decision, CliError> {
    let can_ask = !context.ui.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if args.edit {
        plan = edit(&plan, members, project)?;
    }
    loop {
        context.ui.say(shown(&plan));
        if args.yes {
            return Ok(Decision::Approved(plan));
        }
        if !can_ask {
            return Ok(Decision::Open(plan));
        }
        match ask()? {
            Some(Word::Yes) => return Ok(Decision::Approved(plan)),
            Some(Word::No) => return Ok(Decision::Rejected(plan)),
            // What is wrong with it can be mended in the next round.
            Some(Word::Edit) => match edit(&plan, members, project) {
                Ok(edited) => plan = edited,
                Err(error) => context.ui.aside(error.render()),
            },
            None => return Ok(Decision::Open(plan)),
        }
    }
}

enum Word {
    Yes,
    No,
    Edit,
}

/// Asks until there is an answer; none if there is nobody any more.
fn ask() -> Result<Option<Word>, CliError> {
    loop {
        let mut stderr = anstream::stderr();
        write!(stderr, "\nApprove this plan? [y]es, [n]o, [e]dit: ")?;
        stderr.flush()?;
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(Some(Word::Yes)),
            "n" | "no" => return Ok(Some(Word::No)),
            "e" | "edit" => return Ok(Some(Word::Edit)),
            _ => {}
        }
    }
}

/// Lets a person change the plan, and checks it again. What they wrote is kept also if it cannot be used.
fn edit(plan: &Plan, members: &[Member], project: &Project) -> Result<Plan, CliError> {
    let path = project.root.join(plan::keep(project, plan)?);
    let editor =
        ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    // An editor may have arguments, as git and others allow.
    let ended = run_in_terminal("/bin/sh", ["-c", &format!("{editor} \"$1\""), "sh", path.as_str()])
        .map_err(|error| CliError::usage(format!("`{editor}` could not be started: {error}")))?;
    if !ended.success() {
        return Err(CliError::usage(format!("`{editor}` ended with {ended}: the plan is as it was"))
            .hint("set EDITOR to the editor that you use"));
    }
    let shown = project.shown(&path);
    let text =
        read_text(&path)?.ok_or_else(|| CliError::usage(format!("`{shown}` is not there any more")))?;
    let edited = plan::read(&text, members).map_err(|error| {
        CliError::from(error)
            .at(&shown)
            .hint(format!("it is kept: mend it, then `rehearsal plan --from {}`", quote(&shown)))
    })?;
    // It is in the store, or kept anew.
    let _ = fs_err::remove_file(&path);
    Ok(edited)
}
