use super::*;
use crate::Since;
use insta::assert_snapshot;

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

fn go(files: &[&str], failed: &[String]) -> Affected {
    affected(Framework::Go, &changed(files), Dependencies::GoList { json: GO_LIST, root: "/p" }, failed)
}

#[test]
fn a_go_package_reaches_those_that_import_it_also_from_their_tests() {
    assert_snapshot!(shown(&go(&["calc/calc.go"], &[])), @r#"
    3 of 4 packages: 1 file changed
    {"directory":"calc"}
    {"directory":"cli"}
    {"directory":"web"}
    skipped: shop/log
    "#);
    assert_snapshot!(shown(&go(&["calc/calc_test.go"], &["TestOld".to_owned()])), @r#"
    1 of 4 packages: 1 file changed, and 1 test that failed before
    {"directory":"calc"}
    {"test":"TestOld"}
    skipped: shop/cli, shop/log, shop/web
    "#);
}

#[test]
fn data_for_tests_and_embedded_files_belong_to_their_go_package() {
    assert_snapshot!(go(&["web/page.html"], &[]).words(), @"all tests: `web/page.html` changed, and any test may depend on it");
    assert_snapshot!(shown(&go(&["log/testdata/golden.txt"], &[])), @r#"
    1 of 4 packages: 1 file changed
    {"directory":"log"}
    skipped: shop/calc, shop/cli, shop/web
    "#);
}

#[test]
fn when_unsure_everything_is_run_and_it_is_said_why() {
    assert_snapshot!(go(&["go.mod"], &[]).words(), @"all tests: `go.mod` changed, on which everything may depend");
    assert_snapshot!(go(&["old/gone.go"], &[]).words(), @"all tests: `old/gone.go` changed, and any test may depend on it");
    assert_snapshot!(go(&["log/words.txt"], &[]).words(), @"1 of 4 packages: 1 file changed");
    assert_snapshot!(go(&["schema.sql"], &[]).words(), @"all tests: `schema.sql` changed, and any test may depend on it");
    let broken = Dependencies::GoList { json: "{", root: "/p" };
    let affected =
        |framework, dependencies| super::affected(framework, &changed(&["a/b.go"]), dependencies, &[]);
    assert_snapshot!(affected(Framework::Go, broken).words(), @"all tests: the answer of `go list` cannot be read: EOF while parsing an object at line 1 column 1");
    assert_snapshot!(affected(Framework::Rspec, Dependencies::Unknown).words(), @"all tests: which tests a change reaches is not known of rspec");
}

#[test]
fn a_document_reaches_no_test() {
    let affected = go(&["README.md"], &[]);
    assert!(affected.is_nothing());
    assert_snapshot!(affected.words(), @"no tests: only documents changed, and no test depends on it");
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
    let ask =
        |framework, file, failed: &[String]| affected(framework, &changed(&[file]), dependencies, failed);
    assert_snapshot!(shown(&ask(Framework::CargoTest, "crates/core/src/lib.rs", &[])), @r#"
    2 of 3 packages: 1 file changed
    {"package":"shop-cli"}
    {"package":"shop-core"}
    skipped: shop-log
    "#);
    assert_snapshot!(shown(&ask(Framework::Nextest, "crates/core/src/lib.rs", &["tests::old".to_owned()])), @r#"
    1 file changed, and 1 test that failed before
    {"filter":"rdeps(=shop-core)"}
    {"filter":"test(=tests::old)"}
    skipped: shop-log
    "#);
    assert_snapshot!(ask(Framework::CargoTest, "fixtures/x.json", &[]).words(), @"all tests: `fixtures/x.json` changed, and belongs to no package");
}

fn python(files: &[&str]) -> Affected {
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
    affected(Framework::Pytest, &changed(files), Dependencies::Python(&imports), &[])
}

#[test]
fn a_python_module_reaches_the_tests_that_import_it_by_any_way() {
    assert_snapshot!(shown(&python(&["src/shop/price.py"])), @r#"
    3 of 4 test files: 1 file changed, files that compute what they import count as depending on everything
    {"file":"other/test_plugins.py"}
    {"file":"tests/unit/test_cart.py"}
    {"file":"tests/unit/test_price.py"}
    skipped: tests/unit/test_other.py
    "#);
}

#[test]
fn a_conftest_reaches_all_tests_below_it() {
    assert_snapshot!(shown(&python(&["src/shop/log.py"])), @r#"
    4 of 4 test files: 1 file changed, files that compute what they import count as depending on everything
    {"file":"other/test_plugins.py"}
    {"file":"tests/unit/test_cart.py"}
    {"file":"tests/unit/test_other.py"}
    {"file":"tests/unit/test_price.py"}
    skipped:
    "#);
    assert_snapshot!(shown(&python(&["tests/unit/test_other.py"])), @r#"
    2 of 4 test files: 1 file changed, files that compute what they import count as depending on everything
    {"file":"other/test_plugins.py"}
    {"file":"tests/unit/test_other.py"}
    skipped: tests/unit/test_cart.py, tests/unit/test_price.py
    "#);
    assert_snapshot!(python(&["tests/data.json"]).words(), @"all tests: `tests/data.json` changed, and any test may read it");
}

#[test]
fn jest_is_asked_itself() {
    let ask = |files: &[&str]| affected(Framework::Jest, &changed(files), Dependencies::Unknown, &[]);
    assert_snapshot!(shown(&ask(&["src/cart.ts", "test/__snapshots__/a.test.ts.snap"])), @r#"
    2 of 2 test files: 2 files changed, the runner follows imports that are written out, not computed ones
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
    assert_snapshot!(affected(Framework::Jest, &gone, Dependencies::Unknown, &[]).words(), @"all tests: `src/x.ts` is gone, and what imported it cannot be asked for");
}
