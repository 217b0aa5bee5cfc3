//! cargo and clippy.

use super::{Finder, Stage};
use crate::detect::cargo_roots;
use crate::plan::{Planner, RunPlan, cargo};

pub(super) fn find(finder: &mut Finder<'_>) {
    for root in cargo_roots(finder.tree) {
        let place = (root.as_path(), "Cargo.toml");
        finder.add(Stage::Build, "cargo", "cargo", place, |planner| plan(planner, "check"));
        // A toolchain without it is no fault of the project, unless that configures it.
        let configured = finder.tree.first_of(&root, &["clippy.toml", ".clippy.toml"]);
        let place = (root.as_path(), configured.unwrap_or("Cargo.toml"));
        if configured.is_some() || finder.machine.has("cargo-clippy") {
            finder.add(Stage::Lint, "clippy", "clippy", place, |planner| plan(planner, "clippy"));
        } else {
            finder
                .notes
                .push("clippy is not installed; `rustup component add clippy` installs it".to_owned());
        }
    }
}

fn plan(planner: &Planner<'_>, command: &str) -> RunPlan {
    let mut plan = cargo(planner);
    plan.args([command, "--workspace", "--all-targets", "--message-format", "json"]);
    plan
}
