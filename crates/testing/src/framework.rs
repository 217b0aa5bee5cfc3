//! The runners we know by name.

use serde::{Deserialize, Serialize};

/// A test runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Framework {
    /// `go test`.
    Go,
    /// Jest.
    Jest,
    /// Vitest.
    Vitest,
    /// Mocha.
    Mocha,
    /// `node --test`.
    NodeTest,
    /// AVA.
    Ava,
    /// `bun test`.
    Bun,
    /// `deno test`.
    Deno,
    /// pytest.
    Pytest,
    /// Python's unittest.
    Unittest,
    /// `cargo test`.
    CargoTest,
    /// cargo-nextest.
    Nextest,
    /// `JUnit` run by Maven.
    Maven,
    /// `JUnit` run by Gradle.
    Gradle,
    /// `JUnit`'s own console launcher, or a report in `JUnit`'s XML from any runner.
    Junit,
    /// `RSpec`.
    Rspec,
    /// minitest and test-unit.
    Minitest,
    /// `PHPUnit`.
    Phpunit,
    /// `dotnet test`.
    Dotnet,
    /// `CTest`.
    Ctest,
    /// A `GoogleTest` binary.
    Gtest,
    /// A Catch2 binary.
    Catch2,
    /// Bats.
    Bats,
    /// Any producer of the Test Anything Protocol, `prove` included.
    Tap,
    /// Elixir's `ExUnit`.
    Exunit,
    /// Lua's busted.
    Busted,
    /// Any command: its exit status decides, its text gives hints.
    #[default]
    Generic,
    /// Not one runner: the results of several projects, together.
    Several,
}

impl Framework {
    /// Every runner, in the order of the list above.
    pub const ALL: [Self; 27] = [
        Self::Go,
        Self::Jest,
        Self::Vitest,
        Self::Mocha,
        Self::NodeTest,
        Self::Ava,
        Self::Bun,
        Self::Deno,
        Self::Pytest,
        Self::Unittest,
        Self::CargoTest,
        Self::Nextest,
        Self::Maven,
        Self::Gradle,
        Self::Junit,
        Self::Rspec,
        Self::Minitest,
        Self::Phpunit,
        Self::Dotnet,
        Self::Ctest,
        Self::Gtest,
        Self::Catch2,
        Self::Bats,
        Self::Tap,
        Self::Exunit,
        Self::Busted,
        Self::Generic,
    ];

    /// As users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Jest => "jest",
            Self::Vitest => "vitest",
            Self::Mocha => "mocha",
            Self::NodeTest => "node-test",
            Self::Ava => "ava",
            Self::Bun => "bun",
            Self::Deno => "deno",
            Self::Pytest => "pytest",
            Self::Unittest => "unittest",
            Self::CargoTest => "cargo-test",
            Self::Nextest => "nextest",
            Self::Maven => "maven",
            Self::Gradle => "gradle",
            Self::Junit => "junit",
            Self::Rspec => "rspec",
            Self::Minitest => "minitest",
            Self::Phpunit => "phpunit",
            Self::Dotnet => "dotnet",
            Self::Ctest => "ctest",
            Self::Gtest => "gtest",
            Self::Catch2 => "catch2",
            Self::Bats => "bats",
            Self::Tap => "tap",
            Self::Exunit => "exunit",
            Self::Busted => "busted",
            Self::Generic => "generic",
            Self::Several => "several",
        }
    }

    /// The one with this name, or with a name that people also use for it.
    pub fn named(name: &str) -> Option<Self> {
        let name = match name {
            "cargo" => "cargo-test",
            "cargo-nextest" => "nextest",
            "node" | "node:test" => "node-test",
            "prove" => "tap",
            ".net" => "dotnet",
            "py.test" => "pytest",
            other => other,
        };
        Self::ALL.into_iter().find(|framework| framework.name() == name)
    }
}

impl std::fmt::Display for Framework {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
