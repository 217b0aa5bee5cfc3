//! Claude Code 2.1.325, `-p --output-format stream-json --verbose`.

use rehearsal_core::Tokens;
use serde_json::{Map, Value, json};

use crate::mock::draw;
use crate::mock::wire::{Fault, FaultKind, Lines, Scene, Tally, Tool, ToolCall, ToolEnd, ToolNames, Wire};

const MODEL: &str = "claude-opus-5-5";
const TOOLS: ToolNames = ToolNames {
    write: "Write",
    edit: "Edit",
    shell: "Bash",
    path: "file_path",
    old: "old_string",
    new: "new_string",
};

pub(super) struct Claude {
    scene: Scene,
    session: String,
    model: String,
    /// Messages of the model; a new one begins after each tool's return.
    turns: u32,
    in_turn: bool,
    ids: u32,
    denials: Vec<Value>,
}

impl Claude {
    pub(super) fn new(scene: Scene) -> Self {
        let given = scene.option(&["--resume", "-r", "--session-id"]);
        let session = given.unwrap_or_else(uuid);
        let model = scene.option(&["--model"]).unwrap_or_else(|| MODEL.to_owned());
        Self { scene, session, model, turns: 0, in_turn: false, ids: 0, denials: Vec::new() }
    }

    fn next_id(&mut self) -> u32 {
        self.ids += 1;
        self.ids
    }

    /// One content block of the model: each is an event of its own.
    fn block(&mut self, block: &Value, lines: &mut Lines) {
        if !self.in_turn {
            self.turns += 1;
            self.in_turn = true;
        }
        let message = json!({
            "id": format!("msg_{:024}", self.turns), "type": "message", "role": "assistant", "model": self.model,
            "content": [block], "stop_reason": null, "stop_sequence": null, "context_management": null,
            "usage": {
                "input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1,
            },
        });
        lines.event(&json!({
            "type": "assistant", "message": message, "parent_tool_use_id": null, "session_id": self.session,
            "uuid": uuid(), "timestamp": self.scene.time.iso(), "request_id": "req_mock",
        }));
    }

    fn returned(&mut self, id: &str, call: &ToolCall, lines: &mut Lines) {
        let mut result = json!({"tool_use_id": id, "type": "tool_result", "content": call.output});
        let (seen, decision) = match call.end {
            ToolEnd::Fine => {
                if matches!(call.tool, Tool::Shell { .. } | Tool::Delete { .. }) {
                    result["is_error"] = json!(false);
                }
                (
                    tool_use_result(call),
                    json!({"decision": "accept", "source": "config", "reason_type": "mode"}),
                )
            }
            end => {
                let said = if call.is_failed_command() {
                    format!("Exit code {}\n{}", call.status, call.output)
                } else {
                    call.output.clone()
                };
                result["is_error"] = json!(true);
                result["content"] = json!(said);
                let decision = if end == ToolEnd::Refused { "reject" } else { "accept" };
                let decision = json!({"decision": decision, "source": "config", "reason_type": "rule"});
                (json!(format!("Error: {said}")), decision)
            }
        };
        lines.event(&json!({
            "type": "user", "message": {"role": "user", "content": [result]}, "parent_tool_use_id": null,
            "session_id": self.session, "uuid": uuid(), "timestamp": self.scene.time.iso(),
            "tool_use_result": seen, "tool_result_meta": [{"id": id, "permission_decision": decision}],
        }));
        self.in_turn = false;
    }

    fn result(&self, tally: &Tally, how: Map<String, Value>, lines: &mut Lines) {
        let models = self.model_usage(tally);
        let mut result = json!({
            "type": "result", "session_id": self.session, "uuid": uuid(), "num_turns": self.turns.max(1),
            "duration_ms": self.scene.time.elapsed_ms(), "duration_api_ms": 0, "total_cost_usd": tally.cost_usd,
            "usage": usage(tally), "modelUsage": models, "model_usage_since_last_result": models,
            "permission_denials": self.denials, "fast_mode_state": "off",
            "fast_mode_disabled_reason": "sdk_opt_in_required", "subagent_stats": subagent_stats(),
            "safety_stops": 0, "queued_turn_count": 0, "result_index": 0,
        });
        if let Some(result) = result.as_object_mut() {
            result.extend(how);
        }
        lines.event(&result);
    }

    fn model_usage(&self, tally: &Tally) -> Value {
        if self.turns == 0 && tally.tokens == Tokens::default() {
            return json!({});
        }
        let uncached = tally.tokens.input - tally.tokens.cached;
        json!({&self.model: {
            "inputTokens": uncached, "outputTokens": tally.tokens.output,
            "cacheReadInputTokens": tally.tokens.cached, "cacheCreationInputTokens": 0, "webSearchRequests": 0,
            "costUSD": tally.cost_usd, "contextWindow": 1_000_000, "maxOutputTokens": 128_000,
            "thinkingTokens": 0, "cacheCreationEphemeral5mInputTokens": 0,
            "cacheCreationEphemeral1hInputTokens": 0, "canonicalModel": self.model,
            "provider": "firstParty", "costBasis": "list",
        }})
    }

    /// The model's service failed: the text of it as a message of no model, and a result that is called a
    /// success and is an error.
    fn api_error(&mut self, error: &ApiError, message: &str, tally: &Tally, lines: &mut Lines) {
        let mut usage = usage(&Tally::default());
        for unknown in ["output_tokens_details", "service_tier", "inference_geo", "iterations", "speed"] {
            usage[unknown] = Value::Null;
        }
        let said = json!({
            "id": uuid(), "type": "message", "role": "assistant", "model": "<synthetic>",
            "content": [{"type": "text", "text": message}], "stop_reason": "stop_sequence", "stop_sequence": "",
            "stop_details": null, "diagnostics": null, "container": null, "context_management": null, "usage": usage,
        });
        let mut event = json!({
            "type": "assistant", "message": said, "parent_tool_use_id": null, "session_id": self.session,
            "uuid": uuid(), "timestamp": self.scene.time.iso(), "error": error.name,
            "request_id": "req_mock", "is_api_error_message": true,
        });
        let mut how = how(&json!({
            "subtype": "success", "is_error": true, "result": message, "stop_reason": "stop_sequence",
            "terminal_reason": "api_error", "api_error_status": error.status,
        }));
        if let Some(status) = error.status {
            event["api_error_status"] = json!(status);
            event["api_error_type"] = json!(error.kind);
            how.insert("api_error_type".into(), json!(error.kind));
        } else {
            how.insert("api_error".into(), json!(error.kind));
        }
        lines.event(&event);
        self.result(tally, how, lines);
    }

    fn own_limit(&self, kind: FaultKind, fault: &Fault, tally: &Tally, lines: &mut Lines) {
        let (subtype, reason, message) = match kind {
            FaultKind::Budget => ("error_max_budget_usd", "budget_exhausted", "Reached maximum budget"),
            _ => ("error_max_turns", "max_turns", "Reached maximum number of turns"),
        };
        let how = how(&json!({
            "subtype": subtype, "is_error": true, "errors": [fault.message(message)], "stop_reason": "tool_use",
            "terminal_reason": reason,
        }));
        self.result(tally, how, lines);
    }

    /// Its own try again, which tells how long the service asked to wait.
    fn announce_wait(&self, fault: &Fault, lines: &mut Lines) {
        if let (FaultKind::RateLimit, Some(wait)) = (fault.kind, fault.wait) {
            lines.event(&json!({
                "type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 1,
                "retry_delay_ms": u64::try_from(wait.as_millis()).unwrap_or(u64::MAX), "error_status": 429,
                "error": "rate_limit", "session_id": self.session, "uuid": uuid(),
            }));
        }
        if let (FaultKind::Quota, Some(until)) = (fault.kind, fault.until(self.scene.time.now())) {
            lines.event(&json!({
                "type": "rate_limit_event",
                "rate_limit_info": {
                    "status": "rejected", "resetsAt": until.0 / 1000, "rateLimitType": "five_hour",
                    "overageStatus": "rejected", "isUsingOverage": false,
                },
                "session_id": self.session, "uuid": uuid(),
            }));
        }
    }
}

impl Wire for Claude {
    fn agent(&self) -> &'static str {
        "claude"
    }

    fn knows(&self, _: FaultKind) -> bool {
        true
    }

    fn begin(&mut self, lines: &mut Lines) {
        let cwd = &self.scene.cwd;
        let mode = self.scene.option(&["--permission-mode"]).unwrap_or_else(|| "default".to_owned());
        lines.event(&json!({
            "type": "system", "subtype": "init", "cwd": cwd, "original_cwd": cwd, "session_id": self.session,
            "tools": ["Task", "Bash", "Edit", "Read", "Write"], "mcp_servers": [], "model": self.model,
            "permissionMode": mode, "slash_commands": [], "terminal_slash_commands": [],
            "apiKeySource": "ANTHROPIC_API_KEY", "claude_code_version": "2.1.325", "output_style": "default",
            "agents": [], "skills": [], "plugins": [], "capabilities": [], "analytics_disabled": true,
            "product_feedback_disabled": true, "uuid": uuid(),
            "memory_paths": {"auto": cwd.join(".claude/memory/")}, "additional_directories": [],
            "messaging_socket_path": cwd.join(".claude/mock.sock"), "fast_mode_state": "off",
            "fast_mode_disabled_reason": "sdk_opt_in_required", "per_turn_effort_active": true,
            "ultrathink_available": false, "ultrathink_typed_raises": false, "view_mode": "default",
        }));
    }

    fn text(&mut self, text: &str, lines: &mut Lines) {
        self.block(&json!({"type": "text", "text": text}), lines);
    }

    fn tool(&mut self, call: &ToolCall, lines: &mut Lines) {
        let (name, input) = TOOLS.call(&call.tool);
        let id = format!("toolu_{:024}", self.next_id());
        self.block(&json!({"type": "tool_use", "id": id, "name": name, "input": input}), lines);
        self.returned(&id, call, lines);
        if call.end == ToolEnd::Refused {
            self.denials.push(json!({"tool_name": name, "tool_use_id": id, "tool_input": input}));
        }
    }

    fn end(&mut self, tally: &Tally, lines: &mut Lines) {
        let how = how(&json!({
            "subtype": "success", "is_error": false, "result": tally.final_text, "stop_reason": "end_turn",
            "terminal_reason": "completed", "api_error_status": null, "ttft_ms": 0, "ttft_stream_ms": 0,
            "time_to_request_ms": 0, "first_content_frame_ms": 0,
        }));
        self.turns = self.turns.max(1);
        self.result(tally, how, lines);
    }

    fn fail(&mut self, fault: &Fault, tally: &Tally, lines: &mut Lines) -> i32 {
        self.announce_wait(fault, lines);
        if fault.kind.is_own_limit() {
            self.own_limit(fault.kind, fault, tally, lines);
        } else {
            let (error, message) = api_error_of(fault);
            self.api_error(&error, &message, tally, lines);
        }
        1
    }
}

struct ApiError {
    name: &'static str,
    status: Option<u16>,
    kind: &'static str,
}

fn api_error_of(fault: &Fault) -> (ApiError, String) {
    let (name, status, kind, message) = match fault.kind {
        FaultKind::Auth => (
            "authentication_failed",
            Some(401),
            "authentication_error",
            "Invalid API key · Fix external API key",
        ),
        FaultKind::Overloaded => (
            "server_error",
            Some(529),
            "overloaded_error",
            "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary.",
        ),
        FaultKind::Unreachable => {
            ("unknown", None, "connection_failed", "API Error: Connection refused (ECONNREFUSED)")
        }
        FaultKind::Quota if fault.wait.is_some() => {
            ("rate_limit", Some(429), "rate_limit_error", "You've hit your limit")
        }
        FaultKind::Quota => ("billing_error", Some(402), "billing_error", "Credit balance is too low"),
        FaultKind::RateLimit => (
            "rate_limit",
            Some(429),
            "rate_limit_error",
            "API Error: Request rejected (429) · Number of request tokens has exceeded your per-minute rate limit",
        ),
        FaultKind::BadRequest | FaultKind::MaxTurns | FaultKind::Budget => {
            ("invalid_request", Some(400), "invalid_request_error", "API Error: 400 bad request")
        }
    };
    (ApiError { name, status, kind }, fault.message(message))
}

fn uuid() -> String {
    draw::uuid().to_string()
}

fn how(fields: &Value) -> Map<String, Value> {
    fields.as_object().cloned().unwrap_or_default()
}

/// Its input tokens do not include those read from the cache.
fn usage(tally: &Tally) -> Value {
    json!({
        "input_tokens": tally.tokens.input - tally.tokens.cached, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tally.tokens.cached, "output_tokens": tally.tokens.output,
        "output_tokens_details": {"thinking_tokens": 0},
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}, "service_tier": "standard",
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
        "inference_geo": "", "iterations": [], "speed": "standard", "fallback_credit": null,
    })
}

fn subagent_stats() -> Value {
    json!({
        "spawned": 0, "requested": {"background": 0, "foreground": 0, "unset": 0}, "started_in_background": 0,
        "max_depth": 0, "spawned_by_subagents": 0, "completed": 0, "failed": 0,
        "killed": {"parent": 0, "user": 0, "system": 0},
        "refused": {"depth_limit": 0, "concurrency_limit": 0, "budget": 0}, "by_type": {},
    })
}

fn tool_use_result(call: &ToolCall) -> Value {
    match &call.tool {
        Tool::Write { path, content, is_new } => json!({
            "type": if *is_new { "create" } else { "update" }, "filePath": path, "content": content,
            "structuredPatch": [], "originalFile": null, "userModified": false,
        }),
        Tool::Edit { path, find, replace } => json!({
            "filePath": path, "oldString": find, "newString": replace, "originalFile": null, "structuredPatch": [],
            "userModified": false, "replaceAll": false,
        }),
        Tool::Shell { .. } | Tool::Delete { .. } => json!({
            "stdout": call.output, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false,
        }),
        Tool::Other { .. } => json!(call.output),
    }
}
