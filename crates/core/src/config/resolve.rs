//! From layers to settings: which agents there are, and the defaults that depend on an agent's name.

use std::collections::{BTreeMap, BTreeSet};

use super::merge::{Merged, defaults};
use super::{Account, DriverKind, Layer, Origin, Overrides, Profile, SandboxSettings, Settings};
use crate::yaml::{Node, Tree};
use crate::{AgentName, SourceError};

/// The agent there is without any configuration.
pub(super) const DEFAULT_AGENT: &str = "implementer";
/// The agents that the shipped flows ask for a decision. Without a configuration of their own they work like the agent that
/// `run` uses.
const REVIEWERS: [&str; 2] = ["gatekeeper", "reviewer"];
/// The roles that are built in: agents that are always there, with nothing but a model's address.
const CREW: [&str; 8] = ["search", "research", "code", "review", "test", "qa", "docs", "init"];

/// Merges the layers. `files` in rising strength, then the environment, then the flags.
pub fn resolve(files: &[Layer], environment: Overrides, flags: Overrides) -> Result<Settings, SourceError> {
    let mut merged = Merged::new(files);
    let written = agents_in(&merged.tree);
    let in_files = merged.tree.get("agent").and_then(|agent| agent.to::<String>().ok());
    let used =
        flags.agent().or(environment.agent()).or(in_files.as_deref()).unwrap_or(DEFAULT_AGENT).to_owned();
    // Without any agent in any file there is the default one; otherwise the one that is used must exist.
    if !written.contains(&used) && used != DEFAULT_AGENT && !CREW.contains(&used.as_str()) {
        return Err(unknown_agent(&used, &written));
    }
    let mut used_exists = Layer::new(Origin::Default);
    used_exists.add_section(&["agents", &used]);
    merged.add(&used_exists);
    merged.add(&environment.layer(Origin::Environment, &used));
    merged.add(&flags.layer(Origin::Flag, &used));
    for name in agents_in(&merged.tree) {
        confine_as_agent(merged.tree.entry("agents").entry(&name).entry("sandbox"));
    }
    let mut settings = merged.settings()?;
    for (name, profile) in &mut settings.agents {
        let is_written = written.contains(name.as_str());
        profile.complete(name, is_written);
        profile.check_role(name)?;
    }
    let accounts = open_accounts(&mut settings)?;
    settings.built_in = built_in(&settings);
    settings.built_in.extend(accounts);
    check_fallbacks(&settings)?;
    Ok(settings)
}

fn agents_in(tree: &Node) -> BTreeSet<String> {
    let agents = tree.get("agents").and_then(|agents| agents.entries().ok()).unwrap_or_default();
    agents.iter().filter_map(|(name, _)| name.to().ok()).collect()
}

/// The sandbox of an agent has other defaults than that of tests.
fn confine_as_agent(sandbox: &mut Node) {
    let written = match sandbox.entries() {
        Ok(written) => written.to_vec(),
        Err(_) if sandbox.tree == Tree::Null => Vec::new(),
        Err(_) => return,
    };
    *sandbox = defaults(&SandboxSettings::of_agent());
    for (key, value) in written {
        *sandbox.entry(&key.to::<String>().unwrap_or_default()) = value;
    }
}

fn built_in(settings: &Settings) -> BTreeMap<AgentName, Profile> {
    let names = CREW.into_iter().chain(REVIEWERS).filter_map(|name| AgentName::new(name).ok());
    let unwritten = names.filter(|name| !settings.agents.contains_key(name));
    let profile = |name: &AgentName| match settings.profile() {
        Some(used) if REVIEWERS.contains(&name.as_str()) => used.for_another(name),
        _ => {
            let role = Some(role_of(name));
            Profile { driver: DriverKind::CREW, role, ..Profile::default() }
        }
    };
    unwritten.map(|name| (name.clone(), profile(&name))).collect()
}

/// Lets each agent work with its first account. The agents that work with the others come before its fallbacks.
fn open_accounts(settings: &mut Settings) -> Result<Vec<(AgentName, Profile)>, SourceError> {
    let mut opened = Vec::new();
    for (name, profile) in &mut settings.agents {
        let mut others = Vec::new();
        for account in profile.accounts.iter().skip(1) {
            let other = AgentName::new(format!("{name}.{}", account.name))
                .map_err(|error| SourceError::at(None, format!("account of agent `{name}`: {error}")))?;
            if others.contains(&other) || profile.accounts[0].name == account.name {
                let message = format!("agent `{name}` has two accounts named `{}`", account.name);
                return Err(SourceError::at(None, message).hint("give each account its own name"));
            }
            opened.push((other.clone(), profile.with(account)));
            others.push(other);
        }
        if let Some(first) = profile.accounts.first() {
            *profile = profile.with(first);
        }
        profile.fallback.splice(0..0, others);
    }
    Ok(opened)
}

/// A fallback that does not exist would be noticed in the night in which it is needed.
fn check_fallbacks(settings: &Settings) -> Result<(), SourceError> {
    for (name, profile) in &settings.agents {
        if profile.fallback.contains(name) {
            let message = format!("agent `{name}` cannot be its own fallback");
            return Err(SourceError::at(None, message).hint(format!("remove `{name}` from its `fallback:`")));
        }
        for fallback in &profile.fallback {
            if settings.profile_of(fallback).is_none() {
                let known = settings.agent_names().map(|known| known.to_string()).collect();
                return Err(unknown_agent(fallback.as_str(), &known));
            }
        }
    }
    Ok(())
}

fn unknown_agent(used: &str, known: &BTreeSet<String>) -> SourceError {
    let error = SourceError::at(None, format!("unknown agent `{used}`"));
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    match crate::source::nearest(used, names.iter().copied()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None if names.is_empty() => error.hint(format!(
            "no agents are configured; without a configuration there are `{DEFAULT_AGENT}` and the roles of the crew: {}",
            CREW.join(", ")
        )),
        None => error.hint(format!("known agents: {}", names.join(", "))),
    }
}

/// The role that an agent of the crew has by its name.
fn role_of(name: &AgentName) -> String {
    match name.as_str() {
        DEFAULT_AGENT => "code",
        "reviewer" | "gatekeeper" => "review",
        own => own,
    }
    .to_owned()
}

impl Profile {
    /// Adds the defaults that depend on the agent's name.
    fn complete(&mut self, name: &AgentName, is_written: bool) {
        if !is_written && CREW.contains(&name.as_str()) {
            self.driver = DriverKind::CREW;
        }
        if self.driver == DriverKind::CREW && self.role.is_none() {
            self.role = Some(role_of(name));
        }
    }

    /// The same with one of its accounts.
    fn with(&self, account: &Account) -> Self {
        let mut other = self.clone();
        other.env.extend(account.env.clone());
        other.renamed_env.clone_from(&account.keys);
        other
    }

    /// The same for an agent of another name. Of the crew, each has its own role.
    fn for_another(&self, name: &AgentName) -> Self {
        let mut other = self.clone();
        if self.driver == DriverKind::CREW {
            other.role = Some(role_of(name));
            other.origins.forget("role");
        }
        other
    }

    fn check_role(&self, name: &AgentName) -> Result<(), SourceError> {
        match (self.driver, &self.role) {
            (DriverKind::CREW, _) | (_, None) => Ok(()),
            (driver, Some(role)) => {
                let message =
                    format!("agent `{name}` has the role `{role}`, and its driver `{driver}` knows no roles");
                Err(SourceError::at(None, message).hint("roles are for `driver: crew`"))
            }
        }
    }
}
