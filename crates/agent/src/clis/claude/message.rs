//! The messages within Claude Code's events.

use std::borrow::Cow;
use std::fmt;

use rehearsal_core::{Activity, Tokens};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::driver::bounds::{ACTIVITY_TEXT, DETAIL, cut, one_line};
use crate::driver::json;
use crate::driver::tool::{self, OpenCalls};

/// The model's name in messages that the program makes up to tell an error.
pub(super) const SYNTHETIC: &str = "<synthetic>";

#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Option<json::Text<'a>>,
    #[serde(borrow)]
    role: Option<json::Text<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<json::Text<'a>>,
    pub(super) usage: Option<Usage>,
    #[serde(borrow, default)]
    content: Content<'a>,
}

/// A count of tokens; input, what was read from the cache and what was written to it are told apart.
#[derive(Deserialize)]
pub(super) struct Usage {
    #[serde(default, rename = "input_tokens")]
    uncached: u64,
    #[serde(default, rename = "cache_creation_input_tokens")]
    written_to_cache: u64,
    #[serde(default, rename = "cache_read_input_tokens")]
    read_from_cache: u64,
    #[serde(default, rename = "output_tokens")]
    output: u64,
}

impl Usage {
    pub(super) fn tokens(&self) -> Tokens {
        let sent = self.uncached.saturating_add(self.written_to_cache);
        Tokens {
            input: sent.saturating_add(self.read_from_cache),
            cached: self.read_from_cache,
            output: self.output,
        }
    }
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<json::Text<'a>>,
    #[serde(borrow)]
    id: Option<json::Text<'a>>,
    #[serde(borrow)]
    name: Option<json::Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<json::Text<'a>>,
    is_error: Option<bool>,
}

/// Blocks, or one plain text.
#[derive(Default)]
struct Content<'a>(Vec<Block<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Blocks;
        impl<'de> Visitor<'de> for Blocks {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("blocks or a text")
            }

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Content::default())
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Content::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut blocks = Vec::new();
                while blocks.len() < MOST_BLOCKS {
                    let Some(block) = seq.next_element()? else {
                        return Ok(Content(blocks));
                    };
                    blocks.push(block);
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Content(blocks))
            }
        }
        deserializer.deserialize_any(Blocks)
    }
}

/// A message has one block, rarely a few; only hostile output has more.
const MOST_BLOCKS: usize = 1000;

impl Message<'_> {
    /// Tells what the message does.
    pub(super) fn tell(&self, calls: &mut OpenCalls, out: &mut Vec<Activity>) {
        let from_model = self.role.as_deref() != Some("user");
        for block in &self.content.0 {
            match &*block.kind {
                "text" if from_model => {
                    let text = cut(block.text.as_deref().unwrap_or_default(), ACTIVITY_TEXT);
                    out.push(Activity::Text { text });
                }
                "tool_use" => {
                    let tool = one_line(block.name.as_deref().unwrap_or("unknown"), DETAIL);
                    let detail = tool::detail(block.input);
                    calls.opened(block.id.as_deref().unwrap_or_default(), &tool, &detail);
                    let arguments = tool::arguments(block.input);
                    out.push(Activity::ToolCalled { tool, detail, arguments });
                }
                "tool_result" => {
                    let call = calls.closed(block.tool_use_id.as_deref().unwrap_or_default());
                    let tool = call.map(|call| call.tool).unwrap_or_default();
                    out.push(Activity::ToolReturned { tool, is_error: block.is_error.unwrap_or(false) });
                }
                _ => {}
            }
        }
    }

    /// Whether it is the program's own note that it was interrupted, and nothing else.
    pub(super) fn says_interrupted(&self) -> bool {
        matches!(&self.content.0[..], [block] if matches!(
            block.text.as_deref(),
            Some("[Request interrupted by user]" | "[Request interrupted by user for tool use]")
        ))
    }
}

/// What was refused to a model, as `permission_denials` tells it.
#[derive(Deserialize)]
pub(super) struct Denied<'a> {
    #[serde(borrow)]
    tool_name: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_input: Option<&'a RawValue>,
}

impl Denied<'_> {
    pub(super) fn denial(&self) -> rehearsal_core::Denial {
        let tool = json::text(self.tool_name).unwrap_or(Cow::Borrowed("a tool"));
        rehearsal_core::Denial { tool: one_line(&tool, DETAIL), detail: tool::detail(self.tool_input) }
    }
}
