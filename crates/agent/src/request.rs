//! What is asked of an agent.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8PathBuf;
pub use rehearsal_core::config::PermissionMode as Permission;
use rehearsal_core::config::Profile;
use rehearsal_core::{Budget, RunId, TaskId};
use serde::{Deserialize, Serialize};

use crate::Lease;
use crate::retry::Earlier;

/// One run's order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    /// The run; its id is also the name of its directory.
    pub run: RunId,
    /// The task it is for.
    pub task: TaskId,
    /// What the agent is to do. Goes to its standard input, never onto a command line.
    pub prompt: String,
    /// Where it works.
    pub working_dir: Utf8PathBuf,
    /// Where this attempt's files go: prompt, output, `result.json`, report. Given as `REHEARSAL_TASK_DIR`.
    pub run_dir: Utf8PathBuf,
    /// The model, if not the agent's own choice.
    pub model: Option<String>,
    /// Text appended to the agent's system prompt.
    pub system_prompt: Option<String>,
    /// What it may do without being asked.
    pub permission: Permission,
    /// Commands that it needs, as they begin: allowed by rules of its CLI where it may not run everything.
    pub allow: Vec<String>,
    /// The longest it may run.
    pub timeout: Option<Duration>,
    /// The longest it may be silent.
    pub idle_timeout: Option<Duration>,
    /// What it may use.
    pub budget: Budget,
    /// How often it may call tools.
    pub calls: CallLimits,
    /// Variables of our own environment that it may see beyond the harmless ones (keys, addresses).
    pub env_grants: Vec<String>,
    /// Variables set for it.
    pub env: BTreeMap<String, String>,
    /// A session of the agent to go on with.
    pub resume: Option<String>,
    /// The lease under which it runs; none: nobody else can take the task.
    #[serde(skip)]
    pub lease: Option<Lease>,
    /// Where it can be adopted under its lease, should we die; none: it ends with us.
    pub rendezvous: Option<Rendezvous>,
}

impl RunRequest {
    /// What a profile says about its runs. It has no task and no prompt yet.
    pub fn of_profile(profile: &Profile, run: RunId, working_dir: Utf8PathBuf, run_dir: Utf8PathBuf) -> Self {
        Self {
            run,
            task: TaskId::from_random(0),
            prompt: String::new(),
            working_dir,
            run_dir,
            model: profile.model.clone(),
            system_prompt: profile.system_prompt.clone(),
            permission: profile.permission,
            allow: Vec::new(),
            timeout: Some(profile.timeout.0),
            idle_timeout: Some(profile.idle_timeout.0),
            calls: CallLimits { repeated: profile.repeated_calls, all: profile.tool_calls },
            budget: Budget::default(),
            env_grants: profile.pass_env.clone(),
            env: profile.env.clone(),
            resume: None,
            lease: None,
            rendezvous: None,
        }
    }
}

/// How often an agent may call tools before its run has run away; zero: any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallLimits {
    /// So many calls of the same tool with the same input in a row.
    pub repeated: u32,
    /// So many calls in all.
    pub all: u32,
}

/// Where the next process of ours can find a run whose worker died.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rendezvous {
    /// A socket in a directory that is for nothing else.
    pub socket: Utf8PathBuf,
    /// What whoever adopts the run wants to have again.
    pub memo: String,
    /// The tries of the run that are over.
    pub(crate) earlier: Option<Box<Earlier>>,
}

impl Rendezvous {
    /// At a socket, with a memo.
    pub fn new(socket: Utf8PathBuf, memo: String) -> Self {
        Self { socket, memo, earlier: None }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A request that asks for nothing in particular.
    pub(crate) fn request() -> RunRequest {
        RunRequest {
            run: RunId::new("run1").unwrap(),
            task: TaskId::new("task1").unwrap(),
            prompt: "do it".into(),
            working_dir: "/worktree".into(),
            run_dir: "/runs/run1".into(),
            model: None,
            system_prompt: None,
            permission: Permission::default(),
            allow: Vec::new(),
            timeout: None,
            idle_timeout: None,
            calls: crate::CallLimits::default(),
            budget: Budget::default(),
            env_grants: Vec::new(),
            env: BTreeMap::new(),
            resume: None,
            lease: None,
            rendezvous: None,
        }
    }
}
