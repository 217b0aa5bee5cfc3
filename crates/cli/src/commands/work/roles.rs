//! The agents of the configuration, each set up when it is first needed.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use rehearsal_agent::environment::Variables;
use rehearsal_app::crew::check_role;
use rehearsal_app::file::read_text;
use rehearsal_app::project::Project;
use rehearsal_core::config::{PermissionMode, Profile, Settings};
use rehearsal_core::{AgentName, Clock};
use rehearsal_engine::prompt::check_task_template;
use rehearsal_engine::{AgentSetup, Reach, Role, Roles, SetupError};
use tokio::sync::Mutex;

use crate::commands::run::check_permission;
use crate::context::{Context, variables};
use crate::error::CliError;

/// All agents that a flow may name.
pub(super) struct ConfiguredRoles {
    settings: Settings,
    trust: bool,
    root: Utf8PathBuf,
    templates: BTreeMap<AgentName, String>,
    variables: Variables,
    clock: Arc<dyn Clock>,
    ready: Mutex<BTreeMap<AgentName, Role>>,
}

impl ConfiguredRoles {
    /// Reads their templates, and tries them out before an agent is paid for; a profile that asks for trust needs the word of whoever works.
    pub(super) fn new(
        settings: Settings,
        trust: bool,
        project: &Project,
        context: &Context,
    ) -> Result<Self, CliError> {
        let mut templates = BTreeMap::new();
        for name in settings.agent_names() {
            if let Some(profile) = settings.profile_of(&name).filter(|profile| profile.enabled) {
                check_permission(profile, trust)?;
                check_role(profile, project)?;
            }
            let path = project.directory().join("prompts").join(format!("{name}.md"));
            if let Some(template) = read_text(&path)? {
                check_task_template(&template).map_err(|error| {
                    CliError::in_template(&error, &project.shown(&path))
                        .hint("mend it, or remove it: then the shipped one is used")
                })?;
                templates.insert(name, template);
            }
        }
        Ok(Self {
            settings,
            trust,
            root: project.root.clone(),
            templates,
            variables: variables(),
            clock: Arc::clone(&context.clock),
            ready: Mutex::default(),
        })
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
        let (variables, clock) = (self.variables.clone(), Arc::clone(&self.clock));
        let setup = match AgentSetup::new(&profile, variables, clock, &self.root, Reach::ItsVendor).await {
            Ok(setup) => setup,
            Err(error) => return Some(Err(error)),
        };
        let role = Role { agent: setup.agent(), profile, template: self.templates.get(name).cloned() };
        ready.insert(name.clone(), role.clone());
        Some(Ok(role))
    }
}
