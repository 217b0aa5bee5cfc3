//! Gemini CLI's output: `stream-json` lines, or one pretty-printed `json` document.

use std::borrow::Cow;

use rehearsal_core::{Activity, Denial, WireEnd, WireError, WireErrorKind, WireReport};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::document::{Document, LineStats};
use super::failure::{self, Failure};
use crate::driver::Here;
use crate::driver::bounds::{
    ACTIVITY_TEXT, DETAIL, END_OF_FINAL_TEXT, Ends, MESSAGE, cut, keep_ends, one_line,
};
use crate::driver::json;
use crate::driver::lines::LONGEST_LINE;
use crate::driver::stream::{Close, Format, Reading, may_be_object};
use crate::driver::tool::{self, OpenCalls};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    role: Option<json::Text<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_name: Option<json::Text<'a>>,
    #[serde(borrow)]
    tool_id: Option<json::Text<'a>>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<json::Text<'a>>,
    #[serde(borrow)]
    severity: Option<json::Text<'a>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    stats: Option<&'a RawValue>,
}

/// The state of reading.
pub(super) struct GeminiFormat {
    here: Here,
    report: WireReport,
    /// The answer since the last thing that was not an answer; it comes in pieces.
    answer: Ends,
    answering: bool,
    calls: OpenCalls,
    /// The pretty-printed document, until it is whole.
    document: Option<String>,
    /// Why it gave up by itself, though it calls that a success.
    stopped: Option<String>,
    /// The last error that it told before its end.
    last_error: Option<String>,
}

/// More refusals say nothing new.
const MOST_DENIALS: usize = 100;

impl GeminiFormat {
    pub(super) fn new(here: Here) -> Self {
        Self {
            here,
            report: WireReport::default(),
            answer: Ends::new(END_OF_FINAL_TEXT, END_OF_FINAL_TEXT),
            answering: false,
            calls: OpenCalls::default(),
            document: None,
            stopped: None,
            last_error: None,
        }
    }

    fn event(&mut self, event: &Event<'_>, out: &mut Vec<Activity>) -> Reading {
        match &*event.kind {
            "" => return Reading::Foreign,
            "init" => {
                self.report.session_id = json::text(event.session_id).map(|id| one_line(&id, DETAIL));
                self.report.model = json::text(event.model).map(|model| one_line(&model, DETAIL));
                out.push(Activity::Started {
                    session_id: self.report.session_id.clone(),
                    model: self.report.model.clone(),
                });
            }
            "message" if event.role.as_deref() == Some("assistant") => {
                self.answered(&json::text(event.content).unwrap_or_default(), out);
            }
            "message" => self.answering = false,
            "tool_use" => self.tool_use(event, out),
            "tool_result" => self.tool_result(event, out),
            "error" => self.error(event),
            "result" => self.result(event, out),
            _ => {}
        }
        Reading::Event
    }

    fn answered(&mut self, text: &str, out: &mut Vec<Activity>) {
        if !self.answering {
            self.answer.clear();
            self.answering = true;
        }
        self.report.end = None;
        self.answer.push(text.as_bytes());
        out.push(Activity::Text { text: cut(text, ACTIVITY_TEXT) });
    }

    fn tool_use(&mut self, event: &Event<'_>, out: &mut Vec<Activity>) {
        self.answering = false;
        let tool = one_line(event.tool_name.as_deref().unwrap_or("unknown"), DETAIL);
        let detail = tool::detail(event.parameters);
        self.calls.opened(event.tool_id.as_deref().unwrap_or_default(), &tool, &detail);
        let arguments = tool::arguments(event.parameters);
        out.push(Activity::ToolCalled { tool, detail, arguments });
    }

    fn tool_result(&mut self, event: &Event<'_>, out: &mut Vec<Activity>) {
        #[derive(Deserialize)]
        struct ToolError<'a> {
            #[serde(borrow, rename = "type")]
            kind: Option<&'a RawValue>,
        }
        self.answering = false;
        let call = self.calls.closed(event.tool_id.as_deref().unwrap_or_default());
        let is_error = event.status.as_deref().is_some_and(|status| status != "success");
        let tool = call.as_ref().map(|call| call.tool.clone()).unwrap_or_default();
        out.push(Activity::ToolReturned { tool, is_error });
        let kind = json::read::<ToolError<'_>>(event.error).and_then(|error| json::text(error.kind));
        let Some(call) = call.filter(|_| is_error && self.report.denials.len() < MOST_DENIALS) else {
            return;
        };
        if is_refusal(&call.tool, kind.as_deref().unwrap_or_default()) {
            self.report.denials.push(Denial { tool: call.tool, detail: call.detail });
        }
    }

    fn error(&mut self, event: &Event<'_>) {
        let message = cut(&json::text(event.message).unwrap_or_default(), MESSAGE);
        if is_loop(&message) {
            self.stopped = Some(message);
        } else if event.severity.as_deref() != Some("warning") {
            self.last_error = Some(message);
        }
    }

    fn result(&mut self, event: &Event<'_>, out: &mut Vec<Activity>) {
        if let Some(stats) = json::read::<LineStats>(event.stats) {
            self.report.tokens = Some(stats.tokens());
            self.report.duration_ms = stats.duration_ms;
            out.push(Activity::Usage { tokens: stats.tokens(), cost_usd: None });
        }
        let failure = json::read::<Failure<'_>>(event.error);
        self.report.end = Some(match (event.status.as_deref(), failure) {
            (Some("success"), _) => WireEnd::Success,
            (_, Some(failure)) => failure.end(&self.here),
            (_, None) => failure::end_of_message(self.last_error.as_deref().unwrap_or_default(), &self.here),
        });
    }

    fn part_of_document(&mut self, line: &str) -> Reading {
        let Some(document) = &mut self.document else {
            return Reading::Foreign;
        };
        if document.len() + line.len() > LONGEST_LINE {
            self.document = None;
            return Reading::Broken("a document that is too long to be read".to_owned());
        }
        document.push_str(line);
        document.push('\n');
        if line != "}" {
            return Reading::Part;
        }
        let whole = std::mem::take(document);
        self.document = None;
        match json::line::<Document<'_>>(&whole) {
            Ok(document) => self.whole(&document),
            Err(reason) => Reading::Broken(reason),
        }
    }

    fn whole(&mut self, document: &Document<'_>) -> Reading {
        let failure = json::read::<Failure<'_>>(document.error);
        let answer = json::text(document.response);
        if failure.is_none() && (answer.is_none() || document.stats.is_none()) {
            return Reading::Foreign;
        }
        self.report.session_id = json::text(document.session_id).map(|id| one_line(&id, DETAIL));
        document.fill(&mut self.report);
        let warnings: Vec<Cow<'_, str>> = json::read(document.warnings).unwrap_or_default();
        self.stopped = warnings.iter().find(|warning| is_loop(warning)).map(|warning| cut(warning, MESSAGE));
        self.report.end = Some(failure.map_or(WireEnd::Success, |failure| failure.end(&self.here)));
        self.report.final_text = answer.map(|text| keep_ends(text, END_OF_FINAL_TEXT)).unwrap_or_default();
        Reading::Event
    }
}

/// Its loop detection ends a run with exit status 0 and a success.
fn is_loop(message: &str) -> bool {
    message.starts_with("Loop detected")
}

/// The tools that an approval mode hides from the model: to call one then is "not found", or refused by policy.
const HIDDEN_BY_MODE: [&str; 4] = ["write_file", "replace", "run_shell_command", "edit"];

fn is_refusal(tool: &str, error: &str) -> bool {
    match error {
        "tool_not_registered" => HIDDEN_BY_MODE.contains(&tool),
        "policy_violation" | "execution_denied" => true,
        _ => false,
    }
}

impl Format for GeminiFormat {
    fn read(&mut self, line: &str, out: &mut Vec<Activity>) -> Reading {
        if self.document.is_none() && line == "{" {
            self.document = Some(String::new());
        }
        if self.document.is_some() {
            return self.part_of_document(line);
        }
        if !may_be_object(line) {
            return Reading::Foreign;
        }
        match json::line::<Event<'_>>(line) {
            Ok(event) if event.kind.is_empty() => match json::line::<Document<'_>>(line) {
                Ok(document) => self.whole(&document),
                Err(_) => Reading::Foreign,
            },
            Ok(event) => self.event(&event, out),
            Err(reason) => Reading::Broken(reason),
        }
    }

    fn read_stderr(&mut self, line: &str, out: &mut Vec<Activity>) {
        if let Some(message) = failure::retry(line) {
            out.push(Activity::Retrying { message });
        }
    }

    fn has_ended(&self) -> bool {
        self.report.end.is_some()
    }

    fn unfinished(&self) -> Option<String> {
        self.document.as_ref().map(|_| "the JSON document is cut off".to_owned())
    }

    fn report(self, close: &Close) -> WireReport {
        let mut report = self.report;
        if report.final_text.is_empty() {
            report.final_text = self.answer.into_text();
        }
        if let (Some(WireEnd::Success), Some(message)) = (&report.end, self.stopped) {
            report.end =
                Some(WireEnd::Error(WireError { kind: WireErrorKind::Other, status: None, message }));
        }
        if let Some(WireEnd::Error(error)) = &report.end
            && let Some(known) = failure::by_exit(error, close, &self.here)
        {
            report.end = Some(known);
        }
        if report.end.is_none() && close.failed_by_itself() {
            let (session_id, end) = failure::on_the_side(close, self.last_error.as_deref(), &self.here);
            report.session_id = report.session_id.or(session_id);
            report.end = end;
        }
        report.denials.extend(failure::refused_in(&close.stderr, &report.denials, &HIDDEN_BY_MODE));
        report
    }
}
