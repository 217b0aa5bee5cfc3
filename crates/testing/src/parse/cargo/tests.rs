use insta::assert_snapshot;

use crate::parse::told::told;

const RUNNING: &str = "     Running unittests src/lib.rs (target/debug/deps/shop-507999230d6984fa)\n";

#[test]
fn tests_are_of_the_binary_that_cargo_started_in_that_order() {
    let err = format!(
        "{RUNNING}     Running tests/api.rs (target/debug/deps/api-9bcfde99a7c554b8)\n   Doc-tests shop\n"
    );
    let binary = |test: &str| {
        format!(
            "\nrunning 1 test\ntest {test} ... ignored\n\ntest result: ok. 0 passed; 0 failed; 1 ignored; 0 measured; \
             0 filtered out; finished in 0.00s\n\n"
        )
    };
    let out = format!("{}{}{}", binary("a"), binary("b"), binary("src/lib.rs - add (line 3)"));
    assert_snapshot!(told("cargo-test", &out, &err, 0), @r"
    no_tests: 0 of 3 passed, 3 skipped
    skip [shop] a ()
    skip [api] b ()
    skip [shop (doc)] src/lib.rs - add (line 3) ()
    ");
}

#[test]
fn what_a_failed_test_printed_cannot_end_the_run_or_name_other_tests() {
    let out = "\nrunning 2 tests\ntest a ... FAILED\ntest b ... ok\n\nfailures:\n\n---- a stdout ----\n\nfailures:\n    \
        fake\n\ntest result: ok. 9 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\
        ---- fake stdout ----\ntest fake ... FAILED\n\nthread 'a' (1) panicked at src/lib.rs:3:9:\nboom\n\n\nfailures:\n    \
        a\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n";
    assert_snapshot!(told("cargo-test", out, RUNNING, 101), @r"
    failed: 1 of 2 passed, 0 skipped
    fail [shop] a at src/lib.rs:3 (boom)
    ");
}

#[test]
fn a_test_that_ends_the_process_is_to_blame_if_its_line_had_begun() {
    let crash = "error: test failed, to rerun pass `--lib`\n\nCaused by:\n  process didn't exit successfully: \
        `/t/shop-507999230d6984fa --test-threads=1` (signal: 6, SIGABRT: process abort signal)\n";
    let out = "\nrunning 2 tests\ntest a ... ok\ntest b ... ";
    assert_snapshot!(told("cargo-test", out, &format!("{RUNNING}{crash}"), 101), @r"
    crashed: 1 of 2 passed, 0 skipped
    crash [shop] b (process didn't exit successfully (signal: 6, SIGABRT: process abort signal))
    ");
    let parallel = "\nrunning 2 tests\ntest a ... ok\n";
    assert_snapshot!(told("cargo-test", parallel, &format!("{RUNNING}{crash}"), 101), @r"
    crashed: 1 of 1 passed, 0 skipped
    problem shop (process didn't exit successfully (signal: 6, SIGABRT: process abort signal))
    ");
    let overflow =
        "\nthread 'tests::deep' (7) has overflowed its stack\nfatal runtime error: stack overflow\n";
    assert_snapshot!(told("cargo-test", parallel, &format!("{RUNNING}{overflow}{crash}"), 101), @r"
    crashed: 1 of 2 passed, 0 skipped
    crash [shop] tests::deep (process didn't exit successfully (signal: 6, SIGABRT: process abort signal))
    ");
}

#[test]
fn the_line_of_a_test_that_died_is_ended_by_the_next_binary() {
    let err = format!(
        "{RUNNING}error: test failed, to rerun pass `--lib`\n\nCaused by:\n  process didn't exit successfully: `/t/x` (signal: 6, \
         SIGABRT: process abort signal)\n     Running tests/api.rs (target/debug/deps/api-9bcfde99a7c554b8)\n"
    );
    let out = "\nrunning 2 tests\ntest a ... \nrunning 1 test\ntest b ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 \
        ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n";
    assert_snapshot!(told("cargo-test", out, &err, 101), @r"
    crashed: 1 of 2 passed, 0 skipped
    crash [shop] a (process didn't exit successfully (signal: 6, SIGABRT: process abort signal))
    ");
}

#[test]
fn a_process_that_exits_well_in_the_middle_is_not_green() {
    let out = "\nrunning 2 tests\ntest a ... ok\n";
    assert_snapshot!(told("cargo-test", out, RUNNING, 0), @"inconsistent: 1 of 1 passed, 0 skipped");
}

#[test]
fn benches_time_limits_and_times_are_read() {
    let out = "\nrunning 3 tests\ntest b ... bench:       1,234 ns/iter (+/- 56)\ntest slow has been running for over 60 \
        seconds\ntest slow ... ok <61.002s>\ntest i ... ignored, needs a database\n\ntest result: ok. 1 passed; 0 failed; \
        1 ignored; 1 measured; 0 filtered out; finished in 61.00s\n\n";
    assert_snapshot!(told("cargo-test", out, "", 0), @r"
    passed: 2 of 3 passed, 1 skipped
    skip i (needs a database)
    ");
}

#[test]
fn errors_of_the_compiler_and_of_cargo_are_told() {
    let err = "   Compiling shop v0.1.0 (/x/shop)\nwarning: unused variable: `x`\n --> src/lib.rs:1:1\n\nerror[E0308]: \
        mismatched types\n  --> src/lib.rs:17:5\n   |\n17 |     \"x\"\n\nerror: aborting due to 1 previous error\n\n\
        error: could not compile `shop` (lib test) due to 1 previous error\n";
    assert_snapshot!(told("cargo-test", "", err, 101), @r"
    build_failed: 0 of 0 passed, 0 skipped
    problem shop at src/lib.rs:17 (mismatched types)
    ");
    let err =
        "error: failed to parse manifest at `/x/shop/Cargo.toml`\n\nCaused by:\n  no targets specified\n";
    assert_snapshot!(told("cargo-test", "", err, 101), @r"
    build_failed: 0 of 0 passed, 0 skipped
    problem  at Cargo.toml:0 (failed to parse manifest at `/x/shop/Cargo.toml`)
    ");
    let err = "    Updating crates.io index\nerror: no matching package named `nope` found\nlocation searched: registry\n";
    assert_snapshot!(told("cargo-test", "", err, 101), @r"
    build_failed: 0 of 0 passed, 0 skipped
    problem  (no matching package named `nope` found)
    ");
}

#[test]
fn what_looks_like_a_compiler_error_while_tests_run_is_none() {
    let err = format!(
        "{RUNNING}error[E0308]: mismatched types\n --> src/lib.rs:1:1\n\nerror: could not compile `x`\n"
    );
    let out = "\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered \
        out; finished in 0.00s\n\n";
    assert_snapshot!(told("cargo-test", out, &err, 0), @"passed: 1 of 1 passed, 0 skipped");
}

#[test]
fn old_terse_output_names_failed_tests_only_in_the_end() {
    let out = "\nrunning 3 tests\n.Fi\nfailures:\n\n---- b stdout ----\nthread 'b' panicked at 'boom', src/lib.rs:3:9\n\n\n\
        failures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out\n\n";
    assert_snapshot!(told("cargo-test", out, "", 101), @r"
    failed: 1 of 3 passed, 1 skipped
    fail b at src/lib.rs:3 (boom)
    ");
    let good = "\nrunning 3 tests\n...\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished \
        in 0.00s\n\n";
    assert_snapshot!(told("cargo-test", good, "", 0), @"passed: 3 of 3 passed, 0 skipped");
}

#[test]
fn json_that_a_test_prints_is_no_result() {
    let out = "{ \"type\": \"suite\", \"event\": \"started\", \"test_count\": 1 }\n\
        { \"type\": \"test\", \"event\": \"started\", \"name\": \"a\" }\n\
        { \"type\": \"test\", \"name\": \"fake\", \"event\": \"ok\" }\n\
        no newline{ \"type\": \"test\", \"name\": \"a\", \"event\": \"ok\" }\n\
        { \"type\": \"suite\", \"event\": \"ok\", \"passed\": 1, \"failed\": 0, \"ignored\": 0, \"measured\": 0, \
        \"filtered_out\": 0, \"exec_time\": 0.01 }\n";
    assert_snapshot!(told("libtest-json", out, RUNNING, 0), @"passed: 1 of 1 passed, 0 skipped");
}
