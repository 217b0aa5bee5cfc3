//! Lanes: which requests come in order, and which do not.
//!
//! A conversation (the main one, each sub-agent's) asks one thing after the other. Side calls (a title, a quota probe, a small
//! model's verdict, a count of tokens) come whenever they come.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::exchange::Asked;
use super::policy::CONVERSATION_HEADERS;

/// A lane of a cassette.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaneName {
    /// The first conversation is `main`, the others are `agent-2`, `agent-3`, ….
    Conversation(u32),
    /// Calls without tools.
    Side,
    /// Questions for the number of tokens.
    CountTokens,
    /// Everything else: lists of models, probes without a body.
    Other,
}

impl LaneName {
    /// Whether its requests come in the order in which they were recorded.
    pub fn is_ordered(self) -> bool {
        matches!(self, Self::Conversation(_))
    }
}

impl fmt::Display for LaneName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conversation(1) => formatter.write_str("main"),
            Self::Conversation(number) => write!(formatter, "agent-{number}"),
            Self::Side => formatter.write_str("side"),
            Self::CountTokens => formatter.write_str("count-tokens"),
            Self::Other => formatter.write_str("other"),
        }
    }
}

impl FromStr for LaneName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = match text {
            "main" => Some(Self::Conversation(1)),
            "side" => Some(Self::Side),
            "count-tokens" => Some(Self::CountTokens),
            "other" => Some(Self::Other),
            _ => text.strip_prefix("agent-").and_then(|number| number.parse().ok()).map(Self::Conversation),
        };
        // One name each, so that a file that was read is written as it was.
        known
            .filter(|lane| lane.to_string() == text)
            .ok_or_else(|| format!("`{}` is no lane", text.escape_debug()))
    }
}

impl Serialize for LaneName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LaneName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What kind of call a request is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    /// A turn of the conversation with this identity.
    Turn(String),
    /// In a lane without order.
    Free(LaneName),
}

/// What is known of a body before it is normalised.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Shape<'a> {
    /// The first message, as it was sent.
    pub(crate) first_message: Option<&'a str>,
    pub(crate) has_tools: bool,
}

impl Call {
    pub(crate) fn of(asked: &Asked<'_>, shape: Shape<'_>) -> Self {
        let path = asked.path();
        if path.ends_with("/count_tokens") || path.ends_with(":countTokens") {
            return Self::Free(LaneName::CountTokens);
        }
        let Some(first) = shape.first_message else {
            return Self::Free(LaneName::Other);
        };
        if !shape.has_tools {
            return Self::Free(LaneName::Side);
        }
        let named: Vec<&str> = CONVERSATION_HEADERS.iter().filter_map(|name| asked.header(name)).collect();
        let conversation = if named.is_empty() { first.to_owned() } else { named.join(" ") };
        Self::Turn(format!("{path} {conversation}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(target: &str, headers: &[(&str, &str)], has_tools: bool) -> Call {
        let headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let asked = Asked { method: "POST", target, headers: &headers, body: b"" };
        Call::of(&asked, Shape { first_message: Some("\"hi\""), has_tools })
    }

    #[test]
    fn a_sub_agent_is_a_conversation_of_its_own() {
        let main = call("/v1/messages", &[("X-Claude-Code-Session-Id", "s")], true);
        let agent =
            call("/v1/messages", &[("X-Claude-Code-Session-Id", "s"), ("x-claude-code-agent-id", "a")], true);
        assert_ne!(main, agent);
        assert_eq!(main, call("/v1/messages?beta=true", &[("x-claude-code-session-id", "s")], true));
    }

    #[test]
    fn calls_without_tools_and_counts_have_no_order() {
        assert_eq!(call("/v1/messages", &[], false), Call::Free(LaneName::Side));
        assert_eq!(call("/v1/messages/count_tokens?beta=true", &[], true), Call::Free(LaneName::CountTokens));
        let asked = Asked { method: "GET", target: "/v1/models", headers: &[], body: b"" };
        assert_eq!(Call::of(&asked, Shape::default()), Call::Free(LaneName::Other));
    }

    #[test]
    fn a_lane_has_one_name() {
        for lane in ["main", "agent-2", "side", "count-tokens", "other"] {
            assert_eq!(lane.parse::<LaneName>().unwrap().to_string(), lane);
        }
        for none in ["agent-1", "agent-02", "agent-", "Main", ""] {
            assert!(none.parse::<LaneName>().is_err(), "{none}");
        }
    }
}
