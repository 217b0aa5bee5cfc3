use super::*;

fn roles() -> Roles {
    Roles::built_in().unwrap()
}

/// The built-in roles with one more file.
fn with(name: &str, text: &str) -> Result<Roles, RoleError> {
    let directory = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(directory.path()).unwrap();
    fs_err::write(path.join(name), text).unwrap();
    roles().with_those_in(path)
}

fn wrong(name: &str, text: &str) -> String {
    match with(name, text).unwrap_err() {
        RoleError::Wrong { error, .. } => {
            let place = error.place.map_or_else(|| "nowhere".to_owned(), |place| place.to_string());
            format!("{place}: {}\n{}", error.message, error.hint.unwrap_or_default())
        }
        other => other.to_string(),
    }
}

#[test]
fn a_file_changes_only_the_keys_that_it_has() {
    let changed = with("code.yaml", "turns: 7\nmodel: openai:gpt\n").unwrap();
    let (code, was) = (changed.get("code").unwrap().clone(), roles().get("code").unwrap().clone());
    assert_eq!((code.turns, code.model.as_deref()), (7, Some("openai:gpt")));
    assert_eq!(Role { turns: was.turns, model: None, ..code }, was);
    let origin = changed.iter().find(|(role, _)| role.name == "code").unwrap().1;
    assert!(matches!(origin, RoleOrigin::Changed(path) if path.ends_with("code.yaml")));
}

#[test]
fn a_role_of_ones_own_is_listed_after_those_that_are_built_in() {
    let text =
        "about: Looks for holes\nprompt: Look.\ntools: [read_file, grep]\npermissions: { read: true }\n";
    let own = with("audit.yaml", text).unwrap();
    let names: Vec<&str> = own.iter().map(|(role, _)| role.name.as_str()).collect();
    assert_eq!(names, ["search", "research", "code", "review", "test", "qa", "docs", "init", "audit"]);
    assert!(own.get("audit").unwrap().project_context);
}

#[test]
fn a_directory_that_is_not_there_has_no_roles() {
    assert_eq!(roles().with_those_in("/there/is/nothing".into()).unwrap(), roles());
}

#[test]
fn what_is_wrong_in_a_file_is_told_with_its_place() {
    insta::assert_snapshot!(wrong("code.yaml", "turns: 7\ntimeuot: 3m\n"), @"
    2:1: unknown field `timeuot`, expected one of about, prompt, tools, permissions, timeout, max_timeout, turns, model, model_suffix, project_context, hooks, mcp, web_search
    did you mean `timeout`?
    ");
    insta::assert_snapshot!(wrong("search.yaml", "tools:\n  - read_file\n  - write_file\n"), @"
    3:5: the tool `write_file` needs the permission `write`, which `search` does not have
    write `write: true` under `permissions`, or take the tool away
    ");
    insta::assert_snapshot!(wrong("search.yaml", "tools: [read_fiel]\n"), @"
    1:9: there is no tool `read_fiel`
    did you mean `read_file`?
    ");
    insta::assert_snapshot!(wrong("search.yaml", "permissions: { read: false }\n"), @"
    1:14: the tool `read_file` needs the permission `read`, which `search` does not have
    write `read: true` under `permissions`, or take the tool away
    ");
    insta::assert_snapshot!(wrong("code.yaml", "turns: 0\n"), @"1:8: `turns` must be at least 1");
    insta::assert_snapshot!(wrong("code.yaml", "max_timeout: 1m\n"), @"1:14: `max_timeout` (1m) is shorter than `timeout` (20m)");
    insta::assert_snapshot!(wrong("audit.yaml", "about: Looks for holes\n"), @"
    1:1: the new role `audit` has no `tools`
    a role that is not built in needs `about`, `prompt`, `tools` and `permissions`
    ");
    insta::assert_snapshot!(wrong("Not A Name.yaml", "turns: 1\n"), @"
    nowhere: `Not A Name` is not a valid agent name: only letters, digits, `-`, `_` and `.` are allowed
    a role is called like its file, without `.yaml`
    ");
    insta::assert_snapshot!(wrong("code.yaml", "turns: many\n"), @"1:8: expected a whole number");
}

#[test]
fn a_slip_of_the_finger_in_a_role_is_understood() {
    let RoleError::Unknown { near, .. } = roles().get("reviw").unwrap_err() else { panic!() };
    assert_eq!(near.as_deref(), Some("review"));
    assert_eq!(roles().get("cook").unwrap_err().to_string(), "there is no role `cook`");
}

#[test]
fn a_pipe_or_a_giant_in_the_directory_is_refused_and_not_read() {
    let error = with("big.yaml", &"#".repeat(300 << 10)).unwrap_err();
    assert!(error.to_string().ends_with("big.yaml` cannot be read"), "{error}");
}

#[test]
fn every_tool_is_known_with_what_it_needs() {
    assert_eq!(crate::toolbox::NEEDS.map(|(name, _)| name), crate::TOOL_NAMES);
}
