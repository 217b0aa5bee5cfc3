//! The table of formats.

use super::by_line::ByLine;
use super::each_stream::EachStream;
use super::xml_report::XmlReport;
use super::{
    Format, Head, Parser, Trust, ava, bats, bun, busted, cargo, catch2_text, catch2_xml, ctest, deno, exunit,
    generic, go, gradle, gtest, jest_json, jest_text, junit, junit_console, libtest_json, maven, minitest,
    mocha, nextest, node_dot, node_spec, phpunit, pytest_json, pytest_log, pytest_text, reporter, rspec, tap,
    teamcity, test_unit, trx, unittest_text, vitest_text,
};
use crate::Framework;

/// The formats, the most telling first: the first that recognises a text gets it. The last recognises all.
pub(super) static FORMATS: &[Format] = &[
    Format {
        name: "go-json",
        framework: Framework::Go,
        trust: Trust::Stream,
        looks_like: go::looks_like_json,
        parser: || Box::new(go::GoJson::default()),
    },
    Format {
        name: "go-text",
        framework: Framework::Go,
        trust: Trust::Text,
        looks_like: go::looks_like_text,
        parser: || Box::new(go::GoText::default()),
    },
    Format {
        name: "trx",
        framework: Framework::Dotnet,
        trust: Trust::Report,
        looks_like: trx::looks_like,
        parser: || Box::<XmlReport<trx::Trx>>::default(),
    },
    Format {
        name: "catch2-xml",
        framework: Framework::Catch2,
        trust: Trust::Report,
        looks_like: catch2_xml::looks_like,
        parser: || Box::<XmlReport<catch2_xml::Catch2Xml>>::default(),
    },
    Format {
        name: "junit",
        framework: Framework::Junit,
        trust: Trust::Interchange,
        looks_like: junit::looks_like,
        parser: || Box::<XmlReport<junit::Junit>>::default(),
    },
    Format {
        name: "teamcity",
        framework: Framework::Phpunit,
        trust: Trust::Stream,
        looks_like: teamcity::looks_like,
        parser: || Box::<ByLine<teamcity::TeamCity>>::default(),
    },
    Format {
        name: "maven",
        framework: Framework::Maven,
        trust: Trust::Text,
        looks_like: maven::looks_like,
        parser: || Box::<ByLine<maven::Maven>>::default(),
    },
    Format {
        name: "gradle",
        framework: Framework::Gradle,
        trust: Trust::Text,
        looks_like: gradle::looks_like,
        parser: || Box::<ByLine<gradle::Gradle>>::default(),
    },
    Format {
        name: "junit-console",
        framework: Framework::Junit,
        trust: Trust::Text,
        looks_like: junit_console::looks_like,
        parser: || Box::<ByLine<junit_console::JunitConsole>>::default(),
    },
    Format {
        name: "phpunit",
        framework: Framework::Phpunit,
        trust: Trust::Text,
        looks_like: phpunit::looks_like,
        parser: || Box::<ByLine<phpunit::Phpunit>>::default(),
    },
    Format {
        name: "ctest",
        framework: Framework::Ctest,
        trust: Trust::Text,
        looks_like: ctest::looks_like,
        parser: || Box::<ByLine<ctest::Ctest>>::default(),
    },
    Format {
        name: "gtest",
        framework: Framework::Gtest,
        trust: Trust::Text,
        looks_like: gtest::looks_like,
        parser: || Box::<ByLine<gtest::Gtest>>::default(),
    },
    Format {
        name: "catch2",
        framework: Framework::Catch2,
        trust: Trust::Text,
        looks_like: catch2_text::looks_like,
        parser: || Box::<ByLine<catch2_text::Catch2Text>>::default(),
    },
    Format {
        name: "nextest-json",
        framework: Framework::Nextest,
        trust: Trust::Stream,
        looks_like: libtest_json::looks_like_nextest,
        parser: || Box::new(ByLine::<libtest_json::LibtestJson>::default()),
    },
    Format {
        name: "libtest-json",
        framework: Framework::CargoTest,
        trust: Trust::Stream,
        looks_like: libtest_json::looks_like,
        parser: || Box::new(ByLine::<cargo::CargoTest>::default()),
    },
    Format {
        name: "mocha-json-stream",
        framework: Framework::Mocha,
        trust: Trust::Stream,
        looks_like: mocha::looks_like_stream,
        parser: || Box::new(mocha::MochaStream::default()),
    },
    Format {
        name: "mocha-json",
        framework: Framework::Mocha,
        trust: Trust::Report,
        looks_like: mocha::looks_like_json,
        parser: || Box::new(mocha::MochaJson::default()),
    },
    Format {
        name: "rspec-json",
        framework: Framework::Rspec,
        trust: Trust::Report,
        looks_like: rspec::looks_like_json,
        parser: || Box::new(rspec::RspecJson::default()),
    },
    Format {
        name: "nextest-text",
        framework: Framework::Nextest,
        trust: Trust::Text,
        looks_like: nextest::looks_like,
        parser: || Box::new(EachStream::<nextest::NextestText>::default()),
    },
    Format {
        name: "cargo-test",
        framework: Framework::CargoTest,
        trust: Trust::Text,
        looks_like: cargo::looks_like,
        parser: || Box::new(ByLine::<cargo::CargoTest>::default()),
    },
    Format {
        name: "bun",
        framework: Framework::Bun,
        trust: Trust::Text,
        looks_like: bun::looks_like,
        parser: || Box::new(EachStream::<bun::Bun>::default()),
    },
    Format {
        name: "deno",
        framework: Framework::Deno,
        trust: Trust::Text,
        looks_like: deno::looks_like,
        parser: || Box::new(EachStream::<deno::Deno>::default()),
    },
    Format {
        name: "mocha",
        framework: Framework::Mocha,
        trust: Trust::Text,
        looks_like: mocha::looks_like_text,
        parser: || Box::new(EachStream::<mocha::MochaText>::default()),
    },
    Format {
        name: "node-dot",
        framework: Framework::NodeTest,
        trust: Trust::Text,
        looks_like: node_dot::looks_like,
        parser: || Box::new(EachStream::<node_dot::NodeDot>::default()),
    },
    Format {
        name: "node-spec",
        framework: Framework::NodeTest,
        trust: Trust::Text,
        looks_like: node_spec::looks_like,
        parser: || Box::new(EachStream::<node_spec::NodeSpec>::default()),
    },
    Format {
        name: "busted",
        framework: Framework::Busted,
        trust: Trust::Text,
        looks_like: busted::looks_like,
        parser: || Box::new(EachStream::<busted::Busted>::default()),
    },
    Format {
        name: "rspec",
        framework: Framework::Rspec,
        trust: Trust::Text,
        looks_like: rspec::looks_like_text,
        parser: || Box::new(EachStream::<rspec::RspecText>::default()),
    },
    Format {
        name: "test-unit",
        framework: Framework::Minitest,
        trust: Trust::Text,
        looks_like: test_unit::looks_like,
        parser: || Box::new(EachStream::<test_unit::TestUnit>::default()),
    },
    Format {
        name: "minitest",
        framework: Framework::Minitest,
        trust: Trust::Text,
        looks_like: minitest::looks_like,
        parser: || Box::new(EachStream::<minitest::Minitest>::default()),
    },
    Format {
        name: "exunit",
        framework: Framework::Exunit,
        trust: Trust::Text,
        looks_like: exunit::looks_like,
        parser: || Box::new(EachStream::<exunit::ExUnit>::default()),
    },
    Format {
        name: "pytest-events",
        framework: Framework::Pytest,
        trust: Trust::Stream,
        looks_like: |head| reporter::is_of("pytest", head),
        parser: || Box::new(reporter::Reporter::default()),
    },
    Format {
        name: "jest-events",
        framework: Framework::Jest,
        trust: Trust::Stream,
        looks_like: |head| reporter::is_of("jest", head),
        parser: || Box::new(reporter::Reporter::default()),
    },
    Format {
        name: "vitest-events",
        framework: Framework::Vitest,
        trust: Trust::Stream,
        looks_like: |head| reporter::is_of("vitest", head),
        parser: || Box::new(reporter::Reporter::default()),
    },
    Format {
        name: "rspec-events",
        framework: Framework::Rspec,
        trust: Trust::Stream,
        looks_like: |head| reporter::is_of("rspec", head),
        parser: || Box::new(reporter::Reporter::default()),
    },
    Format {
        name: "pytest-reportlog",
        framework: Framework::Pytest,
        trust: Trust::Stream,
        looks_like: pytest_log::looks_like,
        parser: || Box::new(pytest_log::PytestLog::default()),
    },
    Format {
        name: "pytest-json-report",
        framework: Framework::Pytest,
        trust: Trust::Report,
        looks_like: pytest_json::looks_like,
        parser: || Box::new(pytest_json::PytestJson::default()),
    },
    Format {
        name: "jest-json",
        framework: Framework::Jest,
        trust: Trust::Report,
        looks_like: jest_json::is_jest,
        parser: || Box::new(jest_json::JestJson::default()),
    },
    Format {
        name: "vitest-json",
        framework: Framework::Vitest,
        trust: Trust::Report,
        looks_like: jest_json::is_vitest,
        parser: || Box::new(jest_json::JestJson::default()),
    },
    Format {
        name: "pytest-text",
        framework: Framework::Pytest,
        trust: Trust::Text,
        looks_like: pytest_text::looks_like,
        parser: || Box::new(ByLine::<pytest_text::PytestText>::default()),
    },
    Format {
        name: "vitest-text",
        framework: Framework::Vitest,
        trust: Trust::Text,
        looks_like: vitest_text::looks_like,
        parser: || Box::new(ByLine::<vitest_text::VitestText>::default()),
    },
    Format {
        name: "jest-text",
        framework: Framework::Jest,
        trust: Trust::Text,
        looks_like: jest_text::looks_like,
        parser: || Box::new(EachStream::<jest_text::JestText>::default()),
    },
    Format {
        name: "unittest-text",
        framework: Framework::Unittest,
        trust: Trust::Text,
        looks_like: unittest_text::looks_like,
        parser: || Box::new(EachStream::<unittest_text::UnittestText>::default()),
    },
    Format {
        name: "bats-text",
        framework: Framework::Bats,
        trust: Trust::Text,
        looks_like: bats::looks_like,
        parser: || Box::new(bats::Bats::default()),
    },
    Format {
        name: "ava-text",
        framework: Framework::Ava,
        trust: Trust::Text,
        looks_like: ava::looks_like,
        parser: || Box::new(ava::Ava::default()),
    },
    Format {
        name: "prove",
        framework: Framework::Tap,
        trust: Trust::Text,
        looks_like: tap::looks_like_prove,
        parser: || Box::new(tap::Prove::default()),
    },
    tap_of("node-test-tap", Framework::NodeTest, tap_dialect!(NodeTest)),
    tap_of("vitest-tap", Framework::Vitest, tap_dialect!(Vitest)),
    tap_of("deno-tap", Framework::Deno, tap_dialect!(Deno)),
    tap_of("ava-tap", Framework::Ava, tap_dialect!(Ava)),
    tap_of("mocha-tap", Framework::Mocha, tap_dialect!(Mocha)),
    tap_of("pytest-tap", Framework::Pytest, tap_dialect!(Pytest)),
    tap_of("busted-tap", Framework::Busted, tap_dialect!(Busted)),
    tap_of("bats-tap", Framework::Bats, tap_dialect!(Bats)),
    tap_of("tap", Framework::Tap, tap_dialect!(Plain)),
    Format {
        name: "generic",
        framework: Framework::Generic,
        trust: Trust::ExitStatus,
        looks_like: |_| true,
        parser: || Box::new(EachStream::<generic::Generic>::default()),
    },
];

type LooksLike = fn(&Head<'_>) -> bool;
type Make = fn() -> Box<dyn Parser>;

/// TAP as one runner writes it.
const fn tap_of(name: &'static str, framework: Framework, (looks_like, parser): (LooksLike, Make)) -> Format {
    Format { name, framework, trust: Trust::Interchange, looks_like, parser }
}

/// How one dialect of TAP is recognised and read. A macro, since a function pointer cannot hold the dialect.
macro_rules! tap_dialect {
    ($dialect:ident) => {
        (
            |head| tap::looks_like(tap::Dialect::$dialect, head),
            || Box::new(tap::Tap::new(tap::Dialect::$dialect)),
        )
    };
}
use tap_dialect;
