//! Codex 0.166.0, `codex exec --json`.

use serde_json::{Value, json};

use crate::mock::draw::uuid;
use crate::mock::wire::{Fault, FaultKind, Lines, Scene, Tally, Tool, ToolCall, ToolEnd, Wire};

const URL: &str = "http://127.0.0.1/v1/responses";

pub(super) struct Codex {
    thread: String,
    items: u32,
}

impl Codex {
    pub(super) fn new(scene: &Scene) -> Self {
        // `codex exec … resume ID -`.
        let thread = scene.option(&["resume"]).unwrap_or_else(|| uuid().to_string());
        Self { thread, items: 0 }
    }

    fn completed(&mut self, mut item: Value, lines: &mut Lines) {
        item["id"] = json!(format!("item_{}", self.items));
        self.items += 1;
        lines.event(&json!({"type": "item.completed", "item": item}));
    }

    /// An item that is shown when it begins and again when it is over.
    fn worked(&mut self, begun: Value, over: Value, lines: &mut Lines) {
        let mut begun = begun;
        begun["id"] = json!(format!("item_{}", self.items));
        lines.event(&json!({"type": "item.started", "item": begun}));
        self.completed(over, lines);
    }

    fn command(&mut self, command: &str, call: &ToolCall, lines: &mut Lines) {
        let command = format!("/bin/bash -lc '{command}'");
        let item = |output: &str, exit: Option<i32>, status: &str| {
            json!({
                "type": "command_execution", "command": command, "aggregated_output": output, "exit_code": exit,
                "status": status,
            })
        };
        let over = match call.end {
            ToolEnd::Fine => item(&call.output, Some(0), "completed"),
            ToolEnd::Failed | ToolEnd::Refused => item(&call.output, Some(call.status), "failed"),
        };
        self.worked(item("", None, "in_progress"), over, lines);
    }

    fn change(&mut self, path: &str, kind: &str, call: &ToolCall, lines: &mut Lines) {
        let item = |status: &str| json!({"type": "file_change", "changes": [{"path": path, "kind": kind}], "status": status});
        let over = if call.end == ToolEnd::Fine { "completed" } else { "failed" };
        self.worked(item("in_progress"), item(over), lines);
    }

    fn other(&mut self, name: &str, input: &Value, call: &ToolCall, lines: &mut Lines) {
        let item = |result: Value, error: Value, status: &str| {
            json!({
                "type": "mcp_tool_call", "server": "mock", "tool": name, "arguments": input, "result": result,
                "error": error, "status": status,
            })
        };
        let over = if call.end == ToolEnd::Fine {
            let content =
                json!({"content": [{"type": "text", "text": call.output}], "structured_content": null});
            item(content, Value::Null, "completed")
        } else {
            item(Value::Null, json!({"message": call.output}), "failed")
        };
        self.worked(item(Value::Null, Value::Null, "in_progress"), over, lines);
    }
}

impl Wire for Codex {
    fn agent(&self) -> &'static str {
        "codex"
    }

    fn knows(&self, kind: FaultKind) -> bool {
        !kind.is_own_limit()
    }

    fn begin(&mut self, lines: &mut Lines) {
        lines.event(&json!({"type": "thread.started", "thread_id": self.thread}));
        lines.event(&json!({"type": "turn.started"}));
    }

    fn text(&mut self, text: &str, lines: &mut Lines) {
        self.completed(json!({"type": "agent_message", "text": text}), lines);
    }

    fn tool(&mut self, call: &ToolCall, lines: &mut Lines) {
        match &call.tool {
            // What its sandbox refuses before it starts leaves no item at all.
            _ if call.end == ToolEnd::Refused => {}
            Tool::Write { path, is_new, .. } => {
                self.change(path.as_str(), if *is_new { "add" } else { "update" }, call, lines);
            }
            Tool::Edit { path, .. } => self.change(path.as_str(), "update", call, lines),
            Tool::Delete { path } => self.change(path.as_str(), "delete", call, lines),
            Tool::Shell { command } => self.command(command, call, lines),
            Tool::Other { name, input } => {
                self.other(name, &Value::Object(input.clone()), call, lines);
            }
        }
    }

    fn end(&mut self, tally: &Tally, lines: &mut Lines) {
        lines.event(&json!({"type": "turn.completed", "usage": {
            "input_tokens": tally.tokens.input, "cached_input_tokens": tally.tokens.cached,
            "cache_write_input_tokens": 0, "output_tokens": tally.tokens.output, "reasoning_output_tokens": 0,
        }}));
    }

    fn fail(&mut self, fault: &Fault, _: &Tally, lines: &mut Lines) -> i32 {
        let message = message(fault);
        lines.event(&json!({"type": "error", "message": message}));
        lines.event(&json!({"type": "turn.failed", "error": {"message": message}}));
        1
    }
}

fn message(fault: &Fault) -> String {
    let status = |status: &str, message: &str| {
        format!("unexpected status {status}: {}, url: {URL}", fault.message(message))
    };
    match fault.kind {
        FaultKind::Auth => status("401 Unauthorized", "invalid x-api-key"),
        FaultKind::Overloaded => status("529 <unknown status code>", "Overloaded"),
        FaultKind::RateLimit => {
            let wait = fault.wait_seconds().map(|wait| format!(". Please try again in {wait}s")).unwrap_or_default();
            status("429 Too Many Requests", &format!("Rate limit reached{wait}"))
        }
        FaultKind::Unreachable => fault.message(&format!(
            "stream disconnected before completion: error sending request for url ({URL})"
        )),
        FaultKind::Quota => {
            let when = fault.wait_seconds().map_or_else(
                || "later".to_owned(),
                |wait| format!("in {} hours {} minutes", wait / 3600, wait / 60 % 60),
            );
            fault.message(&format!(
                "You’ve hit your usage limit. Visit https://chatgpt.com/settings/usage to purchase more credits or try \
                 again {when}."
            ))
        }
        // It passes the service's own answer on, as it came.
        FaultKind::BadRequest | FaultKind::MaxTurns | FaultKind::Budget => json!({"error": {
            "message": fault.message("bad request"), "type": "invalid_request_error", "code": null, "param": null,
        }})
        .to_string(),
    }
}
