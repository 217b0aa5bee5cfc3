//! What each role may do, and which tools follow from it.

use rehearsal_crew::{Permission, Permissions, Role, Roles};

fn roles() -> Vec<Role> {
    Roles::built_in().unwrap().iter().map(|(role, _)| role.clone()).collect()
}

fn has(role: &Role, tools: &[&str]) -> bool {
    role.tools.iter().any(|tool| tools.contains(&tool.as_str()))
}

#[test]
fn each_role_may_do_what_the_table_says() {
    let none = Permissions::default();
    let read = Permissions { read: true, ..none };
    let table = [
        ("search", read),
        ("research", Permissions { web: true, ..read }),
        ("code", Permissions { write: true, execute: true, ..read }),
        ("review", read),
        ("test", Permissions { write: true, execute: true, ..read }),
        ("qa", Permissions { execute: true, ..read }),
        ("docs", Permissions { write: true, ..read }),
        ("init", Permissions { write: true, ..read }),
    ];
    let is: Vec<(String, Permissions)> =
        roles().into_iter().map(|role| (role.name, role.permissions)).collect();
    assert_eq!(is, table.map(|(name, permissions)| (name.to_owned(), permissions)));
}

#[test]
fn a_role_that_may_not_write_has_no_tool_that_writes() {
    for role in roles() {
        let may = role.permissions.allow(Permission::Write);
        assert_eq!(has(&role, &["write_file", "edit_file"]), may, "{}", role.name);
    }
}

#[test]
fn a_role_that_may_not_execute_has_no_shell() {
    for role in roles() {
        let may = role.permissions.allow(Permission::Execute);
        assert_eq!(has(&role, &["bash", "run_tests"]), may, "{}", role.name);
    }
}

#[test]
fn a_role_that_may_not_ask_the_web_cannot_search_it() {
    for role in roles() {
        let may = role.permissions.allow(Permission::Web);
        assert_eq!(has(&role, &["web_search"]), may, "{}", role.name);
    }
}

#[test]
fn reviewers_decide_and_look_at_the_change() {
    for role in roles() {
        let decides = ["review", "qa"].contains(&role.name.as_str());
        assert_eq!(has(&role, &["decide"]), decides, "{}", role.name);
        assert!(!decides || has(&role, &["git_diff"]), "{}", role.name);
    }
}

#[test]
fn only_research_has_a_suffix_for_its_model() {
    let with: Vec<_> = roles().into_iter().filter_map(|role| Some((role.name, role.model_suffix?))).collect();
    assert_eq!(with, [("research".to_owned(), ":online".to_owned())]);
}
