//! The turn loop: asks the model, does what it wants done, tells it what came of it, until it stops.
//!
//! Each turn is one request. It ends in [`Next`]: ask again, or over. Whatever happens, a run ends in a report.

mod ask;
mod calls;
mod failure;

use std::pin::pin;
use std::time::Duration;

use rehearsal_core::{Activity, BoxFuture, Denial, Tokens, WireEnd, WireErrorKind, WireReport, WireShape};
use rehearsal_llm::chat::{ChatResponse, FinishReason, Message, Part, Role as Speaker, ToolCall, Usage};
use rehearsal_llm::model::ChatModel;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::Tools;
use crate::conversation::Conversation;
use calls::Streak;
use failure::{error, of_model_error};

/// Sees what an agent does, as it does it.
pub trait Witness: Send + Sync {
    /// It did something.
    fn saw(&self, activity: Activity);

    /// It is at work, without anything to tell: the model thinks.
    fn is_alive(&self) {}
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The model, as its vendor calls it.
    pub model: String,
    /// What the system says.
    pub system: String,
    /// What is asked.
    pub task: String,
    /// What it may use.
    pub limits: Limits,
}

/// What a run may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest it may take.
    pub time: Duration,
    /// How often it may ask.
    pub turns: u64,
    /// The tokens of all requests and answers together.
    pub tokens: Option<u64>,
    /// The tokens of one request.
    pub context: usize,
}

/// The tokens of one request, if nobody knows better: what the models that are worth asking can read, with room for the answer.
pub const CONTEXT: usize = 120_000;

/// What a tool may take to stop. It has processes to end.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Works on an assignment until it is over.
pub fn run<'a>(
    assignment: Assignment,
    model: &'a dyn ChatModel,
    tools: &'a dyn Tools,
    witness: &'a dyn Witness,
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, WireReport> {
    Box::pin(async move {
        let (started, limits) = (Instant::now(), assignment.limits);
        let inside = cancel.child_token();
        let mut run = Run::new(assignment, model, tools, witness);
        let end = {
            let mut work = pin!(run.until_over(&inside));
            tokio::select! {
                // A run that is over when its time is, is over.
                biased;
                end = &mut work => end,
                () = tokio::time::sleep(limits.time) => {
                    inside.cancel();
                    // What it says now is our own doing.
                    let _ = timeout(STOP_GRACE, &mut work).await;
                    WireEnd::TimedOut { after_ms: millis(limits.time) }
                }
                () = cancel.cancelled() => {
                    let _ = timeout(STOP_GRACE, &mut work).await;
                    interrupted()
                }
            }
        };
        run.report(end, started.elapsed())
    })
}

fn interrupted() -> WireEnd {
    error(WireErrorKind::Interrupted, "it was interrupted")
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A run under way.
struct Run<'a> {
    model: &'a dyn ChatModel,
    tools: &'a dyn Tools,
    witness: &'a dyn Witness,
    limits: Limits,
    conversation: Conversation,
    report: WireReport,
    turns: u64,
    tokens: Tokens,
    streak: Streak,
    /// The last answer could not be used, and the model was told so.
    is_repairing: bool,
}

/// What follows a turn.
enum Next {
    /// The model is asked again.
    Ask,
    /// It is over.
    Over(WireEnd),
}

/// Told to a model whose answer was cut at its length.
const CONTINUE: &str = "Your answer was cut off, because it was too long. Go on from where it stopped, without repeating what you said. \
    A tool call that was cut was not carried out: make it again, with less in it.";

/// Told to a model that says nothing.
const EMPTY: &str = "ERROR: your answer was empty. Go on with the task, or say what you did if it is done.";

/// Stands for an answer of which nothing can be kept: no vendor takes an empty message.
const NOTHING: &str = "(nothing)";

/// More refusals say nothing new.
const MOST_DENIALS: usize = 100;

impl<'a> Run<'a> {
    fn new(
        assignment: Assignment,
        model: &'a dyn ChatModel,
        tools: &'a dyn Tools,
        witness: &'a dyn Witness,
    ) -> Self {
        let Assignment { model: name, system, task, limits } = assignment;
        witness.saw(Activity::Started { session_id: None, model: Some(name.clone()) });
        let conversation = Conversation::new(&name, system, task, tools.definitions(), limits.context);
        let report = WireReport { model: Some(name), shape: WireShape::Structured, ..WireReport::default() };
        Self {
            model,
            tools,
            witness,
            limits,
            conversation,
            report,
            turns: 0,
            tokens: Tokens::default(),
            streak: Streak::default(),
            is_repairing: false,
        }
    }

    async fn until_over(&mut self, cancel: &CancellationToken) -> WireEnd {
        loop {
            if self.turns == self.limits.turns {
                return WireEnd::MaxTurns;
            }
            if self.limits.tokens.is_some_and(|limit| self.tokens.total() > limit) {
                return WireEnd::BudgetReached;
            }
            match self.turn(cancel).await {
                Next::Ask => {}
                Next::Over(end) => return end,
            }
        }
    }

    async fn turn(&mut self, cancel: &CancellationToken) -> Next {
        self.turns += 1;
        self.witness.saw(Activity::Turn { number: self.turns });
        self.conversation.make_room();
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Next::Over(interrupted()),
            answer = self.ask() => answer,
        };
        match answer {
            Ok(answer) => self.take(answer, cancel).await,
            Err(error) => Next::Over(of_model_error(&error)),
        }
    }

    /// Does what an answer wants.
    async fn take(&mut self, answer: ChatResponse, cancel: &CancellationToken) -> Next {
        self.count(answer.usage);
        let text = answer.text();
        if !text.trim().is_empty() {
            self.report.final_text = text;
        }
        match answer.finish {
            FinishReason::Refused => {
                return Next::Over(error(WireErrorKind::Other, "the model refuses to answer"));
            }
            FinishReason::Length => return self.go_on(answer.parts),
            FinishReason::Stop
            | FinishReason::ToolCalls
            | FinishReason::StopText
            | FinishReason::Other(_) => {}
        }
        let calls: Vec<ToolCall> = answer.tool_calls().cloned().collect();
        // Some vendors say `stop` and call all the same.
        if !calls.is_empty() {
            self.conversation.push(Message::new(Speaker::Assistant, calls::kept(answer.parts)));
            return self.carry_out(&calls, cancel).await;
        }
        if answer.parts.iter().any(|part| matches!(part, Part::Text(text) if !text.text.trim().is_empty())) {
            return Next::Over(WireEnd::Success);
        }
        self.conversation.push(Message::assistant(NOTHING));
        self.repair(EMPTY.to_owned().into(), "its answer is empty")
    }

    /// The answer was cut at its length.
    fn go_on(&mut self, parts: Vec<Part>) -> Next {
        // A call without its end cannot be told from a whole one, and one without a result is refused by every vendor.
        let mut parts: Vec<Part> =
            parts.into_iter().filter(|part| !matches!(part, Part::ToolCall(_))).collect();
        if parts.iter().all(|part| matches!(part, Part::Text(text) if text.text.is_empty())) {
            parts = vec![Part::text(NOTHING)];
        }
        self.conversation.push(Message::new(Speaker::Assistant, parts));
        self.conversation.push(Message::user(CONTINUE));
        Next::Ask
    }

    /// Tells the model what was wrong with its answer, once; the second time in a row it is over.
    fn repair(&mut self, told: Told, what: &str) -> Next {
        if std::mem::replace(&mut self.is_repairing, true) {
            let message = format!("the model was told once, and again {what}");
            return Next::Over(error(WireErrorKind::BadAnswer, message));
        }
        self.conversation.push(Message::new(Speaker::User, told.0));
        Next::Ask
    }

    fn deny(&mut self, denial: Denial) {
        if self.report.denials.len() < MOST_DENIALS {
            self.report.denials.push(denial);
        }
    }

    /// Tokens that a vendor does not tell are not known, and not none.
    fn count(&mut self, usage: Usage) {
        let Some(tokens) = usage.tokens() else { return };
        self.tokens += tokens;
        self.report.tokens = Some(self.tokens);
        self.witness.saw(Activity::Usage { tokens: self.tokens, cost_usd: None });
    }

    fn report(self, end: WireEnd, took: Duration) -> WireReport {
        WireReport { turns: Some(self.turns), duration_ms: Some(millis(took)), end: Some(end), ..self.report }
    }
}

/// What is said to an answer.
struct Told(Vec<Part>);

impl From<String> for Told {
    fn from(text: String) -> Self {
        Self(vec![Part::text(text)])
    }
}
