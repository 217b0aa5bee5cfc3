//! `--help` of every command.

use crate::env::TestEnv;

/// All commands without sub-commands, as they are written.
pub(crate) fn leaves(env: &TestEnv) -> Vec<Vec<String>> {
    commands(env).0
}

/// All commands without sub-commands, and all groups of commands, as they are written.
fn commands(env: &TestEnv) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
    let (mut leaves, mut groups) = (Vec::new(), Vec::new());
    let mut left = vec![Vec::new()];
    while let Some(path) = left.pop() {
        let below = subcommands(env, &path);
        left.extend(below.iter().map(|name| [path.clone(), vec![name.clone()]].concat()));
        match path.as_slice() {
            [] => {}
            _ if below.is_empty() => leaves.push(path),
            _ => groups.push(path),
        }
    }
    leaves.sort();
    groups.sort();
    (leaves, groups)
}

fn help(env: &TestEnv, path: &[String]) -> String {
    let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
    env.run(&args).ends_with(0).stdout
}

fn subcommands(env: &TestEnv, path: &[String]) -> Vec<String> {
    let help = help(env, path);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    listed
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect()
}

#[test]
fn every_command_has_an_example() {
    let env = TestEnv::without_repository();
    let (leaves, groups) = commands(&env);
    assert!(leaves.len() > 25 && groups.len() > 7, "{leaves:?} {groups:?}");
    for path in leaves.into_iter().chain(groups) {
        let help = help(&env, &path);
        let command = format!("rehearsal {}", path.join(" "));
        let examples: Vec<&str> = help.lines().skip_while(|line| !line.starts_with("Example")).collect();
        assert!(examples.iter().any(|line| line.contains(&command)), "{command}:\n{help}");
    }
}

/// Where no terminal says how wide it is.
const COLUMNS: usize = 100;

#[test]
fn no_help_breaks_a_line_before_it_is_full() {
    let env = TestEnv::without_repository();
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
    for path in leaves(&env) {
        let help = help(&env, &path);
        let lines: Vec<&str> = help.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair.iter().all(|line| is_prose(line))) {
            let next = pair[1].split(' ').next().unwrap();
            let together = pair[0].chars().count() + 1 + next.chars().count();
            assert!(together > COLUMNS, "{path:?}: `{next}` fits on the line before it\n{help}");
        }
    }
}

#[test]
fn exit_codes_are_listed() {
    let env = TestEnv::without_repository();
    let help = help(&env, &[]);
    for line in [
        "  2    usage or configuration",
        "  5    forge",
        "  75   rate-limited: try again later",
        "  124  timeout",
    ] {
        assert!(help.lines().any(|listed| listed == line), "{help}");
    }
}

#[test]
fn no_arguments_show_the_help_and_a_wrong_one_says_what_was_meant() {
    let env = TestEnv::without_repository();
    env.run(&[]).ends_with(2).says("Usage: rehearsal");
    insta::assert_snapshot!(env.run(&["taks", "list"]), @r"
    [stderr]
    error: unrecognized subcommand 'taks'

      tip: some similar subcommands exist: 'status', 'task'

    Usage: rehearsal [OPTIONS] <COMMAND>

    For more information, try '--help'.
    [exit 2]
    ");
    insta::assert_snapshot!(env.run(&["run", "--iteration", "3"]), @r"
    [stderr]
    error: unexpected argument '--iteration' found

      tip: a similar argument exists: '--iterations'

    Usage: rehearsal run --iterations <N> [SESSION]

    For more information, try '--help'.
    [exit 2]
    ");
    insta::assert_snapshot!(env.run(&["run", "--timeout", "soon"]), @r"
    [stderr]
    error: invalid value 'soon' for '--timeout <DURATION>': `soon` is not a duration: write `90s`, `30m`, `1h30m` or `2d`

    For more information, try '--help'.
    [exit 2]
    ");
}
