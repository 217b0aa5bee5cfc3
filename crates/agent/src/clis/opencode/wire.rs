//! opencode's `run --format json`. There is no summary: the last `step_finish` is the end.

use std::borrow::Cow;

use rehearsal_core::{Activity, Denial, Tokens, WireEnd, WireError, WireErrorKind, WireReport};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::driver::bounds::{ACTIVITY_TEXT, DETAIL, END_OF_FINAL_TEXT, Ends, MESSAGE, cut, one_line};
use crate::driver::fault::Fault;
use crate::driver::json;
use crate::driver::stream::{Close, Format, Reading, may_be_object};
use crate::driver::{Here, tool, wait};

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, rename = "sessionID")]
    session_id: Option<json::Text<'a>>,
    #[serde(borrow)]
    part: Option<Part<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<json::Text<'a>>,
    #[serde(borrow)]
    tool: Option<json::Text<'a>>,
    #[serde(borrow)]
    state: Option<State<'a>>,
    #[serde(borrow)]
    reason: Option<json::Text<'a>>,
    #[serde(borrow)]
    tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    cost: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct State<'a> {
    #[serde(borrow)]
    status: Option<json::Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Count {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
    #[serde(default)]
    reasoning: u64,
    #[serde(default)]
    cache: Cache,
}

#[derive(Deserialize, Default)]
struct Cache {
    #[serde(default)]
    read: u64,
    #[serde(default)]
    write: u64,
}

#[derive(Deserialize)]
struct Failure<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<FailureData<'a>>,
}

#[derive(Deserialize)]
struct FailureData<'a> {
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow, rename = "statusCode")]
    status: Option<&'a RawValue>,
    #[serde(borrow, rename = "responseHeaders")]
    headers: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Headers<'a> {
    #[serde(borrow, rename = "retry-after")]
    retry_after: Option<&'a RawValue>,
    #[serde(borrow, rename = "retry-after-ms")]
    retry_after_ms: Option<&'a RawValue>,
}

/// How the run stands after the last event.
enum Standing {
    /// A step is under way, or none began.
    Working,
    /// The last step finished, for this reason.
    Stepped(String),
    Failed(WireEnd),
}

/// The state of reading.
pub(super) struct OpencodeFormat {
    here: Here,
    session_id: Option<String>,
    /// The texts of the last step.
    final_text: Ends,
    steps: u64,
    tokens: Tokens,
    cost_usd: Option<f64>,
    denials: Vec<Denial>,
    standing: Standing,
}

/// More refusals say nothing new.
const MOST_DENIALS: usize = 100;

/// What opencode says itself when it refuses a call: nobody was there to ask, or a rule forbids it.
const REFUSALS: [&str; 2] = ["The user rejected permission", "The user has specified a rule which prevents"];

impl OpencodeFormat {
    pub(super) fn new(here: Here) -> Self {
        Self {
            here,
            session_id: None,
            final_text: Ends::new(END_OF_FINAL_TEXT, END_OF_FINAL_TEXT),
            steps: 0,
            tokens: Tokens::default(),
            cost_usd: None,
            denials: Vec::new(),
            standing: Standing::Working,
        }
    }

    fn event(&mut self, event: &Event<'_>, out: &mut Vec<Activity>) -> Reading {
        if event.kind.is_empty() {
            return Reading::Foreign;
        }
        if let (None, Some(id)) = (&self.session_id, &event.session_id) {
            self.session_id = Some(one_line(id, DETAIL));
            out.push(Activity::Started { session_id: self.session_id.clone(), model: None });
        }
        match (&*event.kind, &event.part) {
            ("step_start", _) => {
                self.standing = Standing::Working;
                self.final_text.clear();
            }
            ("text", Some(part)) => self.text(part, out),
            ("tool_use", Some(part)) => self.tool_use(part, out),
            ("step_finish", Some(part)) => self.step_finish(part, out),
            ("error", _) => self.standing = Standing::Failed(failure(event.error, &self.here)),
            _ => {}
        }
        Reading::Event
    }

    fn text(&mut self, part: &Part<'_>, out: &mut Vec<Activity>) {
        let text = part.text.as_deref().unwrap_or_default();
        out.push(Activity::Text { text: cut(text, ACTIVITY_TEXT) });
        self.final_text.push(text.as_bytes());
        self.final_text.push(b"\n");
    }

    /// A call comes once, when it is over.
    fn tool_use(&mut self, part: &Part<'_>, out: &mut Vec<Activity>) {
        let tool = one_line(part.tool.as_deref().unwrap_or("unknown"), DETAIL);
        let Some(state) = &part.state else { return };
        let detail = tool::detail(state.input);
        let is_error = state.status.as_deref() == Some("error");
        let error = json::text(state.error).unwrap_or_default();
        let arguments = tool::arguments(state.input);
        out.push(Activity::ToolCalled { tool: tool.clone(), detail: detail.clone(), arguments });
        out.push(Activity::ToolReturned { tool: tool.clone(), is_error });
        if is_error
            && self.denials.len() < MOST_DENIALS
            && REFUSALS.iter().any(|refusal| error.starts_with(refusal))
        {
            self.denials.push(Denial { tool, detail });
        }
    }

    fn step_finish(&mut self, part: &Part<'_>, out: &mut Vec<Activity>) {
        self.steps += 1;
        self.standing = Standing::Stepped(one_line(part.reason.as_deref().unwrap_or_default(), DETAIL));
        if let Some(cost) = json::read::<f64>(part.cost) {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
        if let Some(count) = json::read::<Count>(part.tokens) {
            let input = count.input.saturating_add(count.cache.read).saturating_add(count.cache.write);
            let output = count.output.saturating_add(count.reasoning);
            self.tokens.input = self.tokens.input.saturating_add(input);
            self.tokens.cached = self.tokens.cached.saturating_add(count.cache.read);
            self.tokens.output = self.tokens.output.saturating_add(output);
            out.push(Activity::Usage { tokens: self.tokens, cost_usd: self.cost_usd });
        }
    }

    fn end(&self, close: &Close) -> Option<WireEnd> {
        let reason = match &self.standing {
            Standing::Failed(end) => return Some(end.clone()),
            Standing::Stepped(reason) => &**reason,
            Standing::Working => return None,
        };
        let error = |kind, message: String| Some(WireEnd::Error(WireError { kind, status: None, message }));
        match reason {
            "stop" => Some(WireEnd::Success),
            "length" => {
                error(WireErrorKind::Other, "the answer was cut at the model's output limit".to_owned())
            }
            "content-filter" => {
                error(WireErrorKind::Other, "the model's content filter stopped the answer".to_owned())
            }
            "error" => {
                error(WireErrorKind::BadAnswer, "the model's last step ended with an error".to_owned())
            }
            // A call that it would have to ask for is refused, and the run stops without a word.
            "tool-calls" => {
                let refused = self
                    .denials
                    .last()
                    .map(|denial| format!("`{}` was refused ({})", denial.tool, denial.detail));
                let refused =
                    refused.or_else(|| close.stderr_line(|line| line.contains("auto-rejecting")))?;
                error(WireErrorKind::Permission, one_line(refused.trim_start_matches("! "), MESSAGE))
            }
            _ => None,
        }
    }
}

fn failure(error: Option<&RawValue>, here: &Here) -> WireEnd {
    let now = here.now();
    let Some(failure) = json::read::<Failure<'_>>(error) else {
        let message = json::text(error).unwrap_or(Cow::Borrowed("an error of unknown form"));
        return Fault { message: &message, ..Fault::default() }.end(here);
    };
    let name = json::text(failure.name).unwrap_or_default();
    let data = failure.data.as_ref();
    let message = data.and_then(|data| json::text(data.message)).unwrap_or_else(|| name.clone());
    let headers: Option<Headers<'_>> = data.and_then(|data| json::read(data.headers));
    let until = headers.and_then(|headers| {
        let exact = json::text(headers.retry_after_ms)
            .and_then(|ms| wait::in_seconds(ms.parse::<f64>().ok()? / 1000.0, now));
        exact.or_else(|| wait::retry_after(&json::text(headers.retry_after)?, now))
    });
    let status = data.and_then(|data| json::read(data.status));
    Fault { status, code: &name, message: &message, until }.end(here)
}

/// What its log says about a request that failed, and that it mostly tries again:
/// `… level=ERROR … message="stream error" … error.error="AI_APICallError: busy"`.
fn failed_request(line: &str) -> Option<String> {
    let is_request = line.contains(" level=ERROR ") && line.contains(" message=\"stream error\" ");
    let (_, error) = line.split_once(" error.error=\"").filter(|_| is_request)?;
    let error = error.trim_end().trim_end_matches('"').trim_start_matches("AI_APICallError: ");
    Some(one_line(&format!("a request failed: {error}"), MESSAGE))
}

impl Format for OpencodeFormat {
    fn read(&mut self, line: &str, out: &mut Vec<Activity>) -> Reading {
        if !may_be_object(line) {
            return Reading::Foreign;
        }
        match json::line::<Event<'_>>(line) {
            Ok(event) => self.event(&event, out),
            Err(reason) => Reading::Broken(reason),
        }
    }

    fn read_stderr(&mut self, line: &str, out: &mut Vec<Activity>) {
        if let Some(message) = failed_request(line) {
            out.push(Activity::Retrying { message });
        }
    }

    fn has_ended(&self) -> bool {
        match &self.standing {
            Standing::Working => false,
            Standing::Stepped(reason) => reason == "stop",
            Standing::Failed(_) => true,
        }
    }

    fn report(self, close: &Close) -> WireReport {
        let end = self.end(close);
        let mut final_text = self.final_text.into_text();
        final_text.truncate(final_text.trim_end().len());
        WireReport {
            session_id: self.session_id,
            turns: (self.steps > 0).then_some(self.steps),
            cost_usd: self.cost_usd,
            tokens: (self.steps > 0).then_some(self.tokens),
            denials: self.denials,
            final_text,
            end,
            ..WireReport::default()
        }
    }
}
