//! The limits of cassettes, with the reason for each number.

/// The longest line that is read. A request of a real agent has 50 to 200 KB in all; 32 MB leave room for images.
pub(crate) const MAX_LINE: usize = 32 << 20;

/// The most that a cassette may hold in memory. More is no test, and would not be committed.
pub(crate) const MAX_TOTAL: u64 = 1 << 30;

/// References to elements, all requests together, after `as_before` was expanded: a hostile file of a few lines could
/// otherwise ask for any amount of memory. A session of 1,000 turns needs half a million.
pub(crate) const MAX_REFERENCES: usize = 8 << 20;

/// Longer values of a request's own fields are stored as blobs, so that the line of a request stays readable.
pub(crate) const INLINE_BYTES: usize = 160;

/// How many differences a miss shows.
pub(crate) const SHOWN_DIFFERENCES: usize = 8;

/// How many misses, and how many relaxed matches, are told one by one. An agent may try again without end.
pub(crate) const TOLD: usize = 100;

/// How much of a value a difference shows.
pub(crate) const SHOWN_VALUE: usize = 160;

/// How deep JSON is walked. `serde_json` itself refuses more than 128.
pub(crate) const MAX_DEPTH: usize = 128;

/// The largest answer that is kept while it is being recorded.
pub(crate) const MAX_ANSWER: usize = 256 << 20;

/// Request headers that are kept, and that must match: they change what a vendor answers. Everything else identifies
/// the client, its machine or its key.
pub(crate) const REQUEST_HEADERS: &[&str] =
    &["anthropic-beta", "anthropic-version", "content-type", "openai-beta"];

/// Response headers that are kept: they change what a client does.
pub(crate) const RESPONSE_HEADERS: &[&str] =
    &["content-type", "retry-after", "retry-after-ms", "x-should-retry", "x-codex-turn-state"];
/// Beginnings of more of these.
pub(crate) const RESPONSE_HEADER_FAMILIES: &[&str] = &["anthropic-ratelimit-", "x-ratelimit-"];

/// Headers that tell conversations apart: sub-agents of Claude Code, threads of Codex, sessions of opencode.
pub(crate) const CONVERSATION_HEADERS: &[&str] = &[
    "x-claude-code-agent-id",
    "x-claude-code-session-id",
    "thread-id",
    "session-id",
    "session_id",
    "conversation_id",
    "x-session-id",
    "x-session-affinity",
];
