use camino::{Utf8Path, Utf8PathBuf};
use insta::assert_snapshot;

use super::{Detection, detect};
use crate::Framework;

/// A repository with these files.
struct Repo {
    _keep: tempfile::TempDir,
    root: Utf8PathBuf,
}

fn repo(files: &[(&str, &str)]) -> Repo {
    let keep = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(keep.path()).unwrap().canonicalize_utf8().unwrap();
    for (path, text) in files {
        let path = root.join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
    Repo { _keep: keep, root }
}

impl Repo {
    fn detect(&self) -> Detection {
        detect(&self.root, &|_| false)
    }

    fn told(&self) -> String {
        told(&self.detect())
    }
}

/// One line for each candidate, as `--explain` has it.
fn told(detection: &Detection) -> String {
    let mut text = String::new();
    for candidate in &detection.candidates {
        let evidence: Vec<_> = candidate.evidence.iter().map(ToString::to_string).collect();
        text += &format!("{} in {} [{}]", candidate.framework, candidate.place(), evidence.join("; "));
        let how = &candidate.invocation;
        for (name, words) in [
            ("command", &how.command),
            ("args", &how.args),
            ("targets", &how.targets),
            ("leaves out", &how.leave_out),
        ] {
            if !words.is_empty() {
                text += &format!(" {name}: {}", words.join(" "));
            }
        }
        for (name, value) in &how.env {
            text += &format!(" {name}={value}");
        }
        if let Some(reason) = &candidate.passed_over {
            text += &format!(" — not run: {reason}");
        }
        text += "\n";
    }
    for note in &detection.notes {
        text += &format!("note: {note}\n");
    }
    text
}

#[test]
fn a_go_workspace_is_one_run_and_a_module_outside_of_it_another() {
    let repo = repo(&[
        ("go.work", "go 1.24\nuse (\n\t./api // the server\n\t./lib\n)\nuse ./tool\n"),
        ("api/go.mod", "module a"),
        ("api/a_test.go", ""),
        ("lib/go.mod", "module l"),
        ("lib/deep/l_test.go", ""),
        ("tool/go.mod", "module t"),
        ("alone/go.mod", "module x"),
        ("alone/x_test.go", ""),
        ("alone/testdata/mod/go.mod", "module y"),
        ("alone/testdata/mod/y_test.go", ""),
        ("vendor/v/go.mod", "module v"),
        ("vendor/v/v_test.go", ""),
    ]);
    assert_snapshot!(repo.told(), @"
    go in . [go.work: uses 3 modules] targets: ./api/... ./lib/...
    go in alone [alone/go.mod: a module; alone/x_test.go]
    go in alone/testdata/mod [alone/testdata/mod/go.mod: a module; alone/testdata/mod/y_test.go] — not run: it is in a directory of fixtures (`testdata`)
    go in api [api/go.mod: a module; api/a_test.go] — not run: it is run with the workspace of `go.work`
    go in lib [lib/go.mod: a module; lib/deep/l_test.go] — not run: it is run with the workspace of `go.work`
    go in tool [tool/go.mod: a module] — not run: it is run with the workspace of `go.work`
    ");
}

#[test]
fn the_test_script_decides_between_two_runners_and_lends_its_arguments() {
    let repo = repo(&[(
        "package.json",
        r#"{"scripts":{"test":"npm run unit && eslint .","unit":"cross-env TZ=UTC nyc mocha -r esm --reporter spec 'spec/**/*.js'"},
            "devDependencies":{"jest":"1","mocha":"1"}}"#,
    )]);
    assert_snapshot!(repo.told(), @"
    mocha in . [package.json: script `unit` calls mocha; package.json: a dependency `mocha`] args: -r esm spec/**/*.js TZ=UTC
    jest in . [package.json: a dependency `jest`] — not run: the `test` script calls mocha
    ");
}

#[test]
fn without_a_script_the_first_runner_is_taken_and_the_other_one_told() {
    let repo = repo(&[
        ("package.json", r#"{"devDependencies":{"jest":"1"}}"#),
        ("vitest.config.ts", ""),
        ("b/package.json", r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#),
        ("c/package.json", r#"{"scripts":{"test":"make -C x check"}}"#),
        ("c/yarn.lock", ""),
        ("d/package.json", r#"{"scripts":{"test":"node --test --test-reporter spec test/"}}"#),
        (
            "e/package.json",
            r#"{"scripts":{"test":"node --experimental-vm-modules node_modules/jest/bin/jest.js --ci"}}"#,
        ),
        ("f/package.json", "{ broken"),
        ("g/deno.json", "{}"),
        ("g/x_test.ts", ""),
        ("h/package.json", "{}"),
        ("h/bun.lock", ""),
        ("h/x.test.ts", ""),
    ]);
    assert_snapshot!(repo.told(), @"
    vitest in . [vitest.config.ts]
    jest in . [package.json: a dependency `jest`] — not run: vitest was found too, and no `test` script says which one it is
    generic in c [c/package.json: script `test`: make -C x check] command: yarn run test
    node-test in d [d/package.json: script `test` calls node-test] args: test/
    jest in e [e/package.json: script `test` calls jest] NODE_OPTIONS=--experimental-vm-modules
    deno in g [g/deno.json; g/x_test.ts]
    bun in h [h/bun.lock; h/x.test.ts]
    note: f/package.json cannot be read: key must be a string at line 1 column 3
    ");
}

#[test]
fn a_workspace_of_packages_runs_no_test_twice() {
    let repo = repo(&[
        ("package.json", r#"{"workspaces":["packages/*"],"scripts":{"test":"turbo run test"}}"#),
        ("packages/a/package.json", r#"{"scripts":{"test":"vitest run"}}"#),
        ("packages/b/package.json", r#"{"scripts":{"test":"jest"}}"#),
        ("packages/b/inner/package.json", r#"{"devDependencies":{"jest":"1"}}"#),
        ("node_modules/x/package.json", r#"{"scripts":{"test":"jest"}}"#),
    ]);
    assert_snapshot!(repo.told(), @"
    generic in . [package.json: script `test`: turbo run test] command: npm run test — not run: it hands on to its workspaces, which are run one by one
    vitest in packages/a [packages/a/package.json: script `test` calls vitest]
    jest in packages/b [packages/b/package.json: script `test` calls jest]
    jest in packages/b/inner [packages/b/inner/package.json: a dependency `jest`] — not run: jest in `packages/b` runs its tests too
    ");
}

#[test]
fn python_projects_are_told_apart_by_their_files_and_by_how_their_tests_are_written() {
    let repo = repo(&[
        ("pyproject.toml", "[tool.pytest.ini_options]\ntestpaths = ['tests']\n"),
        ("tests/test_a.py", ""),
        ("sub/setup.py", ""),
        ("sub/test_b.py", "import unittest\n"),
        ("site/manage.py", ""),
        ("site/app/tests.py", "from django.test import TestCase\n"),
        ("plain/requirements.txt", "requests\nnot-pytest # nor pytest\n"),
        ("plain/check/test_c.py", "import unittest\n"),
        ("bare/setup.cfg", ""),
        ("bare/test_d.py", "\ndef test_x(): pass\n"),
    ]);
    assert_snapshot!(repo.told(), @"
    pytest in . [pyproject.toml: [tool.pytest.ini_options]; tests/test_a.py] leaves out: bare plain site sub
    pytest in bare [bare/test_d.py: def test_x; bare/test_d.py]
    unittest in plain [plain/check/test_c.py: uses unittest, and nothing names pytest] targets: check
    unittest in site [site/manage.py: Django's runner; site/app/tests.py] command: python manage.py test
    unittest in sub [sub/test_b.py: uses unittest, and nothing names pytest]
    ");
}

#[test]
fn a_package_of_tests_outside_of_any_project_is_run_from_where_it_can_be_imported() {
    let repo = repo(&[
        ("tools/report/tests/__init__.py", ""),
        ("tools/report/tests/test_a.py", "import unittest\n"),
        ("README.md", ""),
    ]);
    assert_snapshot!(repo.told(), @"unittest in tools/report [tools/report/tests/test_a.py: uses unittest, and nothing names pytest]");
}

#[test]
fn a_directory_named_after_bats_holds_tests_unless_it_is_bats_itself() {
    let own = repo(&[("test/bats/a.bats", ""), ("README.md", "")]);
    assert_snapshot!(own.told(), @"bats in . [test/bats/a.bats] targets: test/bats");
    let vendored = repo(&[("test/bats/install.sh", ""), ("test/bats/test/a.bats", ""), ("test/x.bats", "")]);
    assert_snapshot!(vendored.told(), @"bats in . [test/x.bats] targets: test");
}

#[test]
fn members_of_a_cargo_workspace_are_run_with_it() {
    let files = [
        ("Cargo.toml", "[workspace]\nmembers = ['crates/*']\nexclude = ['fuzz']\n"),
        ("crates/a/Cargo.toml", "[package]\nname = 'a'\n"),
        ("crates/a/src/lib.rs", ""),
        ("fuzz/Cargo.toml", "[package]\nname = 'f'\n[[test]]\nname = 'own'\nharness = false\n"),
        ("tools/Cargo.toml", "[package]\nname = 't'\n"),
        ("odd/Cargo.toml", "[package\n"),
        ("package.json", r#"{"scripts":{"test":"cargo test"}}"#),
    ];
    let repo = repo(&files);
    assert_snapshot!(told(&detect(&repo.root, &|program| program == "cargo-nextest")), @"
    nextest in . [Cargo.toml: a workspace] targets: doc
    generic in . [package.json: script `test`: cargo test] command: npm run test — not run: a runner was found in the same directory, and tells more
    cargo-test in . [Cargo.toml: a workspace] — not run: cargo-nextest is installed, and tells more
    cargo-test in crates/a [crates/a/Cargo.toml: a package] — not run: it is a member of the workspace in `.`
    cargo-test in fuzz [fuzz/Cargo.toml: a package]
    cargo-test in odd [odd/Cargo.toml: a package] — not run: it lies in the workspace of `.`: cargo runs it there or not at all
    cargo-test in tools [tools/Cargo.toml: a package] — not run: it lies in the workspace of `.`: cargo runs it there or not at all
    note: odd/Cargo.toml cannot be read: unclosed table, expected `]`
    ");
    assert_snapshot!(repo.told(), @"
    cargo-test in . [Cargo.toml: a workspace]
    generic in . [package.json: script `test`: cargo test] command: npm run test — not run: a runner was found in the same directory, and tells more
    cargo-test in crates/a [crates/a/Cargo.toml: a package] — not run: it is a member of the workspace in `.`
    cargo-test in fuzz [fuzz/Cargo.toml: a package]
    cargo-test in odd [odd/Cargo.toml: a package] — not run: it lies in the workspace of `.`: cargo runs it there or not at all
    cargo-test in tools [tools/Cargo.toml: a package] — not run: it lies in the workspace of `.`: cargo runs it there or not at all
    note: odd/Cargo.toml cannot be read: unclosed table, expected `]`
    ");
}

#[test]
fn modules_of_maven_and_projects_of_gradle_are_run_from_above() {
    let repo = repo(&[
        ("m/pom.xml", "<project><modules><!-- <module>c</module> --><module>a</module></modules></project>"),
        ("m/a/pom.xml", ""),
        ("m/a/src/test/java/ATest.java", ""),
        ("m/c/pom.xml", ""),
        ("g/settings.gradle.kts", ""),
        ("g/app/build.gradle", ""),
        ("g/app/src/test/kotlin/T.kt", ""),
        ("both/pom.xml", ""),
        ("both/build.gradle", ""),
        ("both/gradlew", ""),
        ("both/src/test/java/T.java", ""),
    ]);
    assert_snapshot!(repo.told(), @"
    gradle in both [both/build.gradle; both/src/test/java/T.java]
    maven in both [both/pom.xml; both/src/test/java/T.java] — not run: the project has Gradle's wrapper, and not Maven's
    gradle in g [g/settings.gradle.kts; g/app/src/test/kotlin/T.kt] targets: app
    gradle in g/app [g/app/build.gradle] — not run: it is a project of the build in `g`
    maven in m [m/pom.xml; m/a/src/test/java/ATest.java] targets: a
    maven in m/a [m/a/pom.xml] — not run: it is a module of `m/pom.xml`
    maven in m/c [m/c/pom.xml] — not run: nothing below it is in `src/test`
    ");
}

#[test]
fn the_rest_is_found_by_its_own_files() {
    let repo = repo(&[
        ("r/.rspec", ""),
        ("r/spec/a_spec.rb", ""),
        ("mt/Rakefile", "Rake::TestTask.new"),
        ("mt/test/a_test.rb", ""),
        ("p/phpunit.xml.dist", ""),
        ("pest/composer.json", r#"{"require-dev":{"pestphp/pest":"1"}}"#),
        ("pest/tests/ATest.php", ""),
        ("n/All.sln", ""),
        ("n/T/T.csproj", "<PackageReference Include=\"Microsoft.NET.Test.Sdk\"/>"),
        ("n/App/App.csproj", ""),
        ("c/CMakeLists.txt", "project(x)\nenable_testing()\n"),
        ("c/sub/CMakeLists.txt", "add_test(NAME y COMMAND y)\n"),
        ("c/.gitignore", "build/\n"),
        ("c/build/CTestTestfile.cmake", ""),
        ("sh/a.bats", ""),
        ("sh/bats-core/b.bats", ""),
        ("perl/t/a.t", ""),
        ("perl/cpanfile", ""),
        ("ex/mix.exs", ""),
        ("ex/test/a_test.exs", ""),
    ]);
    assert_snapshot!(repo.told(), @"
    bats in . [sh/a.bats] targets: sh
    ctest in c [c/CMakeLists.txt: enable_testing; c/build/CTestTestfile.cmake] targets: build
    exunit in ex [ex/mix.exs]
    minitest in mt [mt/Rakefile: a `TestTask`; mt/test/a_test.rb] command: rake test
    dotnet in n [n/All.sln: a solution]
    dotnet in n/T [n/T/T.csproj: Microsoft.NET.Test.Sdk] — not run: it is run with the solution in `n`
    phpunit in p [p/phpunit.xml.dist]
    tap in perl [perl/t/a.t; perl/cpanfile]
    phpunit in pest [pest/composer.json: requires pestphp/pest] command: vendor/bin/pest targets: tests
    rspec in r [r/.rspec; r/spec/a_spec.rb]
    ");
}

#[test]
fn commands_of_the_project_are_tried_where_no_runner_was_found() {
    let only_commands =
        repo(&[("Makefile", "tests := x\ntest: build\n\tfoo\n"), ("justfile", "test name='':\n foo\n")]);
    assert_snapshot!(only_commands.told(), @"
    generic in . [Makefile: target `test`] command: make test
    generic in . [justfile: recipe `test`] command: just test — not run: `make test` is tried first
    ");
    let with_runner = repo(&[("Makefile", "check:\n\tprove\n"), ("t/a.t", "")]);
    assert_snapshot!(with_runner.told(), @"
    tap in . [t/a.t]
    generic in . [Makefile: target `check`] command: make check — not run: the runners themselves were found, and tell more
    ");
}

#[test]
fn what_git_ignores_and_what_is_linked_from_outside_is_not_the_projects() {
    let outside =
        repo(&[("go.mod", ""), ("a_test.go", ""), ("package.json", r#"{"scripts":{"test":"jest"}}"#)]);
    let repo = repo(&[
        (".gitignore", "out/\n*.gen\n!keep/out/\n"),
        ("out/go.mod", ""),
        ("out/a_test.go", ""),
        ("keep/out/go.mod", ""),
        ("keep/out/a_test.go", ""),
        (".venv/lib/test_x.py", "def test_x(): pass"),
    ]);
    std::os::unix::fs::symlink(&outside.root, repo.root.join("linked")).unwrap();
    std::os::unix::fs::symlink(outside.root.join("package.json"), repo.root.join("package.json")).unwrap();
    assert_snapshot!(repo.told(), @"
    go in keep/out [keep/out/go.mod: a module; keep/out/a_test.go]
    note: package.json cannot be read: EOF while parsing a value at line 1 column 0
    ");
}

#[test]
fn files_of_every_bad_kind_neither_block_nor_break() {
    let huge = format!("{{\"scripts\":{{\"test\":\"{}\"}}}}", "x".repeat(3 << 20));
    let deep = "[".repeat(200_000);
    let repo = repo(&[
        ("huge/package.json", &huge),
        ("deep/package.json", &deep),
        ("deep/Cargo.toml", &format!("a = {deep}")),
    ]);
    for name in
        [".gitignore", "package.json", "Cargo.toml", "go.work", "pyproject.toml", "pom.xml", "Makefile"]
    {
        let path = repo.root.join(name);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path.as_std_path(),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
    }
    let detection = repo.detect();
    assert_snapshot!(told(&detection), @"
    cargo-test in deep [deep/Cargo.toml: a package]
    note: deep/package.json cannot be read: invalid type: sequence, expected a map at line 1 column 1
    note: huge/package.json cannot be read: EOF while parsing a string at line 1 column 1048576
    note: deep/Cargo.toml cannot be read: cannot recurse further; max recursion depth met
    ");
}

#[test]
fn a_runner_that_someone_chose_is_run_whatever_was_preferred() {
    let repo = repo(&[("package.json", r#"{"scripts":{"test":"mocha"},"devDependencies":{"jest":"1"}}"#)]);
    let detection = repo.detect();
    let chosen = detection.chosen_by(Framework::Jest);
    assert_eq!((chosen.len(), chosen[0].passed_over.clone()), (1, None));
    assert_eq!(detection.chosen_by(Framework::Go)[0].place(), ".");
}
