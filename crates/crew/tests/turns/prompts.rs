//! What each role is told: a change of it is meant, or it is a mistake.

use rehearsal_crew::{Role, Roles, SYSTEM_BUDGET, Surroundings, system_prompt};

fn surroundings(conventions: &str) -> Surroundings {
    Surroundings {
        conventions: conventions.to_owned(),
        layout: "Cargo.toml\nsrc/\nsrc/main.rs".to_owned(),
        readme: "# Greeter\n\nSays hello.".to_owned(),
    }
}

fn role(name: &str) -> Role {
    Roles::built_in().unwrap().get(name).unwrap().clone()
}

fn prompt(name: &str, conventions: &str) -> String {
    let prompt = system_prompt(&role(name), None, &surroundings(conventions), SYSTEM_BUDGET);
    assert!(prompt.dropped.is_empty());
    prompt.text
}

const CONVENTIONS: &str = "- Tabs, not spaces.\n- Tests beside the code.";

fn names() -> Vec<String> {
    Roles::built_in().unwrap().iter().map(|(role, _)| role.name.clone()).collect()
}

#[test]
fn the_prompt_of_each_role_without_conventions() {
    for name in names() {
        insta::assert_snapshot!(format!("{name}_without_conventions"), prompt(&name, ""));
    }
}

#[test]
fn the_prompt_of_each_role_with_conventions() {
    for name in names() {
        insta::assert_snapshot!(format!("{name}_with_conventions"), prompt(&name, CONVENTIONS));
    }
}

#[test]
fn code_and_review_are_told_the_conventions_where_there_are_some() {
    for name in ["code", "review"] {
        let told = prompt(name, CONVENTIONS);
        assert!(told.contains("\n## Conventions\n\n- Tabs, not spaces.\n"), "{told}");
    }
}

#[test]
fn there_is_no_section_for_conventions_where_there_are_none() {
    for name in names() {
        assert!(!prompt(&name, " \n").contains("## Conventions"));
    }
}

#[test]
fn only_init_is_not_told_of_the_project() {
    for name in names() {
        let is_told = prompt(&name, CONVENTIONS).contains("# Greeter");
        assert_eq!(is_told, name != "init", "{name}");
        assert_eq!(role(&name).project_context, name != "init", "{name}");
    }
}

#[test]
fn what_a_profile_adds_comes_after_the_roles_own_words() {
    let prompt = system_prompt(&role("code"), Some("Speak French."), &surroundings(""), SYSTEM_BUDGET).text;
    let (own, rest) = prompt.split_once("\nSpeak French.\n").unwrap();
    assert!(own.starts_with("You are a software engineer") && rest.contains("## Layout"));
}

#[test]
fn a_project_says_what_it_is_by_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let root = camino::Utf8Path::from_path(directory.path()).unwrap();
    let write = |name: &str, text: &str| fs_err::write(root.join(name), text).unwrap();
    fs_err::create_dir_all(root.join("src/deep")).unwrap();
    fs_err::create_dir_all(root.join(".git")).unwrap();
    write("README.md", "# Greeter\n");
    write("AGENTS.md", "Be brief.\n");
    write(".gitignore", "target\n");
    write("target", "ignored");
    write("src/main.rs", "fn main() {}");
    write("src/deep/er.rs", "");
    std::os::unix::fs::symlink("AGENTS.md", root.join("CLAUDE.md")).unwrap();
    let known = Surroundings::of(root);
    assert_eq!((known.conventions.as_str(), known.readme.as_str()), ("Be brief.", "# Greeter"));
    insta::assert_snapshot!(known.layout, @"
    AGENTS.md
    CLAUDE.md
    README.md
    src/
    src/deep/
    src/main.rs
    ");
}

#[test]
fn a_readme_that_is_a_link_out_of_the_project_or_a_pipe_is_not_read() {
    let (outside, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs_err::write(outside.path().join("secret"), "a secret").unwrap();
    let root = camino::Utf8Path::from_path(directory.path()).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), root.join("README.md")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("AGENTS.md").as_std_path(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let known = Surroundings::of(root);
    assert_eq!((known.conventions.as_str(), known.readme.as_str()), ("", ""));
}
