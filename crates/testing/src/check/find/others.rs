//! Ruby, PHP, .NET and shell scripts.

use camino::{Utf8Path, Utf8PathBuf};

use super::{Finder, Stage};
use crate::plan::bundled;

/// PHP looks at one file a time before its version 8.3.
const PHP_EACH: &str = r#"program=$1; shift; status=0
for file; do "$program" -l "$file" || status=1; done
exit $status"#;

pub(super) fn find(finder: &mut Finder<'_>) {
    ruby(finder);
    php(finder);
    dotnet(finder);
    shell(finder);
}

fn ruby(finder: &mut Finder<'_>) {
    for (root, file) in finder.outermost(&[".rubocop.yml"]) {
        finder.add(Stage::Lint, "rubocop", "rubocop-json", (&root, file), |planner| {
            let mut plan = bundled(planner, "rubocop");
            plan.args(["--format", "json"]);
            plan
        });
    }
}

fn php(finder: &mut Finder<'_>) {
    for (root, file) in finder.outermost(&["composer.json"]) {
        let files = finder.files_below(&root, &[".php"]);
        let files = finder.on_a_line("php", files);
        if files.is_empty() {
            continue;
        }
        finder.add(Stage::Build, "php", "php", (&root, file), |planner| {
            let found = planner.find("php");
            let program = found.clone().map_or_else(|| "php".to_owned(), Utf8PathBuf::into_string);
            let mut plan = planner.start(found.and_then(|_| planner.find("sh")), "php");
            plan.args(["-c", PHP_EACH, "php-lint", &program]);
            plan.args(files);
            plan
        });
    }
    for (root, file) in finder.outermost(&["phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon"]) {
        finder.add(Stage::Lint, "phpstan", "phpstan-json", (&root, file), |planner| {
            let local = planner.find("./vendor/bin/phpstan").or_else(|| planner.find("phpstan"));
            let mut plan = planner.start(local, "phpstan");
            plan.args(["analyse", "--error-format=json", "--no-progress", "--no-interaction"]);
            plan
        });
    }
}

fn dotnet(finder: &mut Finder<'_>) {
    let mut found: Vec<(Utf8PathBuf, String)> = Vec::new();
    for endings in [&[".sln", ".slnx"][..], &[".csproj", ".fsproj", ".vbproj"]] {
        for (directory, files) in finder.own_directories() {
            let project = files.iter().find(|name| endings.iter().any(|ending| name.ends_with(ending)));
            let is_part = |other: &Utf8Path| directory.starts_with(other);
            if let Some(name) = project.filter(|_| !found.iter().any(|(other, _)| is_part(other))) {
                found.push((directory.to_owned(), name.clone()));
            }
        }
    }
    for (root, file) in found {
        finder.add(Stage::Build, "dotnet", "dotnet", (&root, &file), |planner| {
            let mut plan = planner.start(planner.find("dotnet"), "dotnet");
            plan.args([
                "build",
                &file,
                "--nologo",
                "--verbosity",
                "quiet",
                "-consoleLoggerParameters:NoSummary",
            ]);
            plan.set("DOTNET_CLI_TELEMETRY_OPTOUT", "1");
            plan.set("DOTNET_NOLOGO", "1");
            plan.set("DOTNET_CLI_UI_LANGUAGE", "en");
            plan
        });
    }
}

/// Every repository has scripts; only who has installed the linter wants to hear of them.
fn shell(finder: &mut Finder<'_>) {
    let root = Utf8Path::new("");
    let files = finder.files_below(root, &[".sh", ".bash"]);
    let configured = finder.tree.first_of(root, &[".shellcheckrc"]);
    let installed = finder.machine.has("shellcheck");
    let Some(because) = configured.map(str::to_owned).or_else(|| files.first().cloned()) else { return };
    if files.is_empty() || (configured.is_none() && !installed) {
        return;
    }
    let files = finder.on_a_line("shellcheck", files);
    finder.add(Stage::Lint, "shellcheck", "shellcheck-json", (root, &because), |planner| {
        let mut plan = planner.start(planner.find("shellcheck"), "shellcheck");
        plan.arg("--format=json");
        plan.args(files);
        plan
    });
}
