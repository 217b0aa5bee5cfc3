//! A few scenarios to begin with.

use rehearsal_app::project::Project;

use super::super::Done;
use super::{StarterDocument, scenario_path};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Name and text of each.
const STARTER: [(&str, &str); 3] = [
    ("first-steps", include_str!("starter/first-steps.yaml")),
    ("rejected-once", include_str!("starter/rejected-once.yaml")),
    ("worker-killed", include_str!("starter/worker-killed.yaml")),
];

pub(super) fn run(project: &Project, context: &Context) -> Done {
    context.may_change()?;
    let written = write_starter(project)?;
    for path in &written {
        context.ui.say(format!("{path} is written"));
    }
    if written.is_empty() {
        context.ui.say("all of them are there already");
    }
    context.ui.say("next: rehearsal rehearse --trace");
    context.ui.document(StarterDocument { written });
    Ok(Exit::Ok)
}

/// Writes those that are not there; their names.
pub(crate) fn write_starter(project: &Project) -> Result<Vec<String>, CliError> {
    let mut written = Vec::new();
    for (name, text) in STARTER {
        let path = scenario_path(project, name);
        if path.exists() {
            continue;
        }
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        fs_err::write(&path, text)?;
        written.push(project.shown(&path));
    }
    Ok(written)
}
