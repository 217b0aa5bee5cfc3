use super::*;
use crate::{Since, TestStatus};
use insta::assert_snapshot;

fn everywhere() -> &'static Utf8Path {
    Utf8Path::new("")
}

fn failed(package: &str, name: &str) -> Vec<TestResult> {
    let (package, name) = (package.to_owned(), name.to_owned());
    vec![TestResult { package, name, status: TestStatus::Fail, duration: 1 }]
}

fn changed(files: &[&str]) -> Changes {
    let diff: String = files
        .iter()
        .map(|file| format!("--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-a\n+b\ndiff --git x\n"))
        .collect();
    Changes::of_diffs(Since::LastCommit, &diff, "")
}

fn shown(affected: &Affected) -> String {
    let selectors: Vec<String> =
        affected.selectors.iter().map(|it| serde_json::to_string(it).unwrap()).collect();
    format!("{}\n{}\nskipped: {}", affected.words(), selectors.join("\n"), affected.skipped.join(", "))
}

const GO_LIST: &str = r#"
{"Dir": "/p/calc", "ImportPath": "shop/calc", "Imports": ["fmt"], "TestGoFiles": ["calc_test.go"], "TestImports": ["testing"]}
{"Dir": "/p/web", "ImportPath": "shop/web", "Imports": ["shop/calc"], "TestGoFiles": ["web_test.go"]}
{"Dir": "/p/web", "ImportPath": "shop/web [shop/web.test]", "ForTest": "shop/web", "Imports": ["shop/calc"]}
{"Dir": "/p/cli", "ImportPath": "shop/cli", "Imports": [], "XTestGoFiles": ["cli_test.go"], "XTestImports": ["shop/web"]}
{"Dir": "/p/log", "ImportPath": "shop/log", "EmbedFiles": ["words.txt"], "Imports": [], "TestGoFiles": ["log_test.go"]}
{"Dir": "/usr/lib/go/src/fmt", "ImportPath": "fmt", "Standard": true, "TestGoFiles": ["fmt_test.go"]}
"#;

fn go(files: &[&str], failed: &[TestResult]) -> Affected {
    let list = Dependencies::GoList { json: GO_LIST, root: "/p" };
    affected(Framework::Go, &changed(files), everywhere(), list, failed)
}

#[test]
fn a_go_package_reaches_those_that_import_it_also_from_their_tests() {
    assert_snapshot!(shown(&go(&["calc/calc.go"], &[])), @r#"
    3 of 4 packages: 1 file changed in the last commit or after it
    {"directory":"calc"}
    {"directory":"cli"}
    {"directory":"web"}
    skipped: shop/log
    "#);
    assert_snapshot!(shown(&go(&["calc/calc_test.go"], &failed("shop/log", "TestOld"))), @r#"
    2 of 4 packages: 1 file changed in the last commit or after it, and 1 test that failed before
    {"directory":"calc"}
    {"directory":"log"}
    skipped: shop/cli, shop/web
    "#);
}

#[test]
fn data_for_tests_and_embedded_files_belong_to_their_go_package() {
    assert_snapshot!(go(&["web/page.html"], &[]).words(), @"all tests: `web/page.html` changed, and any test may depend on it");
    assert_snapshot!(shown(&go(&["log/testdata/golden.txt"], &[])), @r#"
    1 of 4 packages: 1 file changed in the last commit or after it
    {"directory":"log"}
    skipped: shop/calc, shop/cli, shop/web
    "#);
}

#[test]
fn when_unsure_everything_is_run_and_it_is_said_why() {
    assert_snapshot!(go(&["go.mod"], &[]).words(), @"all tests: `go.mod` changed, on which everything may depend");
    assert_snapshot!(go(&["old/gone.go"], &[]).words(), @"all tests: `old/gone.go` changed, and any test may depend on it");
    assert_snapshot!(go(&["log/words.txt"], &[]).words(), @"1 of 4 packages: 1 file changed in the last commit or after it");
    assert_snapshot!(go(&["schema.sql"], &[]).words(), @"all tests: `schema.sql` changed, and any test may depend on it");
    let broken = Dependencies::GoList { json: "{", root: "/p" };
    let affected = |framework, dependencies| {
        super::affected(framework, &changed(&["a/b.go"]), everywhere(), dependencies, &[])
    };
    assert_snapshot!(affected(Framework::Go, broken).words(), @"all tests: the answer of `go list` cannot be read: EOF while parsing an object at line 1 column 1");
    assert_snapshot!(affected(Framework::Rspec, Dependencies::Unknown).words(), @"all tests: which tests a change reaches is not known of rspec");
}

#[test]
fn a_document_reaches_no_test() {
    let affected = go(&["README.md"], &[]);
    assert!(affected.is_nothing());
    assert_snapshot!(affected.words(), @"no tests: only documents changed in the last commit or after it");
}

#[test]
fn a_cargo_package_reaches_those_that_depend_on_it() {
    let json = r#"{
        "packages": [
            {"id": "core", "name": "shop-core", "manifest_path": "/p/crates/core/Cargo.toml"},
            {"id": "cli", "name": "shop-cli", "manifest_path": "/p/crates/cli/Cargo.toml"},
            {"id": "log", "name": "shop-log", "manifest_path": "/p/crates/log/Cargo.toml"},
            {"id": "serde", "name": "serde", "manifest_path": "/r/serde/Cargo.toml"}],
        "workspace_members": ["core", "cli", "log"],
        "resolve": {"nodes": [
            {"id": "core", "dependencies": ["serde"]}, {"id": "cli", "dependencies": ["core"]},
            {"id": "log", "dependencies": []}, {"id": "serde", "dependencies": []}]}
    }"#;
    let dependencies = Dependencies::CargoMetadata { json, root: "/p" };
    let ask = |framework, file, failed: &[TestResult]| {
        affected(framework, &changed(&[file]), everywhere(), dependencies, failed)
    };
    assert_snapshot!(shown(&ask(Framework::CargoTest, "crates/core/src/lib.rs", &[])), @r#"
    2 of 3 packages: 1 file changed in the last commit or after it
    {"package":"shop-cli"}
    {"package":"shop-core"}
    skipped: shop-log
    "#);
    assert_snapshot!(shown(&ask(Framework::Nextest, "crates/core/src/lib.rs", &failed("shop-log::it", "tests::old"))), @r#"
    2 of 3 packages: 1 file changed in the last commit or after it, and 1 test that failed before
    {"package":"shop-cli"}
    {"package":"shop-core"}
    {"test":{"package":"shop-log::it","name":"tests::old"}}
    skipped: shop-log
    "#);
    assert_snapshot!(ask(Framework::CargoTest, "fixtures/x.json", &[]).words(), @"all tests: `fixtures/x.json` changed, and belongs to no package");
}

fn python(files: &[&str], failed: &[TestResult]) -> Affected {
    let mut imports = PythonImports::default();
    for (file, text) in [
        ("src/shop/__init__.py", ""),
        ("src/shop/cart.py", "from .price import total\n"),
        ("src/shop/price.py", "import json\n"),
        ("src/shop/log.py", ""),
        ("tests/conftest.py", "from shop import log\n"),
        ("tests/unit/conftest.py", ""),
        ("tests/unit/test_cart.py", "import shop.cart as cart\n"),
        ("tests/unit/test_price.py", "def test_a():\n    from shop.price import total\n"),
        ("tests/unit/test_other.py", "import os\n"),
        ("other/test_plugins.py", "import importlib\nm = importlib.import_module(name)\n"),
    ] {
        imports.add(file, text);
    }
    affected(Framework::Pytest, &changed(files), everywhere(), Dependencies::Python(&imports), failed)
}

#[test]
fn a_python_module_reaches_the_tests_that_import_it_by_any_way() {
    assert_snapshot!(shown(&python(&["src/shop/price.py"], &[])), @r#"
    3 of 4 test files: 1 file changed in the last commit or after it, files that compute what they import count as depending on everything
    {"file":"other/test_plugins.py"}
    {"file":"tests/unit/test_cart.py"}
    {"file":"tests/unit/test_price.py"}
    skipped: tests/unit/test_other.py
    "#);
}

#[test]
fn a_conftest_reaches_all_tests_below_it() {
    assert_snapshot!(shown(&python(&["src/shop/log.py"], &[])), @r#"
    4 of 4 test files: 1 file changed in the last commit or after it, files that compute what they import count as depending on everything
    {"file":"other/test_plugins.py"}
    {"file":"tests/unit/test_cart.py"}
    {"file":"tests/unit/test_other.py"}
    {"file":"tests/unit/test_price.py"}
    skipped:
    "#);
    assert_snapshot!(shown(&python(&["tests/unit/test_other.py"], &[])), @r#"
    2 of 4 test files: 1 file changed in the last commit or after it, files that compute what they import count as depending on everything
    {"file":"other/test_plugins.py"}
    {"file":"tests/unit/test_other.py"}
    skipped: tests/unit/test_cart.py, tests/unit/test_price.py
    "#);
    assert_snapshot!(python(&["tests/data.json"], &[]).words(), @"all tests: `tests/data.json` changed, and any test may read it");
}

#[test]
fn jest_is_asked_itself() {
    let ask =
        |files: &[&str]| affected(Framework::Jest, &changed(files), everywhere(), Dependencies::Unknown, &[]);
    assert_snapshot!(shown(&ask(&["src/cart.ts", "test/__snapshots__/a.test.ts.snap"])), @r#"
    what jest finds related: 2 files changed in the last commit or after it, the runner follows imports that are written out, not computed ones
    {"file":"test/a.test.ts"}
    {"related_to":"src/cart.ts"}
    skipped:
    "#);
    assert_snapshot!(ask(&["templates/mail.html"]).words(), @"all tests: `templates/mail.html` changed, and any test may read it");
    let gone = Changes::of_diffs(
        Since::LastCommit,
        "diff --git a/src/x.ts b/src/x.ts\ndeleted file mode 100644\n--- a/src/x.ts\n+++ /dev/null\n",
        "",
    );
    assert_snapshot!(affected(Framework::Jest, &gone, everywhere(), Dependencies::Unknown, &[]).words(), @"all tests: `src/x.ts` is gone, and what imported it cannot be asked for");
}

#[test]
fn what_failed_before_is_among_them_in_the_way_of_its_runner() {
    let json = r#"{
        "packages": [
            {"id": "core", "name": "shop-core", "manifest_path": "/p/core/Cargo.toml", "targets": [{"name": "shop_core"}]},
            {"id": "log", "name": "shop-log", "manifest_path": "/p/log/Cargo.toml", "targets": [{"name": "it"}]}],
        "workspace_members": ["core", "log"],
        "resolve": {"nodes": [{"id": "core", "dependencies": []}, {"id": "log", "dependencies": []}]}
    }"#;
    let metadata = Dependencies::CargoMetadata { json, root: "/p" };
    let cargo = |framework, failed: &[TestResult]| {
        shown(&affected(framework, &changed(&["core/src/lib.rs"]), everywhere(), metadata, failed))
    };
    assert_snapshot!(cargo(Framework::CargoTest, &failed("it", "old")), @r#"
    2 of 2 packages: 1 file changed in the last commit or after it, and 1 test that failed before
    {"package":"shop-core"}
    {"package":"shop-log"}
    skipped:
    "#);
    assert_snapshot!(cargo(Framework::CargoTest, &failed("gone", "old")), @"
    all tests: `old` failed before, in a package that is not there

    skipped:
    ");
    assert_snapshot!(cargo(Framework::CargoTest, &failed("shop_core", "old")), @r#"
    1 of 2 packages: 1 file changed in the last commit or after it
    {"package":"shop-core"}
    skipped: shop-log
    "#);
    assert_snapshot!(cargo(Framework::Nextest, &failed("shop-log::it", "old")), @r#"
    1 of 2 packages: 1 file changed in the last commit or after it, and 1 test that failed before
    {"package":"shop-core"}
    {"test":{"package":"shop-log::it","name":"old"}}
    skipped: shop-log
    "#);
    assert_snapshot!(cargo(Framework::Nextest, &failed("shop_log (doc)", "src/lib.rs - (line 1)")), @r#"
    2 of 2 packages: 1 file changed in the last commit or after it, and 1 test that failed before
    {"package":"shop-core"}
    {"package":"shop-log"}
    skipped:
    "#);
    assert_snapshot!(shown(&python(&["tests/unit/test_other.py"], &failed("", "tests/unit/test_cart.py::test_a[1-x]"))), @r#"
    2 of 4 test files: 1 file changed in the last commit or after it, files that compute what they import count as depending on everything, and 1 test that failed before
    {"file":"other/test_plugins.py"}
    {"file":"tests/unit/test_other.py"}
    {"test":{"package":"","name":"tests/unit/test_cart.py::test_a"}}
    skipped: tests/unit/test_cart.py, tests/unit/test_price.py
    "#);
    assert_snapshot!(shown(&python(&["README.md"], &failed("", "tests/test_gone.py::test_a"))), @"
    no tests: only documents changed in the last commit or after it

    skipped: other/test_plugins.py, tests/unit/test_cart.py, tests/unit/test_other.py, tests/unit/test_price.py
    ");
    let of = |framework| {
        affected(
            framework,
            &changed(&["README.md"]),
            everywhere(),
            Dependencies::Unknown,
            &failed("test/a.js", "adds"),
        )
    };
    assert_snapshot!(shown(&of(Framework::Mocha)), @r#"
    1 test: only documents changed in the last commit or after it, and 1 test that failed before
    {"test":{"package":"test/a.js","name":"adds"}}
    skipped:
    "#);
    assert_snapshot!(shown(&of(Framework::Jest)), @r#"
    1 of 1 test file: only documents changed in the last commit or after it, and 1 test that failed before
    {"file":"test/a.js"}
    skipped:
    "#);
}

#[test]
fn a_change_outside_of_a_project_may_reach_all_of_it() {
    let web = |files: &[&str]| {
        affected(Framework::Jest, &changed(files), Utf8Path::new("web"), Dependencies::Unknown, &[])
    };
    assert_snapshot!(web(&["api/schema.ts", "web/a.ts"]).words(), @"all tests: `api/schema.ts` changed outside of this project, which may depend on it");
    assert_snapshot!(web(&["package.json"]).words(), @"all tests: `package.json` changed, on which everything may depend");
    assert_snapshot!(shown(&web(&["README.md", "web/a.ts"])), @r#"
    what jest finds related: 1 file changed in the last commit or after it, the runner follows imports that are written out, not computed ones
    {"related_to":"a.ts"}
    skipped:
    "#);
}

#[test]
fn who_could_not_be_asked_is_named_and_only_asked_if_it_matters() {
    let why = Dependencies::NotTold("`go list` failed");
    let ask = |files: &[&str]| affected(Framework::Go, &changed(files), everywhere(), why, &[]).words();
    assert_snapshot!(ask(&["a.go"]), @"all tests: `go list` failed");
    assert_snapshot!(ask(&["README.md"]), @"no tests: only documents changed in the last commit or after it");
    let needs = |framework, files: &[&str]| needs_dependencies(framework, &changed(files), everywhere(), &[]);
    assert!(needs(Framework::Go, &["a.go"]));
    assert!(!needs(Framework::Go, &["README.md"]));
    assert!(!needs(Framework::Go, &["a.go", "go.mod"]));
    assert!(!needs(Framework::Jest, &["a.js"]));
}
