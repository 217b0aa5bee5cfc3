//! `package.json`, as far as it tells of tests.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::Framework;
use crate::detect::Invocation;
use crate::detect::script::{ScriptCommand, commands};

/// Scripts call scripts; further than this nobody follows.
const DEEPEST: usize = 4;

/// What npm writes into every new package.
const PLACEHOLDER: &str = "no test specified";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Package {
    #[serde(default)]
    scripts: BTreeMap<String, String>,
    #[serde(default)]
    dependencies: BTreeMap<String, Version>,
    #[serde(default)]
    dev_dependencies: BTreeMap<String, Version>,
    #[serde(default)]
    workspaces: Option<Workspaces>,
    jest: Option<IgnoredAny>,
    vitest: Option<IgnoredAny>,
    mocha: Option<IgnoredAny>,
    ava: Option<IgnoredAny>,
}

/// A version, a path, an address: what it is does not matter here.
type Version = serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Workspaces {
    Globs(Vec<String>),
    Packages { packages: Vec<String> },
    Other(IgnoredAny),
}

impl Package {
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text.trim_start_matches('\u{feff}'))
    }

    pub(super) fn depends_on(&self, name: &str) -> bool {
        self.dependencies.contains_key(name) || self.dev_dependencies.contains_key(name)
    }

    pub(super) fn has_section(&self, name: &str) -> bool {
        match name {
            "jest" => self.jest.is_some(),
            "vitest" => self.vitest.is_some(),
            "mocha" => self.mocha.is_some(),
            "ava" => self.ava.is_some(),
            _ => false,
        }
    }

    pub(super) fn workspaces(&self) -> &[String] {
        match &self.workspaces {
            Some(Workspaces::Globs(globs) | Workspaces::Packages { packages: globs }) => globs,
            Some(Workspaces::Other(_)) | None => &[],
        }
    }

    /// The `test` script, unless it is the one that npm puts there.
    pub(super) fn test_script(&self) -> Option<&str> {
        let script = self.scripts.get("test")?.trim();
        (!script.is_empty() && !script.contains(PLACEHOLDER)).then_some(script)
    }

    /// Whether the `test` script hands on to the tests of the workspaces.
    pub(super) fn delegates(&self) -> bool {
        let script = self.test_script().unwrap_or_default();
        commands(script).iter().any(|command| {
            let word = |word: &str| command.args.iter().any(|it| it == word);
            match command.program.as_str() {
                "lerna" | "turbo" | "nx" | "wsrun" | "rush" | "ultra" => true,
                "npm" => word("--workspaces") || word("-ws"),
                "yarn" => word("workspaces"),
                "pnpm" => word("-r") || word("--recursive") || word("--filter"),
                "bun" => word("--filter"),
                _ => false,
            }
        })
    }

    /// The runners that the tests' script calls, directly or through other scripts, with what it gives them and the
    /// script's name.
    pub(super) fn called_by_tests(&self) -> Vec<(Framework, Invocation, String)> {
        let mut called = Vec::new();
        if self.test_script().is_some() {
            self.follow("test", &BTreeMap::new(), &mut BTreeSet::new(), &mut called);
        }
        called
    }

    fn follow(
        &self,
        script: &str,
        env: &BTreeMap<String, String>,
        followed: &mut BTreeSet<String>,
        called: &mut Vec<(Framework, Invocation, String)>,
    ) {
        if followed.len() >= DEEPEST || !followed.insert(script.to_owned()) {
            return;
        }
        for mut command in commands(self.scripts.get(script).map_or("", String::as_str)) {
            for (name, value) in env {
                command.env.entry(name.clone()).or_insert_with(|| value.clone());
            }
            if let Some((framework, invocation)) = runner_of(&command) {
                if !called.iter().any(|(known, ..)| *known == framework) {
                    called.push((framework, invocation, script.to_owned()));
                }
            } else {
                for next in called_scripts(&command) {
                    self.follow(next, &command.env, followed, called);
                }
            }
        }
    }
}

/// The scripts that a command runs.
fn called_scripts(command: &ScriptCommand) -> Vec<&str> {
    let mut words = command.args.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
    match command.program.as_str() {
        "npm" | "pnpm" | "yarn" | "bun" => match words.next() {
            Some("run" | "run-script") => words.next().into_iter().collect(),
            Some(script) => vec![script],
            None => Vec::new(),
        },
        "run-s" | "run-p" | "npm-run-all" => words.collect(),
        _ => Vec::new(),
    }
}

/// The runner that a command is, and what it is given.
fn runner_of(command: &ScriptCommand) -> Option<(Framework, Invocation)> {
    let mut args = command.args.clone();
    let mut env = command.env.clone();
    let first = args.first().cloned().unwrap_or_default();
    let framework = match command.program.as_str() {
        "jest" => Framework::Jest,
        "vitest" => Framework::Vitest,
        "mocha" | "_mocha" => Framework::Mocha,
        "ava" => Framework::Ava,
        "bun" if first == "test" => Framework::Bun,
        "deno" if first == "test" => Framework::Deno,
        "node" if args.iter().any(|arg| arg == "--test") => Framework::NodeTest,
        "node" => return runner_of_node(&args, &env),
        _ => return None,
    };
    match framework {
        Framework::Vitest => args.retain(|arg| !matches!(arg.as_str(), "run" | "watch" | "dev")),
        Framework::Bun | Framework::Deno => drop(args.remove(0)),
        Framework::NodeTest => args.retain(|arg| arg != "--test"),
        _ => {}
    }
    env.remove("NODE_V8_COVERAGE");
    let args = without_presentation(args);
    Some((framework, Invocation { args, env, ..Invocation::default() }))
}

/// `node --experimental-vm-modules node_modules/jest/bin/jest.js --ci`: node's own options go into a variable.
fn runner_of_node(args: &[String], env: &BTreeMap<String, String>) -> Option<(Framework, Invocation)> {
    let at = args.iter().position(|arg| !arg.starts_with('-'))?;
    let program = args[at].rsplit('/').next()?.trim_end_matches(".js").trim_end_matches(".mjs").to_owned();
    if !matches!(program.as_str(), "jest" | "vitest" | "mocha" | "_mocha" | "ava") {
        return None;
    }
    let command = ScriptCommand { env: env.clone(), program, args: args[at + 1..].to_vec() };
    let (framework, mut invocation) = runner_of(&command)?;
    if at > 0 {
        invocation.env.insert("NODE_OPTIONS".to_owned(), args[..at].join(" "));
    }
    Some((framework, invocation))
}

/// How results are shown, and whether the runner stays to watch, is decided by who runs it.
fn without_presentation(args: Vec<String>) -> Vec<String> {
    const ALONE: [&str; 16] = [
        "--watch",
        "--watchAll",
        "--watchAll=false",
        "--watch=false",
        "-w",
        "--verbose",
        "--silent",
        "--coverage",
        "--ci",
        "--json",
        "--color",
        "--colors",
        "--no-color",
        "--experimental-test-coverage",
        "--no-watchman",
        "--run",
    ];
    const WITH_VALUE: [&str; 9] = [
        "--reporter",
        "--reporters",
        "-R",
        "--outputFile",
        "--test-reporter",
        "--test-reporter-destination",
        "--reporter-option",
        "--reporter-options",
        "-O",
    ];
    let mut kept = Vec::new();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        if WITH_VALUE.contains(&arg.as_str()) {
            args.next();
        } else if !ALONE.contains(&arg.as_str())
            && !WITH_VALUE
                .iter()
                .any(|option| arg.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')))
        {
            kept.push(arg);
        }
    }
    kept
}
