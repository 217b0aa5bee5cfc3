//! What a command line in a project's file calls: `cross-env CI=1 nyc mocha -r ts-node/register "test/**/*.ts"`.

use std::collections::BTreeMap;

/// Programs that run another program which is named after their own options.
const WRAPPERS: [&str; 13] =
    ["cross-env", "env", "npx", "bunx", "pnpx", "nyc", "c8", "dotenv", "exec", "time", "yarn", "pnpm", "dlx"];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ScriptCommand {
    /// Variables set before it.
    pub env: BTreeMap<String, String>,
    /// The program without its directory.
    pub program: String,
    /// What it is given.
    pub args: Vec<String>,
}

/// The commands of a script, in their order. What no list of simple commands is (pipes, `$(…)`, loops) gives what can be made out.
pub(super) fn commands(script: &str) -> Vec<ScriptCommand> {
    let mut commands = Vec::new();
    for piece in pieces(script) {
        if let Some(words) = shlex::split(piece)
            && let Some(command) = command_of(words)
        {
            commands.push(command);
        }
    }
    commands
}

/// Cut at `&&`, `||`, `;`, `|` and `&` outside of quotes.
fn pieces(script: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut quote) = (0, None);
    for (at, character) in script.char_indices() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, '&' | '|' | ';' | '\n') => {
                pieces.push(&script[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&script[start..]);
    pieces
}

fn command_of(words: Vec<String>) -> Option<ScriptCommand> {
    let mut env = BTreeMap::new();
    let mut words = words.into_iter().peekable();
    loop {
        let word = words.next()?;
        if let Some((name, value)) = assignment(&word) {
            env.insert(name.to_owned(), value.to_owned());
            continue;
        }
        let program = word.rsplit('/').next().unwrap_or(&word).trim_end_matches(".js").to_owned();
        let runs_another =
            words.peek().is_some_and(|next| !matches!(next.as_str(), "run" | "test" | "workspaces" | "-r"));
        if WRAPPERS.contains(&program.as_str()) && runs_another {
            while words.next_if(|word| word.starts_with('-')).is_some() {}
            continue;
        }
        return Some(ScriptCommand { env, program, args: words.collect() });
    }
}

fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name =
        !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit());
    is_name.then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(script: &str) -> Vec<String> {
        commands(script).iter().map(|it| format!("{:?} {} {:?}", it.env, it.program, it.args)).collect()
    }

    #[test]
    fn wrappers_and_variables_are_looked_through() {
        assert_eq!(
            told("cross-env CI=1 nyc --silent mocha -r ts-node/register \"test/**/*.ts\" && eslint . "),
            [r#"{"CI": "1"} mocha ["-r", "ts-node/register", "test/**/*.ts"]"#, r#"{} eslint ["."]"#]
        );
        assert_eq!(told("npx jest --ci; yarn vitest run"), [r#"{} jest ["--ci"]"#, r#"{} vitest ["run"]"#]);
        assert_eq!(told("node ./node_modules/.bin/jest"), [r#"{} node ["./node_modules/.bin/jest"]"#]);
        assert_eq!(told("yarn workspaces run test"), [r#"{} yarn ["workspaces", "run", "test"]"#]);
    }

    #[test]
    fn what_is_no_command_line_gives_nothing() {
        assert_eq!(told("'"), Vec::<String>::new());
        assert_eq!(told(""), Vec::<String>::new());
        assert_eq!(told("A=1"), Vec::<String>::new());
    }
}
