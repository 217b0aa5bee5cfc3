//! A few scenarios to begin with.

use rehearsal_app::project::Project;
use rehearsal_app::scenarios::write_starter;

use super::super::Done;
use super::StarterDocument;
use crate::context::Context;
use crate::exit::Exit;

pub(super) fn run(project: &Project, context: &Context) -> Done {
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
