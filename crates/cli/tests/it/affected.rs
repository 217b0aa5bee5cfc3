//! `test --affected`: only what a change can reach, and nothing that passed with these very files.

use insta::assert_snapshot;
use regex::Regex;

use crate::env::TestEnv;

/// Two tests in the form that every shell can print.
const PASSES: &str = "testing:\n  framework: tap\n  command: printf '1..2\\nok 1 - adds\\nok 2 - sums\\n'\n";

fn with_command() -> TestEnv {
    let env = TestEnv::new();
    env.file(".gitignore", ".rehearsal/state/\n").file(".rehearsal/config.yaml", PASSES);
    env.file("cart.sh", "echo cart\n").commit("Add a cart");
    env.file("cart.sh", "echo a cart\n").commit("Change the cart");
    env
}

/// What people see, without what differs from run to run.
fn seen(env: &TestEnv, args: &[&str]) -> String {
    let shown = env.run(args).to_string();
    let times = Regex::new(r"\b\d+(\.\d+)?m?s\b").unwrap().replace_all(&shown, "[TIME]").into_owned();
    Regex::new(r"since run \w{8}").unwrap().replace_all(&times, "since run [RUN]").into_owned()
}

#[test]
fn files_that_passed_as_a_whole_are_not_tested_again() {
    let env = with_command();
    assert_snapshot!(seen(&env, &["test", "--affected"]), @"
    PASSED  tap  2 tests: 2 passed in [TIME]
     chosen: all tests: a command cannot be told which tests to run
    ");
    assert_snapshot!(seen(&env, &["test", "--affected"]), @"
    PASSED  tap  2 tests: 2 passed in [TIME]
       note: nothing changed since run [RUN], [TIME] ago: 2 tests passed (files that git ignores are not looked at)
    ");
    assert_snapshot!(seen(&env, &["test", "--affected", "--explain"]), @"
    tap in .
    would not run: tap: nothing changed since run [RUN], [TIME] ago: 2 tests passed (files that git ignores are not looked at)
    ");
    let document = env.json(&["test", "--affected"]);
    assert_eq!((&document["verdict"], &document["summary"]["total"]), (&"passed".into(), &2.into()));
    assert_eq!(document["earlier_run"]["run"].as_str().unwrap().len(), 8);
    // Who asks for a run gets one.
    env.must(&["test"]).never_says("nothing changed");
    // A result counts for the files and the settings that it was had with.
    env.must(&["test", "--affected", "--env", "LEVEL=2"]).never_says("nothing changed");
    env.file("cart.sh", "echo no cart\n");
    env.must(&["test", "--affected"]).never_says("nothing changed").says("chosen: all tests");
}

#[test]
fn what_failed_or_was_only_a_part_is_run_again() {
    let env = with_command();
    env.must(&["test", "adds", "--sandbox", "off"]);
    env.must(&["test", "--affected", "--sandbox", "off"]).never_says("nothing changed");
    // It passed, but then it did not, with the same files.
    let fails = ["--command", "echo 1..1; echo not ok 1 - adds; exit 1"];
    env.run(&[&["test", "--sandbox", "off"], &fails[..]].concat()).ends_with(3);
    env.must(&["test", "--affected", "--sandbox", "off"]).never_says("nothing changed");
}

#[test]
fn a_change_that_reaches_no_tests_is_good_without_a_run() {
    let env = with_command();
    env.git(&["switch", "--quiet", "--create", "words"]);
    env.file("README.md", "# More greetings\n").commit("Say more");
    assert_snapshot!(seen(&env, &["test", "--affected"]), @"
    UNAFFECTED  tap  the change reaches no tests
        why: no tests: only documents changed since `main`
    ");
    let document = env.json(&["test", "--affected"]);
    assert_eq!((&document["verdict"], &document["success"]), (&"unaffected".into(), &true.into()));
    assert_eq!(document["affected"]["skipped_by_selection"], 0);
    assert_snapshot!(seen(&env, &["test", "--affected", "--agent"]), @"
    Test execution completed:
    Framework: tap
    Status: UNAFFECTED (no tests ran)
    Duration: [TIME]
    Reason: no tests: only documents changed since `main`
    ");
    // The base is known, and the work left it before the cart changed.
    assert_snapshot!(seen(&env, &["test", "--changed-since", "main~1"]), @"
    PASSED  tap  2 tests: 2 passed in [TIME]
     chosen: all tests: a command cannot be told which tests to run
    ");
}

/// With unittest, which comes with Python.
#[test]
fn a_module_reaches_only_the_tests_that_import_it() {
    let path = std::env::var("PATH").unwrap();
    if !std::env::split_paths(&path).any(|directory| directory.join("python3").is_file()) {
        return;
    }
    let env = TestEnv::new().var("PATH", &path);
    env.file(".gitignore", ".rehearsal/state/\n__pycache__/\n").file("shop/__init__.py", "");
    for name in ["cart", "price"] {
        let module = format!("shop.{name}");
        let test = format!(
            "import unittest\nfrom {module} import one\n\n\nclass Test{name}(unittest.TestCase):\n    \
             def test_one(self):\n        self.assertEqual(one, 1)\n"
        );
        env.file(&format!("shop/{name}.py"), "one = 1\n").file(&format!("tests/test_{name}.py"), test);
    }
    env.file("tests/__init__.py", "").commit("Add a shop");
    env.file("shop/cart.py", "one = 2 - 1\n").commit("Change the cart");
    assert_snapshot!(seen(&env, &["test", "--framework", "unittest", "--affected", "--sandbox", "off"]), @"
    PASSED  unittest  1 test: 1 passed in [TIME]
     chosen: 1 of 2 test files: 1 file changed in the last commit or after it
    skipped: tests/test_price.py
    ");
    env.file("data.csv", "1\n");
    env.must(&["test", "--framework", "unittest", "--affected", "--sandbox", "off"])
        .says("chosen: all tests: `data.csv` changed, and any test may read it");
}

#[test]
fn since_when_must_be_known_to_git() {
    let env = with_command();
    assert_snapshot!(env.run(&["test", "--changed-since", "nowhere"]), @"
    [stderr]
    error: `nowhere` is not a commit of this repository
    [exit 4]
    ");
}

#[test]
fn a_crate_reaches_only_those_that_depend_on_it() {
    let env = cargo_workspace();
    let affected = ["test", "--framework", "cargo-test", "--affected"];
    env.file("core/src/lib.rs", with_test("1 + 0")).commit("Change the core");
    assert_snapshot!(seen(&env, &affected), @"
    PASSED  cargo-test  2 tests: 2 passed in [TIME]
     chosen: 2 of 3 packages: 1 file changed in the last commit or after it
    skipped: shop-log
    ");
    env.file("log/src/lib.rs", with_test("2")).commit("Break the log");
    env.run(&affected)
        .ends_with(3)
        .says("chosen: 1 of 3 packages: 1 file changed in the last commit or after it")
        .says("skipped: shop-cli, shop-core");
    // What failed is run until it passes, whatever changes.
    env.file("README.md", "# Words\n").commit("Say more");
    env.run(&affected)
        .ends_with(3)
        .says("only documents changed in the last commit or after it, and 1 test that failed before");
    env.file("Cargo.toml", format!("{WORKSPACE}# more\n")).commit("Configure");
    env.run(&affected)
        .ends_with(3)
        .says("chosen: all tests: `Cargo.toml` changed, on which everything may depend");
}

const WORKSPACE: &str = "[workspace]\nmembers = ['core', 'cli', 'log']\nresolver = '3'\n";

fn cargo_workspace() -> TestEnv {
    let mut env = TestEnv::new();
    // Where the toolchain is; settings of ours are still looked for in the scratch home.
    for name in ["HOME", "PATH", "RUSTUP_HOME", "CARGO_HOME", "RUSTUP_TOOLCHAIN"] {
        if let Ok(value) = std::env::var(name) {
            env = env.var(name, &value);
        }
    }
    env.file(".gitignore", "target\n.rehearsal/state/\n");
    env.file("Cargo.toml", WORKSPACE);
    for (name, dependencies) in [("core", ""), ("cli", "shop-core = { path = '../core' }\n"), ("log", "")] {
        let package = format!("[package]\nname = 'shop-{name}'\nversion = '0.1.0'\nedition = '2024'\n");
        env.file(
            &format!("{name}/Cargo.toml"),
            format!("{package}[lib]\ndoctest = false\n[dependencies]\n{dependencies}"),
        );
        env.file(&format!("{name}/src/lib.rs"), with_test("1"));
    }
    let packages = ["cli\"\ndependencies = [\"shop-core\"]", "core\"", "log\""];
    let lock: String = packages
        .iter()
        .map(|rest| {
            let (name, rest) = rest.split_once('"').unwrap();
            format!("\n[[package]]\nname = \"shop-{name}\"\nversion = \"0.1.0\"{rest}\n")
        })
        .collect();
    env.file("Cargo.lock", format!("version = 4\n{lock}")).commit("Add three crates");
    env
}

fn with_test(value: &str) -> String {
    format!("pub fn one() -> u32 {{ {value} }}\n#[test]\nfn it_is_one() {{ assert_eq!(one(), 1); }}\n")
}
