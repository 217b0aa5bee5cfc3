//! `dotnet test`.

use super::{Planner, ReportFiles, RunPlan};

pub(super) fn plan(planner: &Planner<'_>) -> RunPlan {
    let mut plan = planner.start(planner.find("dotnet"), "dotnet");
    let results = planner.scratch("results");
    plan.args(["test", "--nologo", "--logger", "trx", "--results-directory", results.as_str()]);
    plan.reports.push(ReportFiles { path: results, glob: Some("**/*.trx".to_owned()) });
    plan.set("DOTNET_CLI_TELEMETRY_OPTOUT", "1");
    plan.set("DOTNET_NOLOGO", "1");
    let selection = planner.selection();
    let part = |text: &str| text.trim_matches('*').replace('*', "");
    let exact = selection.tests.iter().map(|test| format!("FullyQualifiedName={}", test.name));
    let names = selection.patterns.iter().map(|name| format!("FullyQualifiedName~{}", part(name.text())));
    let wanted: Vec<String> = exact.chain(names).collect();
    let unwanted: Vec<String> =
        selection.exclude.iter().map(|name| format!("FullyQualifiedName!~{}", part(name.text()))).collect();
    let wanted = (!wanted.is_empty()).then(|| format!("({})", wanted.join("|")));
    let filter: Vec<String> = wanted.into_iter().chain(unwanted).collect();
    if !filter.is_empty() {
        plan.args(["--filter".to_owned(), filter.join("&")]);
    }
    planner.no_coverage(&mut plan, "dotnet");
    plan
}
