//! `eval oracle`: whether cases can tell good from bad.

use rehearsal_app::evals::Evals;
use rehearsal_eval::grade::Verdict;
use rehearsal_eval::oracle::CheckedCase;

use super::stop_on_signal;
use crate::commands::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BAD, GOOD, ODD, Ui, harmless, one_line, styled};

pub(super) async fn run(names: &[String], evals: &Evals, context: &Context) -> Done {
    let stop = stop_on_signal()?;
    let document = evals.oracle(names, |case| say(case, context.ui), &stop).await?;
    if stop.is_cancelled() {
        return Ok(Exit::Interrupted);
    }
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
