//! How Gemini CLI tells that it failed: an `error` object, on standard error too, or its exit status alone.

use std::borrow::Cow;

use rehearsal_core::{Denial, Exit, WireEnd, WireError, WireErrorKind};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::driver::bounds::{DETAIL, MESSAGE, one_line};
use crate::driver::fault::Fault;
use crate::driver::json;
use crate::driver::stream::Close;
use crate::driver::{Here, wait};

/// `error` of a result or of a document: `type`, `message` and `code`, which is an exit status or an HTTP status.
#[derive(Deserialize)]
pub(super) struct Failure<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
}

impl Failure<'_> {
    pub(super) fn end(&self, here: &Here) -> WireEnd {
        let kind = json::text(self.kind).unwrap_or_default();
        let message = json::text(self.message).unwrap_or_default();
        let code = json::read::<i64>(self.code).unwrap_or_default();
        if kind == "FatalTurnLimitedError" || code == 53 {
            return WireEnd::MaxTurns;
        }
        if let Some(end) = i32::try_from(code).ok().and_then(|code| of_exit_code(code, &message)) {
            return end;
        }
        of_api(u16::try_from(code).ok().filter(|code| *code >= 400), &kind, &message, here)
    }
}

/// The end that an error told without an object stands for.
pub(super) fn end_of_message(message: &str, here: &Here) -> WireEnd {
    if message.starts_with("Maximum session turns") {
        return WireEnd::MaxTurns;
    }
    of_api(None, "", message, here)
}

/// The answer of the API, which stands as JSON within the message.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    error: Option<AnswerError<'a>>,
}

#[derive(Deserialize)]
struct AnswerError<'a> {
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    details: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Detail<'a> {
    #[serde(borrow, rename = "retryDelay")]
    retry_delay: Option<&'a RawValue>,
    #[serde(borrow)]
    violations: Option<Vec<Violation<'a>>>,
}

#[derive(Deserialize)]
struct Violation<'a> {
    #[serde(borrow, rename = "quotaId")]
    quota_id: Option<&'a RawValue>,
}

fn of_api(status: Option<u16>, kind: &str, message: &str, here: &Here) -> WireEnd {
    let from = message.find('{').unwrap_or(message.len());
    let mut stream = serde_json::Deserializer::from_str(&message[from..]).into_iter::<Answer<'_>>();
    let Some(Ok(Answer { error: Some(answer) })) = stream.next() else {
        return Fault { status, code: kind, message, until: None }.end(here);
    };
    let details: Vec<Detail<'_>> = json::read(answer.details).unwrap_or_default();
    let until = details.iter().find_map(|detail| {
        let delay = json::text(detail.retry_delay)?;
        wait::in_seconds(wait::duration(&delay)?, here.now())
    });
    let per_day = details
        .iter()
        .flat_map(|detail| detail.violations.iter().flatten())
        .any(|violation| json::text(violation.quota_id).is_some_and(|id| id.contains("PerDay")));
    let code = if per_day {
        Cow::Borrowed("TerminalQuotaError")
    } else {
        json::text(answer.status).unwrap_or_default()
    };
    let said = json::text(answer.message).unwrap_or(Cow::Borrowed(message));
    // The quota's own code must not be hidden behind the 429 that it comes with.
    let status = json::read(answer.code).or(status);
    let fault = Fault { status: status.filter(|_| !per_day), code: &code, message: &said, until };
    match fault.end(here) {
        WireEnd::Error(error) => WireEnd::Error(WireError { status: error.status.or(status), ..error }),
        end => end,
    }
}

/// What is known when standard output says nothing: the error object or the last line on standard error, and
/// the exit status. Also the session, where the object names it.
pub(super) fn on_the_side(
    close: &Close,
    last_error: Option<&str>,
    here: &Here,
) -> (Option<String>, Option<WireEnd>) {
    #[derive(Deserialize)]
    struct Side<'a> {
        #[serde(borrow)]
        session_id: Option<&'a RawValue>,
        #[serde(borrow)]
        error: Option<&'a RawValue>,
    }
    for candidate in objects(&close.stderr) {
        let mut stream = serde_json::Deserializer::from_str(candidate).into_iter::<Side<'_>>();
        if let Some(Ok(side)) = stream.next()
            && let Some(failure) = json::read::<Failure<'_>>(side.error)
        {
            let session_id = json::text(side.session_id).map(|id| one_line(&id, DETAIL));
            return (session_id, Some(failure.end(here)));
        }
    }
    if let Some(message) = last_error {
        return (None, Some(end_of_message(message, here)));
    }
    let Some(Exit::Code(code)) = close.exit else {
        return (None, None);
    };
    let last_line =
        close.stderr.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    (None, of_exit_code(code, last_line).or_else(|| of_wrapped_status(code, last_line, here)))
}

/// Places where an object begins a line, the last first; log text stands around them.
fn objects(stderr: &str) -> impl Iterator<Item = &str> {
    const MOST_TRIED: usize = 32;
    stderr
        .rmatch_indices('{')
        .map(|(at, _)| at)
        .filter(|at| {
            let before = stderr[..*at].rsplit('\n').next().unwrap_or_default();
            before.is_empty() || before == "[ERROR] "
        })
        .map(|at| &stderr[at..])
        .take(MOST_TRIED)
}

/// The exit statuses that Gemini CLI documents.
fn of_exit_code(code: i32, message: &str) -> Option<WireEnd> {
    let (kind, meaning) = match code {
        41 => (WireErrorKind::Auth, "authentication failed"),
        42 => (WireErrorKind::Other, "the input was refused"),
        44 => (WireErrorKind::Sandbox, "the sandbox does not work"),
        52 => (WireErrorKind::Other, "the configuration is invalid"),
        53 => return Some(WireEnd::MaxTurns),
        54 => (WireErrorKind::Other, "a tool could not be run"),
        55 => (WireErrorKind::Permission, "the workspace is not trusted"),
        130 => (WireErrorKind::Interrupted, "interrupted from outside"),
        _ => return None,
    };
    let message = if message.is_empty() { meaning } else { message };
    Some(WireEnd::Error(WireError { kind, status: None, message: one_line(message, MESSAGE) }))
}

/// It exits with the HTTP status, of which the system keeps eight bits: 401 becomes 145.
fn of_wrapped_status(code: i32, message: &str, here: &Here) -> Option<WireEnd> {
    Some(of_api(Some(wrapped_status(code)?), "", message, here))
}

fn wrapped_status(code: i32) -> Option<u16> {
    const STATUSES: [u16; 14] = [400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529];
    STATUSES.into_iter().find(|status| i32::from(*status % 256) == code)
}

/// What a line on standard error says about a request that is tried again:
/// `Attempt 2 failed with status 429. Retrying with backoff... _ApiError: {…}`, `Attempt 1 failed: fetch failed. Retrying…`.
pub(super) fn retry(line: &str) -> Option<String> {
    let rest = line.strip_prefix("Attempt ")?;
    let (number, rest) = rest.split_once(' ')?;
    number.parse::<u32>().ok()?;
    let (what, more) = rest.split_once("Retrying")?;
    let why = more.split_once("Error: ").map_or("", |(_, why)| why);
    let what = what.trim_start_matches("failed").trim_matches([' ', '.', ':']);
    let separator = if what.is_empty() || why.is_empty() { "" } else { ": " };
    Some(one_line(&format!("try {number} failed {what}{separator}{why}"), MESSAGE))
}

/// What an error stands for that names no status, where the exit status does. To a vendor's message it adds its own
/// advice, so the words alone mislead.
pub(super) fn by_exit(error: &WireError, close: &Close, here: &Here) -> Option<WireEnd> {
    let Some(Exit::Code(code)) = close.exit.filter(|_| error.status.is_none()) else { return None };
    let end = of_api(Some(wrapped_status(code)?), class_in(&close.stderr), &error.message, here);
    let delay = delay_in(&close.stderr).and_then(|seconds| wait::in_seconds(seconds, here.now()));
    let WireEnd::Error(error) = end else { return Some(end) };
    let kind = match error.kind {
        WireErrorKind::RateLimit { until: None } => WireErrorKind::RateLimit { until: delay },
        WireErrorKind::Quota { until: None } => WireErrorKind::Quota { until: delay },
        kind => kind,
    };
    Some(WireEnd::Error(WireError { kind, ..error }))
}

/// The class of its error: `Error when talking to Gemini API Full report available at: FILE RetryableQuotaError: slow down`.
fn class_in(stderr: &str) -> &str {
    let line = stderr.lines().rfind(|line| line.starts_with("Error when talking to")).unwrap_or_default();
    line.split(' ')
        .filter_map(|word| word.strip_suffix(':'))
        .find(|word| word.ends_with("Error"))
        .unwrap_or_default()
}

/// The seconds that the vendor asked for, in what it prints of its error: `retryDelayMs: 34000,`.
fn delay_in(stderr: &str) -> Option<f64> {
    let line = stderr.lines().rev().find_map(|line| line.trim().strip_prefix("retryDelayMs: "))?;
    line.trim_end_matches(',').parse::<f64>().ok().map(|ms| ms / 1000.0)
}

/// Refusals that the `json` document does not tell; standard error has a line for each.
pub(super) fn refused_in(stderr: &str, known: &[Denial], hidden: &[&str]) -> Vec<Denial> {
    let mut refused: Vec<Denial> = Vec::new();
    for tool in hidden {
        let line = format!("Error executing tool {tool}: Tool \"{tool}\" not found.");
        if stderr.contains(&line) && !known.iter().any(|denial| denial.tool == *tool) {
            refused.push(Denial {
                tool: (*tool).to_owned(),
                detail: "the approval mode does not offer it".to_owned(),
            });
        }
    }
    refused
}
