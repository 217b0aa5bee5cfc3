//! Codex's `exec --json`: threads, turns and items.

use std::borrow::Cow;

use rehearsal_core::{Activity, Denial, Tokens, WireEnd, WireError, WireErrorKind, WireReport};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::driver::bounds::{ACTIVITY_TEXT, DETAIL, END_OF_FINAL_TEXT, MESSAGE, cut, keep_ends, one_line};
use crate::driver::fault::Fault;
use crate::driver::json;
use crate::driver::stream::{Close, Format, Reading, may_be_object};
use crate::driver::{Here, tool};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    thread_id: Option<json::Text<'a>>,
    #[serde(borrow)]
    item: Option<Item<'a>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<json::Text<'a>>,
    #[serde(borrow)]
    status: Option<json::Text<'a>>,
    exit_code: Option<i64>,
    #[serde(borrow)]
    command: Option<json::Text<'a>>,
    #[serde(borrow)]
    changes: Option<&'a RawValue>,
    #[serde(borrow)]
    server: Option<json::Text<'a>>,
    #[serde(borrow)]
    tool: Option<json::Text<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    query: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default, rename = "input_tokens")]
    input: u64,
    #[serde(default, rename = "cached_input_tokens")]
    cached: u64,
    #[serde(default, rename = "output_tokens")]
    output: u64,
}

#[derive(Deserialize)]
struct Failure<'a> {
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

/// The state of reading.
pub(super) struct CodexFormat {
    here: Here,
    thread_id: Option<String>,
    final_text: String,
    tokens: Option<Tokens>,
    denials: Vec<Denial>,
    end: Option<WireEnd>,
    /// An error that was told outside a turn's end; the end, if none follows.
    last_error: Option<String>,
}

/// More refusals say nothing new.
const MOST_DENIALS: usize = 100;

impl CodexFormat {
    pub(super) fn new(here: Here) -> Self {
        Self {
            here,
            thread_id: None,
            final_text: String::new(),
            tokens: None,
            denials: Vec::new(),
            end: None,
            last_error: None,
        }
    }

    fn event(&mut self, event: &Event<'_>, out: &mut Vec<Activity>) -> Reading {
        match &*event.kind {
            "" => return Reading::Foreign,
            "thread.started" => {
                self.thread_id = event.thread_id.as_deref().map(|id| one_line(id, DETAIL));
                out.push(Activity::Started { session_id: self.thread_id.clone(), model: None });
            }
            "turn.started" => self.end = None,
            "turn.completed" => self.completed(event.usage, out),
            "turn.failed" => {
                let failure: Option<Failure<'_>> = json::read(event.error);
                let message = failure.and_then(|failure| json::text(failure.message));
                self.end = Some(failed(message.as_deref().unwrap_or_default(), &self.here));
            }
            "error" => self.error(&json::text(event.message).unwrap_or_default(), out),
            "item.started" | "item.completed" => {
                let Some(item) = &event.item else {
                    return Reading::Broken("an item event without an item".to_owned());
                };
                if event.kind == "item.started" {
                    started(item, out);
                } else {
                    self.item_completed(item, out);
                }
            }
            _ => {}
        }
        Reading::Event
    }

    fn completed(&mut self, usage: Option<&RawValue>, out: &mut Vec<Activity>) {
        self.end = Some(WireEnd::Success);
        if let Some(usage) = json::read::<Usage>(usage) {
            // Of a resumed thread this counts the whole thread, not this run.
            let tokens = Tokens { input: usage.input, cached: usage.cached, output: usage.output };
            self.tokens = Some(tokens);
            out.push(Activity::Usage { tokens, cost_usd: None });
        }
    }

    fn error(&mut self, message: &str, out: &mut Vec<Activity>) {
        if message.starts_with("Reconnecting") {
            out.push(Activity::Retrying { message: one_line(message, MESSAGE) });
        } else {
            self.last_error = Some(cut(message, MESSAGE));
        }
    }

    fn item_completed(&mut self, item: &Item<'_>, out: &mut Vec<Activity>) {
        match &*item.kind {
            "agent_message" => {
                let text = item.text.as_deref().unwrap_or_default();
                out.push(Activity::Text { text: cut(text, ACTIVITY_TEXT) });
                self.final_text = keep_ends(Cow::Borrowed(text), END_OF_FINAL_TEXT);
            }
            // An item of this kind is a warning: codex begins with one when it does not know the model.
            "error" | "reasoning" | "todo_list" => {}
            _ => {
                let (tool, detail) = described(item);
                let status = item.status.as_deref().unwrap_or_default();
                let is_error =
                    matches!(status, "failed" | "declined") || item.exit_code.is_some_and(|code| code != 0);
                out.push(Activity::ToolReturned { tool: tool.clone(), is_error });
                if status == "declined" && self.denials.len() < MOST_DENIALS {
                    self.denials.push(Denial { tool, detail });
                }
            }
        }
    }
}

fn started(item: &Item<'_>, out: &mut Vec<Activity>) {
    if !matches!(&*item.kind, "agent_message" | "error" | "reasoning" | "todo_list") {
        let (tool, detail) = described(item);
        out.push(Activity::ToolCalled { tool, detail, arguments: arguments(item) });
    }
}

/// What a tool of its own was called with stands beside the call, not in one value.
fn arguments(item: &Item<'_>) -> Option<String> {
    match &*item.kind {
        "command_execution" => {
            let command = serde_json::to_string(item.command.as_deref()?).ok()?;
            tool::call_arguments(&format!("{{\"command\":{command}}}"))
        }
        "file_change" => tool::call_arguments(&format!("{{\"changes\":{}}}", item.changes?.get())),
        "mcp_tool_call" => tool::arguments(item.arguments),
        _ => tool::call_arguments(&format!("{{\"query\":{}}}", item.query?.get())),
    }
}

/// The tool of an item and what it is for.
fn described(item: &Item<'_>) -> (String, String) {
    #[derive(Deserialize)]
    struct Change<'a> {
        #[serde(borrow)]
        path: Option<&'a RawValue>,
    }
    match &*item.kind {
        "command_execution" => {
            ("shell".to_owned(), one_line(item.command.as_deref().unwrap_or_default(), DETAIL))
        }
        "file_change" => {
            let changes: Vec<Change<'_>> = json::read(item.changes).unwrap_or_default();
            let paths: Vec<Cow<'_, str>> =
                changes.iter().take(8).filter_map(|change| json::text(change.path)).collect();
            ("patch".to_owned(), one_line(&paths.join(" "), DETAIL))
        }
        "mcp_tool_call" => {
            let server = item.server.as_deref().unwrap_or("mcp");
            let tool = item.tool.as_deref().unwrap_or("unknown");
            (one_line(&format!("{server}.{tool}"), DETAIL), tool::detail(item.arguments))
        }
        other => (
            one_line(other, DETAIL),
            json::text(item.query).map(|q| one_line(&q, DETAIL)).unwrap_or_default(),
        ),
    }
}

/// The end that a failed turn's message stands for. For a request that was refused, it is the server's JSON.
fn failed(message: &str, here: &Here) -> WireEnd {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        error: Option<Inner<'a>>,
    }
    #[derive(Deserialize)]
    struct Inner<'a> {
        #[serde(borrow)]
        message: Option<&'a RawValue>,
        #[serde(borrow, rename = "type")]
        kind: Option<&'a RawValue>,
        #[serde(borrow)]
        code: Option<&'a RawValue>,
    }
    if let Ok(Body { error: Some(inner) }) = serde_json::from_str::<Body<'_>>(message) {
        let code = json::text(inner.code).or_else(|| json::text(inner.kind)).unwrap_or_default();
        let text = json::text(inner.message).unwrap_or_default();
        // A 400 shows its body alone; every other status is named in words.
        let status = (code == "invalid_request_error").then_some(400);
        return Fault { status, code: &code, message: &text, until: None }.end(here);
    }
    Fault { message, ..Fault::default() }.end(here)
}

impl Format for CodexFormat {
    fn read(&mut self, line: &str, out: &mut Vec<Activity>) -> Reading {
        if !may_be_object(line) {
            return Reading::Foreign;
        }
        match json::line::<Event<'_>>(line) {
            Ok(event) => self.event(&event, out),
            Err(reason) => Reading::Broken(reason),
        }
    }

    fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    fn report(self, close: &Close) -> WireReport {
        let told =
            self.last_error.filter(|_| close.failed_by_itself()).map(|message| failed(&message, &self.here));
        WireReport {
            session_id: self.thread_id,
            tokens: self.tokens,
            denials: self.denials,
            final_text: self.final_text,
            end: self.end.or(told).or_else(|| refused_to_start(close)),
            ..WireReport::default()
        }
    }
}

/// It wrote nothing but a line of its own that says why: the directory is not one it trusts.
fn refused_to_start(close: &Close) -> Option<WireEnd> {
    if !close.silent || !close.failed_by_itself() {
        return None;
    }
    let message = close.stderr_line(|line| line.starts_with("Not inside a trusted directory"))?;
    Some(WireEnd::Error(WireError { kind: WireErrorKind::Permission, status: None, message }))
}
