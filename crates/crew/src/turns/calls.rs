//! What the model wants done.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use rehearsal_agent::driver::{call_arguments, call_detail};
use rehearsal_core::{Activity, Denial, WireErrorKind};
use rehearsal_llm::chat::{Arguments, Json, Part, ToolCall, ToolResult};
use tokio_util::sync::CancellationToken;

use super::failure::error;
use super::{Next, Run, Told, interrupted};
use crate::{CallEnd, Called};

/// The same call in a row is carried out so often. What did not help three times does not help.
const SAME_CALLS: u32 = 3;

/// Calls in one answer that are carried out; no task needs more at once.
const MOST_CALLS: usize = 64;

/// Calls that run at the same time: each may hold files open.
const AT_ONCE: usize = 8;

/// The most bytes of a call's arguments that are kept. They are sent again with each request.
const LONGEST_ARGUMENTS: usize = 256 << 10;

impl Run<'_> {
    /// Carries calls out, and tells the model what came of them, in the order in which it made them.
    pub(super) async fn carry_out(&mut self, calls: &[ToolCall], cancel: &CancellationToken) -> Next {
        let (wanted, too_many) = calls.split_at(calls.len().min(MOST_CALLS));
        if let Some(call) = wanted.iter().find(|call| self.streak.is_over(call)) {
            let message = format!(
                "`{}` was called {} times in a row with the same arguments",
                call.name,
                SAME_CALLS + 1
            );
            return Next::Over(error(WireErrorKind::Other, message));
        }
        let mut called = self.carry_out_all(wanted, cancel).await;
        if cancel.is_cancelled() {
            return Next::Over(interrupted());
        }
        called.extend(too_many.iter().map(|_| refused()));
        for (call, called) in calls.iter().zip(&called) {
            if called.end == CallEnd::Denied {
                self.deny(Denial { tool: call.name.clone(), detail: call_detail(call.arguments.as_str()) });
            }
        }
        let malformed = calls.iter().zip(&called).find(|(_, called)| called.end == CallEnd::Malformed);
        let malformed = malformed.map(|(call, _)| format!("its call of `{}` is malformed", call.name));
        let results = calls.iter().zip(called).map(|(call, called)| result(call, called)).collect();
        match malformed {
            Some(what) => self.repair(Told(results), &what),
            None => {
                self.is_repairing = false;
                self.conversation.push(rehearsal_llm::chat::Message::new(super::Speaker::User, results));
                Next::Ask
            }
        }
    }

    /// Side by side where all only read, one after the other otherwise: what a call sees must not hang on chance.
    async fn carry_out_all(&self, calls: &[ToolCall], cancel: &CancellationToken) -> Vec<Called> {
        let only_read = calls.iter().all(|call| self.tools.only_reads(&call.name));
        let mut all = Vec::with_capacity(calls.len());
        for together in calls.chunks(if only_read { AT_ONCE } else { 1 }) {
            if cancel.is_cancelled() {
                break;
            }
            for call in together {
                let (tool, detail) = (call.name.clone(), call_detail(call.arguments.as_str()));
                let arguments = call_arguments(call.arguments.as_str());
                self.witness.saw(Activity::ToolCalled { tool, detail, arguments });
            }
            let called = joined(together.iter().map(|call| self.call(call, cancel)).collect()).await;
            for (call, called) in together.iter().zip(&called) {
                let is_error = called.end != CallEnd::Done;
                self.witness.saw(Activity::ToolReturned { tool: call.name.clone(), is_error });
            }
            all.extend(called);
        }
        all
    }

    async fn call(&self, call: &ToolCall, cancel: &CancellationToken) -> Called {
        let bytes = call.arguments.as_str().len();
        if bytes > LONGEST_ARGUMENTS {
            let text = format!("ERROR: the arguments have {bytes} bytes, and may have {LONGEST_ARGUMENTS}");
            return Called { text, end: CallEnd::Malformed };
        }
        self.tools.call(call, cancel).await
    }
}

/// How often the last call was made in a row.
#[derive(Debug, Default)]
pub(super) struct Streak {
    last: Option<(String, String)>,
    times: u32,
}

impl Streak {
    /// Counts a call, and says whether it came too often.
    fn is_over(&mut self, call: &ToolCall) -> bool {
        let arguments = call.arguments.as_str();
        let is_same = self.last.as_ref().is_some_and(|(name, last)| *name == call.name && last == arguments);
        if is_same {
            self.times += 1;
        } else {
            self.last = Some((call.name.clone(), arguments.to_owned()));
            self.times = 1;
        }
        self.times > SAME_CALLS
    }
}

/// The parts of an answer as they are sent again: giant arguments would be sent with every request.
pub(super) fn kept(parts: Vec<Part>) -> Vec<Part> {
    let shorter = |part| match part {
        Part::ToolCall(call) if call.arguments.as_str().len() > LONGEST_ARGUMENTS => {
            Part::ToolCall(ToolCall { arguments: Arguments::Json(Json::empty_object()), ..call })
        }
        part => part,
    };
    parts.into_iter().map(shorter).collect()
}

fn refused() -> Called {
    let text = format!("ERROR: this call was not carried out: an answer may have at most {MOST_CALLS} calls");
    Called { text, end: CallEnd::Failed }
}

fn result(call: &ToolCall, called: Called) -> Part {
    Part::ToolResult(ToolResult {
        id: call.id.clone(),
        name: Some(call.name.clone()),
        parts: vec![Part::text(called.text)],
        is_error: called.end != CallEnd::Done,
    })
}

/// Waits for all, in their order. There are never more than a few.
async fn joined<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    let mut waiting: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    poll_fn(|context| {
        for (future, output) in waiting.iter_mut().zip(&mut outputs).filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(ready) = future.as_mut().poll(context) {
                *output = Some(ready);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
