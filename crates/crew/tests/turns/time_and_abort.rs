//! Time limits and interruptions. The clock is tokio's, and stands still unless someone waits on it.

use std::time::Duration;

use async_trait::async_trait;
use rehearsal_core::{Outcome, TimeLimit, WireEnd, WireErrorKind};
use rehearsal_crew::{Limits, Roles};
use rehearsal_llm::chat::{ChatRequest, ChatResponse};
use rehearsal_llm::model::{ChatModel, ChatStream, ModelError};
use rehearsal_llm::scripted::{ScriptedModel, asks_for, says};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::scene::{FakeTools, call, limits, run};

/// Answers after a while.
struct Slow {
    model: ScriptedModel,
    after: Duration,
}

#[async_trait]
impl ChatModel for Slow {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        tokio::time::sleep(self.after).await;
        self.model.chat(request).await
    }

    async fn chat_stream(&self, request: &ChatRequest) -> Result<ChatStream, ModelError> {
        tokio::time::sleep(self.after).await;
        self.model.chat_stream(request).await
    }
}

fn slow(seconds: u64) -> Slow {
    Slow { model: ScriptedModel::from_strings(["Done."]), after: Duration::from_secs(seconds) }
}

fn within(time: Duration) -> Limits {
    Limits { time, ..limits() }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_model_that_takes_too_long_times_the_run_out() {
    let began = Instant::now();
    let ran = run(&slow(60), &FakeTools::default(), within(SECOND), &CancellationToken::new()).await;
    assert_eq!(ran.report.end, Some(WireEnd::TimedOut { after_ms: 1000 }));
    assert_eq!(ran.outcome(), Outcome::TimedOut { limit: TimeLimit::Total, after_ms: 1000 });
    assert_eq!(began.elapsed(), SECOND, "at once");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_fast_enough_is_in_time() {
    let ran = run(&slow(1), &FakeTools::default(), within(2 * SECOND), &CancellationToken::new()).await;
    assert_eq!((ran.outcome(), ran.report.duration_ms), (Outcome::Done, Some(1000)));
}

#[tokio::test(start_paused = true)]
async fn time_that_is_over_stops_a_tool_too() {
    let tools = FakeTools::default().writes("bash", "never").taking(60 * SECOND);
    let model = ScriptedModel::new([Ok(asks_for(vec![call("bash", "{}")])), Ok(says("Done."))]);
    let began = Instant::now();
    let ran = run(&model, &tools, within(SECOND), &CancellationToken::new()).await;
    assert_eq!(ran.report.end, Some(WireEnd::TimedOut { after_ms: 1000 }));
    assert_eq!(tools.asked(), ["bash {}", "bash stopped"]);
    assert_eq!(began.elapsed(), SECOND);
    assert_eq!(model.left(), 1, "the model is not asked again");
}

#[tokio::test(start_paused = true)]
async fn an_abort_stops_the_loop_wherever_it_is() {
    let cancel = CancellationToken::new();
    let tools = FakeTools::default().writes("bash", "never").taking(60 * SECOND);
    let model = ScriptedModel::new([Ok(asks_for(vec![call("bash", "{}"), call("bash", "{\"n\":2}")]))]);
    let began = Instant::now();
    let aborting = async {
        tokio::time::sleep(SECOND).await;
        cancel.cancel();
    };
    let (ran, ()) = tokio::join!(run(&model, &tools, limits(), &cancel), aborting);
    let Some(WireEnd::Error(error)) = &ran.report.end else { panic!("{:?}", ran.report.end) };
    assert_eq!((error.kind, error.message.as_str()), (WireErrorKind::Interrupted, "it was interrupted"));
    assert_eq!(ran.outcome(), Outcome::Cancelled);
    assert_eq!(began.elapsed(), SECOND);
    assert_eq!(tools.asked(), ["bash {}", "bash stopped"], "what comes after it is not begun");
}

#[tokio::test(start_paused = true)]
async fn an_abort_stops_a_request_that_is_under_way() {
    let cancel = CancellationToken::new();
    let began = Instant::now();
    let aborting = async {
        tokio::time::sleep(SECOND).await;
        cancel.cancel();
    };
    let (model, tools) = (slow(60), FakeTools::default());
    let (ran, ()) = tokio::join!(run(&model, &tools, limits(), &cancel), aborting);
    assert_eq!((ran.outcome(), began.elapsed()), (Outcome::Cancelled, SECOND));
    assert_eq!(ran.told(), ["started", "turn 1"]);
}

#[tokio::test]
async fn one_that_was_aborted_before_it_began_asks_nobody() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let model = ScriptedModel::from_strings(["Done."]);
    let ran = run(&model, &FakeTools::default(), limits(), &cancel).await;
    assert_eq!((ran.outcome(), model.left()), (Outcome::Cancelled, 1));
}

#[test]
fn nobody_can_ask_for_more_than_three_times_the_longest_of_a_role() {
    let roles = Roles::built_in().unwrap();
    for (role, _) in roles.iter() {
        assert_eq!(role.time_limit(None), role.timeout);
        assert_eq!(role.time_limit(Some(SECOND)), SECOND);
        assert_eq!(role.time_limit(Some(3 * role.max_timeout)), 3 * role.max_timeout);
        assert_eq!(role.time_limit(Some(Duration::MAX)), 3 * role.max_timeout);
    }
}
