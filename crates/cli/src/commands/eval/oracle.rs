//! `eval oracle`: whether cases can tell good from bad.

use rehearsal_app::project::Project;
use rehearsal_eval::attempt::Mode;
use rehearsal_eval::grade::Verdict;
use rehearsal_eval::oracle::{CheckedCase, OracleDocument, check};

use super::{Found, stop_on_signal, trials};
use crate::commands::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BAD, GOOD, ODD, Ui, harmless, one_line, styled};

pub(super) async fn run(found: &[Found], project: &Project, context: &Context) -> Done {
    let stop = stop_on_signal()?;
    let mut cases = Vec::new();
    for found in found {
        let trials = trials(found, Mode::Scripted, false, project, context).await?;
        let checked = |case: CheckedCase| {
            say(&case, context.ui);
            cases.push(case);
        };
        check(&trials, &stop, checked).await;
        if stop.is_cancelled() {
            return Ok(Exit::Interrupted);
        }
    }
    let document = OracleDocument::new(cases);
    let exit = if document.holds() { Exit::Ok } else { Exit::Red };
    context.ui.document(document);
    Ok(exit)
}

fn say(checked: &CheckedCase, ui: Ui) {
    let name = format!("{}, {}", checked.eval, checked.case);
    let Some(nothing) = &checked.nothing else {
        ui.say(format!(
            "{} {name}: nothing is asserted of the repository, so nothing can be tried",
            styled(ODD, "?")
        ));
        return;
    };
    let mark = if checked.holds() { styled(GOOD, "✓") } else { styled(BAD, "✗") };
    let patch =
        checked.known_patch.as_ref().map_or("there is no known patch", |result| match result.verdict {
            Verdict::Pass => "the known patch passes",
            _ => "the known patch does not pass",
        });
    let idle = match nothing.verdict {
        Verdict::Fail => "doing nothing fails",
        Verdict::Pass => "doing nothing passes, so it cannot fail",
        _ => "doing nothing cannot be graded",
    };
    ui.say(format!("{mark} {name}: {patch}; {idle}"));
    let patched = checked.known_patch.iter().filter(|result| result.verdict != Verdict::Pass);
    let idle = checked.nothing.iter().filter(|result| result.verdict == Verdict::Error);
    for because in patched.chain(idle).flat_map(|result| &result.because) {
        ui.say(format!("    {}", one_line(&harmless(because), 200)));
    }
}
