//! What a program's requests to a model look like: how to recognize them, and what varies in them from run to run.
//!
//! Plain data. The description of an agent CLI has it, the stage and cassettes act on it.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// The requests of one agent CLI. Two of the same name are the same.
#[derive(Debug, Clone, Copy)]
pub struct ModelClient {
    /// The CLI's name; in cassettes, the name of its rule.
    pub name: &'static str,
    /// The version of its rule. Increase it with every change of `varying_fields` and `rewrites`: an old cassette would
    /// not match.
    pub version: u32,
    /// Parts of its `user-agent` header, in lower case.
    pub user_agents: &'static [&'static str],
    /// What it writes before its working directory, and the character that ends it.
    pub working_directory: &'static [(&'static str, char)],
    /// What it calls its tools and their parameters, where no other CLI calls them so.
    pub tool_names: &'static [(ToolName, &'static str)],
    /// Texts of requests that are not part of the task although they offer tools, such as a summary of the conversation.
    pub side_requests: &'static [&'static str],
    /// The header that identifies a sub-agent.
    pub subagent_header: Option<&'static str>,
    /// Fields of a request that are never the same, and what replaces them.
    pub varying_fields: &'static [(&'static str, &'static str)],
    /// Texts that are never the same.
    pub rewrites: &'static [Rewrite],
}

/// What a tool or a parameter of a tool is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolName {
    /// Writes a whole file: `Path`, `Content`.
    Write,
    /// Replaces a part of a file: `Path`, `Old`, `New`.
    Edit,
    /// Reads a file: `Path`.
    Read,
    /// Runs a command: `Command`.
    Run,
    /// The file.
    Path,
    /// All that it is to contain.
    Content,
    /// The text to be replaced.
    Old,
    /// What replaces it.
    New,
    /// The command.
    Command,
}

/// A text that varies, and what replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rewrite {
    /// A regular expression.
    pub find: &'static str,
    /// Where it matches.
    pub bounds: Bounds,
    /// What of the match stays.
    pub keep: Keep,
    /// What replaces the rest.
    pub put: &'static str,
}

/// Where a [`Rewrite`] matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounds {
    /// Anywhere.
    Any,
    /// Not directly between letters or digits.
    Word,
}

/// What of a match stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Everything up to the end of the first such text.
    UpToFirst(&'static str),
    /// Everything up to the end of the last such text.
    UpToLast(&'static str),
}

impl ModelClient {
    /// A CLI of which nothing more is known. Its requests without tools are not part of the task.
    pub const fn new(name: &'static str, user_agents: &'static [&'static str]) -> Self {
        Self {
            name,
            version: 1,
            user_agents,
            working_directory: &[],
            tool_names: &[],
            side_requests: &[],
            subagent_header: None,
            varying_fields: &[],
            rewrites: &[],
        }
    }
}

impl PartialEq for ModelClient {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ModelClient {}

impl PartialOrd for ModelClient {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ModelClient {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(other.name)
    }
}

impl Hash for ModelClient {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
