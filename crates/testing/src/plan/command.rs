//! Any command, of the project or of the user: what it prints is looked through for a format that we know.

use super::{Planner, RunPlan};

pub(super) fn plan(planner: &Planner<'_>) -> RunPlan {
    let invocation = &planner.candidate.invocation;
    let in_shell = invocation.shell.as_ref().map(|line| ["sh", "-c", line].map(str::to_owned).to_vec());
    let command = in_shell.as_ref().unwrap_or(&invocation.command);
    let Some((name, args)) = command.split_first() else {
        let mut plan = planner.start(None, planner.candidate.framework.name());
        plan.missing = Some("no command is known for it: name one".to_owned());
        return plan;
    };
    let mut plan = planner.start(planner.find(name), name);
    plan.args(args.iter().cloned());
    if !planner.selection().is_everything() {
        plan.note("a command cannot be told which tests to run: it runs all");
    }
    if planner.wish.parallel.is_some() {
        plan.note("a command cannot be told how many tests to run at a time");
    }
    planner.no_coverage(&mut plan, "a command");
    plan
}
