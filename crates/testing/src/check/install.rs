//! How to get a tool that is not there.

/// That a tool is missing, and what to do about it.
pub(super) fn with_advice(missing: &str, tool: &str) -> String {
    match how_to_install(tool) {
        Some(how) => format!("{missing}; {how}"),
        None => missing.to_owned(),
    }
}

/// What to do, for the tools that are got in one way everywhere.
fn how_to_install(tool: &str) -> Option<String> {
    let by = |command: &str| Some(format!("`{command}` installs it"));
    match tool {
        "cargo" => Some("rustup installs it: see https://rustup.rs".to_owned()),
        "clippy" => by("rustup component add clippy"),
        "go" | "go-vet" => Some("see https://go.dev/doc/install".to_owned()),
        "tsc" => by("npm install --save-dev typescript"),
        "eslint" => by("npm install --save-dev eslint"),
        "biome" => by("npm install --save-dev @biomejs/biome"),
        "prettier" => by("npm install --save-dev prettier"),
        "ruff" | "mypy" | "pyright" | "flake8" | "pylint" => by(&format!("pip install {tool}")),
        "rubocop" => by("gem install rubocop"),
        "phpstan" => by("composer require --dev phpstan/phpstan"),
        _ => None,
    }
}
