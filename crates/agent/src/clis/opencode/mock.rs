//! opencode 1.18.33, `opencode run --format json`.

use serde_json::{Map, Value, json};

use crate::mock::draw::uuid;
use crate::mock::wire::{Fault, FaultKind, Lines, Scene, Tally, Tool, ToolCall, ToolEnd, ToolNames, Wire};

const TOOLS: ToolNames = ToolNames {
    write: "write",
    edit: "edit",
    shell: "bash",
    path: "filePath",
    old: "oldString",
    new: "newString",
};

pub(super) struct Opencode {
    scene: Scene,
    session: String,
    message: String,
    /// Each step is one answer of the model; it ends with the tool's return.
    in_step: bool,
    calls: u32,
}

impl Opencode {
    pub(super) fn new(scene: Scene) -> Self {
        let session = scene.option(&["--session", "-s"]).unwrap_or_else(|| id("ses"));
        Self { scene, session, message: String::new(), in_step: false, calls: 0 }
    }

    fn event(&self, kind: &str, (name, body): (&str, &Value), lines: &mut Lines) {
        lines.event(&json!({
            "type": kind, "timestamp": self.scene.time.now(), "sessionID": self.session, name: body,
        }));
    }

    fn part(&self, kind: &str, part_type: &str, mut part: Value, lines: &mut Lines) {
        part["type"] = json!(part_type);
        part["id"] = json!(id("prt"));
        part["messageID"] = json!(self.message);
        part["sessionID"] = json!(self.session);
        self.event(kind, ("part", &part), lines);
    }

    fn open_step(&mut self, lines: &mut Lines) {
        if !self.in_step {
            self.in_step = true;
            self.message = id("msg");
            self.part("step_start", "step-start", json!({"snapshot": snapshot()}), lines);
        }
    }

    fn close_step(&mut self, reason: &str, tally: &Tally, lines: &mut Lines) {
        let tokens = tally.tokens;
        let part = json!({
            "reason": reason, "snapshot": snapshot(), "cost": tally.cost_usd,
            "tokens": {
                "total": tokens.total(), "input": tokens.input - tokens.cached, "output": tokens.output,
                "reasoning": 0, "cache": {"write": 0, "read": tokens.cached},
            },
        });
        self.part("step_finish", "step-finish", part, lines);
        self.in_step = false;
    }

    fn now(&self) -> Value {
        json!({"start": self.scene.time.now(), "end": self.scene.time.now()})
    }
}

impl Wire for Opencode {
    fn agent(&self) -> &'static str {
        "opencode"
    }

    fn knows(&self, kind: FaultKind) -> bool {
        !kind.is_own_limit()
    }

    fn begin(&mut self, _: &mut Lines) {}

    fn text(&mut self, text: &str, lines: &mut Lines) {
        self.open_step(lines);
        self.part("text", "text", json!({"text": text, "time": self.now()}), lines);
    }

    fn tool(&mut self, call: &ToolCall, lines: &mut Lines) {
        self.open_step(lines);
        self.calls += 1;
        let (name, input) = TOOLS.call(&call.tool);
        let mut state = json!({"input": input, "time": self.now()});
        match call.end {
            end if end == ToolEnd::Fine || call.is_failed_command() => {
                state["status"] = json!("completed");
                state["output"] = json!(call.output);
                state["title"] = json!(title(&call.tool));
                state["metadata"] = metadata(call);
            }
            ToolEnd::Refused => {
                state["status"] = json!("error");
                state["error"] = json!("The user rejected permission to use this specific tool call.");
            }
            _ => {
                state["status"] = json!("error");
                state["error"] = json!(call.output);
            }
        }
        let part = json!({"tool": name, "callID": format!("call_{:024}", self.calls), "state": state});
        self.part("tool_use", "tool", part, lines);
        self.close_step("tool-calls", &Tally::default(), lines);
    }

    fn end(&mut self, tally: &Tally, lines: &mut Lines) {
        self.open_step(lines);
        self.close_step("stop", tally, lines);
    }

    fn fail(&mut self, fault: &Fault, _: &Tally, lines: &mut Lines) -> i32 {
        let error = json!({"name": "APIError", "data": api_error(fault)});
        self.event("error", ("error", &error), lines);
        1
    }
}

fn api_error(fault: &Fault) -> Value {
    let (status, kind, message) = match fault.kind {
        FaultKind::Auth => (Some(401), "authentication_error", "invalid x-api-key"),
        FaultKind::Overloaded => (Some(529), "overloaded_error", "Overloaded"),
        FaultKind::Quota => (Some(402), "billing_error", "Insufficient credit"),
        FaultKind::RateLimit => (Some(429), "rate_limit_error", "Rate limit reached"),
        FaultKind::Unreachable => (None, "", "Unable to connect. Is the computer able to access the url?"),
        FaultKind::BadRequest | FaultKind::MaxTurns | FaultKind::Budget => {
            (Some(400), "invalid_request_error", "bad request")
        }
    };
    let message = fault.message(message);
    let retryable =
        matches!(fault.kind, FaultKind::Overloaded | FaultKind::RateLimit | FaultKind::Unreachable);
    let mut data = json!({
        "message": message, "isRetryable": retryable,
        "metadata": {"url": "http://127.0.0.1/v1/chat/completions"},
    });
    if let Some(status) = status {
        let body = json!({"error": {"message": message, "type": kind, "code": null, "param": null}});
        data["statusCode"] = json!(status);
        data["responseBody"] = json!(body.to_string());
        data["responseHeaders"] = headers(fault, &body);
    }
    data
}

fn headers(fault: &Fault, body: &Value) -> Value {
    let mut headers = json!({
        "content-length": body.to_string().len().to_string(), "content-type": "application/json",
        "date": "Thu, 01 Jan 1970 00:00:00 GMT", "server": "mock",
    });
    if let Some(wait) = fault.wait_seconds() {
        headers["retry-after"] = json!(wait.to_string());
    }
    headers
}

fn title(tool: &Tool) -> String {
    match tool {
        Tool::Write { path, .. } | Tool::Edit { path, .. } => path.file_name().unwrap_or_default().to_owned(),
        Tool::Delete { path } => format!("rm {path}"),
        Tool::Shell { command } => command.clone(),
        Tool::Other { name, .. } => name.clone(),
    }
}

fn metadata(call: &ToolCall) -> Value {
    match &call.tool {
        Tool::Write { path, is_new, .. } => {
            json!({"diagnostics": Map::new(), "filepath": path, "exists": !is_new, "truncated": false})
        }
        Tool::Edit { .. } => json!({"diagnostics": Map::new(), "truncated": false}),
        Tool::Shell { .. } | Tool::Delete { .. } => {
            json!({"output": call.output, "exit": call.status, "truncated": false})
        }
        Tool::Other { .. } => json!({"truncated": false}),
    }
}

fn id(kind: &str) -> String {
    format!("{kind}_{}", &uuid().simple().to_string()[..26])
}

fn snapshot() -> String {
    format!("{}{}", uuid().simple(), &uuid().simple().to_string()[..8])
}
