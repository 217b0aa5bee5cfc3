//! Asks the model that plans.

use std::sync::Arc;

use rehearsal_app::project::Project;
use rehearsal_crew::plan::Member;
use rehearsal_crew::planner::{Planned, PlannerError, Wish, plan};
use rehearsal_crew::{ModelChoice, Surroundings};
use rehearsal_llm::clients::{Client, Settings};
use rehearsal_llm::model::ModelError;

use super::PlanArgs;
use crate::commands::crew::{agents_dir, choice_error, role_error, roles_in};
use crate::context::{Context, variables};
use crate::error::CliError;
use crate::exit::Exit;

/// Planning is part of writing code, and done by the model that does that.
const ROLE: &str = "code";

pub(super) async fn ask(
    wish: &str,
    args: &PlanArgs,
    members: &[Member],
    project: &Project,
    context: &Context,
) -> Result<Planned, CliError> {
    if wish.trim().is_empty() {
        return Err(CliError::usage("there is nothing to plan")
            .hint("say what you want: rehearsal plan 'Fix the login'"));
    }
    let roles = roles_in(&agents_dir(&project.root))?;
    let role = roles.get(ROLE).map_err(role_error)?;
    let variables = variables();
    let choice = ModelChoice::new(args.model.as_deref(), role, |name| variables.get(name).cloned());
    let choice = choice.map_err(|error| {
        choice_error(&error).hint("a plan of your own needs no model: `rehearsal plan --from FILE`")
    })?;
    let client = Client::new(choice.endpoint, Settings::default(), Arc::clone(&context.clock))
        .map_err(|error| CliError::of(Exit::Internal, &error))?;
    let known = Surroundings::of(&project.root);
    if context.ui.is_live() {
        context.ui.aside(format!("asking {} for a plan …", choice.model));
    }
    let wish = Wish { model: &choice.model, text: wish, members, known: &known };
    plan(&client, wish).await.map_err(|error| planner_error(&error))
}

fn planner_error(error: &PlannerError) -> CliError {
    let told = |exit| CliError::of(exit, error);
    match error {
        PlannerError::Model(
            ModelError::RateLimited { .. }
            | ModelError::QuotaExhausted { .. }
            | ModelError::Overloaded { .. }
            | ModelError::Resting { .. },
        ) => told(Exit::TryLater).hint("try again later; nothing was added"),
        PlannerError::Model(ModelError::Unauthorized { .. }) => {
            told(Exit::Agent).hint("look at the vendor's key, such as ANTHROPIC_API_KEY")
        }
        PlannerError::Model(_) => told(Exit::Agent).hint("nothing was added"),
        PlannerError::Malformed { .. } | PlannerError::Silent => told(Exit::Agent).hint(
            "ask again, with other words or another `--model`; a plan of your own goes in with `--from FILE`",
        ),
    }
}
