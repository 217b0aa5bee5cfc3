//! `eval mutate`: whether the assertions of cases are able to fail.

use rehearsal_app::evals::Evals;
use rehearsal_eval::mutation::Tooth;
use rehearsal_eval::mutation_test::{Basis, MutatedCase};

use super::stop_on_signal;
use crate::commands::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{BAD, GOOD, ODD, Ui, harmless, one_line, styled};
use crate::words;

pub(super) async fn run(names: &[String], evals: &Evals, context: &Context) -> Done {
    let stop = stop_on_signal()?;
    let document = evals.mutate(names, |case| say(case, context.ui), &stop).await?;
    if stop.is_cancelled() {
        return Ok(Exit::Interrupted);
    }
    let document = document.ok_or_else(|| {
        CliError::usage("nothing can be tried: no trial passed, and no case has a known patch")
            .hint("`rehearsal eval run` makes trials")
    })?;
    let exit = if document.holds() { Exit::Ok } else { Exit::Red };
    context.ui.document(document);
    Ok(exit)
}

fn say(mutated: &MutatedCase, ui: Ui) {
    let name = format!("{}, {}", mutated.eval, mutated.case);
    let Some(teeth) = &mutated.teeth else {
        let reason = mutated.reason.as_deref().unwrap_or_default();
        ui.say(format!("{} {name}: {}", styled(ODD, "?"), one_line(reason, 200)));
        return;
    };
    let all = words::count(teeth.assertions.len() as u64, "assertion");
    let mutants = words::count(teeth.mutants as u64, "mutant");
    let of = if mutated.of == Basis::KnownPatch { " of the known patch" } else { "" };
    let toothless: Vec<&Tooth> = teeth.assertions.iter().filter(|one| !one.can_fail()).collect();
    if toothless.is_empty() {
        ui.say(format!("{} {name}: {all} can fail ({mutants}{of})", styled(GOOD, "✓")));
    } else {
        let count = toothless.len();
        ui.say(format!("{} {name}: {count} of {all} cannot fail ({mutants}{of})", styled(BAD, "✗")));
    }
    for tooth in toothless {
        ui.say(format!("    cannot fail: {}", one_line(&harmless(&tooth.name), 160)));
    }
    for survivor in &teeth.survivors {
        ui.say(format!("    survives: {}", one_line(&harmless(survivor), 160)));
    }
}
