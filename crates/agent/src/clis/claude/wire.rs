//! Claude Code's output: `stream-json` lines, one `json` object, or an array of all events (`json --verbose`).
//!
//! The last `result` decides. Its keys come in no order (`type` comes late), so an event is read twice where it
//! matters: once for what it is, once for what it holds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use rehearsal_core::{Activity, Tokens, WireEnd, WireError, WireErrorKind, WireReport};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::end::{Limits, Result, Window};
use super::message::{self, Message};
use crate::driver::Here;
use crate::driver::bounds::{DETAIL, MESSAGE, one_line};
use crate::driver::json;
use crate::driver::stream::{Close, Format, Reading, may_be_object};
use crate::driver::tool::OpenCalls;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    subtype: Option<json::Text<'a>>,
    #[serde(borrow)]
    session_id: Option<json::Text<'a>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, alias = "isApiErrorMessage")]
    is_api_error_message: Option<&'a RawValue>,
    #[serde(borrow)]
    parent_tool_use_id: Option<&'a RawValue>,
}

/// `system` events that tell something; and `rate_limit_event`.
#[derive(Deserialize)]
struct Notice<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    attempt: Option<&'a RawValue>,
    max_retries: Option<&'a RawValue>,
    retry_delay_ms: Option<&'a RawValue>,
    error_status: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    rate_limit_info: Option<Limits<'a>>,
}

/// The state of reading.
pub(super) struct ClaudeFormat {
    here: Here,
    session_id: Option<String>,
    model: Option<String>,
    /// The message whose tokens were counted last: each of its blocks comes as an event with the same count.
    counted: String,
    tokens: Tokens,
    calls: OpenCalls,
    /// The last word on the account's limit.
    window: Window,
    /// How long the last refused request was to wait, if it was the vendor that said so.
    asked_to_wait: Option<Duration>,
    result: Option<Result>,
    /// The last message is not the model's: the program made it up to tell an error.
    apology: bool,
    /// Something came after the last result: more work is under way.
    reopened: bool,
    interrupted: bool,
}

impl ClaudeFormat {
    pub(super) fn new(here: Here) -> Self {
        Self {
            here,
            session_id: None,
            model: None,
            counted: String::new(),
            tokens: Tokens::default(),
            calls: OpenCalls::default(),
            window: Window::Open,
            asked_to_wait: None,
            result: None,
            apology: false,
            reopened: false,
            interrupted: false,
        }
    }

    fn event(&mut self, line: &str, out: &mut Vec<Activity>) -> Reading {
        let event: Event<'_> = match json::line(line) {
            Ok(event) => event,
            Err(reason) => return Reading::Broken(reason),
        };
        if self.session_id.is_none() {
            self.session_id = event.session_id.as_deref().map(|id| one_line(id, DETAIL));
        }
        match &*event.kind {
            "" => return Reading::Foreign,
            "assistant" => self.assistant(&event, out),
            "user" => self.user(&event, out),
            "system" => self.system(&event, line, out),
            "rate_limit_event" => self.rate_limit(line),
            "result" => return self.result(line, out),
            _ => {}
        }
        Reading::Event
    }

    fn assistant(&mut self, event: &Event<'_>, out: &mut Vec<Activity>) {
        self.reopened = true;
        self.interrupted = false;
        let Some(message) = json::read::<Message<'_>>(event.message) else {
            return;
        };
        message.tell(&mut self.calls, out);
        let tells_error =
            json::text(event.error).is_some() || json::read(event.is_api_error_message) == Some(true);
        self.apology = message.model.as_deref() == Some(message::SYNTHETIC) && tells_error;
        if self.model.is_none() && message.model.as_deref() != Some(message::SYNTHETIC) {
            self.model = message.model.as_deref().map(|model| one_line(model, DETAIL));
        }
        if let (Some(id), Some(usage)) = (&message.id, &message.usage)
            && self.counted != **id
        {
            // What was made is not known yet: the event carries the count of the message's start.
            self.counted.clear();
            self.counted.push_str(id);
            self.tokens += usage.tokens();
            out.push(Activity::Usage { tokens: self.tokens, cost_usd: None });
        }
    }

    fn user(&mut self, event: &Event<'_>, out: &mut Vec<Activity>) {
        self.reopened = true;
        let Some(message) = json::read::<Message<'_>>(event.message) else {
            return;
        };
        message.tell(&mut self.calls, out);
        // What the program itself writes when a SIGINT stops it; no `result` follows.
        self.interrupted = event.parent_tool_use_id.is_none() && message.says_interrupted();
    }

    fn system(&mut self, event: &Event<'_>, line: &str, out: &mut Vec<Activity>) {
        let subtype = event.subtype.as_deref().unwrap_or_default();
        if !matches!(subtype, "init" | "api_retry" | "model_fallback") {
            return;
        }
        let Ok(notice) = json::line::<Notice<'_>>(line) else {
            return;
        };
        match subtype {
            "init" => {
                self.model = json::text(notice.model).map(|model| one_line(&model, DETAIL));
                out.push(Activity::Started {
                    session_id: self.session_id.clone(),
                    model: self.model.clone(),
                });
            }
            "api_retry" => {
                self.asked_to_wait = asked_to_wait(&notice);
                out.push(Activity::Retrying { message: retry_message(&notice) });
            }
            _ => {
                let message = json::text(notice.content).unwrap_or(Cow::Borrowed("another model takes over"));
                out.push(Activity::Retrying { message: one_line(&message, MESSAGE) });
            }
        }
    }

    fn rate_limit(&mut self, line: &str) {
        if let Ok(Notice { rate_limit_info: Some(limits), .. }) = json::line::<Notice<'_>>(line) {
            self.window = limits.window(self.here.now());
        }
    }

    fn result(&mut self, line: &str, out: &mut Vec<Activity>) -> Reading {
        match Result::read(line) {
            Ok(result) => {
                if let Some(tokens) = result.tokens {
                    out.push(Activity::Usage { tokens, cost_usd: result.cost_usd });
                }
                self.result = Some(result);
                self.reopened = false;
                Reading::Event
            }
            Err(reason) => Reading::Broken(reason),
        }
    }
}

/// How long the vendor wants a refused request to wait. What is shorter is the program's own pause, which doubles
/// up to 40 seconds: it says nothing about the limit.
fn asked_to_wait(notice: &Notice<'_>) -> Option<Duration> {
    const LONGEST_OWN_PAUSE: Duration = Duration::from_secs(40);
    let is_refused = json::read::<u16>(notice.error_status) == Some(429);
    let delay = Duration::from_millis(json::read::<u64>(notice.retry_delay_ms)?);
    (is_refused && delay > LONGEST_OWN_PAUSE).then_some(delay)
}

fn retry_message(notice: &Notice<'_>) -> String {
    let error = json::text(notice.error).unwrap_or(Cow::Borrowed("unknown"));
    // Without a status nobody answered.
    let status = json::read::<u16>(notice.error_status)
        .map_or_else(|| ", no answer".to_owned(), |status| format!(" (HTTP {status})"));
    let attempt = json::read::<u64>(notice.attempt).unwrap_or_default();
    let of = json::read::<u64>(notice.max_retries).map(|most| format!(" of {most}")).unwrap_or_default();
    let pause = json::read::<u64>(notice.retry_delay_ms).map(|ms| ms / 1000).filter(|seconds| *seconds > 0);
    // The words for a wait that the vendor asked for are those that are read as one.
    let again = match (asked_to_wait(notice), pause) {
        (Some(wait), _) => format!(", retry in {} s", wait.as_secs()),
        (None, Some(seconds)) => format!(", again in {seconds} s"),
        (None, None) => String::new(),
    };
    format!("{}{status}, try {attempt}{of}{again}", one_line(&error, DETAIL))
}

impl Format for ClaudeFormat {
    fn read(&mut self, line: &str, out: &mut Vec<Activity>) -> Reading {
        if may_be_object(line) {
            return self.event(line, out);
        }
        if !line.trim_start().starts_with("[{") {
            return Reading::Foreign;
        }
        let events: Vec<&RawValue> = match json::line(line) {
            Ok(events) => events,
            Err(reason) => return Reading::Broken(reason),
        };
        let mut whole = Reading::Foreign;
        for event in events {
            let reading = self.event(event.get(), out);
            if !matches!(whole, Reading::Event) || matches!(reading, Reading::Broken(_)) {
                whole = reading;
            }
        }
        whole
    }

    fn has_ended(&self) -> bool {
        self.result.is_some() && !self.reopened
    }

    fn report(self, close: &Close) -> WireReport {
        let mut report =
            WireReport { session_id: self.session_id, model: self.model, ..WireReport::default() };
        let Some(result) = self.result else {
            report.end = if self.interrupted { Some(interruption()) } else { refused_to_start(close) };
            report.tokens = (self.tokens != Tokens::default()).then_some(self.tokens);
            return report;
        };
        report.end = Some(result.end(self.window, self.asked_to_wait, self.apology, close, &self.here));
        report.session_id = report.session_id.or(result.session_id);
        report.model = report.model.or(result.model);
        report.turns = result.turns;
        report.duration_ms = result.duration_ms;
        // Of a resumed session this is the cost of the whole session, not of this run.
        report.cost_usd = result.cost_usd;
        report.tokens = result.tokens;
        report.denials = result.denials;
        report.final_text = result.text;
        report
    }
}

fn interruption() -> WireEnd {
    let message = "interrupted from outside".to_owned();
    WireEnd::Error(WireError { kind: WireErrorKind::Interrupted, status: None, message })
}

/// It wrote nothing but a line of its own that says why: it does not skip permissions for root.
fn refused_to_start(close: &Close) -> Option<WireEnd> {
    if !close.silent || !close.failed_by_itself() {
        return None;
    }
    let message = close.stderr_line(|line| line.contains("cannot be used with root"))?;
    Some(WireEnd::Error(WireError { kind: WireErrorKind::Permission, status: None, message }))
}

/// The model that did the most of the work.
pub(super) fn busiest(usage: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Use {
        #[serde(default, rename = "outputTokens")]
        output: u64,
    }
    let models: BTreeMap<Cow<'_, str>, Use> = json::read(usage)?;
    models.into_iter().max_by_key(|(_, used)| used.output).map(|(name, _)| one_line(&name, DETAIL))
}
