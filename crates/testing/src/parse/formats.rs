//! The table of formats.

use super::Trust::{self, ExitStatus, Interchange, Report, Stream, Text};
use super::by_line::ByLine;
use super::each_stream::EachStream;
use super::text_spec::TextFormat;
use super::xml::XmlReport;
use super::{
    Format, Head, Parser, Reader, ava, bats, bun, busted, cargo, catch2_text, catch2_xml, ctest, deno,
    exunit, generic, go, gradle, gtest, jest_json, jest_text, junit, junit_console, libtest_json, maven,
    minitest, mocha, nextest, node_dot, node_spec, phpunit, pytest_json, pytest_log, pytest_text, reporter,
    rspec, tap, teamcity, test_unit, trx, unittest_text, vitest_text,
};
use crate::Framework::{
    self, Ava, Bats, Bun, Busted, CargoTest, Catch2, Ctest, Deno, Dotnet, Exunit, Generic, Go, Gradle, Gtest,
    Jest, Junit, Maven, Minitest, Mocha, Nextest, NodeTest, Phpunit, Pytest, Rspec, Tap, Unittest, Vitest,
};

/// The formats, the most telling first: the first that recognises a text gets it. The last recognises all.
pub(super) static FORMATS: &[Format] = &[
    format::<go::GoJson>("go-json", Go, Stream, go::looks_like_json),
    format::<go::GoText>("go-text", Go, Text, go::looks_like_text),
    format::<XmlReport<trx::Trx>>("trx", Dotnet, Report, trx::looks_like),
    format::<XmlReport<catch2_xml::Catch2Xml>>("catch2-xml", Catch2, Report, catch2_xml::looks_like),
    format::<XmlReport<junit::Junit>>("junit", Junit, Interchange, junit::looks_like),
    format::<ByLine<teamcity::TeamCity>>("teamcity", Phpunit, Stream, teamcity::looks_like),
    format::<ByLine<maven::Maven>>("maven", Maven, Text, maven::looks_like),
    format::<ByLine<gradle::Gradle>>("gradle", Gradle, Text, gradle::looks_like),
    format::<ByLine<junit_console::JunitConsole>>("junit-console", Junit, Text, junit_console::looks_like),
    format::<ByLine<phpunit::Phpunit>>("phpunit", Phpunit, Text, phpunit::looks_like),
    format::<ByLine<ctest::Ctest>>("ctest", Ctest, Text, ctest::looks_like),
    format::<ByLine<gtest::Gtest>>("gtest", Gtest, Text, gtest::looks_like),
    format::<ByLine<catch2_text::Catch2Text>>("catch2", Catch2, Text, catch2_text::looks_like),
    format::<ByLine<libtest_json::LibtestJson>>(
        "nextest-json",
        Nextest,
        Stream,
        libtest_json::looks_like_nextest,
    ),
    format::<ByLine<cargo::CargoTest>>("libtest-json", CargoTest, Stream, libtest_json::looks_like),
    format::<ByLine<mocha::MochaStream>>("mocha-json-stream", Mocha, Stream, mocha::looks_like_stream),
    format::<mocha::MochaJson>("mocha-json", Mocha, Report, mocha::looks_like_json),
    format::<rspec::RspecJson>("rspec-json", Rspec, Report, rspec::looks_like_json),
    format::<EachStream<nextest::NextestText>>("nextest-text", Nextest, Text, nextest::looks_like),
    format::<ByLine<cargo::CargoTest>>("cargo-test", CargoTest, Text, cargo::looks_like),
    text("bun", Bun, &bun::BUN),
    format::<EachStream<deno::Deno>>("deno", Deno, Text, deno::looks_like),
    format::<EachStream<mocha::MochaText>>("mocha", Mocha, Text, mocha::looks_like_text),
    format::<EachStream<node_dot::NodeDot>>("node-dot", NodeTest, Text, node_dot::looks_like),
    format::<EachStream<node_spec::NodeSpec>>("node-spec", NodeTest, Text, node_spec::looks_like),
    text("busted", Busted, &busted::BUSTED),
    format::<EachStream<rspec::RspecText>>("rspec", Rspec, Text, rspec::looks_like_text),
    text("test-unit", Minitest, &test_unit::TEST_UNIT),
    text("minitest", Minitest, &minitest::MINITEST),
    format::<EachStream<exunit::ExUnit>>("exunit", Exunit, Text, exunit::looks_like),
    format::<ByLine<reporter::Reporter>>("pytest-events", Pytest, Stream, |head| {
        reporter::is_of("pytest", head)
    }),
    format::<ByLine<reporter::Reporter>>("jest-events", Jest, Stream, |head| reporter::is_of("jest", head)),
    format::<ByLine<reporter::Reporter>>("vitest-events", Vitest, Stream, |head| {
        reporter::is_of("vitest", head)
    }),
    format::<ByLine<reporter::Reporter>>("rspec-events", Rspec, Stream, |head| {
        reporter::is_of("rspec", head)
    }),
    format::<ByLine<pytest_log::PytestLog>>("pytest-reportlog", Pytest, Stream, pytest_log::looks_like),
    format::<pytest_json::PytestJson>("pytest-json-report", Pytest, Report, pytest_json::looks_like),
    format::<jest_json::JestJson>("jest-json", Jest, Report, jest_json::is_jest),
    format::<jest_json::JestJson>("vitest-json", Vitest, Report, jest_json::is_vitest),
    format::<ByLine<pytest_text::PytestText>>("pytest-text", Pytest, Text, pytest_text::looks_like),
    format::<ByLine<vitest_text::VitestText>>("vitest-text", Vitest, Text, vitest_text::looks_like),
    format::<EachStream<jest_text::JestText>>("jest-text", Jest, Text, jest_text::looks_like),
    format::<EachStream<unittest_text::UnittestText>>(
        "unittest-text",
        Unittest,
        Text,
        unittest_text::looks_like,
    ),
    text("bats-text", Bats, &bats::BATS),
    text("ava-text", Ava, &ava::AVA),
    format::<tap::Prove>("prove", Tap, Text, tap::looks_like_prove),
    tap_of("node-test-tap", NodeTest, tap_dialect!(NodeTest)),
    tap_of("vitest-tap", Vitest, tap_dialect!(Vitest)),
    tap_of("deno-tap", Deno, tap_dialect!(Deno)),
    tap_of("ava-tap", Ava, tap_dialect!(Ava)),
    tap_of("mocha-tap", Mocha, tap_dialect!(Mocha)),
    tap_of("pytest-tap", Pytest, tap_dialect!(Pytest)),
    tap_of("busted-tap", Busted, tap_dialect!(Busted)),
    tap_of("bats-tap", Bats, tap_dialect!(Bats)),
    tap_of("tap", Tap, tap_dialect!(Plain)),
    format::<EachStream<generic::Generic>>("generic", Generic, ExitStatus, |_| true),
];

type LooksLike = fn(&Head<'_>) -> bool;
type Make = fn() -> Box<dyn Parser>;

const fn format<P: Parser + Default + 'static>(
    name: &'static str,
    framework: Framework,
    trust: Trust,
    looks_like: LooksLike,
) -> Format {
    let reader = Reader::Own { looks_like, parser: || Box::<P>::default() };
    Format { name, framework, trust, reader }
}

/// What a runner prints for people, read by rules.
const fn text(name: &'static str, framework: Framework, spec: &'static TextFormat) -> Format {
    Format { name, framework, trust: Text, reader: Reader::Spec(spec) }
}

/// TAP as one runner writes it.
const fn tap_of(name: &'static str, framework: Framework, (looks_like, parser): (LooksLike, Make)) -> Format {
    Format { name, framework, trust: Interchange, reader: Reader::Own { looks_like, parser } }
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
