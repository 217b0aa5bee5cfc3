//! What was found of the machine and the repository, and what to do about it.

use rehearsal_agent::ConfinedBy;
use rehearsal_app::command_line::quote;
use rehearsal_app::doctor::{
    AgentFact, Fact, Finding, Health, MachineFact, RepositoryFact, SandboxFact, StoreFact, Subject,
};
use rehearsal_app::project::ProjectError;
use rehearsal_core::Timestamp;
use rehearsal_core::sandbox::{Layer, LayerReport, State};
use rehearsal_sandbox::Rung;
use rehearsal_store::{OpenError, StoreError};
use serde::Serialize;

use super::{confined, relative};
use crate::error::CliError;

/// A finding as people read it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Check {
    /// What was looked at.
    pub(crate) what: String,
    pub(crate) health: Health,
    /// What was found.
    pub(crate) found: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

/// The words for a finding.
pub(crate) fn check(finding: Finding, now: Timestamp) -> Check {
    let Finding { subject, health, fact } = finding;
    let (found, hint) = match fact {
        Fact::Machine(fact) => of_machine(fact),
        Fact::Repository(fact) => of_repository(fact),
        Fact::Agent(fact) => of_agent(fact),
        Fact::Store(fact) => of_store(fact, now),
        Fact::Sandbox(fact) => of_sandbox(fact),
    };
    Check { what: name(&subject), health, found, hint }
}

fn name(subject: &Subject) -> String {
    match subject {
        Subject::Git => "git".into(),
        Subject::Supervision => "supervision".into(),
        Subject::Data => "data directory".into(),
        Subject::Repository => "repository".into(),
        Subject::Configuration => "configuration".into(),
        Subject::Agent(name) => format!("agent {name}"),
        Subject::Tests => "tests".into(),
        Subject::Flows => "flows".into(),
        Subject::Worktrees => "worktrees".into(),
        Subject::Forge => "forge".into(),
        Subject::Store => "store".into(),
        Subject::Runs => "runs".into(),
        Subject::Disk => "disk".into(),
        Subject::Sandbox => "sandbox".into(),
        Subject::Layer(layer) => format!("sandbox {layer}"),
    }
}

/// What was found, and what to do about it.
type Words = (String, Option<String>);

fn fine(found: impl Into<String>) -> Words {
    (found.into(), None)
}

fn with_hint(found: impl Into<String>, hint: impl Into<String>) -> Words {
    (found.into(), Some(hint.into()))
}

/// An error in a line, with our hint or else with its own first one.
fn error(error: impl Into<CliError>, hint: Option<&str>) -> Words {
    let error = error.into();
    let hint = hint.or(error.first_hint()).map(str::to_owned);
    (error.in_a_line(), hint)
}

fn of_machine(fact: MachineFact) -> Words {
    match fact {
        MachineFact::GitVersion(version) => fine(version),
        MachineFact::GitTooOld { version, oldest: (major, minor) } => with_hint(
            format!("{version} is too old: merges are tried out with {major}.{minor} or newer"),
            "upgrade git",
        ),
        MachineFact::NoGit(error) => with_hint(error.to_string(), "install git"),
        MachineFact::Supervised => fine("agents and all that they start can be ended"),
        MachineFact::NoProc => with_hint(
            "there is no /proc here",
            "mount /proc; without it processes of agents could be left behind",
        ),
        MachineFact::NoData(cause) => error(cause, None),
        MachineFact::DataNotWritable { path, error } => with_hint(
            format!("`{path}` cannot be written: {error}"),
            "tasks and worktrees are kept there: make it writable, or set XDG_DATA_HOME to another directory",
        ),
        MachineFact::Free(bytes) => {
            let hint = (bytes < 1 << 30).then(|| "free some space".to_owned());
            (format!("{} GiB free", bytes >> 30), hint)
        }
    }
}

fn of_repository(fact: RepositoryFact) -> Words {
    match fact {
        RepositoryFact::Repository(root) => fine(root),
        RepositoryFact::NoRepository(cause) => {
            error(cause, Some("go to a git repository, or run `git init`"))
        }
        RepositoryFact::OtherOwner(root) => {
            let add = format!("git config --global --add safe.directory {}", quote(root.as_str()));
            with_hint(
                format!("`{root}` belongs to another user, so git refuses to work there"),
                format!("run `{add}`, or change its owner"),
            )
        }
        RepositoryFact::NotWritable { path, error } => with_hint(
            format!("`{path}` cannot be written: {error}"),
            "agents and git write there: see who owns it, what its mode is, and how its file system is mounted",
        ),
        RepositoryFact::Configuration(file) => fine(file.unwrap_or_else(|| "defaults only".into())),
        RepositoryFact::BadConfiguration(cause) => {
            error(cause, Some("fix the file; `rehearsal schema config` has its form"))
        }
        RepositoryFact::TestCommand(command) => fine(format!("`{command}` (testing.command)")),
        RepositoryFact::Tests(found) => fine(super::tests(&found).unwrap_or_default()),
        RepositoryFact::NoTests => {
            with_hint("none found", "set `command:` under `testing:` in the configuration")
        }
        RepositoryFact::Flows(count) => fine(format!("{count} of your own")),
        RepositoryFact::NoFlows(cause) => error(cause, Some("check the directory's mode")),
        RepositoryFact::BadFlow(cause) => error(cause, Some("`rehearsal flow check` shows it whole")),
        RepositoryFact::Worktrees(directory) => fine(directory),
        RepositoryFact::NoWorktrees(cause) => {
            error(cause, Some("set `directory:` under `worktrees:`; `rehearsal work` needs a place"))
        }
        RepositoryFact::Destination(destination) => fine(destination.to_string()),
        RepositoryFact::NoGh(destination) => with_hint(
            format!("{destination}, which was not found"),
            "install it from https://cli.github.com and run `gh auth login`, or set `kind: local` under `forge:`",
        ),
        RepositoryFact::NoDestination(cause) => {
            error(cause, Some("only `rehearsal work` needs it; see `forge:` in the configuration"))
        }
    }
}

fn of_agent(fact: AgentFact) -> Words {
    match fact {
        AgentFact::Program { driver, path } => fine(format!("{driver}: {path}")),
        AgentFact::NoProgram => {
            with_hint("driver `command` has no `program`", "set `program:` in the configuration")
        }
        AgentFact::ProgramMissing { driver, program } => with_hint(
            format!("{driver}: `{program}` is not on the PATH"),
            "install it, or set `program:`; `rehearsal agent list` shows what is found",
        ),
        AgentFact::NoKey(keys) => with_hint(
            format!("none of {} is set", keys.join(", ")),
            "fine if its CLI is logged in by itself; otherwise set one",
        ),
        AgentFact::Role(role) => fine(format!("crew: role `{role}`")),
        AgentFact::BadRole(cause) => error(cause, Some("`rehearsal crew list` shows the roles")),
        AgentFact::NoVendor(role) => with_hint(
            format!("crew: role `{role}`, and no vendor's key or address is set"),
            "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or the address of your own server",
        ),
        AgentFact::Confined(by) => {
            let hint = "the sandbox's rows below say what to change; `rehearsal agent check NAME` tries out whether the agent can work";
            let is_limited = matches!(by, ConfinedBy::OwnRules { missing: Some(_) });
            (confined(&by), is_limited.then(|| hint.to_owned()))
        }
        AgentFact::SandboxMissing(missing) => with_hint(
            format!("`sandbox: required`, and it will not run: missing {missing}"),
            "fix these layers, as the sandbox's rows below say, or set `sandbox: auto`",
        ),
        AgentFact::NoOwnSandbox { driver, error } => with_hint(
            format!("{driver}'s own sandbox does not start, so it can run no command: {error}"),
            "set `sandbox: auto` where our sandbox is available, allow user namespaces, or run it with `--trust`",
        ),
    }
}

fn of_store(fact: StoreFact, now: Timestamp) -> Words {
    let at = |server: &Option<String>| server.as_ref().map(|url| format!(" ({url})")).unwrap_or_default();
    match fact {
        StoreFact::Healthy { server } => fine(format!("every task is what its events say{}", at(&server))),
        StoreFact::NoState(cause) => no_state(cause),
        StoreFact::NotOpened { error, server } => {
            let is_about_the_place = matches!(
                error,
                OpenError::Directory { .. } | OpenError::Store(StoreError::ReadOnly | StoreError::DiskFull)
            );
            let error = CliError::from(error);
            let cure = match server {
                Some(_) => "see whether the server runs and can be reached, and what `store:` says",
                None => "restore the database from a backup, or move it away and begin without tasks",
            };
            let cure = error.first_hint().filter(|_| is_about_the_place).unwrap_or(cure).to_owned();
            with_hint(format!("{}{}", error.in_a_line(), at(&server)), cure)
        }
        StoreFact::Wrong { findings, server } => with_hint(
            format!("{}{}", findings.join("; "), at(&server)),
            "keep a copy of the store and report it; `rehearsal doctor --store` has all findings",
        ),
        StoreFact::Unchecked(error) => with_hint(error.to_string(), "run it again"),
        StoreFact::RunLeft { run, started_at } => with_hint(
            format!("run {run} was left by a dead worker, started {}", relative(started_at, now)),
            "the next `rehearsal run` puts it in order",
        ),
    }
}

fn no_state(cause: ProjectError) -> Words {
    let error = CliError::from(cause);
    with_hint(error.in_a_line(), error.first_hint().unwrap_or_default())
}

fn of_sandbox(fact: SandboxFact) -> Words {
    match fact {
        SandboxFact::Whole { rung, missing } => {
            let names: Vec<String> = missing.iter().map(Layer::to_string).collect();
            let hint = format!("testing requires all of it and will not run: fix {}", names.join(", "));
            (format!("{rung}: {}", in_words(rung)), (!names.is_empty()).then_some(hint))
        }
        SandboxFact::Untried(error) => with_hint(
            error.to_string(),
            "run it where the directory can be read; tests and agents with a sandbox do not start",
        ),
        SandboxFact::Layer(layer, report) => of_layer(layer, &report),
    }
}

fn of_layer(layer: Layer, report: &LayerReport) -> Words {
    let by = report.by.join(", ");
    let why = report.why.as_deref().unwrap_or_default();
    match report.state {
        State::Enforced => fine(format!("held by {by}")),
        State::Off => fine("not asked for"),
        State::Partial => with_hint(format!("held in part by {by}: {why}"), remedy(layer, report)),
        State::Unavailable => with_hint(format!("not held: {why}"), remedy(layer, report)),
    }
}

fn in_words(rung: Rung) -> &'static str {
    match rung {
        Rung::Full => "a view of the machine of its own",
        Rung::NoProc => "a view of the machine of its own, but for its processes",
        Rung::Bwrap => "a view of the machine of its own, made by bubblewrap",
        Rung::Lsm => "no namespaces; files and system calls are restricted",
        Rung::Rlimits => "limits of each process only",
        Rung::Off => "nothing is confined",
    }
}

/// What makes a layer hold.
fn remedy(layer: Layer, report: &LayerReport) -> &'static str {
    const NAMESPACES: &str = "allow user namespaces: `sysctl user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1 \
         kernel.apparmor_restrict_unprivileged_userns=0`, as far as your kernel has them; or install bubblewrap";
    const GROUPS: &str = "have control groups delegated: start it with `systemd-run --user --scope --property=Delegate=yes`, or in \
         a container mount /sys/fs/cgroup writable";
    match layer {
        Layer::Files if report.why.as_ref().is_some_and(|why| why.starts_with("/proc ")) => {
            "in a container, start that with `--security-opt systempaths=unconfined`"
        }
        Layer::Files | Layer::Network | Layer::Kill | Layer::Privileges => NAMESPACES,
        Layer::Memory | Layer::Processes | Layer::Cpu => GROUPS,
        Layer::Syscalls => "use a kernel with seccomp (CONFIG_SECCOMP_FILTER)",
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use rehearsal_core::config::DriverKind;
    use serde_json::json;

    use super::*;

    fn said(fact: impl Into<Fact>) -> String {
        let finding = Finding { subject: Subject::Git, health: Health::Note, fact: fact.into() };
        let check = check(finding, Timestamp(0));
        let hint = check.hint.map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
        format!("{}{hint}\n", check.found)
    }

    fn layer(layer: Layer, report: serde_json::Value) -> String {
        said(SandboxFact::Layer(layer, serde_json::from_value(report).unwrap()))
    }

    #[test]
    fn a_layer_that_is_missing_has_a_remedy() {
        let why = "/proc shows the processes of the machine (not permitted)";
        let in_part = |by: &str, why: &str| json!({ "state": "partial", "by": [by], "why": why });
        let none = json!({ "state": "unavailable", "why": "no control group can be made for it here" });
        let all = [
            said(SandboxFact::Whole { rung: Rung::Full, missing: Vec::new() }),
            layer(Layer::Files, json!({ "state": "enforced", "by": ["mount-namespace"] })),
            said(SandboxFact::Whole { rung: Rung::NoProc, missing: vec![Layer::Files, Layer::Cpu] }),
            layer(Layer::Files, in_part("mount-namespace", why)),
            layer(Layer::Memory, in_part("rlimit", "it limits each process, not all together")),
            layer(Layer::Cpu, none),
        ];
        assert_snapshot!(all.concat(), @r"
        full: a view of the machine of its own
        held by mount-namespace
        no-proc: a view of the machine of its own, but for its processes
          hint: testing requires all of it and will not run: fix files, cpu
        held in part by mount-namespace: /proc shows the processes of the machine (not permitted)
          hint: in a container, start that with `--security-opt systempaths=unconfined`
        held in part by rlimit: it limits each process, not all together
          hint: have control groups delegated: start it with `systemd-run --user --scope --property=Delegate=yes`, or in a container mount /sys/fs/cgroup writable
        not held: no control group can be made for it here
          hint: have control groups delegated: start it with `systemd-run --user --scope --property=Delegate=yes`, or in a container mount /sys/fs/cgroup writable
        ");
    }

    #[test]
    fn what_git_and_the_system_refuse_is_said_with_what_to_do() {
        let denied = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let path = "/work/api".into();
        let driver: DriverKind = "codex".parse().unwrap();
        let missing = || "files (no user namespaces)".to_owned();
        let all = [
            said(MachineFact::DataNotWritable { path: "/home/ann/.local".into(), error: denied() }),
            said(RepositoryFact::OtherOwner("/work/it's".into())),
            said(RepositoryFact::NotWritable { path, error: denied() }),
            said(RepositoryFact::TestCommand("make test".to_owned())),
            said(AgentFact::Confined(ConfinedBy::Sandbox)),
            said(AgentFact::Confined(ConfinedBy::OwnRules { missing: Some(missing()) })),
            said(AgentFact::SandboxMissing(missing())),
            said(AgentFact::NoOwnSandbox { driver, error: "bwrap: No permissions".to_owned() }),
        ];
        assert_snapshot!(all.concat(), @r"
        `/home/ann/.local` cannot be written: permission denied
          hint: tasks and worktrees are kept there: make it writable, or set XDG_DATA_HOME to another directory
        `/work/it's` belongs to another user, so git refuses to work there
          hint: run `git config --global --add safe.directory '/work/it'\''s'`, or change its owner
        `/work/api` cannot be written: permission denied
          hint: agents and git write there: see who owns it, what its mode is, and how its file system is mounted
        `make test` (testing.command)
        confined by the full sandbox; the agent's own permission rules are off
        not confined, because the sandbox is not available here (files (no user namespaces)); only the agent's own permission rules apply
          hint: the sandbox's rows below say what to change; `rehearsal agent check NAME` tries out whether the agent can work
        `sandbox: required`, and it will not run: missing files (no user namespaces)
          hint: fix these layers, as the sandbox's rows below say, or set `sandbox: auto`
        codex's own sandbox does not start, so it can run no command: bwrap: No permissions
          hint: set `sandbox: auto` where our sandbox is available, allow user namespaces, or run it with `--trust`
        ");
    }
}
