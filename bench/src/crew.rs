//! The turn loop of the crew, without a model and without tools to wait for.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_core::Stream;
use rehearsal_core::{Activity, WireEnd};
use rehearsal_crew::{Assignment, CONTEXT, CallEnd, Called, Limits, Tools, Witness};
use rehearsal_llm::chat::{
    Arguments, ChatRequest, ChatResponse, Delta, FinishReason, Json, Part, ToolCall, ToolDefinition,
    ToolInput, Usage,
};
use rehearsal_llm::model::{ChatModel, ChatStream, ModelError};
use tokio_util::sync::CancellationToken;

const TURNS: u64 = 1000;

/// What a file of a few hundred lines has.
const RESULT: usize = 8 << 10;

pub(crate) fn measure() {
    // The first time is for the allocator.
    run(TURNS);
    let time = run(TURNS);
    let before = crate::parsing::resident_kib();
    let long = run(10 * TURNS);
    let grown = crate::parsing::resident_kib().saturating_sub(before);
    let speed = |turns: u32, time: Duration| f64::from(turns) / time.as_secs_f64();
    println!(
        "{:<44} {:>7.0} turns/s, of 10,000: {:.0} turns/s, {grown} KiB more memory  >= 10,000 turns/s, flat",
        "crew: 1,000 turns with a tool call each",
        speed(1000, time),
        speed(10_000, long),
    );
}

fn run(turns: u64) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limits = Limits { time: Duration::from_mins(10), turns, tokens: None, context: CONTEXT };
    let (system, task) = ("You read files.".to_owned(), "Read them all.".to_owned());
    let assignment = Assignment { model: "model".to_owned(), system, task, limits };
    let (model, tools) = (Reader(AtomicU64::new(0)), OneTool("line of a file\n".repeat(RESULT / 15)));
    let start = Instant::now();
    let cancel = CancellationToken::new();
    let report = runtime.block_on(rehearsal_crew::run(assignment, &model, &tools, &Nobody, &cancel));
    let took = start.elapsed();
    assert_eq!((report.end, report.turns), (Some(WireEnd::MaxTurns), Some(turns)));
    took
}

/// Reads another file at each turn.
struct Reader(AtomicU64);

#[async_trait]
impl ChatModel for Reader {
    async fn chat(&self, _: &ChatRequest) -> Result<ChatResponse, ModelError> {
        Err(ModelError::NotScripted { message: "the loop asks for streams".to_owned() })
    }

    async fn chat_stream(&self, _: &ChatRequest) -> Result<ChatStream, ModelError> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let call = ToolCall {
            id: format!("call-{number}"),
            name: "read_file".to_owned(),
            namespace: None,
            arguments: Arguments::Json(Json::empty_object()),
            signature: None,
        };
        let (id, model) = ("answer".to_owned(), "model".to_owned());
        let deltas = vec![
            Delta::Started { id, model },
            Delta::PartStarted { index: 0, part: Part::text("I read the next file.") },
            Delta::PartStarted { index: 1, part: Part::ToolCall(call) },
            Delta::More { index: 1, text: format!("{{\"path\":\"src/file{number}.rs\"}}") },
            Delta::Usage(Usage { input: 100, output: 20, ..Usage::default() }),
            Delta::Finished(FinishReason::ToolCalls),
        ];
        Ok(Box::pin(Pieces(deltas.into_iter())))
    }
}

struct Pieces(std::vec::IntoIter<Delta>);

impl Stream for Pieces {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}

/// Gives the same text for every file.
struct OneTool(String);

#[async_trait]
impl Tools for OneTool {
    fn definitions(&self) -> Vec<ToolDefinition> {
        vec![ToolDefinition {
            name: "read_file".to_owned(),
            description: "Reads a file".to_owned(),
            input: ToolInput::Schema(Json::empty_object()),
        }]
    }

    fn only_reads(&self, _: &str) -> bool {
        true
    }

    async fn call(&self, _: &ToolCall, _: &CancellationToken) -> Called {
        Called { text: self.0.clone(), end: CallEnd::Done }
    }
}

struct Nobody;

impl Witness for Nobody {
    fn saw(&self, activity: Activity) {
        std::hint::black_box(activity);
    }
}
