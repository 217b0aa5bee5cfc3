//! Who is measured, and who judges: `vendor:model` here too.

use std::collections::BTreeMap;

use super::Import;
use crate::import::NoteKind;
use crate::import::node::{At, Node};

/// The providers that are known by a label.
#[derive(Debug, Default)]
pub(super) struct Providers {
    labels: BTreeMap<String, String>,
}

impl Import<'_> {
    /// The agents of the eval; none if nobody has a counterpart, so that the project's own is measured.
    pub(super) fn providers(&mut self, root: &Node) -> Vec<String> {
        let Some(node) = root.get("providers").or_else(|| root.get("targets")) else { return Vec::new() };
        self.agents_of(node)
    }

    /// One provider or several.
    pub(super) fn agents_of(&mut self, node: &Node) -> Vec<String> {
        let several = node.list().map_or_else(|| vec![node], |nodes| nodes.iter().collect());
        let mut agents: Vec<String> = Vec::new();
        for one in several {
            if let Some(agent) = self.agent(one).filter(|agent| !agents.contains(agent)) {
                agents.push(agent);
            }
        }
        agents
    }

    pub(super) fn judge_of(&mut self, node: &Node) -> Option<String> {
        self.agent(node).filter(|agent| agent != "echo")
    }

    fn agent(&mut self, node: &Node) -> Option<String> {
        if let Some(id) = node.text() {
            let known = self.providers.labels.get(id).cloned();
            return known.or_else(|| self.counterpart(id, &node.at));
        }
        // The older form: `{ vendor:model: { … } }`.
        let (id, body) = match (node.get("id").and_then(Node::text), node.pairs()) {
            (Some(id), _) => (id, node),
            (None, [(id, body)]) => (id.as_str(), body),
            _ => {
                self.notes.add(NoteKind::Setting, &node.at, "a provider is left out: it has no `id`");
                return None;
            }
        };
        self.others(body, &["id", "label"]);
        let agent = self.counterpart(id, &node.at)?;
        if let Some(label) = body.get("label").and_then(Node::text) {
            self.providers.labels.insert(label.to_owned(), agent.clone());
        }
        Some(agent)
    }

    fn counterpart(&mut self, id: &str, at: &At) -> Option<String> {
        let agent = counterpart(id);
        if agent.is_none() {
            self.notes.add(NoteKind::Setting, at, format!("the provider `{id}` has no counterpart"));
        }
        agent
    }
}

/// Agents, not models: here they are agents of the configuration.
const AGENTS: [&str; 5] = ["codex-sdk", "codex-app-server", "claude-agent-sdk", "claude-code", "agents"];

fn counterpart(id: &str) -> Option<String> {
    if id == "echo" {
        return Some(id.to_owned());
    }
    let (vendor, rest) = id.split_once(':')?;
    let (ours, ways): (&str, &[&str]) = match vendor {
        "openai" => ("openai", &["chat", "responses"]),
        "anthropic" => ("anthropic", &["messages"]),
        "google" => ("gemini", &[]),
        _ => return None,
    };
    let model = match rest.split_once(':') {
        Some((way, model)) if ways.contains(&way) => model,
        Some(_) => return None,
        None => rest,
    };
    let is_model = !AGENTS.contains(&model)
        && !model.is_empty()
        && !ways.contains(&model)
        && !model.contains(char::is_whitespace);
    is_model.then(|| format!("{ours}:{model}"))
}

#[cfg(test)]
mod tests {
    use super::counterpart;

    #[test]
    fn a_provider_is_a_vendor_and_a_model() {
        for (id, expected) in [
            ("openai:gpt-5-mini", Some("openai:gpt-5-mini")),
            ("openai:chat:gpt-5-mini", Some("openai:gpt-5-mini")),
            ("anthropic:messages:claude-sonnet", Some("anthropic:claude-sonnet")),
            ("google:gemini-2.5-pro", Some("gemini:gemini-2.5-pro")),
            ("echo", Some("echo")),
            ("openai:embeddings:x", None),
            ("openai:chat", None),
            ("anthropic:claude-agent-sdk", None),
            ("exec: python x.py", None),
            ("file://provider.py", None),
        ] {
            assert_eq!(counterpart(id).as_deref(), expected, "{id}");
        }
    }
}
