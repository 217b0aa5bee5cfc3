use super::*;

fn members() -> Vec<Member> {
    let member = |name: &str, only_looks| Member {
        name: AgentName::new(name).unwrap(),
        about: String::new(),
        only_looks,
    };
    vec![member("search", true), member("code", false), member("test", false)]
}

fn checked(text: &str) -> Result<Plan, PlanErrors> {
    Plan::check(PlanFile::read(text).map_err(PlanErrors::from)?, &members())
}

fn refused(text: &str) -> String {
    checked(text).unwrap_err().0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_plan_knows_its_order_and_who_only_looks() {
    let plan = checked(
        r#"{"tasks": [
            {"id": "t", "agent": "test", "description": "Test it", "depends_on": ["c"]},
            {"id": "c", "agent": "code", "description": "Do it", "depends_on": ["a", "b"], "touches": ["src/**"]},
            {"id": "a", "agent": "search", "description": "Find it"},
            {"id": "b", "agent": "search", "description": "Find the other"}
        ]}"#,
    )
    .unwrap();
    let order: Vec<String> = plan
        .in_order()
        .iter()
        .map(|step| {
            format!("{} {} {}", step.depth, step.task.id, if step.only_looks { "looks" } else { "works" })
        })
        .collect();
    assert_eq!(order, ["0 a looks", "0 b looks", "1 c works", "2 t works"]);
    assert_eq!(PlanFile::read(&serde_json::to_string(&plan.file()).unwrap()).unwrap(), plan.file());
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    insta::assert_snapshot!(refused(
        r#"{"tasks": [
            {"id": "find it", "agent": "serch", "description": "x"},
            {"id": "a", "agent": "gardener", "description": "  "},
            {"id": "a", "agent": "code", "description": "y", "depends_on": ["find-it", "zebra"]}
        ]}"#
    ), @"
    `find it` is no id: up to 40 letters, digits, `-` and `_`
    task `a` has no description
    task `a` depends on `find-it`, which is not in the plan: did you mean `find it`?
    task `a` depends on `zebra`, which is not in the plan
    two tasks have the id `a`
    task `find it` is for agent `serch`, and there is none: did you mean `search`?
    task `a` is for agent `gardener`, and there is none: there are code, search, test
    ");
}

#[test]
fn tasks_that_wait_for_each_other_are_told_in_their_circle() {
    let circle = r#"{"tasks": [
        {"id": "z", "agent": "code", "description": "x", "depends_on": ["a"]},
        {"id": "a", "agent": "code", "description": "x", "depends_on": ["b"]},
        {"id": "b", "agent": "code", "description": "x", "depends_on": ["c"]},
        {"id": "c", "agent": "code", "description": "x", "depends_on": ["a"]}
    ]}"#;
    assert_eq!(refused(circle), "tasks wait for each other in a circle: a → b → c → a");
    let own = r#"{"tasks": [{"id": "a", "agent": "code", "description": "x", "depends_on": ["a"]}]}"#;
    assert_eq!(refused(own), "tasks wait for each other in a circle: a → a");
}

#[test]
fn a_plan_is_not_empty_and_not_endless() {
    assert_eq!(refused(r#"{"tasks": []}"#), "it has no tasks");
    let many: Vec<String> =
        (0..51).map(|at| format!(r#"{{"id": "t{at}", "agent": "code", "description": "x"}}"#)).collect();
    assert_eq!(
        refused(&format!(r#"{{"tasks": [{}]}}"#, many.join(","))),
        "it has 51 tasks, at most 50: plan a part of it"
    );
    let long =
        format!(r#"{{"tasks": [{{"id": "t", "agent": "code", "description": "{}"}}]}}"#, "x".repeat(10_001));
    assert_eq!(refused(&long), "task `t` has a description of 10001 characters, at most 10000");
    assert_eq!(refused(&" ".repeat(600_000)), "it is 600000 bytes long, at most 524288 are read");
}

#[test]
fn a_key_that_nobody_knows_is_not_passed_over_because_it_may_be_a_dependency() {
    assert_eq!(
        refused(r#"{"tasks": [{"id": "a", "agent": "code", "description": "x", "dependsOn": []}]}"#),
        "it is not a plan: unknown field `dependsOn`, expected one of `id`, `agent`, `description`, `depends_on`, \
         `touches` at line 1 column 71"
    );
    assert_eq!(
        refused("[]"),
        "it is not a plan: invalid length 0, expected struct PlanFile with 1 element at line 1 column 2"
    );
    assert_eq!(refused(""), "it is not a plan: there is nothing");
}

proptest::proptest! {
    #[test]
    fn no_plan_panics_and_every_order_keeps_dependencies(
        edges in proptest::collection::vec((0usize..8, 0usize..8), 0..14),
    ) {
        let task = |at: usize| PlannedTask {
            id: format!("t{at}"),
            agent: "code".into(),
            description: "x".into(),
            depends_on: edges.iter().filter(|(from, _)| *from == at).map(|(_, to)| format!("t{to}")).collect(),
            touches: Vec::new(),
        };
        match Plan::check(PlanFile { tasks: (0..8).map(task).collect() }, &members()) {
            Ok(plan) => {
                let mut done: Vec<&str> = Vec::new();
                for step in plan.in_order() {
                    assert!(step.task.depends_on.iter().all(|on| done.contains(&on.as_str())));
                    done.push(&step.task.id);
                }
            }
            Err(PlanErrors(errors)) => {
                let [PlanError::Cycle { way }] = &errors[..] else { panic!("{errors:?}") };
                assert!(way.len() >= 2 && way.first() == way.last());
                for pair in way.windows(2) {
                    let edge = (pair[0][1..].parse().unwrap(), pair[1][1..].parse().unwrap());
                    assert!(edges.contains(&edge));
                }
            }
        }
    }
}
