//! `init`: looks at the repository, then writes a commented configuration.

use std::fmt::Write as _;

use camino::Utf8Path;
use clap::Args;
use rehearsal_agent::cli_of;
use rehearsal_agent::clis::KNOWN;
use rehearsal_core::config::DriverKind;
use rehearsal_crew::any_vendor;
use rehearsal_git::base_branch;
use serde::Serialize;

use super::Done;
use super::rehearse::write_starter;
use super::test::{FoundTests, found_tests, in_words};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::inside::InsideRun;

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal init")]
pub(crate) struct InitArgs {
    /// Write over a configuration that is there
    #[arg(long)]
    force: bool,
}

/// `init --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct InitDocument {
    /// The file that was written.
    config: String,
    /// The scenarios that were written.
    scenarios: Vec<String>,
    /// What was found.
    found: Findings,
}

/// What a look at the repository found.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Findings {
    /// The branch that work starts from.
    base_branch: Option<String>,
    /// Whose tests there are.
    tests: Vec<FoundTests>,
    /// Agent CLIs on the PATH; and the crew, if a vendor's key or address is set.
    agents: Vec<DriverKind>,
}

pub(crate) async fn run(args: InitArgs, context: &Context) -> Done {
    InsideRun::refuse_changes()?;
    let project = context.project()?;
    let path = project.config_path();
    if path.exists() && !args.force {
        return Err(CliError::usage(format!("`{}` is already there", project.shown(&path))).hint(
            "`rehearsal config show --origin` shows what it says; `rehearsal init --force` writes it anew",
        ));
    }
    let found = look(&project.root).await;
    fs_err::create_dir_all(project.directory())?;
    fs_err::write(&path, config_text(&found))?;
    fs_err::write(project.directory().join(SCHEMA_FILE), super::schema::text("config"))?;
    let scenarios = write_starter(&project)?;
    let ui = context.ui;
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "none found".into());
    let agents: Vec<&str> = found.agents.iter().map(|kind| kind.as_str()).collect();
    ui.say(format!("base branch: {}", or_none(&found.base_branch)));
    ui.say(format!("tests: {}", or_none(&in_words(&found.tests))));
    ui.say(format!("agents: {}", if agents.is_empty() { "none found".into() } else { agents.join(", ") }));
    for path in &scenarios {
        ui.say(format!("{path} is written, a scenario to begin with"));
    }
    ui.say(format!("{} is written; read it, then:", project.shown(&path)));
    ui.say("next: rehearsal session new NAME");
    ui.say("next: rehearsal doctor");
    ui.say("next: rehearsal rehearse --trace");
    ui.document(InitDocument { config: project.shown(&path), scenarios, found });
    Ok(Exit::Ok)
}

async fn look(root: &Utf8Path) -> Findings {
    let is_here = |kind: &DriverKind| match *kind {
        DriverKind::CREW => any_vendor(|name| std::env::var(name).ok()),
        kind => cli_of(kind).install.is_some() && which::which(kind.as_str()).is_ok(),
    };
    Findings {
        base_branch: base_branch(root).await.ok(),
        tests: found_tests(root),
        agents: DriverKind::all().filter(is_here).collect(),
    }
}

/// The one runner is named. Of several, detection goes on to decide.
fn tests_line(tests: &[FoundTests]) -> String {
    match tests {
        [FoundTests { command: Some(command), .. }] => format!("command: {}", yaml_string(command)),
        [one] => format!("framework: {}", one.framework),
        _ => "# command: ./run-tests      # agents are told to use it".to_owned(),
    }
}

fn config_text(found: &Findings) -> String {
    let driver = found.agents.first().copied().unwrap_or(DriverKind::CLAUDE);
    let optional = |key: &str, value: &Option<String>, example: &str| match value {
        Some(value) => format!("{key}: {}", yaml_string(value)),
        None => format!("# {key}: {example}"),
    };
    let mut text = String::new();
    let _ = write!(
        text,
        "\
# yaml-language-server: $schema={SCHEMA_FILE}
# Settings of this repository for `rehearsal`. Everything is optional; `rehearsal config show --origin` shows
# what holds and why, and `rehearsal schema config` the JSON Schema of this file.

# The branch that work starts from.
{}

# The agent that `rehearsal run` uses.
agent: implementer

agents:
  implementer:
    driver: {driver}              # {}, crew (our own), or command (any program)
    # model: MODEL                # the agent's own choice otherwise
    # permission: accept_edits    # plan: only look; everything only with `run --trust`
    # timeout: 1h                 # the longest a run may take
    # idle_timeout: 15m           # the longest it may be silent
    # budget: {{ usd: 5, turns: 100 }}
    # pass_env: [MY_API_KEY]      # variables it may see beyond its own keys

loop:
  iterations: 10
  # max_failures: 3               # failed runs in a row that end the loop
  # max_cost: 10                  # dollars
  # max_wait: 6h                  # for rate limits and quotas

testing:
  {}

# The flow of new tasks: loop, pull-request, approve, plan, or one of your own in .rehearsal/flows.
# flow: loop

# How `rehearsal work` works.
# work:
#   workers: 2                    # tasks at once in one process
#   at_once: 8                    # tasks at once in all processes
#   lease: 90s                    # a worker that is silent for so long loses its task

# Each task that `rehearsal work` takes has a worktree of its own.
# worktrees:
#   directory: ../worktrees       # in your data directory otherwise
#   setup: npm ci                 # makes a fresh one ready for work
#   keep_warm: 4                  # finished ones kept for the next tasks

# Where the work goes.
# forge:
#   kind: auto                    # github (through gh), or local: a bare repository on this machine
#   remote: origin
",
        optional("base_branch", &found.base_branch, "main"),
        KNOWN.foreign().collect::<Vec<_>>().join(", "),
        tests_line(&found.tests),
    );
    text
}

/// Beside the configuration, for editors.
const SCHEMA_FILE: &str = "config.schema.json";

fn yaml_string(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || " -_./".contains(c))
        && !text.starts_with(['-', ' ', '.']);
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}
