//! The evals in `examples/evals`: they run as they are, with the real planner and the real crew, and a model from a script.

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::stage::OpenStage;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/evals");

fn example(name: &str) -> String {
    let path = format!("{EXAMPLES}/{name}.yaml");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A project into which all of them were copied.
fn project() -> TestEnv {
    let env = TestEnv::new();
    env.file(".rehearsal/config.yaml", example("config"));
    for name in ["smoke", "routing", "format", "budget"] {
        env.file(&format!(".rehearsal/evals/{name}.yaml"), example(name));
    }
    env.commit("Measure");
    env
}

#[test]
fn the_shipped_evals_pass_without_a_token_and_could_fail() {
    let env = project();
    let stage = OpenStage::open(&env, &example("model"));
    let vars = [("ANTHROPIC_BASE_URL", stage.url()), ("ANTHROPIC_API_KEY", "a-key-for-the-stage")];
    let ran = env.run_with_vars(&vars, &["eval", "run", "--live", "--jobs", "1"]);
    let (closed, _) = stage.close();
    assert_eq!((ran.code, &closed["clean"]), (0, &true.into()), "{closed}\n{ran}");
    let passed: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with('✓')).collect();
    assert_snapshot!(passed.join("\n"), @"
    ✓ planner: pass rate 1: 1 of 1 passed
    ✓ search: pass rate 1: 1 of 1 passed
    ✓ planner: pass rate 1: 1 of 1 passed
    ✓ planner: pass rate 1: 5 of 5 passed
    ✓ search: pass rate 1: 1 of 1 passed
    ");
    let teeth = env.run(&["eval", "mutate"]).ends_with(0);
    assert_eq!(teeth.stdout.lines().filter(|line| line.starts_with('✓')).count(), 9, "{teeth}");
}

#[test]
fn a_model_that_plans_otherwise_fails_the_shipped_evals() {
    let env = project();
    let worse = example("model")
        .replace(r#""agent": "docs""#, r#""agent": "code""#)
        .replace("There is one test file, test_cart.py.", "I found nothing.");
    let stage = OpenStage::open(&env, &worse);
    let vars = [("ANTHROPIC_BASE_URL", stage.url()), ("ANTHROPIC_API_KEY", "a-key-for-the-stage")];
    env.run_with_vars(&vars, &["eval", "run", "routing", "--live"])
        .ends_with(3)
        .says("✗ planner: pass rate 1: 4 of 5 passed")
        .says("contains: \"agent\":\"docs\": the final text does not contain");
    env.run_with_vars(&vars, &["eval", "run", "smoke", "--live"]).ends_with(3).says(
        "output_matches: test_cart.py: the final text does not contain `test_cart.py`: \"I found nothing.\"",
    );
    stage.close();
}
