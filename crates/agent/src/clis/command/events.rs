//! Programs that print events as JSON, though nobody asked for them: pi, Qwen Code, Copilot, cline and others.
//!
//! Their formats differ, and the fields in which they tell that a request failed hardly do. The last error counts, unless
//! the model answered after it.

use rehearsal_core::{Activity, Exit, WireReport};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::driver::bounds::{DETAIL, MESSAGE, cut, one_line};
use crate::driver::fault::Fault;
use crate::driver::stream::Close;
use crate::driver::{Here, json};

/// What was read so far.
#[derive(Default)]
pub(super) struct Events {
    any: bool,
    error: Option<ErrorText>,
    retrying: Option<String>,
}

/// An error as an event has it.
struct ErrorText {
    status: Option<u16>,
    code: String,
    message: String,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, alias = "errorMessage", alias = "finalError")]
    error_message: Option<&'a RawValue>,
    #[serde(borrow, alias = "errorType")]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow, alias = "statusCode", alias = "status_code")]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    is_error: Option<&'a RawValue>,
}

impl Events {
    /// Reads a line, or a whole array of events; whether it said nothing that a person wants to see.
    pub(super) fn read(&mut self, line: &[u8], out: &mut Vec<Activity>) -> bool {
        let Ok(line) = str::from_utf8(line).map(str::trim) else { return false };
        if line.starts_with("[{") {
            let events: Vec<&RawValue> = json::line(line).unwrap_or_default();
            for event in events {
                self.event(event.get(), out);
            }
            return false;
        }
        line.starts_with('{') && self.event(line, out)
    }

    fn event(&mut self, line: &str, out: &mut Vec<Activity>) -> bool {
        let Ok(event) = json::line::<Event<'_>>(line) else { return false };
        let Some(kind) = json::text(event.kind) else { return false };
        self.any = true;
        if kind.contains("retry") && !kind.contains("end") {
            let why = event.error_text().map_or_else(String::new, |error| format!(": {}", error.message));
            let message = one_line(&format!("{kind}{why}"), DETAIL);
            self.retrying = Some(message.clone());
            out.push(Activity::Retrying { message });
            return true;
        }
        if let Some(error) = event.failure(&kind) {
            self.error = Some(error);
        } else if event.is_answer(&kind) {
            self.error = None;
            self.retrying = None;
        }
        false
    }

    /// Fills in how the output ended.
    pub(super) fn complete(self, report: &mut WireReport, close: &Close, here: &Here) {
        let ended = matches!(close.exit, Some(Exit::Code(_)));
        if let Some(ErrorText { status, code, message }) = self.error.filter(|_| ended) {
            report.end = Some(Fault { status, code: &code, message: &message, until: None }.end(here));
            return;
        }
        let retrying =
            self.retrying.map(|message| Fault { message: &message, ..Fault::default() }.error(here));
        report.retrying = retrying;
        close.complete(report, !self.any, here);
    }
}

impl Event<'_> {
    /// The error that the event is, or that is in the message or the data that it carries.
    fn failure(&self, kind: &str) -> Option<ErrorText> {
        // A tool that failed is the model's business.
        if kind.starts_with("tool") {
            return None;
        }
        if let Some(error) = self.error_text() {
            return Some(error);
        }
        let tells_error = kind.ends_with("error") || kind.ends_with("failure");
        let in_data = json::read::<Event<'_>>(self.data).and_then(|data| {
            if tells_error {
                Some(data.as_error()).filter(|error| !error.message.is_empty())
            } else {
                data.error_text()
            }
        });
        in_data.or_else(|| json::read::<Event<'_>>(self.message)?.error_text()).or_else(|| {
            (tells_error || json::read(self.is_error) == Some(true))
                .then(|| self.as_error())
                .filter(|error| !error.message.is_empty())
        })
    }

    /// What its own fields tell.
    fn error_text(&self) -> Option<ErrorText> {
        if let Some(error) = self.error {
            if let Some(message) = json::text(Some(error)) {
                return Some(ErrorText { message: cut(&message, MESSAGE), ..self.as_error() });
            }
            return json::read::<Event<'_>>(Some(error)).map(|error| error.as_error());
        }
        let message = json::text(self.error_message)?;
        Some(ErrorText { message: cut(&message, MESSAGE), ..self.as_error() })
    }

    /// The event as the error itself.
    fn as_error(&self) -> ErrorText {
        let message = json::text(self.message).or_else(|| json::text(self.error_message)).unwrap_or_default();
        let code = [self.code, self.name, self.kind].into_iter().find_map(json::text).unwrap_or_default();
        let by_code = || json::read(self.code).filter(|code| (400..600).contains(code));
        ErrorText {
            status: json::read(self.status).or_else(by_code),
            code: one_line(&code, DETAIL),
            message: cut(&message, MESSAGE),
        }
    }

    /// Whether the model said or did something.
    fn is_answer(&self, kind: &str) -> bool {
        let role = |raw: Option<&RawValue>| {
            let message = json::read::<Event<'_>>(raw)?;
            json::text(message.role).map(|role| role == "assistant")
        };
        matches!(kind, "assistant" | "assistant.message" | "text")
            || kind.starts_with("tool")
            || json::text(self.role).as_deref() == Some("assistant")
            || role(self.message) == Some(true)
    }
}
