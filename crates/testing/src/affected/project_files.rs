//! Files that every test may depend on, and files that none does.

/// What a file is to the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It says how to build or run: everything may depend on it.
    Build,
    /// It is there to be read by people.
    Document,
    /// Source, data, anything else.
    Other,
}

/// Manifests, locks and configurations, by their whole name.
const BUILD_FILES: &[&str] = &[
    ".babelrc",
    ".env",
    ".mocharc.cjs",
    ".mocharc.js",
    ".mocharc.json",
    ".mocharc.yaml",
    ".mocharc.yml",
    ".node-version",
    ".npmrc",
    ".nvmrc",
    ".python-version",
    ".rspec",
    ".ruby-version",
    ".swcrc",
    ".tool-versions",
    "CMakeLists.txt",
    "CMakePresets.json",
    "Cargo.lock",
    "Cargo.toml",
    "Directory.Build.props",
    "Directory.Packages.props",
    "Dockerfile",
    "Gemfile",
    "Gemfile.lock",
    "Justfile",
    "Makefile",
    "Pipfile",
    "Pipfile.lock",
    "Rakefile",
    "Taskfile.yml",
    "build.gradle",
    "build.gradle.kts",
    "build.rs",
    "bun.lock",
    "bun.lockb",
    "clippy.toml",
    "composer.json",
    "composer.lock",
    "deno.json",
    "deno.jsonc",
    "deno.lock",
    "docker-compose.yml",
    "global.json",
    "go.mod",
    "go.sum",
    "go.work",
    "go.work.sum",
    "gradle.lockfile",
    "gradle.properties",
    "jsconfig.json",
    "justfile",
    "libs.versions.toml",
    "mise.toml",
    "mix.exs",
    "mix.lock",
    "nextest.toml",
    "noxfile.py",
    "nuget.config",
    "package-lock.json",
    "package.json",
    "phpunit.xml",
    "phpunit.xml.dist",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "poetry.lock",
    "pom.xml",
    "pyproject.toml",
    "pytest.ini",
    "rust-toolchain",
    "rust-toolchain.toml",
    "settings.gradle",
    "settings.gradle.kts",
    "setup.cfg",
    "setup.py",
    "testing.yaml",
    "tox.ini",
    "uv.lock",
    "yarn.lock",
];

/// Their beginnings, where the ends differ.
const BUILD_BEGINNINGS: &[&str] = &[
    "babel.config.",
    "jest.config.",
    "jest.setup.",
    "requirements",
    "tsconfig",
    "vite.config.",
    "vitest.",
    "ava.config.",
];

pub(super) fn role(file: &str) -> Role {
    let name = file.rsplit('/').next().unwrap_or(file);
    let is_build = BUILD_FILES.binary_search(&name).is_ok()
        || BUILD_BEGINNINGS.iter().any(|start| name.starts_with(start))
        || [".csproj", ".fsproj", ".sln", ".cmake", ".gemspec"].iter().any(|end| name.ends_with(end))
        || file.starts_with(".cargo/")
        || file.starts_with(".rehearsal/config")
        || file.contains(".config/nextest");
    let is_document = ["README", "LICENSE", "CHANGELOG", "CONTRIBUTING", "AUTHORS", "CODEOWNERS", "NOTICE"]
        .iter()
        .any(|start| name.starts_with(start))
        || [".gitignore", ".gitattributes", ".editorconfig"].contains(&name)
        || is_prose(file)
        || file.starts_with(".github/")
        || file.starts_with(".rehearsal/");
    match (is_build, is_document) {
        (true, _) => Role::Build,
        (false, true) => Role::Document,
        (false, false) => Role::Other,
    }
}

/// Prose has its place at the top or with the documentation. Elsewhere it may be a template, or data of a test.
fn is_prose(file: &str) -> bool {
    let in_place = !file.contains('/') || file.starts_with("docs/") || file.starts_with("doc/");
    in_place && [".md", ".rst", ".adoc"].iter().any(|end| file.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_for_its_search() {
        assert!(BUILD_FILES.is_sorted());
    }

    #[test]
    fn a_lock_is_for_all_and_a_readme_for_none() {
        assert_eq!(role("web/package-lock.json"), Role::Build);
        assert_eq!(role("requirements-dev.txt"), Role::Build);
        assert_eq!(role("docs/README.md"), Role::Document);
        assert_eq!(role("docs/design/cart.md"), Role::Document);
        assert_eq!(role("src/cart.py"), Role::Other);
        assert_eq!(role("src/prompt.md"), Role::Other);
        assert_eq!(role("data/prices.json"), Role::Other);
    }
}
