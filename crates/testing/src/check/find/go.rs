//! Go: its compiler, and vet or golangci-lint.

use super::{Finder, Stage};
use crate::plan::{Planner, RunPlan};

const GOLANGCI: [&str; 4] = [".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"];

pub(super) fn find(finder: &mut Finder<'_>) {
    let modules: Vec<_> = finder
        .own_directories()
        .map(|(path, _)| path)
        .filter(|path| finder.tree.has(path, "go.mod"))
        .map(camino::Utf8Path::to_owned)
        .collect();
    for root in modules {
        let place = (root.as_path(), "go.mod");
        // A module with one command would leave its binary behind.
        finder.add(Stage::Build, "go", "go", place, |planner| {
            plan(planner, "go", &["build", "-o", "/dev/null", "./..."])
        });
        let configured = finder.tree.first_of(&root, &GOLANGCI);
        match configured {
            Some(file) if finder.machine.has("golangci-lint") => {
                finder.add(Stage::Lint, "golangci-lint", "golangci-lint", (&root, file), |planner| {
                    let mut plan = plan(planner, "golangci-lint", &["run"]);
                    plan.writable
                        .extend(planner.machine.cache("GOLANGCI_LINT_CACHE", ".cache/golangci-lint"));
                    plan
                });
            }
            _ => {
                if let Some(file) = configured {
                    finder
                        .notes
                        .push(format!("`{file}` is there, and golangci-lint is not installed: go vet runs"));
                }
                finder.add(Stage::Lint, "go-vet", "go-vet", place, |planner| {
                    plan(planner, "go", &["vet", "./..."])
                });
            }
        }
    }
}

fn plan(planner: &Planner<'_>, program: &str, args: &[&str]) -> RunPlan {
    let mut plan = planner.start(planner.find(program), program);
    plan.writable.extend(planner.machine.cache("GOCACHE", ".cache/go-build"));
    plan.args(args.iter().copied());
    plan
}
