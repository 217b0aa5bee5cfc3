//! Claude Code's `result`, and what it stands for.

use std::borrow::Cow;
use std::time::Duration;

use rehearsal_core::{Denial, Exit, Timestamp, Tokens, WireEnd, WireError, WireErrorKind};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::{Denied, Usage};
use super::wire::busiest;
use crate::driver::bounds::{DETAIL, END_OF_FINAL_TEXT, MESSAGE, cut, keep_ends, one_line};
use crate::driver::complaint::announces_refusal;
use crate::driver::fault::Fault;
use crate::driver::json;
use crate::driver::stream::Close;
use crate::driver::{Here, wait};

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow)]
    subtype: Option<&'a RawValue>,
    #[serde(borrow)]
    is_error: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    errors: Option<&'a RawValue>,
    #[serde(borrow)]
    api_error_status: Option<&'a RawValue>,
    #[serde(borrow)]
    api_error_type: Option<&'a RawValue>,
    #[serde(borrow)]
    api_error: Option<&'a RawValue>,
    #[serde(borrow)]
    terminal_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    num_turns: Option<&'a RawValue>,
    #[serde(borrow)]
    duration_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    total_cost_usd: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, rename = "modelUsage")]
    model_usage: Option<&'a RawValue>,
    #[serde(borrow)]
    permission_denials: Option<&'a RawValue>,
}

/// A `result` event, in what matters.
pub(super) struct Result {
    pub(super) session_id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) turns: Option<u64>,
    pub(super) duration_ms: Option<u64>,
    pub(super) cost_usd: Option<f64>,
    pub(super) tokens: Option<Tokens>,
    pub(super) denials: Vec<Denial>,
    pub(super) text: String,
    subtype: String,
    is_error: bool,
    terminal_reason: String,
    status: Option<u16>,
    code: String,
    /// What went wrong: the `errors`, or the text that stands in for an answer.
    message: String,
}

impl Result {
    pub(super) fn read(line: &str) -> std::result::Result<Self, String> {
        let raw: Raw<'_> = json::line(line)?;
        let short = |raw| json::text(raw).map(|text| one_line(&text, DETAIL));
        let text = json::text(raw.result);
        let errors: Vec<&RawValue> = json::read(raw.errors).unwrap_or_default();
        let errors: Vec<Cow<'_, str>> =
            errors.into_iter().filter_map(|error| json::text(Some(error))).collect();
        let message = match (&text, &errors[..]) {
            (Some(text), []) => cut(text, MESSAGE),
            _ => cut(&errors.join("; "), MESSAGE),
        };
        let denials: Vec<Denied<'_>> = json::read(raw.permission_denials).unwrap_or_default();
        Ok(Self {
            session_id: short(raw.session_id),
            model: busiest(raw.model_usage),
            turns: json::read(raw.num_turns),
            duration_ms: json::read(raw.duration_ms),
            cost_usd: json::read(raw.total_cost_usd),
            tokens: json::read::<Usage>(raw.usage).map(|usage| usage.tokens()),
            denials: denials.iter().map(Denied::denial).collect(),
            subtype: short(raw.subtype).unwrap_or_default(),
            is_error: json::read(raw.is_error).unwrap_or(false),
            terminal_reason: short(raw.terminal_reason).unwrap_or_default(),
            status: json::read(raw.api_error_status),
            code: short(raw.api_error_type).or_else(|| short(raw.api_error)).unwrap_or_default(),
            message,
            text: text.map(|text| keep_ends(text, END_OF_FINAL_TEXT)).unwrap_or_default(),
        })
    }

    /// What it stands for. An error of the API is a `success` with `is_error`; of an older version it may be one without,
    /// and only the message before it tells.
    pub(super) fn end(
        &self,
        window: Window,
        asked_to_wait: Option<Duration>,
        apology: bool,
        close: &Close,
        here: &Here,
    ) -> WireEnd {
        match (&*self.subtype, &*self.terminal_reason) {
            ("error_max_turns", _) | (_, "max_turns") => return WireEnd::MaxTurns,
            ("error_max_budget_usd", _) | (_, "budget_exhausted") => return WireEnd::BudgetReached,
            (_, reason) if reason.starts_with("aborted") => return self.interrupted(),
            // Older versions give no reason; an exit status of zero tells a stopped run from a broken one.
            ("error_during_execution", _) if close.exit == Some(Exit::Code(0)) => {
                return self.interrupted();
            }
            ("success" | "", _) if !self.is_error && !apology && !announces_refusal(&self.message) => {
                return WireEnd::Success;
            }
            _ => {}
        }
        let until = match window {
            Window::Open => None,
            Window::UsedUp { until } => until,
        };
        let fault = Fault { status: self.status, code: &self.code, message: &self.message, until };
        match (fault.end(here), window) {
            // More than a request too many.
            (WireEnd::Error(error), Window::UsedUp { .. })
                if matches!(error.kind, WireErrorKind::RateLimit { .. }) =>
            {
                WireEnd::Error(WireError { kind: WireErrorKind::Quota { until }, ..error })
            }
            (WireEnd::Error(error), Window::Open)
                if error.kind == (WireErrorKind::RateLimit { until: None }) && asked_to_wait.is_some() =>
            {
                let until = asked_to_wait.and_then(|wait| wait::in_seconds(wait.as_secs_f64(), here.now()));
                WireEnd::Error(WireError { kind: WireErrorKind::RateLimit { until }, ..error })
            }
            (end, _) => end,
        }
    }

    fn interrupted(&self) -> WireEnd {
        let message = if self.message.is_empty() {
            "interrupted from outside".to_owned()
        } else {
            self.message.clone()
        };
        WireEnd::Error(WireError { kind: WireErrorKind::Interrupted, status: self.status, message })
    }
}

/// What `rate_limit_event` says about the account's window.
#[derive(Deserialize)]
pub(super) struct Limits<'a> {
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow, rename = "resetsAt")]
    resets_at: Option<&'a RawValue>,
}

/// The account's window: a plan may be used for so much in so many hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Window {
    /// There is room, or nothing was said.
    Open,
    /// Used up: a request was refused.
    UsedUp {
        /// When it opens again.
        until: Option<Timestamp>,
    },
}

impl Limits<'_> {
    pub(super) fn window(&self, now: Timestamp) -> Window {
        if json::text(self.status).as_deref() != Some("rejected") {
            return Window::Open;
        }
        let resets_at = json::read(self.resets_at);
        Window::UsedUp { until: resets_at.and_then(|seconds| wait::epoch(seconds, now)) }
    }
}
