//! What a script can tell the stand-in to do.

use std::fmt;
use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_core::{ReportedDecision, ResultOutcome};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::wire::{FaultKind, ToolEnd};

/// One step of a run. Texts may name `{task}` and `{iteration}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum Action {
    /// Writes text for people. The last of them is the final text.
    Say(String),
    /// Writes a file.
    Write {
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        path: Utf8PathBuf,
        content: String,
    },
    /// Adds to a file.
    Append {
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        path: Utf8PathBuf,
        content: String,
    },
    /// Replaces the first occurrence of a text in a file.
    Patch {
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        path: Utf8PathBuf,
        find: String,
        replace: String,
    },
    /// Deletes a file.
    Delete(#[cfg_attr(feature = "schema", schemars(with = "String"))] Utf8PathBuf),
    /// Applies a patch to the files, as `git diff --binary` writes it.
    Apply(String),
    /// Commits all that is there.
    Commit { message: String },
    /// Runs a command in a shell; with `status`, any other exit status is an error.
    Run {
        command: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<i32>,
    },
    /// Is seen to call a tool, without any effect.
    Tool(ToldTool),
    /// Reports tasks as done; `current` is the task of this run.
    TaskDone(TaskIds),
    /// Reports a task as blocked.
    TaskBlock { id: String, reason: String },
    /// Writes a line for the session's journal.
    Progress(String),
    /// Writes `result.json`.
    Result(ToldResult),
    /// Tokens and cost, added up.
    Usage(Usage),
    /// Waits.
    Sleep(Span),
    /// Waits for ever.
    Hang,
    /// From here on, SIGTERM does not end it.
    IgnoreSigterm,
    /// Leaves a process behind.
    SpawnChild(SpawnChild),
    /// Raw text to standard output: lines of it, or one line without end.
    Flood {
        megabytes: u32,
        #[serde(default = "yes")]
        newline: bool,
    },
    /// Says something that is not UTF-8.
    BrokenUtf8,
    /// Says only the first half of something.
    BrokenJson,
    /// Ends: too many requests.
    RateLimit {
        #[serde(default)]
        retry_after: Option<Span>,
    },
    /// Ends with an error, as the real agent would tell it.
    Error {
        kind: FaultKind,
        #[serde(default)]
        message: Option<String>,
        #[serde(default)]
        resets_in: Option<Span>,
    },
    /// Raw text to standard output.
    Stdout(String),
    /// Raw text to standard error.
    Stderr(String),
    /// Writes a file that is not in the worktree.
    WriteOutside {
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        path: Utf8PathBuf,
        #[serde(default)]
        content: String,
    },
    /// Says the final result, and goes on.
    Linger,
    /// Ends on the spot, without a final result.
    Crash(Crash),
    /// Ends properly, but with this exit status.
    Exit(i32),
    /// The prompt must contain this.
    ExpectPrompt { contains: String },
}

/// A tool call for show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToldTool {
    pub name: String,
    #[serde(default)]
    pub input: Map<String, Value>,
    #[serde(default)]
    pub output: String,
    #[serde(default)]
    pub end: ToolEnd,
}

/// What a run used; `cached` is a part of `input`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    #[serde(default)]
    pub cached: u64,
    #[serde(default)]
    pub cost_usd: f64,
}

/// What goes to `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToldResult {
    #[serde(default)]
    pub outcome: Option<ResultOutcome>,
    #[serde(default)]
    pub decision: Option<ReportedDecision>,
    #[serde(default)]
    pub comment: Option<String>,
    #[serde(default)]
    pub reason: Option<String>,
}

/// A process that is left behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SpawnChild {
    /// In a session of its own, where a signal to the process group does not reach it.
    #[serde(default)]
    pub detach: bool,
    /// SIGTERM does not end it.
    #[serde(default)]
    pub ignore_sigterm: bool,
    /// It keeps standard output open, so that whoever reads to the end waits for it.
    #[serde(default)]
    pub hold_output: bool,
    /// How long it lives.
    #[serde(default, rename = "for")]
    pub lifetime: Option<Span>,
    /// Where its process id is written.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub pid_file: Option<Utf8PathBuf>,
}

/// How it ends on the spot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Crash {
    Signal(SignalName),
    Exit(i32),
}

/// A signal that ends processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SignalName {
    Abrt,
    Hup,
    Int,
    Kill,
    Segv,
    Term,
}

fn yes() -> bool {
    true
}

impl Action {
    #[cfg(test)]
    pub(super) const COUNT: usize = 30;

    /// Its name, if nothing can come after it.
    pub(super) fn ends_run(&self) -> Option<&'static str> {
        let ends = matches!(
            self,
            Self::Hang | Self::RateLimit { .. } | Self::Error { .. } | Self::Crash(_) | Self::Exit(_)
        );
        ends.then(|| self.name())
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Say(_) => "say",
            Self::Write { .. } => "write",
            Self::Append { .. } => "append",
            Self::Patch { .. } => "patch",
            Self::Delete(_) => "delete",
            Self::Apply(_) => "apply",
            Self::Commit { .. } => "commit",
            Self::Run { .. } => "run",
            Self::Tool(_) => "tool",
            Self::TaskDone(_) => "task_done",
            Self::TaskBlock { .. } => "task_block",
            Self::Progress(_) => "progress",
            Self::Result(_) => "result",
            Self::Usage(_) => "usage",
            Self::Sleep(_) => "sleep",
            Self::Hang => "hang",
            Self::IgnoreSigterm => "ignore_sigterm",
            Self::SpawnChild(_) => "spawn_child",
            Self::Flood { .. } => "flood",
            Self::BrokenUtf8 => "broken_utf8",
            Self::BrokenJson => "broken_json",
            Self::RateLimit { .. } => "rate_limit",
            Self::Error { .. } => "error",
            Self::Stdout(_) => "stdout",
            Self::Stderr(_) => "stderr",
            Self::WriteOutside { .. } => "write_outside",
            Self::Linger => "linger",
            Self::Crash(_) => "crash",
            Self::Exit(_) => "exit",
            Self::ExpectPrompt { .. } => "expect_prompt",
        }
    }
}

/// A duration as people write it; a bare number is seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span(pub Duration);

impl Span {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let seconds = match unit.trim() {
            "ms" => 0.001,
            "s" | "" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok().map(Self)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}ms", self.0.as_millis()))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As text also for bare numbers: YAML does not tell `2` from `"2"` when text is asked for.
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(format!("`{text}`: expected a duration like `300ms`, `2s`, `5m` or `1h`"))
        })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A duration like `300ms`, `2s`, `5m` or `1h`; a bare number is seconds.",
            "type": ["string", "number"],
            "pattern": r"^[0-9]+(\.[0-9]*)? *(ms|s|m|h)?$",
            "minimum": 0,
        })
    }
}

/// One task or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskIds(pub Vec<String>);

impl<'de> Deserialize<'de> for TaskIds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ids;
        impl<'de> Visitor<'de> for Ids {
            type Value = TaskIds;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a task id, `current`, or a list of them")
            }
            fn visit_str<E: de::Error>(self, id: &str) -> Result<TaskIds, E> {
                Ok(TaskIds(vec![id.to_owned()]))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<TaskIds, A::Error> {
                let mut ids = Vec::new();
                while let Some(id) = seq.next_element()? {
                    ids.push(id);
                }
                Ok(TaskIds(ids))
            }
        }
        deserializer.deserialize_any(Ids)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for TaskIds {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TaskIds".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A task id, `current`, or a list of them.",
            "type": ["string", "array"],
            "items": { "type": "string" },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_with_a_unit_or_in_seconds() {
        let millis = |text: &str| Span::parse(text).map(|span| span.0.as_millis());
        assert_eq!(millis("300ms"), Some(300));
        assert_eq!(millis("2"), Some(2000));
        assert_eq!(millis("0.5s"), Some(500));
        assert_eq!(millis("5m"), Some(300_000));
        assert_eq!(millis("1h"), Some(3_600_000));
        assert_eq!((millis("soon"), millis("-1s"), millis(""), millis("2 weeks")), (None, None, None, None));
    }
}
