//! A run with a scripted model and scripted tools.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rehearsal_core::{Activity, Evidence, Exit, Outcome, WireReport, judge};
use rehearsal_crew::{Assignment, CONTEXT, CallEnd, Called, Limits, Tools, Witness};
use rehearsal_llm::chat::{
    ChatResponse, FinishReason, Json, Part, ToolCall, ToolDefinition, ToolInput, Usage,
};
use rehearsal_llm::model::{ChatModel, ModelError};
use rehearsal_llm::scripted::{ScriptedModel, tool_call};
use tokio_util::sync::CancellationToken;

pub(crate) type Script = Vec<Result<ChatResponse, ModelError>>;

/// A call of a tool.
pub(crate) fn call(name: &str, arguments: &str) -> ToolCall {
    tool_call(&format!("call-{name}"), name, Json::parse(arguments.to_owned()).unwrap())
}

/// An answer that was cut at its length.
pub(crate) fn cut_at_length(parts: Vec<Part>) -> ChatResponse {
    ChatResponse {
        id: "1".into(),
        model: "scripted".into(),
        parts,
        finish: FinishReason::Length,
        usage: Usage::default(),
    }
}

pub(crate) fn limits() -> Limits {
    Limits { time: Duration::from_mins(10), turns: 50, tokens: None, context: CONTEXT }
}

pub(crate) fn assignment(limits: Limits) -> Assignment {
    Assignment { model: "scripted".into(), system: "You help.".into(), task: "Do it.".into(), limits }
}

/// What a run came to.
pub(crate) struct Ran {
    pub(crate) report: WireReport,
    pub(crate) activities: Vec<Activity>,
}

impl Ran {
    /// What the engine makes of it.
    pub(crate) fn outcome(&self) -> Outcome {
        let evidence =
            Evidence { exit: Some(Exit::Code(0)), wire: self.report.clone(), ..Evidence::default() };
        judge(&evidence).outcome
    }

    /// The activities, a word or two each.
    pub(crate) fn told(&self) -> Vec<String> {
        self.activities.iter().map(short).collect()
    }
}

fn short(activity: &Activity) -> String {
    match activity {
        Activity::Started { .. } => "started".into(),
        Activity::Turn { number } => format!("turn {number}"),
        Activity::Text { text } => format!("text {}", text.trim()),
        Activity::ToolCalled { tool, detail, .. } => format!("called {tool} {detail}"),
        Activity::ToolReturned { tool, is_error } => {
            format!("{tool} {}", if *is_error { "failed" } else { "ok" })
        }
        Activity::Retrying { message } => format!("retrying: {message}"),
        Activity::Usage { tokens, .. } => format!("used {}", tokens.total()),
        Activity::Unreadable { reason } => format!("unreadable: {reason}"),
    }
}

/// Remembers what it saw.
#[derive(Default)]
pub(crate) struct Seen(pub(crate) Mutex<Vec<Activity>>);

impl Witness for Seen {
    fn saw(&self, activity: Activity) {
        self.0.lock().unwrap().push(activity);
    }
}

/// Runs a script to its end.
pub(crate) async fn play(script: Script, tools: &FakeTools, limits: Limits) -> (Ran, ScriptedModel) {
    let model = ScriptedModel::new(script);
    let ran = run(&model, tools, limits, &CancellationToken::new()).await;
    (ran, model)
}

pub(crate) async fn run(
    model: &dyn ChatModel,
    tools: &FakeTools,
    limits: Limits,
    cancel: &CancellationToken,
) -> Ran {
    let seen = Seen::default();
    let report = rehearsal_crew::run(assignment(limits), model, tools, &seen, cancel).await;
    Ran { report, activities: seen.0.into_inner().unwrap() }
}

/// Tools that answer what they were told to, and remember what they were asked.
#[derive(Default)]
pub(crate) struct FakeTools {
    answers: BTreeMap<String, Called>,
    writing: Vec<String>,
    slow: Option<Duration>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    /// How many were at work at once.
    pub(crate) most_at_once: Arc<Mutex<(usize, usize)>>,
}

impl FakeTools {
    /// A tool that only reads.
    pub(crate) fn reads(self, name: &str, text: &str) -> Self {
        self.ends(name, text, CallEnd::Done)
    }

    /// A tool that changes something.
    pub(crate) fn writes(mut self, name: &str, text: &str) -> Self {
        self.writing.push(name.to_owned());
        self.reads(name, text)
    }

    pub(crate) fn ends(mut self, name: &str, text: &str, end: CallEnd) -> Self {
        self.answers.insert(name.to_owned(), Called { text: text.to_owned(), end });
        self
    }

    /// All take so long, unless they are cancelled.
    pub(crate) fn taking(self, time: Duration) -> Self {
        Self { slow: Some(time), ..self }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Tools for FakeTools {
    fn definitions(&self) -> Vec<ToolDefinition> {
        let define = |name: &String| ToolDefinition {
            name: name.clone(),
            description: String::new(),
            input: ToolInput::Schema(Json::empty_object()),
        };
        self.answers.keys().map(define).collect()
    }

    fn only_reads(&self, tool: &str) -> bool {
        !self.writing.iter().any(|name| name == tool)
    }

    async fn call(&self, call: &ToolCall, cancel: &CancellationToken) -> Called {
        self.asked.lock().unwrap().push(format!("{} {}", call.name, call.arguments.as_str()));
        {
            let mut busy = self.most_at_once.lock().unwrap();
            busy.0 += 1;
            busy.1 = busy.1.max(busy.0);
        }
        if let Some(time) = self.slow {
            tokio::select! {
                () = tokio::time::sleep(time) => {}
                () = cancel.cancelled() => self.asked.lock().unwrap().push(format!("{} stopped", call.name)),
            }
        }
        tokio::task::yield_now().await;
        self.most_at_once.lock().unwrap().0 -= 1;
        let none =
            || Called { text: format!("ERROR: there is no tool `{}`", call.name), end: CallEnd::Malformed };
        self.answers.get(&call.name).cloned().unwrap_or_else(none)
    }
}
