//! TypeScript's compiler, ESLint, Biome and Prettier.

use camino::Utf8Path;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Finder, Stage};
use crate::plan::{Planner, RunPlan, linked, node_program, node_version};

const ESLINT: [&str; 12] = [
    "eslint.config.js",
    "eslint.config.mjs",
    "eslint.config.cjs",
    "eslint.config.ts",
    "eslint.config.mts",
    "eslint.config.cts",
    ".eslintrc.js",
    ".eslintrc.cjs",
    ".eslintrc.json",
    ".eslintrc.yml",
    ".eslintrc.yaml",
    ".eslintrc",
];
const PRETTIER: [&str; 13] = [
    ".prettierrc",
    ".prettierrc.json",
    ".prettierrc.json5",
    ".prettierrc.yaml",
    ".prettierrc.yml",
    ".prettierrc.toml",
    ".prettierrc.js",
    ".prettierrc.cjs",
    ".prettierrc.mjs",
    "prettier.config.js",
    "prettier.config.cjs",
    "prettier.config.mjs",
    "prettier.config.ts",
];

/// Tools that a `package.json` configures.
#[derive(Default, Deserialize)]
struct Package {
    #[serde(rename = "eslintConfig")]
    eslint: Option<IgnoredAny>,
    prettier: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
struct TsConfig {
    #[serde(default)]
    references: Vec<IgnoredAny>,
}

pub(super) fn find(finder: &mut Finder<'_>) {
    for (root, file) in finder.outermost(&["tsconfig.json"]) {
        let text = finder.tree.read(&root, file).unwrap_or_default();
        // It may have comments; then the word tells.
        let references = serde_json::from_str::<TsConfig>(&text)
            .map_or_else(|_| text.contains("\"references\""), |config| !config.references.is_empty());
        finder.add(Stage::Build, "tsc", "tsc", (&root, file), |planner| {
            let mut plan = start(planner, "tsc");
            plan.args([
                if references { "--build" } else { "--project" },
                ".",
                "--noEmit",
                "--pretty",
                "false",
            ]);
            plan
        });
    }
    for (root, file) in configured(finder, &ESLINT, |package| package.eslint.is_some()) {
        finder.add(Stage::Lint, "eslint", "eslint-json", (&root, file), |planner| {
            let mut plan = start(planner, "eslint");
            plan.args([".", "--format", "json"]);
            if is_before_9(planner) {
                plan.args(["--ext", ".js,.jsx,.mjs,.cjs,.ts,.tsx"]);
            }
            plan
        });
    }
    for (root, file) in finder.outermost(&["biome.json", "biome.jsonc"]) {
        finder.add(Stage::Lint, "biome", "biome", (&root, file), |planner| {
            let mut plan = start(planner, "biome");
            plan.args(["check", "--colors=off", "--max-diagnostics=200"]);
            plan
        });
    }
    for (root, file) in configured(finder, &PRETTIER, |package| package.prettier.is_some()) {
        finder.add(Stage::Lint, "prettier", "prettier", (&root, file), |planner| {
            let mut plan = start(planner, "prettier");
            plan.args(["--check", ".", "--no-color"]);
            plan
        });
    }
}

/// Where one of these files is, or a `package.json` that says as much.
fn configured<'n>(
    finder: &Finder<'_>,
    names: &[&'n str],
    says: impl Fn(&Package) -> bool,
) -> Vec<(camino::Utf8PathBuf, &'n str)> {
    let mut found = finder.outermost(names);
    for (root, file) in finder.outermost(&["package.json"]) {
        let package = || {
            let text = finder.tree.read(&root, file)?;
            serde_json::from_str::<Package>(&text).ok()
        };
        let inside = |other: &Utf8Path| other.starts_with(&root) || root.starts_with(other);
        if !found.iter().any(|(other, _)| inside(other)) && package().is_some_and(|package| says(&package)) {
            found.push((root, file));
        }
    }
    found
}

fn start(planner: &Planner<'_>, name: &str) -> RunPlan {
    let mut plan = planner.start(node_program(planner, name), name);
    plan.readable = linked(planner);
    plan.set("NO_COLOR", "1");
    plan.set("FORCE_COLOR", "0");
    plan
}

/// Before its ninth version ESLint looks at `.js` alone unless it is told.
fn is_before_9(planner: &Planner<'_>) -> bool {
    let version = node_version(planner, "eslint");
    version.and_then(|version| version.split('.').next()?.parse::<u32>().ok()).is_some_and(|major| major < 9)
}
