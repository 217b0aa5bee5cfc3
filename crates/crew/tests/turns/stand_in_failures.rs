//! A model that fails: each failure is blamed on whom it belongs to.

use async_trait::async_trait;
use rehearsal_core::{Blame, Timestamp};
use rehearsal_llm::chat::{ChatRequest, ChatResponse, Delta, Part};
use rehearsal_llm::model::{ChatModel, ChatStream, ModelError, Timeout};
use rehearsal_llm::scripted::ScriptedModel;
use std::sync::Mutex;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use crate::scene::{FakeTools, limits, play, run};

#[tokio::test]
async fn every_failure_of_a_model_gets_its_name_and_its_blame() {
    let message = || "why".to_owned();
    let until = Some(Timestamp(1_800_000_000_000));
    let rests = ModelError::Overloaded { status: 529, until: None, message: message() };
    let table = [
        (ModelError::Unauthorized { message: message() }, "auth_failed", Blame::System),
        (ModelError::RateLimited { until, message: message() }, "rate_limited", Blame::System),
        (ModelError::QuotaExhausted { until, message: message() }, "quota_exhausted", Blame::System),
        (rests.clone(), "overloaded", Blame::System),
        (
            ModelError::Resting { until: Timestamp(1), failures: 8, last: Box::new(rests) },
            "overloaded",
            Blame::System,
        ),
        (ModelError::Refused { status: 400, message: message() }, "failed", Blame::Task),
        (ModelError::Unreachable { message: message() }, "unreachable", Blame::System),
        (
            ModelError::TimedOut { limit: Timeout::FirstByte, after: Duration::from_secs(1) },
            "unreachable",
            Blame::System,
        ),
        (ModelError::Cut { message: message() }, "unreachable", Blame::System),
        (ModelError::Malformed { message: message() }, "protocol_error", Blame::Agent),
    ];
    for (error, name, blame) in table {
        let (ran, _) = play(vec![Err(error.clone())], &FakeTools::default(), limits()).await;
        let outcome = ran.outcome();
        assert_eq!((outcome.name().as_str(), outcome.blame()), (name, blame), "{error}");
        assert_eq!(outcome, error.outcome(), "the same as the model's own");
    }
}

/// Cuts its first answers in the middle.
struct Cutting {
    model: ScriptedModel,
    cuts: Mutex<u32>,
}

impl Cutting {
    fn cuts_now(&self) -> bool {
        let mut cuts = self.cuts.lock().unwrap();
        let cuts_now = *cuts > 0;
        *cuts = cuts.saturating_sub(1);
        cuts_now
    }
}

#[async_trait]
impl ChatModel for Cutting {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        self.model.chat(request).await
    }

    async fn chat_stream(&self, request: &ChatRequest) -> Result<ChatStream, ModelError> {
        if !self.cuts_now() {
            return self.model.chat_stream(request).await;
        }
        let deltas = vec![
            Ok(Delta::Started { id: "1".into(), model: "m".into() }),
            Ok(Delta::PartStarted { index: 0, part: Part::text("Half of") }),
            Err(ModelError::Cut { message: "connection reset".into() }),
        ];
        Ok(Box::pin(Pieces(deltas.into_iter())))
    }
}

struct Pieces(std::vec::IntoIter<Result<Delta, ModelError>>);

impl futures_core::Stream for Pieces {
    type Item = Result<Delta, ModelError>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.next())
    }
}

async fn cut(times: u32) -> crate::scene::Ran {
    let model = Cutting { model: ScriptedModel::from_strings(["Whole."]), cuts: Mutex::new(times) };
    run(&model, &FakeTools::default(), limits(), &CancellationToken::new()).await
}

#[tokio::test]
async fn an_answer_that_is_cut_in_the_middle_is_asked_for_again() {
    let ran = cut(2).await;
    assert_eq!((ran.report.final_text.as_str(), ran.report.turns), ("Whole.", Some(1)));
    let again = ran.told().iter().filter(|told| told.starts_with("retrying: the answer was cut")).count();
    assert_eq!(again, 2);
}

#[tokio::test]
async fn one_that_is_cut_again_and_again_is_out_of_reach() {
    let ran = cut(3).await;
    assert_eq!(ran.outcome().name().as_str(), "unreachable");
    assert_eq!(ran.report.final_text, "", "half an answer is none");
}
