//! Whether the agents of the configuration can start, and within which bounds.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::{AgentCli, ConfinedBy, Containment, Permission, cli_of};
use rehearsal_core::AgentName;
use rehearsal_core::config::{DriverKind, Profile, SandboxLevel, Settings};
use rehearsal_crew::{RoleError, any_vendor};
use rehearsal_engine::{containment_of, program_of};
use rehearsal_process::{Command, Keep};

use super::{Finding, Subject};
use crate::crew::check_role;
use crate::places::scratch_outside_tmp;
use crate::project::Project;

/// What was found of an agent.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum AgentFact {
    /// The program of an agent.
    Program { driver: DriverKind, path: Utf8PathBuf },
    /// `driver: command` without a program.
    NoProgram,
    /// The program of an agent is not on the PATH.
    ProgramMissing { driver: DriverKind, program: String },
    /// None of these variables is set.
    NoKey(Vec<&'static str>),
    /// The role of a built-in agent.
    Role(String),
    /// No role of that name.
    BadRole(RoleError),
    /// The role of a built-in agent that has no model to ask.
    NoVendor(String),
    /// What keeps an agent within bounds.
    Confined(ConfinedBy),
    /// An agent requires the sandbox, and these layers of it are missing.
    SandboxMissing(String),
    /// The sandbox that the agent's own program puts around commands does not start.
    NoOwnSandbox { driver: DriverKind, error: String },
}

/// Longer than any sandbox needs to start.
const LIMIT: Duration = Duration::from_secs(10);
/// How much of what a program says is read.
const SAID: usize = 4096;

pub(super) async fn look(settings: &Settings, project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, profile) in &settings.agents {
        let agent = Agent { name, profile, project, is_used: *name == settings.agent };
        findings.extend(agent.look().await);
    }
    findings
}

struct Agent<'a> {
    name: &'a AgentName,
    profile: &'a Profile,
    project: &'a Project,
    is_used: bool,
}

impl Agent<'_> {
    async fn look(&self) -> Vec<Finding> {
        if self.profile.driver == DriverKind::CREW {
            return vec![self.role(), self.confined()];
        }
        let driver = self.profile.driver;
        let Ok(program) = program_of(self.profile) else {
            return vec![Finding::bad(self.subject(), AgentFact::NoProgram)];
        };
        let Some(path) = which::which(&program).ok().and_then(|path| Utf8PathBuf::from_path_buf(path).ok())
        else {
            let finding = if self.is_used { Finding::bad } else { Finding::note };
            return vec![finding(self.subject(), AgentFact::ProgramMissing { driver, program })];
        };
        let cli = cli_of(driver);
        let own_sandbox = self.own_sandbox(cli, &path).await;
        let mut findings = vec![Finding::ok(self.subject(), AgentFact::Program { driver, path })];
        findings.extend(self.key(cli));
        findings.push(self.confined());
        findings.extend(own_sandbox);
        findings
    }

    fn subject(&self) -> Subject {
        Subject::Agent(self.name.clone())
    }

    /// One of our own needs a role and a model's address.
    fn role(&self) -> Finding {
        if let Err(error) = check_role(self.profile, self.project) {
            return Finding::bad(self.subject(), AgentFact::BadRole(error));
        }
        let role = self.profile.role.clone().unwrap_or_default();
        if any_vendor(|name| self.project.caller.environment.get(name).cloned()) {
            return Finding::ok(self.subject(), AgentFact::Role(role));
        }
        Finding::note(self.subject(), AgentFact::NoVendor(role))
    }

    /// Only whether a variable is there; its value is never looked at.
    fn key(&self, cli: &AgentCli) -> Option<Finding> {
        let is_key = |name: &&str| name.ends_with("_KEY") || name.ends_with("_TOKEN");
        let keys: Vec<&'static str> = cli.variables.iter().copied().filter(is_key).collect();
        let is_set = |key: &&str| self.project.caller.environment.contains_key(*key);
        let is_missing = !keys.is_empty() && !keys.iter().any(is_set);
        is_missing.then(|| Finding::note(self.subject(), AgentFact::NoKey(keys)))
    }

    /// What a run would use.
    fn confined(&self) -> Finding {
        let (profile, root) = (self.profile, &self.project.root);
        if profile.sandbox.level == SandboxLevel::Required
            && let Some(missing) = Containment::missing(&profile.sandbox, root)
        {
            return Finding::bad(self.subject(), AgentFact::SandboxMissing(missing));
        }
        let by = containment_of(profile, root).confined_by();
        let is_limited = matches!(by, ConfinedBy::OwnRules { missing: Some(_) });
        let finding = if is_limited { Finding::note } else { Finding::ok };
        finding(self.subject(), AgentFact::Confined(by))
    }

    /// Under its own rules, a CLI may need its own sandbox.
    async fn own_sandbox(&self, cli: &AgentCli, program: &Utf8Path) -> Option<Finding> {
        let by = containment_of(self.profile, &self.project.root).confined_by();
        if by == ConfinedBy::Sandbox || self.profile.permission == Permission::Trust {
            return None;
        }
        let args = cli.try_own_sandbox?;
        let path = self.project.caller.variable("PATH").unwrap_or_default();
        let error = starts(&cli.native_binary(program), args, path).await.err()?;
        let fact = AgentFact::NoOwnSandbox { driver: self.profile.driver, error };
        Some(Finding::bad(self.subject(), fact))
    }
}

/// Runs a program that gets no settings, no login and no keys; if it fails, the last line that it says.
async fn starts(program: &Utf8Path, args: &[&str], path: &str) -> Result<(), String> {
    let (home, _deleted) = scratch_outside_tmp("rehearsal-doctor-").map_err(|error| error.to_string())?;
    let command = Command::new(program, &home).args(args).env_clear().env("PATH", path).env("HOME", &home);
    let command = command.limit(LIMIT).keep(Keep::Head(SAID));
    match command.run().await {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let is_reason = |line: &&str| !line.trim().is_empty() && !line.starts_with("note: ");
            let last = output.stderr.lines().rev().find(is_reason);
            Err(last.map_or_else(|| output.status.to_string(), str::to_owned))
        }
        Err(error) => Err(error.to_string()),
    }
}
