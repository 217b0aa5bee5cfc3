//! What works on this machine and in this repository, and what does not.

mod agents;
mod machine;
mod repository;
mod sandbox;
mod store;
mod verify;

use rehearsal_core::AgentName;
use rehearsal_core::sandbox::Layer;
use rehearsal_sandbox::SandboxReport;
use serde::Serialize;

use crate::caller::Caller;
use crate::project::Project;

pub use agents::AgentFact;
pub use machine::MachineFact;
pub use repository::RepositoryFact;
pub use sandbox::SandboxFact;
pub use store::StoreFact;
pub use verify::{StoreDocument, verify_store};

/// All that was looked at.
#[derive(Debug)]
pub struct Diagnosis {
    /// In the order in which it was looked at.
    pub findings: Vec<Finding>,
    /// What confines tests and agents here, layer by layer; none if it could not be tried.
    pub sandbox: Option<SandboxReport>,
}

/// Something that was looked at.
#[derive(Debug)]
pub struct Finding {
    /// What.
    pub subject: Subject,
    /// Whether it works.
    pub health: Health,
    /// What was found.
    pub fact: Fact,
}

/// Whether something works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It works.
    Ok,
    /// It works, with a limit.
    Note,
    /// It does not work.
    Bad,
}

/// What can be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Subject {
    Git,
    Supervision,
    /// Our data directory.
    Data,
    Repository,
    Configuration,
    Agent(AgentName),
    Tests,
    Flows,
    Worktrees,
    Forge,
    Store,
    Runs,
    Disk,
    Sandbox,
    Layer(Layer),
}

/// What was found.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Fact {
    Machine(MachineFact),
    Repository(RepositoryFact),
    Agent(AgentFact),
    Store(StoreFact),
    Sandbox(SandboxFact),
}

impl From<MachineFact> for Fact {
    fn from(fact: MachineFact) -> Self {
        Self::Machine(fact)
    }
}

impl From<RepositoryFact> for Fact {
    fn from(fact: RepositoryFact) -> Self {
        Self::Repository(fact)
    }
}

impl From<AgentFact> for Fact {
    fn from(fact: AgentFact) -> Self {
        Self::Agent(fact)
    }
}

impl From<StoreFact> for Fact {
    fn from(fact: StoreFact) -> Self {
        Self::Store(fact)
    }
}

impl From<SandboxFact> for Fact {
    fn from(fact: SandboxFact) -> Self {
        Self::Sandbox(fact)
    }
}

impl Finding {
    fn ok(subject: Subject, fact: impl Into<Fact>) -> Self {
        Self { subject, health: Health::Ok, fact: fact.into() }
    }

    fn note(subject: Subject, fact: impl Into<Fact>) -> Self {
        Self { subject, health: Health::Note, fact: fact.into() }
    }

    fn bad(subject: Subject, fact: impl Into<Fact>) -> Self {
        Self { subject, health: Health::Bad, fact: fact.into() }
    }
}

impl Diagnosis {
    /// Whether all that is needed works.
    pub fn is_healthy(&self) -> bool {
        self.findings.iter().all(|finding| finding.health != Health::Bad)
    }
}

/// Looks at the machine, and at the repository around the caller if there is one.
pub async fn diagnose(caller: &Caller) -> Diagnosis {
    let mut findings = vec![machine::git().await, machine::supervision()];
    findings.extend(machine::data(caller));
    let sandbox = match Project::open(caller) {
        Ok(project) => of_project(&project, &mut findings).await,
        Err(error) => {
            findings.push(Finding::bad(Subject::Repository, RepositoryFact::NoRepository(error)));
            sandbox::look(&caller.directory, None, &mut findings)
        }
    };
    Diagnosis { findings, sandbox }
}

async fn of_project(project: &Project, findings: &mut Vec<Finding>) -> Option<SandboxReport> {
    findings.extend(repository::access(&project.root).await);
    let settings = match project.settings() {
        Ok(settings) => {
            let path = project.config_path();
            let file = path.exists().then(|| project.shown(&path));
            findings.push(Finding::ok(Subject::Configuration, RepositoryFact::Configuration(file)));
            findings.extend(agents::look(settings, project).await);
            Some(settings)
        }
        Err(error) => {
            findings.push(Finding::bad(Subject::Configuration, RepositoryFact::BadConfiguration(error)));
            None
        }
    };
    findings.push(repository::tests(settings, &project.root));
    findings.push(repository::flows(project));
    if let Some(settings) = settings {
        findings.push(repository::worktrees(settings, project));
        findings.push(repository::destination(settings, project).await);
    }
    findings.extend(store::look(project).await);
    findings.extend(machine::disk(&project.root));
    sandbox::look(&project.root, settings, findings)
}
