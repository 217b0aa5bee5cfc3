//! Other steps.

use super::Mutant;
use crate::trial::{Doing, Replay, Step, Trial};

/// A loop that nobody overlooks.
const OFTEN: usize = 100;

pub(super) fn mutants(trial: &Trial) -> Vec<Mutant> {
    let is_tool = |step: &Step| matches!(step, Step::Tool { .. });
    let mut all = vec![
        Mutant::of(trial, "no tool is called", |mutant| mutant.steps.retain(|step| !is_tool(step))),
        Mutant::of(trial, "the tools are called in reverse order", |mutant| {
            let mut tools: Vec<Step> = mutant.steps.iter().filter(|step| is_tool(step)).cloned().collect();
            for step in mutant.steps.iter_mut().filter(|step| is_tool(step)) {
                // As many come out as went in.
                if let Some(last) = tools.pop() {
                    *step = last;
                }
            }
        }),
        Mutant::of(trial, "one call goes round in a loop", |mutant| {
            let call = mutant.steps.iter().rfind(|step| is_tool(step)).cloned();
            let call = call.unwrap_or_else(|| tool("loop", "{}", Doing::Other));
            mutant.steps.extend(std::iter::repeat_n(call, OFTEN));
        }),
        Mutant::of(trial, "a file is edited at the very end", |mutant| {
            mutant.steps.push(tool("edit_file", "{}", Doing::Edit));
        }),
        Mutant::of(trial, "nobody works", |mutant| mutant.steps.clear()),
        Mutant::of(trial, "no call of gh is made", |mutant| mutant.gh_calls.clear()),
    ];
    if trial.replay.is_some() {
        let differs = Replay { exact: false, differences: vec!["a request differs".to_owned()], missed: 0 };
        all.push(Mutant::of(trial, "the replay differs", |mutant| mutant.replay = Some(differs)));
    }
    all
}

pub(super) fn tool(name: &str, arguments: &str, does: Doing) -> Step {
    Step::Tool { tool: name.to_owned(), arguments: arguments.to_owned(), does, is_error: None }
}
