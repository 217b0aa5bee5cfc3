//! Gemini CLI 0.61.0, `--output-format stream-json`; errors also with `--output-format json`, where they go to
//! standard error.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::mock::draw::uuid;
use crate::mock::wire::{Fault, FaultKind, Lines, Scene, Tally, ToolCall, ToolEnd, ToolNames, Wire};

const MODEL: &str = "gemini-2.5-pro";
const TURN_LIMIT: &str = "Reached max session turns for this session. Increase the number of turns by specifying \
                          maxSessionTurns in settings.json.";
const TURN_LIMIT_STATUS: i32 = 53;
const TOOLS: ToolNames = ToolNames {
    write: "write_file",
    edit: "replace",
    shell: "run_shell_command",
    path: "file_path",
    old: "old_string",
    new: "new_string",
};

pub(super) struct Gemini {
    scene: Scene,
    session: String,
    model: String,
    /// `--output-format json`: one document at the end instead of a stream.
    is_single: bool,
}

impl Gemini {
    pub(super) fn new(scene: Scene) -> Self {
        let session = scene.option(&["--resume", "-r"]).unwrap_or_else(|| uuid().to_string());
        let model = scene.option(&["--model", "-m"]).unwrap_or_else(|| MODEL.to_owned());
        let is_single = scene.option(&["--output-format", "-o"]).as_deref() == Some("json");
        Self { scene, session, model, is_single }
    }

    fn event(&self, kind: &str, mut event: Value, lines: &mut Lines) {
        if self.is_single {
            return;
        }
        event["type"] = json!(kind);
        event["timestamp"] = json!(self.scene.time.iso());
        lines.event(&event);
    }

    fn stats(&self, tally: &Tally) -> Value {
        let tokens = tally.tokens;
        let figures = json!({
            "total_tokens": tokens.total(), "input_tokens": tokens.input, "output_tokens": tokens.output,
            "cached": tokens.cached, "input": tokens.input - tokens.cached,
        });
        let mut stats = figures.clone();
        stats["duration_ms"] = json!(self.scene.time.elapsed_ms());
        stats["tool_calls"] = json!(tally.tool_calls);
        stats["models"] = json!({&self.model: figures});
        stats
    }

    /// One document, with fewer figures than the real one.
    fn single(&self, tally: &Tally, lines: &mut Lines) {
        let tokens = tally.tokens;
        let document = json!({
            "session_id": self.session, "response": tally.final_text,
            "stats": {"models": {&self.model: {"tokens": {
                "input": tokens.input - tokens.cached, "prompt": tokens.input, "candidates": tokens.output,
                "total": tokens.total(), "cached": tokens.cached, "thoughts": 0, "tool": 0,
            }}}},
        });
        let _ = writeln!(lines.stdout, "{document:#}");
    }
}

impl Wire for Gemini {
    fn agent(&self) -> &'static str {
        "gemini"
    }

    fn knows(&self, kind: FaultKind) -> bool {
        kind != FaultKind::Budget
    }

    fn begin(&mut self, lines: &mut Lines) {
        self.event("init", json!({"session_id": self.session, "model": self.model}), lines);
        self.event("message", json!({"role": "user", "content": self.scene.prompt}), lines);
    }

    fn text(&mut self, text: &str, lines: &mut Lines) {
        self.event("message", json!({"role": "assistant", "content": text, "delta": true}), lines);
    }

    fn tool(&mut self, call: &ToolCall, lines: &mut Lines) {
        let (name, input) = TOOLS.call(&call.tool);
        let id = format!("{name}__{name}_{}_0", self.scene.time.now());
        self.event("tool_use", json!({"tool_name": name, "tool_id": id, "parameters": input}), lines);
        let mut result = json!({"tool_id": id, "status": "success"});
        match call.end {
            ToolEnd::Fine if call.output.is_empty() => {}
            ToolEnd::Fine => result["output"] = json!(call.output),
            // It hides a tool that is not allowed, and so does not find it.
            ToolEnd::Refused => {
                let message = format!("Tool \"{name}\" not found.");
                result["error"] = json!({"type": "tool_not_registered", "message": message});
            }
            ToolEnd::Failed if call.is_failed_command() => result["output"] = json!(call.output),
            ToolEnd::Failed => {
                result["error"] = json!({"type": "execution_failed", "message": call.output});
            }
        }
        if let Some(message) = result["error"]["message"].as_str().map(str::to_owned) {
            result["status"] = json!("error");
            result["output"] = json!(message);
        }
        self.event("tool_result", result, lines);
    }

    fn end(&mut self, tally: &Tally, lines: &mut Lines) {
        if self.is_single {
            self.single(tally, lines);
        }
        self.event("result", json!({"status": "success", "stats": self.stats(tally)}), lines);
    }

    fn fail(&mut self, fault: &Fault, tally: &Tally, lines: &mut Lines) -> i32 {
        let end = GeminiEnd::of(fault);
        if let Some(answer) = &end.answer {
            let _ = writeln!(
                lines.stderr,
                "Error when talking to Gemini API Full report available at: gemini-client-error.json _ApiError: {answer}"
            );
        }
        if self.is_single {
            let error = json!({"type": end.kind, "message": end.message, "code": end.code});
            let document = json!({"session_id": self.session, "error": error});
            let _ = writeln!(lines.stderr, "{document:#}");
        }
        let error = json!({"type": end.kind, "message": end.told()});
        self.event("result", json!({"status": "error", "error": error, "stats": self.stats(tally)}), lines);
        // The shell sees the low byte of an HTTP status: 401 is 145.
        end.code % 256
    }
}

struct GeminiEnd {
    kind: &'static str,
    code: i32,
    message: String,
    /// The answer of the service, if it answered.
    answer: Option<Value>,
}

impl GeminiEnd {
    fn of(fault: &Fault) -> Self {
        let (code, status, message) = match fault.kind {
            FaultKind::Auth => (401, "UNAUTHENTICATED", "invalid x-api-key"),
            FaultKind::Overloaded => (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
            FaultKind::Quota => {
                (429, "RESOURCE_EXHAUSTED", "You have exhausted your daily quota on this model.")
            }
            FaultKind::RateLimit => (
                429,
                "RESOURCE_EXHAUSTED",
                "Number of request tokens has exceeded your per-minute rate limit",
            ),
            FaultKind::BadRequest | FaultKind::Budget => (400, "INVALID_ARGUMENT", "bad request"),
            FaultKind::Unreachable => {
                let message = fault.message("exception TypeError: fetch failed sending request");
                return Self { kind: "Error", code: 1, message, answer: None };
            }
            FaultKind::MaxTurns => {
                let message = fault.message(TURN_LIMIT);
                return Self {
                    kind: "FatalTurnLimitedError",
                    code: TURN_LIMIT_STATUS,
                    message,
                    answer: None,
                };
            }
        };
        let mut message = fault.message(message);
        if let Some(wait) = fault.wait_seconds() {
            let _ = write!(message, " Please retry in {wait}s.");
        }
        let answer = json!({"error": {"code": code, "message": message, "status": status}});
        Self { kind: "Error", code, message: answer.to_string(), answer: Some(answer) }
    }

    fn told(&self) -> String {
        match &self.answer {
            Some(answer) => {
                format!("[API Error: {}]", answer["error"]["message"].as_str().unwrap_or_default())
            }
            None if self.code == TURN_LIMIT_STATUS => self.message.clone(),
            None => format!("[API Error: {}]", self.message),
        }
    }
}
