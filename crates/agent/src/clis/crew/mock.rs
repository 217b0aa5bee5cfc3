//! The crew, `rehearsal crew run`.

use rehearsal_core::{Activity, Denial, WireEnd, WireError, WireErrorKind, WireReport, WireShape};

use super::CrewLine;
use crate::driver::call_detail;
use crate::mock::moment::RunClock;
use crate::mock::wire::{Fault, FaultKind, Lines, Scene, Tally, Tool, ToolCall, ToolEnd, Wire};

pub(super) struct Crew {
    time: RunClock,
    report: WireReport,
    turns: u64,
}

impl Crew {
    pub(super) fn new(scene: &Scene) -> Self {
        let model = scene.option(&["--model"]).unwrap_or_else(|| "scripted".to_owned());
        let report = WireReport { model: Some(model), shape: WireShape::Structured, ..WireReport::default() };
        Self { time: scene.time.clone(), report, turns: 0 }
    }

    fn turn(&mut self, lines: &mut Lines) {
        self.turns += 1;
        say(Activity::Turn { number: self.turns }, lines);
    }

    fn finish(&mut self, end: WireEnd, tally: &Tally, lines: &mut Lines) {
        say(Activity::Usage { tokens: tally.tokens, cost_usd: None }, lines);
        let report = WireReport {
            turns: Some(self.turns),
            tokens: Some(tally.tokens),
            final_text: tally.final_text.clone(),
            end: Some(end),
            ..self.report.clone()
        };
        write(CrewLine::Report(Box::new(report)), lines);
    }
}

fn say(activity: Activity, lines: &mut Lines) {
    write(CrewLine::Activity(activity), lines);
}

fn write(line: CrewLine, lines: &mut Lines) {
    // Our own types can always be written.
    if let Ok(value) = serde_json::to_value(line.bounded()) {
        lines.event(&value);
    }
}

fn called(tool: &Tool) -> (String, String) {
    let (name, detail) = match tool {
        Tool::Write { path, .. } => ("write_file", path.to_string()),
        Tool::Edit { path, .. } => ("edit_file", path.to_string()),
        Tool::Delete { path } => ("bash", format!("rm {path}")),
        Tool::Shell { command } => ("bash", command.clone()),
        Tool::Other { name, input } => {
            let input = serde_json::Value::Object(input.clone());
            return (name.clone(), call_detail(&input.to_string()));
        }
    };
    (name.to_owned(), detail)
}

impl Wire for Crew {
    fn agent(&self) -> &'static str {
        "crew"
    }

    fn knows(&self, _: FaultKind) -> bool {
        true
    }

    fn begin(&mut self, lines: &mut Lines) {
        say(Activity::Started { session_id: None, model: self.report.model.clone() }, lines);
    }

    fn text(&mut self, text: &str, lines: &mut Lines) {
        self.turn(lines);
        say(Activity::Text { text: text.to_owned() }, lines);
    }

    fn tool(&mut self, call: &ToolCall, lines: &mut Lines) {
        self.turn(lines);
        let (tool, detail) = called(&call.tool);
        say(Activity::ToolCalled { tool: tool.clone(), detail: detail.clone(), arguments: None }, lines);
        if call.end == ToolEnd::Refused {
            self.report.denials.push(Denial { tool: tool.clone(), detail });
        }
        say(Activity::ToolReturned { tool, is_error: call.end != ToolEnd::Fine }, lines);
    }

    fn end(&mut self, tally: &Tally, lines: &mut Lines) {
        self.finish(WireEnd::Success, tally, lines);
    }

    fn fail(&mut self, fault: &Fault, tally: &Tally, lines: &mut Lines) -> i32 {
        let until = fault.until(self.time.now());
        let (kind, status, message) = match fault.kind {
            FaultKind::MaxTurns => {
                self.finish(WireEnd::MaxTurns, tally, lines);
                return 6;
            }
            FaultKind::Budget => {
                self.finish(WireEnd::BudgetReached, tally, lines);
                return 8;
            }
            FaultKind::Auth => (WireErrorKind::Auth, Some(401), "invalid x-api-key"),
            FaultKind::Overloaded => (WireErrorKind::Overloaded, Some(529), "Overloaded"),
            FaultKind::Unreachable => (WireErrorKind::Unreachable, None, "Connection refused"),
            FaultKind::Quota => (WireErrorKind::Quota { until }, Some(402), "Insufficient credit"),
            FaultKind::RateLimit => (WireErrorKind::RateLimit { until }, Some(429), "Too many requests"),
            FaultKind::BadRequest => (WireErrorKind::Other, Some(400), "invalid request"),
        };
        let error = WireError { kind, status, message: fault.message(message) };
        self.finish(WireEnd::Error(error), tally, lines);
        6
    }
}
