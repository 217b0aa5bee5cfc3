//! The agents of the configuration, each set up when it is first needed.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use rehearsal_core::AgentName;
use rehearsal_core::config::{PermissionMode, Profile, Settings};
use rehearsal_engine::prompt::check_task_template;
use rehearsal_engine::{AgentSetup, Reach, Role, Roles, SetupError};
use tokio::sync::Mutex;

use super::{WorkerError, check_permission};
use crate::crew::check_role;
use crate::file::read_text;
use crate::project::Project;

/// Agents of the configuration.
pub(crate) struct ConfiguredRoles {
    settings: Settings,
    trust: bool,
    project: Project,
    templates: BTreeMap<AgentName, String>,
    ready: Mutex<BTreeMap<AgentName, Role>>,
}

impl ConfiguredRoles {
    /// Reads the templates of these agents, and tries them out before an agent is paid for.
    pub(crate) fn new(
        settings: Settings,
        names: &[AgentName],
        trust: bool,
        project: &Project,
    ) -> Result<Self, WorkerError> {
        let mut templates = BTreeMap::new();
        for name in names {
            if let Some(profile) = settings.profile_of(name).filter(|profile| profile.enabled) {
                check_permission(profile, trust)?;
                check_role(profile, project)?;
            }
            let path = project.directory().join("prompts").join(format!("{name}.md"));
            if let Some(template) = read_text(&path)? {
                check_task_template(&template)
                    .map_err(|error| WorkerError::Template { file: project.shown(&path), error })?;
                templates.insert(name.clone(), template);
            }
        }
        Ok(Self { settings, trust, project: project.clone(), templates, ready: Mutex::default() })
    }

    fn profile(&self, name: &AgentName) -> Option<Profile> {
        let mut profile = self.settings.profile_of(name)?.clone();
        if self.trust {
            profile.permission = PermissionMode::Trust;
        }
        Some(profile)
    }
}

#[async_trait]
impl Roles for ConfiguredRoles {
    async fn role(&self, name: &AgentName) -> Option<Result<Role, SetupError>> {
        let mut ready = self.ready.lock().await;
        if let Some(role) = ready.get(name) {
            return Some(Ok(role.clone()));
        }
        let profile = self.profile(name)?;
        let caller = &self.project.caller;
        let (variables, clock) = (caller.environment.clone(), Arc::clone(&caller.clock));
        let root = &self.project.root;
        let setup = match AgentSetup::new(&profile, variables, clock, root, Reach::ItsVendor).await {
            Ok(setup) => setup,
            Err(error) => return Some(Err(error)),
        };
        let role = Role { agent: setup.agent(), profile, template: self.templates.get(name).cloned() };
        ready.insert(name.clone(), role.clone());
        Some(Ok(role))
    }
}
