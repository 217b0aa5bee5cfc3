//! Who can work: the agents by name.

use std::sync::Arc;

use async_trait::async_trait;
use rehearsal_agent::Agent;
use rehearsal_core::AgentName;
use rehearsal_core::config::Profile;

use crate::SetupError;

/// An agent, ready to be run.
#[derive(Clone)]
pub struct Role {
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// How it is set up.
    pub profile: Profile,
    /// The template of its prompt; none: the shipped one for what its state asks of it.
    pub template: Option<String>,
}

/// The agents of a configuration. Each is looked for when it is first needed.
#[async_trait]
pub trait Roles: Send + Sync {
    /// The agent of this name. None: nobody of this name is configured.
    async fn role(&self, name: &AgentName) -> Option<Result<Role, SetupError>>;
}
