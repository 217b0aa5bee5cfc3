//! Who asks, and what only that client's requests tell.

use std::collections::HashMap;
use std::sync::Arc;

use rehearsal_core::{ModelClient, ToolName};
use rehearsal_llm::chat::{ChatRequest, Message, Part, Role};
use rehearsal_llm::wire::Dialect;

use crate::play::Asked;
use crate::route::Framing;

/// A request to the model, understood.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) dialect: Dialect,
    pub(crate) chat: ChatRequest,
    /// How the answer is wanted; none for one piece.
    pub(crate) framing: Option<Framing>,
    pub(crate) lane: String,
    pub(crate) clients: Clients,
}

impl Request {
    /// All that was said and that tools answered, the last first: what is new stands there.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let parts = self.chat.messages.iter().rev().flat_map(|message| &message.parts);
        parts
            .flat_map(|part| match part {
                Part::ToolResult(result) => result.parts.as_slice(),
                other => std::slice::from_ref(other),
            })
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
    }
}

/// The agent CLIs that a play knows.
#[derive(Debug, Clone)]
pub(crate) struct Clients(Arc<[&'static ModelClient]>);

impl Clients {
    pub(crate) fn new(clients: &[&'static ModelClient]) -> Self {
        Self(clients.into())
    }

    /// Who asks, by the `user-agent` header.
    pub(crate) fn of(&self, asked: &Asked) -> Option<&'static ModelClient> {
        let agent = asked.header("user-agent").unwrap_or_default().to_ascii_lowercase();
        self.0.iter().copied().find(|client| client.user_agents.iter().any(|name| agent.contains(name)))
    }

    /// What they call a tool or a parameter, where no other CLI calls it so.
    pub(crate) fn tool_names(&self, of: ToolName) -> impl Iterator<Item = &'static str> {
        let named = self.0.iter().flat_map(|client| client.tool_names);
        named.filter(move |(name, _)| *name == of).map(|(_, name)| *name)
    }

    /// Where the agent works, as it tells its model.
    pub(crate) fn working_directory(&self, chat: &ChatRequest) -> Option<String> {
        let said = chat.messages.iter().filter(|message| message.role != Role::Assistant);
        said.flat_map(|message: &Message| &message.parts).find_map(|part| match part {
            Part::Text(text) => self.directory_in(&text.text),
            _ => None,
        })
    }

    fn directory_in(&self, text: &str) -> Option<String> {
        let marks = self.0.iter().flat_map(|client| client.working_directory);
        [WORKING_DIRECTORY].iter().chain(marks).find_map(|(before, end)| {
            let start = text.find(before)? + before.len();
            let directory = text[start..].split(*end).next()?.trim();
            directory.starts_with('/').then(|| directory.to_owned())
        })
    }
}

/// What most programs write before the directory that they work in, and where that ends.
const WORKING_DIRECTORY: (&str, char) = ("orking directory: ", '\n');

/// Whether a request is not part of the task, but about it: a title, a quota, the choice of a model, a summary. The requests
/// of an agent CLI always offer tools, except for these. A program that is not known may ask without tools.
pub(crate) fn is_side(client: Option<&ModelClient>, chat: &ChatRequest) -> bool {
    let Some(client) = client else { return false };
    let is_named = || {
        let asked = chat.last_user_text();
        client.side_requests.iter().any(|text| asked.contains(text))
    };
    (chat.tools.is_empty() && !offers_code(chat)) || (!client.side_requests.is_empty() && is_named())
}

/// Whether codex offers its tools as functions of a program: they come in an item of their own, and not as tools.
pub(crate) fn offers_code(chat: &ChatRequest) -> bool {
    chat.messages
        .iter()
        .filter(|message| message.role == Role::System)
        .flat_map(|message| &message.parts)
        .any(|part| matches!(part, Part::Opaque(json) if json.as_str().contains("\"additional_tools\"")))
}

/// Names the conversations, in the order in which they begin.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    agents: HashMap<String, usize>,
}

/// More than any agent starts; after that they share the last one.
const MOST_AGENTS: usize = 1000;

impl Lanes {
    pub(crate) fn name(&mut self, asked: &Asked, client: Option<&ModelClient>, is_side: bool) -> String {
        if is_side {
            return "side".to_owned();
        }
        let header = client.and_then(|client| client.subagent_header);
        let Some(agent) = header.and_then(|name| asked.header(name)) else { return "main".to_owned() };
        let next = (self.agents.len() + 1).min(MOST_AGENTS);
        if self.agents.len() >= MOST_AGENTS && !self.agents.contains_key(agent) {
            return format!("agent-{next}");
        }
        let number = *self.agents.entry(agent.to_owned()).or_insert(next);
        format!("agent-{number}")
    }
}

#[cfg(test)]
mod tests {
    use rehearsal_agent::clis::KNOWN;

    use super::*;

    #[test]
    fn each_cli_tells_where_it_works() {
        let clients = Clients::new(&KNOWN.model_clients());
        for text in [
            "You are here.\n - Primary working directory: /tmp/a b\n - more",
            "<environment_context>\n  <cwd>/tmp/a b</cwd>",
            "I'm currently working in the directory: /tmp/a b\n",
            "  Working directory: /tmp/a b",
        ] {
            let chat = ChatRequest::new("m", vec![Message::user("hi"), Message::user(text)]);
            assert_eq!(clients.working_directory(&chat).as_deref(), Some("/tmp/a b"), "{text}");
        }
        let chat = ChatRequest::new("m", vec![Message::user("working directory: unknown")]);
        assert_eq!(clients.working_directory(&chat), None);
    }
}
