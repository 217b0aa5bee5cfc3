//! `doctor`: what works, what does not, what to do.

mod outlet;
mod sandbox;
mod store;

use camino::Utf8Path;
use clap::Args;
use rehearsal_agent::cli_of;
use rehearsal_app::crew::check_role;
use rehearsal_app::project::{Project, ProjectError};
use rehearsal_app::testing;
use rehearsal_core::AgentName;
use rehearsal_core::config::{DriverKind, Profile, Settings, without_password};
use rehearsal_crew::any_vendor;
use rehearsal_engine::left_runs;
use rehearsal_sandbox::SandboxReport;
use rehearsal_store::{OpenError, StoreError, StoreLocation};
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{BAD, GOOD, ODD, harmless, styled};
use crate::words;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rehearsal doctor\n  rehearsal doctor --store\n\nEnds with 3 if something does not work."
)]
pub(crate) struct DoctorArgs {
    /// Only check the store: every task against its events, every column against its document; all findings, one a line
    #[arg(long)]
    store: bool,
}

/// `doctor --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DoctorDocument {
    /// Whether all that is needed works.
    healthy: bool,
    checks: Vec<Check>,
    /// What confines tests and agents here, layer by layer; none if it could not be tried.
    sandbox: Option<SandboxReport>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Check {
    /// What was looked at.
    what: String,
    health: Health,
    /// What was found.
    found: String,
    /// What to do about it.
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Health {
    /// It works.
    Ok,
    /// It works, with a limit.
    Note,
    /// It does not work.
    Bad,
}

impl Check {
    fn ok(what: &str, found: impl Into<String>) -> Self {
        Self { what: what.into(), health: Health::Ok, found: found.into(), hint: None }
    }

    fn note(what: &str, found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), health: Health::Note, found: found.into(), hint: Some(hint.into()) }
    }

    fn bad(what: &str, found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), health: Health::Bad, found: found.into(), hint: Some(hint.into()) }
    }
}

pub(crate) async fn run(args: DoctorArgs, context: &Context) -> Done {
    if args.store {
        return store::verify(context).await;
    }
    let mut checks = vec![check_git().await, check_supervision()];
    let sandbox = match context.project() {
        Ok(project) => check_project(&project, context, &mut checks).await,
        Err(error) => {
            checks.push(Check::bad(
                "repository",
                error.in_a_line(),
                "go to a git repository, or run `git init`",
            ));
            sandbox::check(&context.directory, None, &mut checks)
        }
    };
    let healthy = checks.iter().all(|check| check.health != Health::Bad);
    let width = checks.iter().map(|check| check.what.chars().count()).max().unwrap_or(0);
    for check in &checks {
        let mark = match check.health {
            Health::Ok => styled(GOOD, "ok  "),
            Health::Note => styled(ODD, "note"),
            Health::Bad => styled(BAD, "bad "),
        };
        context.ui.say(format!("{mark}  {:<width$}  {}", check.what, harmless(&check.found)));
        if let Some(hint) = &check.hint {
            context.ui.say(format!("      hint: {}", harmless(hint)));
        }
    }
    context.ui.document(DoctorDocument { healthy, checks, sandbox });
    Ok(if healthy { Exit::Ok } else { Exit::Red })
}

async fn check_project(
    project: &Project,
    context: &Context,
    checks: &mut Vec<Check>,
) -> Option<SandboxReport> {
    checks.push(Check::ok("repository", project.root.to_string()));
    let settings = project.settings().map_err(CliError::from);
    match &settings {
        Ok(settings) => {
            let found = if project.config_path().exists() {
                project.shown(&project.config_path())
            } else {
                "defaults only".into()
            };
            checks.push(Check::ok("configuration", found));
            check_agents(settings, project, checks);
        }
        Err(error) => checks.push(Check::bad(
            "configuration",
            error.in_a_line(),
            "mend the file; `rehearsal schema config` has its form",
        )),
    }
    checks.push(check_tests(&project.root));
    check_flows(project, checks);
    if let Ok(settings) = &settings {
        outlet::check(settings, project, checks).await;
    }
    check_store(project, context, checks).await;
    check_disk(&project.root, checks);
    sandbox::check(&project.root, settings.ok(), checks)
}

fn check_tests(root: &Utf8Path) -> Check {
    match words::tests(&testing::found(root)) {
        Some(found) => Check::ok("tests", found),
        None => Check::note("tests", "none found", "set `command:` under `testing:` in the configuration"),
    }
}

/// The first that merges without a checkout (`merge-tree --write-tree`); nothing that we use is younger.
const OLDEST_GIT: (u32, u32) = (2, 38);

/// What cannot be read is given a chance.
fn is_older(version: &str, than: (u32, u32)) -> bool {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < than,
        _ => false,
    }
}

async fn check_git() -> Check {
    match rehearsal_git::version().await {
        Ok(version) if is_older(&version, OLDEST_GIT) => {
            let (major, minor) = OLDEST_GIT;
            let what = format!("{version} is too old: merges are tried out with {major}.{minor} or newer");
            Check::bad("git", what, "upgrade git")
        }
        Ok(version) => Check::ok("git", version),
        Err(error) => Check::bad("git", error.to_string(), "install git"),
    }
}

/// Grandchildren of agents are found through /proc and a subreaper.
fn check_supervision() -> Check {
    let works = rehearsal_process::become_subreaper().is_ok() && Utf8Path::new("/proc/self/stat").exists();
    if works {
        Check::ok("supervision", "agents and all that they start can be ended")
    } else {
        let hint = "mount /proc; without it processes of agents could be left behind";
        Check::bad("supervision", "there is no /proc here", hint)
    }
}

fn check_agents(settings: &Settings, project: &Project, checks: &mut Vec<Check>) {
    for (name, profile) in &settings.agents {
        if profile.driver == DriverKind::CREW {
            checks.push(check_crew(name, profile, project));
            continue;
        }
        let driver = profile.driver;
        let program = profile.program.clone().unwrap_or_else(|| driver.as_str().to_owned());
        let what = format!("agent {name}");
        let used = *name == settings.agent;
        match which::which(&program) {
            Ok(path) => checks.push(Check::ok(&what, format!("{driver}: {}", path.display()))),
            Err(_) if driver == DriverKind::COMMAND && profile.program.is_none() => {
                checks.push(Check::bad(
                    &what,
                    "driver `command` has no `program`",
                    "set `program:` in the configuration",
                ));
            }
            Err(_) => {
                let found = format!("{driver}: `{program}` is not on the PATH");
                let hint = "install it, or set `program:`; `rehearsal agent list` shows what is found";
                checks.push(if used {
                    Check::bad(&what, found, hint)
                } else {
                    Check::note(&what, found, hint)
                });
                continue;
            }
        }
        check_key(&what, driver, project, checks);
    }
}

/// One of our own needs a role and a model's address.
fn check_crew(name: &AgentName, profile: &Profile, project: &Project) -> Check {
    let what = format!("agent {name}");
    if let Err(error) = check_role(profile, project) {
        return Check::bad(&what, CliError::from(error).in_a_line(), "`rehearsal crew list` shows the roles");
    }
    let role = profile.role.as_deref().unwrap_or_default();
    if any_vendor(|name| project.caller.environment.get(name).cloned()) {
        return Check::ok(&what, format!("crew: role `{role}`"));
    }
    let hint = "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or the address of your own server";
    Check::note(&what, format!("crew: role `{role}`, and no vendor's key or address is set"), hint)
}

/// Only whether a variable is there; its value is never looked at.
fn check_key(what: &str, driver: DriverKind, project: &Project, checks: &mut Vec<Check>) {
    let is_key = |name: &&str| name.ends_with("_KEY") || name.ends_with("_TOKEN");
    let keys: Vec<&str> = cli_of(driver).variables.iter().copied().filter(is_key).collect();
    if keys.is_empty() || keys.iter().any(|key| project.caller.environment.contains_key(*key)) {
        return;
    }
    checks.push(Check::note(
        what,
        format!("none of {} is set", keys.join(", ")),
        "fine if its CLI is logged in by itself; otherwise set one",
    ));
}

fn check_flows(project: &Project, checks: &mut Vec<Check>) {
    let names = match project.own_flows() {
        Ok(names) => names,
        Err(error) => {
            return checks.push(Check::bad(
                "flows",
                CliError::from(error).in_a_line(),
                "check the directory's mode",
            ));
        }
    };
    let broken: Vec<CliError> =
        names.iter().filter_map(|name| project.flow(name).err()).map(CliError::from).collect();
    match broken.first() {
        Some(error) => {
            checks.push(Check::bad("flows", error.in_a_line(), "`rehearsal flow check` shows it whole"))
        }
        None => checks.push(Check::ok("flows", format!("{} of your own", names.len()))),
    }
}

fn bad_store(error: ProjectError) -> Check {
    let error = CliError::from(error);
    let hint = error.first_hint().unwrap_or_default().to_owned();
    Check::bad("store", error.in_a_line(), hint)
}

async fn check_store(project: &Project, context: &Context, checks: &mut Vec<Check>) {
    let state = match project.state_dir() {
        Ok(state) => state,
        Err(error) => return checks.push(bad_store(error)),
    };
    // Where a broken configuration cannot say where the store is, the usual place is looked at.
    let location = match project.store_location() {
        Ok(_) => project.prepare_store(),
        Err(_) => project.prepare_usual_store(),
    };
    let location = match location {
        Ok(location) => location,
        Err(error) => return checks.push(bad_store(error)),
    };
    let (place, cure) = match &location {
        StoreLocation::Postgres(url) => (
            format!(" ({})", without_password(url)),
            "see whether the server runs and can be reached, and what `store:` says",
        ),
        StoreLocation::Directory(_) => {
            (String::new(), "restore the database from a backup, or move it away and begin without tasks")
        }
    };
    let store = match rehearsal_store::open(&location).await {
        Ok(store) => store,
        Err(error) => {
            let is_about_the_place = matches!(
                error,
                OpenError::Directory { .. } | OpenError::Store(StoreError::ReadOnly | StoreError::DiskFull)
            );
            let error = CliError::from(error);
            let cure = error.first_hint().filter(|_| is_about_the_place).unwrap_or(cure);
            return checks.push(Check::bad("store", format!("{}{place}", error.in_a_line()), cure));
        }
    };
    match store.verify().await {
        Ok(findings) if findings.is_empty() => {
            checks.push(Check::ok("store", format!("every task is what its events say{place}")));
        }
        Ok(findings) => checks.push(Check::bad(
            "store",
            format!("{}{place}", findings.join("; ")),
            "keep a copy of the store and report it; `rehearsal doctor --store` has all findings",
        )),
        Err(error) => checks.push(Check::bad("store", error.to_string(), "run it again")),
    }
    if let Ok(runs) = left_runs(&*store, &state).await
        && let Some(run) = runs.first()
    {
        let since = words::relative(run.start.started_at, context.now());
        checks.push(Check::note(
            "runs",
            format!("run {} was left by a dead worker, started {since}", run.start.id),
            "the next `rehearsal run` puts it in order",
        ));
    }
}

/// Below this an agent's build may fail half-way.
const LITTLE_SPACE: u64 = 1 << 30;

fn check_disk(root: &Utf8Path, checks: &mut Vec<Check>) {
    let Ok(stat) = rustix::fs::statvfs(root.as_std_path()) else {
        return;
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let found = format!("{} GiB free", free >> 30);
    checks.push(if free < LITTLE_SPACE {
        Check::note("disk", found, "free some space")
    } else {
        Check::ok("disk", found)
    });
}
