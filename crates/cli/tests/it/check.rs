//! `check`: build, lint and tests in one answer.

use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use crate::env::{Output, TestEnv};
use crate::json::{schema, validate};

const TESTS: &str = "testing: { command: \"printf '1..1\\\\nok 1 - adds\\\\n'\" }\n";

/// A program on the `PATH`, or with slashes one of the repository.
fn tool(env: &TestEnv, name: &str, script: &str) {
    let path = if name.contains('/') { env.repo.join(name) } else { env.scratch.join("bin").join(name) };
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn with_config(text: &str) -> TestEnv {
    let env = TestEnv::new();
    env.file(".rehearsal/config.yaml", text);
    env
}

/// A crate, and the cargo that runs this test.
fn with_crate(source: &str) -> TestEnv {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| env!("CARGO").to_owned());
    let toolchain = camino::Utf8Path::new(&cargo).parent().unwrap();
    let env = TestEnv::new();
    let path = format!("{}:{toolchain}", env.scratch.join("bin"));
    let env = env.var("PATH", &path);
    env.file("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    env.file("src/lib.rs", source);
    env
}

/// How long it took, and where its files are, is another every time.
fn shown(output: &Output) -> String {
    let mut text = String::new();
    for line in output.to_string().lines() {
        let line = match line.rsplit_once(" (") {
            Some((before, time))
                if time.ends_with("s)") && time.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                before
            }
            _ => line,
        };
        let line = line.split_once("state/tests/").map_or(line, |(before, _)| before);
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[test]
fn a_crate_that_does_not_compile_is_the_end_of_the_check() {
    let env = with_crate("pub fn one() -> u32 {\n    \"one\"\n}\n");
    env.file(".rehearsal/config.yaml", "check: { lint: [cargo clippy] }\n");
    assert_snapshot!(shown(&env.run(&["check"])), @r"
    src/lib.rs:2:5 error mismatched types: expected `u32`, found `&str` [E0308]

    ✗ build cargo  failed, 1 error
    – lint (clippy) did not run: the build did not pass: cargo failed
    – test did not run: the build did not pass: cargo failed
    [exit 3]
    ");
    let document = env.run(&["check", "--json"]).ends_with(3).document();
    validate(&schema(&env, "check"), &document);
    assert_eq!(document["verdict"], "failed");
    assert_eq!(document["counts"]["errors"], 1);
    assert_eq!(document["stages"][0]["diagnostics"][0]["file"], "src/lib.rs");
    let log = document["stages"][0]["output_file"].as_str().unwrap();
    assert!(std::fs::read_to_string(log).unwrap().contains("mismatched types"));
}

#[test]
fn a_warning_is_told_once_and_stops_nothing() {
    let env = with_crate("pub fn one() -> u32 {\n    let unused = 2;\n    1\n}\n");
    // The linter says again what the compiler has said.
    let again = "check: { lint: ['cargo check --message-format json --offline'] }\n";
    env.file(".rehearsal/config.yaml", again);
    assert_snapshot!(shown(&env.run(&["check", "--no-test"])), @r"
    src/lib.rs:2:9 warning unused variable: `unused` [unused_variables]

    ✓ build cargo  passed, 1 warning
    ✓ lint  cargo  passed
    ");
}

#[test]
fn a_build_of_make_and_gcc_is_read() {
    let path = std::env::var("PATH").unwrap();
    let has = |program: &str| std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    if !has("gcc") || !has("make") {
        return;
    }
    let env = TestEnv::new().var("PATH", &path);
    env.file("Makefile", "shop.o: shop.c\n\tgcc -Wall -c shop.c\n");
    env.file("shop.c", "int one(void) { int unused; return two; }\n");
    let output = env.run(&["check", "--build"]).ends_with(3);
    let said = shown(&output);
    assert!(said.contains("shop.c:1:36 error ‘two’ undeclared"), "{said}");
    assert!(said.contains("✗ build make  failed, 1 error, "), "{said}");
}

#[test]
fn all_linters_run_and_what_they_say_is_sorted_by_file() {
    let env = TestEnv::new();
    env.file("web/eslint.config.js", "").file("web/a.js", "").file("ruff.toml", "").file("b.py", "");
    tool(
        &env,
        "web/node_modules/.bin/eslint",
        r#"printf '[{"filePath":"%s/a.js","messages":[{"ruleId":"no-undef","severity":2,"message":"x is not defined","line":3,"column":5},{"ruleId":"semi","severity":1,"message":"Missing semicolon","line":1,"column":2}]}]' "$PWD"; exit 1"#,
    );
    tool(
        &env,
        "ruff",
        r#"printf '[{"code":"F401","message":"unused import","filename":"%s/b.py","location":{"row":1,"column":8}}]' "$PWD"; exit 1"#,
    );
    let output = env.run(&["check", "--lint"]).ends_with(3);
    assert_snapshot!(shown(&output), @r"
    web/a.js:1:2 warning Missing semicolon [semi]
    web/a.js:3:5 error x is not defined [no-undef]

    b.py:1:8 warning unused import [F401]

    ✗ lint  eslint in web  failed, 1 error, 1 warning
    ✗ lint  ruff  failed, 1 warning
    [exit 3]
    ");
}

#[test]
fn build_lint_and_tests_that_pass_are_a_success() {
    let env = with_config(&format!("check: {{ build: ['true'], lint: [] }}\n{TESTS}"));
    assert_snapshot!(shown(&env.run(&["check"]).ends_with(0)), @r"
    ✓ build true  passed
    ✓ test  tap  passed, 1/1 passed
    ");
}

#[test]
fn tests_that_fail_are_told_by_name() {
    let env = with_config(
        "check: { build: [], lint: [] }\ntesting: { command: \"printf '1..2\\\\nok 1 - adds\\\\nnot ok 2 - halves\\\\n'; exit 1\" }\n",
    );
    assert_snapshot!(shown(&env.run(&["check"])), @r"
    test failed halves
    `rehearsal test` says more of these

    ✗ test  tap  failed, 1/2 passed
    [exit 3]
    ");
}

#[test]
fn what_fails_without_a_word_that_can_be_read_is_red_with_its_last_lines() {
    let env =
        with_config("check: { build: ['echo The moon is full; echo stopping >&2; exit 7'], lint: [] }\n");
    let output = env.run(&["check", "--no-test"]).ends_with(3);
    let said = shown(&output);
    for part in [
        "  │ The moon is full\n",
        "  │ stopping\n",
        "✗ build echo  failed: it exited with 7, and no diagnostic says why",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let document = env.run(&["check", "--no-test", "--json"]).document();
    assert_eq!(document["success"], false);
    assert_eq!(document["stages"][0]["exit_code"], 7);
}

#[test]
fn a_tool_that_is_configured_and_not_installed_says_how_to_get_it() {
    let env = TestEnv::new();
    env.file("eslint.config.js", "");
    assert_snapshot!(shown(&env.run(&["check", "--no-test"])), @r"
    – lint  eslint  tool missing: `eslint` is not installed; `npm install --save-dev eslint` installs it
    [exit 2]
    ");
    let env = with_config("check: { build: [frobnicate --all] }\n");
    let output = env.run(&["check", "--build"]).ends_with(2);
    assert!(
        shown(&output).contains("– build frobnicate  tool missing: a command was not found: "),
        "{output}"
    );
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let env = with_config("check: { build: ['echo begun; sleep 600'], lint: ['true'] }\n");
    let said = shown(&env.run(&["check", "--no-test", "--timeout", "1s"]).ends_with(124));
    for part in [
        "  │ begun\n",
        "✗ build echo  timed out: it took longer than it may\n",
        "– lint (true) did not run: the build did not pass: echo timed out\n",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_repository_with_nothing_to_check_is_not_called_good() {
    assert_snapshot!(shown(&TestEnv::new().run(&["check"])), @r"
    – test did not run: no tests were found
    hint: name commands under `check.build` and `check.lint` in .rehearsal/config.yaml
    [exit 3]
    ");
    let built = with_config("check: { build: ['true'] }\n");
    assert_snapshot!(shown(&built.run(&["check"])), @r"
    ✓ build true  passed
    – test did not run: no tests were found
    hint: `--no-test` leaves the tests out
    [exit 3]
    ");
}

#[test]
fn output_of_any_kind_cannot_touch_the_terminal_or_break_the_report() {
    let env = TestEnv::new();
    let mut hostile = b"\x1b]0;owned\x07\x1b[2Ja.c:1:1: error: \x1b[31mred\x1b[0m\x00\n".to_vec();
    hostile.extend(b"a.c:99999999999999999999:1: error: far\n\xff\xfe\n:::\na.c:1:\n");
    hostile.extend(std::iter::repeat_n(b'x', 3 << 20));
    hostile.extend(b"\n");
    for line in 0..20_000 {
        hostile.extend(format!("b.c:{line}:1: warning: many\n").bytes());
    }
    env.file("printed.txt", &hostile);
    env.file(".rehearsal/config.yaml", "check: { build: ['cat printed.txt; exit 1'] }\n");
    let output = env.run(&["check", "--build"]).ends_with(3);
    assert!(output.all().chars().all(|c| !c.is_control() || c == '\n'), "{:.300}", output.all());
    assert!(output.stdout.contains("a.c:1:1 error red"), "{:.300}", output.stdout);
    let document = env.run(&["check", "--build", "--json"]).document();
    validate(&schema(&env, "check"), &document);
    assert_eq!(document["counts"]["warnings"], 20_000);
    assert!(document["stages"][0]["diagnostics"].as_array().unwrap().len() < 600);
}

#[test]
fn an_agent_is_told_what_to_mend_within_its_budget() {
    let env = TestEnv::new();
    let lines: String =
        (1..=200).map(|line| format!("src/a.c:{line}:1: error: wrong thing {line}\n")).collect();
    env.file("printed.txt", lines);
    env.file(".rehearsal/config.yaml", "check: { build: ['cat printed.txt; exit 2'] }\n");
    let output = env.run(&["check", "--agent", "--budget", "100"]).ends_with(3);
    assert!(output.stdout.len() <= 400, "{} bytes: {output}", output.stdout.len());
    assert!(output.stdout.starts_with("Check: FAILED\nbuild cat: failed, 200 errors ("), "{output}");
    assert!(output.stdout.contains("src/a.c:1:1: error: wrong thing 1\n"), "{output}");
    assert!(output.stdout.contains("… and 19"), "{output}");
}

#[test]
fn recorded_output_is_read() {
    let env = TestEnv::without_repository();
    env.file("tsc.log", "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.\n");
    assert_snapshot!(shown(&env.run(&["check", "--from", "tsc.log"])), @r"
    src/a.ts:3:5 error Type 'string' is not assignable to type 'number'. [TS2322]

    ✗ build tsc  failed, 1 error
    [exit 3]
    ");
    env.file("vet.log", "./a.go:5:2: unreachable code\n");
    let vet = ["check", "--from", "vet.log", "--tool", "go-vet"];
    assert_snapshot!(shown(&env.run(&[&vet[..], &["--exit", "1"]].concat())), @r"
    a.go:5:2 warning unreachable code

    ✗ lint  go-vet  failed, 1 warning
    [exit 3]
    ");
    assert_snapshot!(shown(&env.run(&vet)), @r"
    a.go:5:2 warning unreachable code

    ✓ lint  go-vet  passed, 1 warning
    note: go-vet: how it exited is not known: only errors count
    ");
    env.file("odd.log", "Everything is fine, is it not?\n");
    assert_snapshot!(shown(&env.run(&["check", "--from", "odd.log"])), @r"
      │ Everything is fine, is it not?
      all of it: [REPO]/odd.log

    ✗ lint  unknown  failed: no diagnostic was recognised, and how it exited is not known
    [exit 3]
    ");
    env.run(&["check", "--from", "odd.log", "--exit", "0"]).ends_with(0);
    assert_snapshot!(env.run(&["check", "--from", "none.log"]), @r"
    [stderr]
    error: there is no file `none.log`
    [exit 2]
    ");
    env.run(&["check", "--from", "tsc.log", "--tool", "eslnt"]).ends_with(2).says("did you mean `eslint`?");
}

#[test]
fn what_would_run_can_be_seen_before() {
    let env = TestEnv::new();
    env.file("tsconfig.json", "{}").file("a.py", "").file("setup.cfg", "[mypy]\nfiles = a.py\n");
    tool(&env, "python3", "exit 9");
    tool(&env, "mypy", "exit 9");
    assert_snapshot!(env.must(&["check", "--explain"]), @r"
    build: tsc in .
      found by tsconfig.json
      cannot run: tsc --project . --noEmit --pretty false
      because `tsc` is not installed; `npm install --save-dev typescript` installs it
    build: python in .
      found by setup.cfg
      would run: [SCRATCH]/bin/python3 -m compileall -q -i SCRATCH/1/files.txt
    lint: mypy in .
      found by setup.cfg
      would run: [SCRATCH]/bin/mypy --no-color-output --no-error-summary --show-column-numbers --no-pretty
    test: `rehearsal test --explain` says how
    ");
}
