use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use insta::assert_snapshot;

use super::{Machine, Pattern, RunPlan, Selection, Wish, plan};
use crate::{Framework, TestCase, detect};

/// A repository on a machine with the programs that are asked for.
struct World {
    keep: tempfile::TempDir,
    root: Utf8PathBuf,
    variables: BTreeMap<String, String>,
}

fn world(files: &[(&str, &str)], programs: &[&str]) -> World {
    let keep = tempfile::tempdir().unwrap();
    let top = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
    let world = World {
        root: top.join("repo"),
        variables: BTreeMap::from([
            ("PATH".to_owned(), top.join("bin").into_string()),
            ("HOME".to_owned(), top.join("home").into_string()),
        ]),
        keep,
    };
    for (path, text) in files {
        World::write(&world.root.join(path), text);
    }
    for program in programs {
        World::write(&top.join("bin").join(program), "");
    }
    world
}

impl World {
    fn write(path: &Utf8Path, text: &str) {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
        fs_err::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn plans(&self, wish: &Wish) -> Vec<RunPlan> {
        let machine = Machine::new(self.variables.clone());
        let detection = detect(&self.root, &|program| machine.has(program));
        let scratch = Utf8Path::new("/scratch");
        detection
            .chosen()
            .flat_map(|candidate| plan(candidate, wish, &machine, &self.root, scratch))
            .collect()
    }

    /// As `--explain` shows it, with the places of this test's world left out.
    fn told(&self, wish: &Wish) -> String {
        let mut text = String::new();
        for plan in self.plans(wish) {
            for command in plan.prepare.iter().chain([&plan.command]) {
                text += &format!("{command}\n");
            }
            if let Some(missing) = &plan.missing {
                text += &format!("  missing: {missing}\n");
            }
            for note in &plan.notes {
                text += &format!("  note: {note}\n");
            }
            for writable in &plan.writable {
                text += &format!("  writable: {writable}\n");
            }
        }
        text.replace(self.keep.path().canonicalize().unwrap().to_str().unwrap(), "")
    }
}

fn only(patterns: &[&str], exclude: &[&str]) -> Wish {
    let patterns_of = |texts: &[&str]| texts.iter().map(|text| Pattern((*text).to_owned())).collect();
    let selection =
        Selection { patterns: patterns_of(patterns), exclude: patterns_of(exclude), ..Selection::default() };
    Wish { selection, ..Wish::default() }
}

fn again(package: &str, name: &str) -> Wish {
    let test = TestCase { package: package.to_owned(), name: name.to_owned(), ..TestCase::default() };
    Wish { selection: Selection { tests: vec![test], ..Selection::default() }, ..Wish::default() }
}

fn measured() -> Wish {
    Wish { parallel: Some(4), coverage: true, ..Wish::default() }
}

#[test]
fn go_is_told_names_packages_and_what_to_leave_out() {
    let world = world(&[("go.mod", ""), ("cart/cart_test.go", "")], &["go"]);
    assert_snapshot!(world.told(&Wish::default()), @"
    /bin/go test -json ./...
      writable: /home/.cache/go-build
    ");
    assert_snapshot!(world.told(&only(&["TestCart*/empty*", "Sum"], &["TestIntegration*"])), @"
    /bin/go test -json -run '^TestCart.*$/^empty.*$|Sum' -skip '^TestIntegration.*$' ./...
      writable: /home/.cache/go-build
    ");
    assert_snapshot!(world.told(&only(&["cart/cart_test.go"], &[])), @"
    /bin/go test -json ./cart
      note: go selects packages, not files: all tests of the package of `cart/cart_test.go` are run
      writable: /home/.cache/go-build
    ");
    assert_snapshot!(world.told(&again("example.com/cart", "TestSum/negative numbers")), @"
    /bin/go test -json -run '^(TestSum)$' example.com/cart
      writable: /home/.cache/go-build
    ");
    assert_snapshot!(world.told(&measured()), @"
    /bin/go test -json -parallel=4 -p=4 -coverprofile=/scratch/cover.out ./...
      writable: /home/.cache/go-build
    ");
}

#[test]
fn javascript_runners_are_called_themselves_with_what_their_script_gives_them() {
    let jest = world(
        &[
            ("package.json", r#"{"scripts":{"test":"eslint . && jest --config jest.ci.json --verbose"}}"#),
            ("node_modules/.bin/jest", ""),
        ],
        &[],
    );
    assert_snapshot!(jest.told(&only(&["adds*", "test/cart.test.js"], &["slow"])), @"/repo/node_modules/.bin/jest --config jest.ci.json --ci --no-watchman --reporters=default --reporters=/scratch/jest_reporter.cjs --testLocationInResults --json --outputFile=/scratch/jest.json '--testNamePattern=^(?!.*slow)(?=.*(?:^adds.*$))' test/cart.test.js");
    assert_snapshot!(jest.told(&measured()), @"/repo/node_modules/.bin/jest --config jest.ci.json --ci --no-watchman --reporters=default --reporters=/scratch/jest_reporter.cjs --testLocationInResults --json --outputFile=/scratch/jest.json --maxWorkers=4 --coverage --coverageReporters=json-summary --coverageDirectory=/scratch/coverage");
    let vitest = world(
        &[
            ("package.json", r#"{"workspaces":["packages/*"]}"#),
            ("packages/a/package.json", r#"{"scripts":{"test":"vitest"}}"#),
            ("packages/a/test/a.test.ts", ""),
            ("node_modules/.bin/vitest", ""),
            ("node_modules/vitest/package.json", r#"{"version":"4.1.0"}"#),
        ],
        &[],
    );
    assert_snapshot!(vitest.told(&again("test/a.test.ts", "cart adds up (1+1)")), @r"/repo/node_modules/.bin/vitest run --reporter=default --reporter=/scratch/vitest_reporter.mjs --includeTaskLocation --reporter=json --outputFile.json=/scratch/vitest.json '--testNamePattern=^cart adds up \(1\+1\)$' test/a.test.ts");
    assert_snapshot!(vitest.told(&measured()), @"
    /repo/node_modules/.bin/vitest run --reporter=default --reporter=/scratch/vitest_reporter.mjs --includeTaskLocation --reporter=json --outputFile.json=/scratch/vitest.json --maxWorkers=4
      note: no coverage: neither `@vitest/coverage-v8` nor `@vitest/coverage-istanbul` is installed
    ");
    let mocha =
        world(&[("package.json", r#"{"scripts":{"test":"mocha -r esm 'spec/**/*.js'"}}"#)], &["mocha"]);
    assert_snapshot!(mocha.told(&only(&["cart", "spec/one.js"], &[])), @"/bin/mocha --reporter json-stream --grep=cart -r esm spec/one.js");
    let node = world(
        &[
            ("package.json", r#"{"scripts":{"test":"node --test test/*.js"}}"#),
            ("test/a.js", ""),
            ("test/b/c.js", ""),
        ],
        &["node"],
    );
    assert_snapshot!(node.told(&only(&["cart"], &[])), @"/bin/node --test --test-reporter=spec --test-reporter-destination=stdout --test-reporter=tap --test-reporter-destination=/scratch/events.tap --test-name-pattern=cart test/a.js");
}

#[test]
fn a_runner_that_is_not_there_is_said_to_be_missing() {
    let world =
        world(&[("package.json", r#"{"scripts":{"test":"jest"}}"#), ("go.mod", ""), ("a_test.go", "")], &[]);
    let missing: Vec<_> = world.plans(&Wish::default()).into_iter().filter_map(|plan| plan.missing).collect();
    assert_eq!(missing, ["`go` is not installed", "`jest` is not installed"]);
}

#[test]
fn python_runs_in_the_projects_own_environment() {
    let tests = ("test_a.py", "def test_a(): pass");
    let own = world(
        &[tests, (".venv/bin/python", ""), (".venv/lib/python3.11/site-packages/pytest_cov/x", "")],
        &["python3"],
    );
    assert_snapshot!(own.told(&only(&["test_cart*", "adds up"], &["slow", "test_b.py"])), @"
    /repo/.venv/bin/python -m pytest -p rehearsal_pytest_events -p no:cacheprovider --junit-xml=/scratch/junit.xml --ignore=test_b.py -k '(test_cart or adds and up) and not (slow)'
      note: pytest's `-k` knows parts of names and no wildcards: it may select more than was meant
    ");
    assert_snapshot!(own.told(&measured()), @"
    /repo/.venv/bin/python -m pytest -p rehearsal_pytest_events -p no:cacheprovider --junit-xml=/scratch/junit.xml --cov --cov-report=json:/scratch/coverage.json
      note: one test at a time: pytest-xdist is not installed
    ");
    assert_snapshot!(own.told(&again("test_a.py", "test_a.py::test_a[x y]")), @"/repo/.venv/bin/python -m pytest -p rehearsal_pytest_events -p no:cacheprovider --junit-xml=/scratch/junit.xml 'test_a.py::test_a[x y]'");
    let uv = world(
        &[tests, ("uv.lock", ""), ("sub/pyproject.toml", ""), ("sub/test_b.py", "import unittest")],
        &["python3", "uv"],
    );
    assert_snapshot!(uv.told(&Wish::default()), @"
    /bin/uv run python -m pytest -p rehearsal_pytest_events -p no:cacheprovider --junit-xml=/scratch/junit.xml --ignore=sub
      note: `uv.lock` is there: run by uv
      writable: /home/.cache/uv
    /bin/python3 -u -m unittest discover -v
    ");
}

#[test]
fn cargo_is_told_names_and_nextest_an_expression() {
    let files = [("Cargo.toml", "[package]\nname = 'a'\n"), ("src/lib.rs", "")];
    let cargo = world(&files, &["cargo"]);
    assert_snapshot!(cargo.told(&only(&["cart::adds*"], &["slow"])), @"
    /bin/cargo test --no-fail-fast --workspace -- cart::adds --skip slow
      note: cargo's harness knows parts of names and no wildcards: it may select more than was meant
      writable: /repo/target
    ");
    let nextest = world(&files, &["cargo", "cargo-nextest"]);
    assert_snapshot!(nextest.told(&only(&["adds*", "sum"], &["slow"])), @"
    /bin/cargo nextest run --workspace --no-fail-fast --message-format libtest-json-plus --tool-config-file rehearsal:/scratch/nextest.toml -E '(test(#adds*) | test(#*::adds*) | test(~sum)) & not (test(~slow))'
      writable: /repo/target
    /bin/cargo test --doc --workspace --no-fail-fast -- adds sum --skip slow
      note: nextest runs no tests of documentation: cargo does
      note: cargo's harness knows parts of names and no wildcards: it may select more than was meant
      writable: /repo/target
    ");
    assert_snapshot!(nextest.told(&again("a", "tests::adds")), @"
    /bin/cargo nextest run --workspace --no-fail-fast --message-format libtest-json-plus --tool-config-file rehearsal:/scratch/nextest.toml -E 'test(=tests::adds)'
      writable: /repo/target
    ");
    assert_snapshot!(nextest.told(&measured()), @"
    /bin/cargo nextest run --workspace --no-fail-fast --message-format libtest-json-plus --tool-config-file rehearsal:/scratch/nextest.toml --test-threads=4
      note: no coverage: cargo-llvm-cov is not installed
      writable: /repo/target
    /bin/cargo test --doc --workspace --no-fail-fast -- --test-threads=4
      note: nextest runs no tests of documentation: cargo does
      writable: /repo/target
    ");
}

#[test]
fn a_target_directory_that_checkouts_could_share_is_divided() {
    let mut world = world(&[("Cargo.toml", "[package]\nname = 'a'\n")], &["cargo"]);
    let shared = world.root.with_file_name("shared");
    world.variables.insert("CARGO_TARGET_DIR".to_owned(), shared.to_string());
    let plan = &world.plans(&Wish::default())[0];
    let own = Utf8PathBuf::from(&plan.env["CARGO_TARGET_DIR"]);
    assert!(own.starts_with(&shared) && own != shared, "{own}");
    assert_eq!(plan.writable[0], own);
    assert!(plan.notes[0].contains("which other checkouts may share"), "{:?}", plan.notes);

    world.variables.remove("CARGO_TARGET_DIR");
    World::write(
        &world.root.with_file_name("home").join(".cargo/config.toml"),
        "build.target-dir = '/var/shared'\n",
    );
    let other = &world.plans(&Wish::default())[0];
    assert!(other.env["CARGO_TARGET_DIR"].starts_with("/var/shared/rehearsal/repo-"), "{:?}", other.env);

    World::write(&world.root.join(".cargo/config.toml"), "[build]\ntarget-dir = 'out'\n");
    let inside = &world.plans(&Wish::default())[0];
    assert_eq!((inside.env.get("CARGO_TARGET_DIR"), &inside.writable[0]), (None, &world.root.join("out")));
}

#[test]
fn the_jvm_is_run_by_the_projects_wrapper() {
    let maven = world(
        &[("pom.xml", "<module>a</module>"), ("mvnw", ""), ("a/pom.xml", ""), ("a/src/test/java/A.java", "")],
        &[],
    );
    assert_snapshot!(maven.told(&only(&["CartTest", "Int*"], &["Slow*"])), @"
    /repo/mvnw --batch-mode --offline --fail-at-end test -DtrimStackTrace=false -Dstyle.color=never '-Dtest=*CartTest*,Int*,!Slow*' -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false
      note: runs offline: what is not in the local repository is not fetched
      writable: /repo/target
      writable: /repo/a/target
    ");
    assert_snapshot!(maven.told(&again("shop.CartTest", "shop.CartTest.adds(int)[1]")), @"
    /repo/mvnw --batch-mode --offline --fail-at-end test -DtrimStackTrace=false -Dstyle.color=never '-Dtest=shop.CartTest#adds' -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false
      note: runs offline: what is not in the local repository is not fetched
      writable: /repo/target
      writable: /repo/a/target
    ");
    let gradle = world(&[("build.gradle", ""), ("src/test/java/A.java", "")], &["gradle"]);
    assert_snapshot!(gradle.told(&only(&["CartTest"], &[])), @"
    /bin/gradle test --continue --console=plain --no-daemon --offline --tests '*CartTest*' --init-script /scratch/results.init.gradle
      note: runs offline: what is not in the local repository is not fetched
      writable: /home/.gradle
    ");
}

#[test]
fn the_other_runners_have_their_own_words_for_the_same() {
    let ruby = world(
        &[(".rspec", ""), ("spec/a_spec.rb", ""), ("Gemfile.lock", "    rspec (3.12)\n")],
        &["bundle", "rspec"],
    );
    assert_snapshot!(ruby.told(&only(&["adds", "Cart*"], &[])), @"/bin/bundle exec rspec --require /scratch/rspec_formatter.rb --example adds --example-matches '^Cart.*$'");
    let minitest = world(&[("Rakefile", ""), ("test/a_test.rb", "")], &["ruby"]);
    assert_snapshot!(minitest.told(&only(&["sum"], &["slow"])), @r"/bin/ruby -Ilib -Itest -e 'Dir.glob('\''test/**/{*_test,test_*}.rb'\'').sort.each { |file| require File.expand_path(file) }' -- --verbose --name /sum/ --exclude /slow/");
    let php = world(&[("phpunit.xml", ""), ("vendor/bin/phpunit", "")], &[]);
    assert_snapshot!(php.told(&again("CartTest", "CartTest::testSum")), @"/repo/vendor/bin/phpunit --log-teamcity /scratch/events.teamcity --log-junit /scratch/junit.xml '--filter=(CartTest::testSum)$'");
    let dotnet = world(&[("T.csproj", "Microsoft.NET.Test.Sdk")], &["dotnet"]);
    assert_snapshot!(dotnet.told(&only(&["Cart*"], &["Slow"])), @"/bin/dotnet test --nologo --logger trx --results-directory /scratch/results --filter '(FullyQualifiedName~Cart)&FullyQualifiedName!~Slow'");
    let ctest = world(&[("CMakeLists.txt", "project(x)\nenable_testing()")], &["cmake", "ctest"]);
    assert_snapshot!(ctest.told(&only(&["cart"], &["slow"])), @"
    /bin/cmake -S /repo -B /scratch/build -DCMAKE_BUILD_TYPE=Debug
    /bin/cmake --build /scratch/build --parallel 2
    /bin/ctest --test-dir /scratch/build --output-on-failure --output-junit /scratch/ctest.xml --tests-regex cart --exclude-regex slow
      note: there is no build directory: it is built in a temporary one
    ");
    let bats = world(&[("test/a.bats", "")], &["bats"]);
    assert_snapshot!(bats.told(&only(&["cart"], &[])), @"/bin/bats --formatter tap --timing --filter cart test");
    let prove = world(&[("t/a.t", "")], &["prove"]);
    assert_snapshot!(prove.told(&only(&[], &["x"])), @"
    /bin/prove --verbose --nocolor --recurse --lib --formatter TAP::Formatter::Console t
      note: prove cannot leave tests out by name: the excluded ones are run too
    ");
    let make = world(&[("Makefile", "test:\n")], &["make"]);
    assert_snapshot!(make.told(&only(&["x"], &[])), @"
    /bin/make test
      note: a command cannot be told which tests to run: it runs all
    ");
}

#[test]
fn every_runner_has_a_plan_even_where_nothing_is_installed() {
    let world = world(&[], &[]);
    let machine = Machine::new(world.variables.clone());
    let detection = detect(&world.root, &|_| false);
    for framework in Framework::ALL {
        let candidate = &detection.chosen_by(framework)[0];
        let plans = plan(candidate, &measured(), &machine, &world.root, Utf8Path::new("/scratch"));
        assert!(plans[0].missing.is_some(), "{framework}");
        assert!(serde_json::to_string(&plans).is_ok());
    }
}
