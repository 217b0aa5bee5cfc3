//! Who asks, and what only that client's requests tell.

use std::collections::HashMap;

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

/// An agent that we know the habits of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    Claude,
    Codex,
    Gemini,
    Opencode,
    Other,
}

impl Client {
    pub(crate) fn of(asked: &Asked) -> Self {
        let agent = asked.header("user-agent").unwrap_or_default().to_ascii_lowercase();
        let known = [
            ("claude-cli", Self::Claude),
            ("claude-code", Self::Claude),
            ("codex", Self::Codex),
            ("geminicli", Self::Gemini),
            ("opencode", Self::Opencode),
        ];
        known.into_iter().find(|(name, _)| agent.contains(name)).map_or(Self::Other, |(_, client)| client)
    }

    /// Whether a request is not of the task, but about it: a title, a quota, the choice of a model, a summary.
    ///
    /// The agents' own requests always offer tools, and side requests never do, with two exceptions: codex in its code mode
    /// tells its tools in another place, and Claude's compaction offers tools that it forbids to use.
    pub(crate) fn is_side(self, chat: &ChatRequest) -> bool {
        match self {
            Self::Other => false,
            Self::Claude => {
                chat.tools.is_empty() || chat.last_user_text().contains("CRITICAL: Respond with TEXT ONLY")
            }
            Self::Codex => chat.tools.is_empty() && !offers_code(chat),
            Self::Gemini | Self::Opencode => chat.tools.is_empty(),
        }
    }
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
    pub(crate) fn name(&mut self, asked: &Asked, is_side: bool) -> String {
        if is_side {
            return "side".to_owned();
        }
        let Some(agent) = asked.header("x-claude-code-agent-id") else { return "main".to_owned() };
        let next = (self.agents.len() + 1).min(MOST_AGENTS);
        if self.agents.len() >= MOST_AGENTS && !self.agents.contains_key(agent) {
            return format!("agent-{next}");
        }
        let number = *self.agents.entry(agent.to_owned()).or_insert(next);
        format!("agent-{number}")
    }
}

/// What each CLI writes before the directory that it works in, and where that ends.
const WORKING_DIRECTORY: [(&str, &[char]); 4] = [
    ("orking directory: ", &['\n']),
    ("<cwd>", &['<']),
    ("working in the directory: ", &['\n']),
    ("**Workspace Directories:**\n  - ", &['\n']),
];

/// Where the agent works, as it tells its model.
pub(crate) fn working_directory(chat: &ChatRequest) -> Option<String> {
    let said = chat.messages.iter().filter(|message| message.role != Role::Assistant);
    said.flat_map(|message: &Message| &message.parts).find_map(|part| match part {
        Part::Text(text) => directory_in(&text.text),
        _ => None,
    })
}

fn directory_in(text: &str) -> Option<String> {
    WORKING_DIRECTORY.iter().find_map(|(before, ends)| {
        let start = text.find(before)? + before.len();
        let directory = text[start..].split(*ends).next()?.trim();
        directory.starts_with('/').then(|| directory.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cli_tells_where_it_works() {
        for text in [
            "You are here.\n - Primary working directory: /tmp/a b\n - more",
            "<environment_context>\n  <cwd>/tmp/a b</cwd>",
            "I'm currently working in the directory: /tmp/a b\n",
            "  Working directory: /tmp/a b",
        ] {
            let chat = ChatRequest::new("m", vec![Message::user("hi"), Message::user(text)]);
            assert_eq!(working_directory(&chat).as_deref(), Some("/tmp/a b"), "{text}");
        }
        let chat = ChatRequest::new("m", vec![Message::user("working directory: unknown")]);
        assert_eq!(working_directory(&chat), None);
    }
}
