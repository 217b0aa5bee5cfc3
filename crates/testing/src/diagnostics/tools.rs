//! The compilers and linters that we know, in one table.

use super::many_lines::{Biome, EslintStylish, Prettier, Ruff, Rustc, ShellCheck};
use super::one_line::{Compiler, Linter};
use super::python::PythonCompiler;
use super::{ByLine, DiagnosticParser, json::Json};

struct Tool {
    name: &'static str,
    /// Other names and programs that print the same.
    also: &'static [&'static str],
    /// Whether a text that begins like this may be of this tool; most can only be told by their name.
    looks_like: fn(&str) -> bool,
    parser: fn(&'static str) -> Box<dyn DiagnosticParser>,
}

/// The most telling first. The last one reads whatever has a place and a message.
static TOOLS: &[Tool] = &[
    Tool {
        name: "eslint-json",
        also: &[],
        looks_like: |text| text.contains("\"filePath\":") && text.contains("\"messages\":"),
        parser: |_| Box::new(Json::eslint()),
    },
    Tool {
        name: "ruff-json",
        also: &[],
        looks_like: |text| {
            text.contains("\"noqa_row\":") || text.contains("\"filename\":") && text.contains("\"row\":")
        },
        parser: |_| Box::new(Json::ruff()),
    },
    Tool {
        name: "pyright-json",
        also: &[],
        looks_like: |text| text.contains("\"generalDiagnostics\":"),
        parser: |_| Box::new(Json::pyright()),
    },
    Tool {
        name: "rubocop-json",
        also: &[],
        looks_like: |text| text.contains("\"rubocop_version\":"),
        parser: |_| Box::new(Json::rubocop()),
    },
    Tool {
        name: "phpstan-json",
        also: &[],
        looks_like: |text| text.contains("\"file_errors\":"),
        parser: |_| Box::new(Json::phpstan()),
    },
    Tool {
        name: "shellcheck-json",
        also: &[],
        looks_like: |text| text.contains("\"endColumn\":") && text.contains("\"level\":"),
        parser: |_| Box::new(Json::shellcheck()),
    },
    Tool {
        name: "rustc",
        also: &["cargo", "clippy", "cargo-clippy"],
        looks_like: |text| {
            let headed = |line: &str| line.starts_with("error[E") || line.starts_with("{\"reason\":\"");
            text.lines().any(headed)
                || text.lines().any(|line| line.trim_start().starts_with("--> ") && line.contains(".rs:"))
        },
        parser: |name| Box::new(ByLine::<Rustc>::new(name)),
    },
    Tool {
        name: "shellcheck",
        also: &[],
        looks_like: |text| {
            text.lines().any(|line| line.contains("^-- SC") || line.ends_with(']') && line.contains(" [SC"))
        },
        parser: |name| Box::new(ByLine::<ShellCheck>::new(name)),
    },
    Tool {
        name: "biome",
        also: &[],
        looks_like: |text| text.lines().any(|line| line.ends_with("━━━━")),
        parser: |name| Box::new(ByLine::<Biome>::new(name)),
    },
    Tool {
        name: "prettier",
        also: &[],
        looks_like: |text| text.lines().any(|line| line.starts_with("Checking formatting...")),
        parser: |name| Box::new(ByLine::<Prettier>::new(name)),
    },
    Tool {
        name: "eslint",
        also: &["standard", "xo"],
        looks_like: |text| {
            let counts = |line: &str| line.starts_with("✖ ") && line.contains(" problem");
            text.lines().any(counts)
        },
        parser: |name| Box::new(ByLine::<EslintStylish>::new(name)),
    },
    Tool {
        name: "ruff",
        also: &[],
        looks_like: |text| {
            text.lines().any(|line| line.trim_start().starts_with("--> ") && line.contains(".py:"))
        },
        parser: |name| Box::new(ByLine::<Ruff>::new(name)),
    },
    Tool {
        name: "tsc",
        also: &["typescript", "vue-tsc"],
        looks_like: |text| {
            text.lines().any(|line| line.contains(": error TS") || line.contains(" - error TS"))
        },
        parser: |name| Box::new(ByLine::<Compiler>::new(name)),
    },
    Tool {
        name: "msbuild",
        also: &["dotnet", "csc"],
        looks_like: |text| text.lines().any(|line| line.contains("): error CS") || line.ends_with("proj]")),
        parser: |name| Box::new(ByLine::<Compiler>::new(name)),
    },
    Tool {
        name: "mypy",
        also: &[],
        looks_like: |text| {
            text.lines().any(|line| line.starts_with("Found ") && line.contains(" source file"))
        },
        parser: |name| Box::new(ByLine::<Compiler>::new(name)),
    },
    Tool {
        name: "pyright",
        also: &["basedpyright"],
        looks_like: |text| text.lines().any(|line| line.contains(" - error: ") && line.contains(".py:")),
        parser: |name| Box::new(ByLine::<Compiler>::new(name)),
    },
    Tool {
        name: "python",
        also: &["python3", "compileall"],
        looks_like: |text| text.lines().any(|line| line.starts_with("*** Error compiling '")),
        parser: |name| Box::new(ByLine::<PythonCompiler>::new(name)),
    },
    named_compiler("gcc", &["clang", "cc", "g++", "clang++", "make", "cmake"]),
    named_compiler("go", &["go-build"]),
    named_compiler("javac", &["maven", "mvn", "gradle", "kotlinc"]),
    named_compiler("php", &["phpstan", "psalm"]),
    named_linter("go-vet", &["golangci-lint", "staticcheck", "revive"]),
    named_linter("flake8", &["pycodestyle", "pyflakes"]),
    named_linter("pylint", &[]),
    named_linter("rubocop", &["standardrb"]),
    named_compiler("generic", &[]),
];

/// A compiler that is only known by its name.
const fn named_compiler(name: &'static str, also: &'static [&'static str]) -> Tool {
    Tool { name, also, looks_like: |_| false, parser: |name| Box::new(ByLine::<Compiler>::new(name)) }
}

const fn named_linter(name: &'static str, also: &'static [&'static str]) -> Tool {
    Tool { name, also, looks_like: |_| false, parser: |name| Box::new(ByLine::<Linter>::new(name)) }
}

/// A parser of what this tool prints; of an unknown one, whatever has a place and a message.
pub(crate) fn parser_for(tool: &str) -> Box<dyn DiagnosticParser> {
    let known = TOOLS.iter().find(|known| known.name == tool || known.also.contains(&tool));
    let known = known.unwrap_or(&TOOLS[TOOLS.len() - 1]);
    (known.parser)(known.also.iter().find(|name| **name == tool).unwrap_or(&known.name))
}

/// Whether there is a parser for this tool in particular.
pub fn is_known_tool(tool: &str) -> bool {
    known_tools().any(|known| known == tool)
}

/// The names of all tools with parsers of their own.
pub fn known_tools() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().flat_map(|known| std::iter::once(known.name).chain(known.also.iter().copied()))
}

/// The tool that prints a text which begins like this.
pub(crate) fn tool_of(text: &str) -> &'static str {
    TOOLS.iter().find(|tool| (tool.looks_like)(text)).map_or("generic", |tool| tool.name)
}
