//! Our own clients on the stage: both sides of every vendor's format agree.

use std::sync::Arc;
use std::time::Duration;

use rehearsal_agent::clis::KNOWN;
use rehearsal_core::{Clock as _, Timestamp, VirtualClock};
use rehearsal_llm::ApiKey;
use rehearsal_llm::assembly;
use rehearsal_llm::cassette::{Matching, Player, Secrets};
use rehearsal_llm::chat::{ChatRequest, ChatResponse, FinishReason, Message, Part, Role, ToolResult};
use rehearsal_llm::clients::{Client, Endpoint, Limits, Settings};
use rehearsal_llm::model::{ChatModel, ModelError};
use rehearsal_llm::replaying::ReplayingModel;
use rehearsal_llm::wire::Dialect;
use rehearsal_stage::Stage;

use crate::recording::{Proxy, place};
use crate::theatre::{PATIENCE, Theatre, user};

const TASK: &str = r"
seed: 7
turns:
  - think: Which file?
    say: I write it.
    do:
      - write_file: { path: /spot/here/hello.txt, content: hello }
    usage: { input: 12, output: 34 }
  - when: { result: written }
    say: Done.
";

const NOW: Timestamp = Timestamp(1_794_772_800_000);

fn client(stage: &Stage, dialect: Dialect, settings: Settings) -> (Client, Arc<VirtualClock>) {
    let path = if matches!(dialect, Dialect::OpenAiChat | Dialect::OpenAiResponses) { "/v1" } else { "" };
    let key = ApiKey::new("sk-ant-opens-nothing-at-all").unwrap();
    let endpoint = Endpoint::new(dialect, &format!("http://{}{path}", stage.address()), Some(key)).unwrap();
    let clock = Arc::new(VirtualClock::starting_at(NOW));
    (Client::new(endpoint, settings, clock.clone()).unwrap(), clock)
}

/// Nothing is late, unless a test says so.
fn patient() -> Settings {
    let limits = Limits {
        connect: PATIENCE,
        first_byte: PATIENCE,
        idle: PATIENCE,
        total: PATIENCE,
        ..Limits::default()
    };
    Settings { limits, ..Settings::default() }
}

async fn ask(model: &impl ChatModel, chat: &ChatRequest, stream: bool) -> Result<ChatResponse, ModelError> {
    if !stream {
        return model.chat(chat).await;
    }
    assembly::whole(model.chat_stream(chat).await?).await
}

/// A task of two turns: what is said, with the result of the tool in between.
async fn work(model: &impl ChatModel, stream: bool) -> [ChatResponse; 2] {
    let mut chat = user("Write hello.txt");
    let first = ask(model, &chat, stream).await.unwrap();
    let call = first.tool_calls().next().unwrap().clone();
    let parts = vec![Part::text("written")];
    let result = ToolResult { id: call.id, name: Some(call.name), parts, is_error: false };
    chat.messages.push(Message::new(Role::Assistant, first.parts.clone()));
    chat.messages.push(Message::new(Role::User, vec![Part::ToolResult(result)]));
    let last = ask(model, &chat, stream).await.unwrap();
    [first, last]
}

#[tokio::test]
async fn a_task_is_done_on_every_interface() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let theatre = Theatre::play(TASK);
            let (client, _) = client(&theatre.stage, dialect, patient());
            let [first, last] = work(&client, stream).await;
            assert_eq!((first.text().as_str(), first.finish), ("I write it.", FinishReason::ToolCalls));
            assert!(matches!(&first.parts[0], Part::Thinking(thinking) if thinking.text == "Which file?"));
            assert_eq!((first.usage.input, first.usage.output), (12, 34), "{dialect:?}");
            assert_eq!((last.text().as_str(), last.finish), ("Done.", FinishReason::Stop));
            let report = theatre.report();
            assert!(report.is_clean(), "{report:#?}");
            assert_eq!((report.requests, report.refusable), (2, 0), "{report:#?}");
        }
    }
}

#[tokio::test]
async fn what_goes_wrong_for_a_moment_is_got_over() {
    for fault in ["status: { code: 429, retry_after: 2s }", "status: { code: 529 }", "cut: 0", "malformed: 0"]
    {
        for dialect in Dialect::ALL {
            let script =
                format!("turns:\n  - {{ say: lost words, fault: {{ {fault} }} }}\n  - say: At last.\n");
            let theatre = Theatre::play(&script);
            let (client, clock) = client(&theatre.stage, dialect, patient());
            let answer = ask(&client, &user("hi"), true).await.unwrap();
            assert_eq!(answer.text(), "At last.", "{dialect:?} {fault}");
            let waited = clock.now().since(NOW);
            if fault.contains("2s") {
                assert_eq!(waited, Duration::from_secs(2), "{dialect:?}");
            } else {
                assert!(waited <= Duration::from_secs(1), "{dialect:?} {fault}");
            }
        }
    }
}

#[tokio::test]
async fn what_stays_wrong_is_told_for_what_it_is() {
    let mut settings = patient();
    settings.retry.tries = 1;
    let mut told = String::new();
    for fault in [
        "status: { code: 401, message: who are you }",
        "status: { code: 402, message: no credit }",
        "status: { code: 429, retry_after: 2h, message: slow down }",
        "status: { code: 529, message: busy }",
        "status: { code: 404, message: no such model }",
        "cut: 2",
        "hang_after: 1",
    ] {
        for stream in [false, true] {
            let theatre =
                Theatre::play(&format!("turns:\n  - {{ say: some words, fault: {{ {fault} }} }}\n"));
            // Only who never goes on is late.
            settings.limits.idle = if fault.contains("hang") { Duration::from_millis(100) } else { PATIENCE };
            let (client, _) = client(&theatre.stage, Dialect::Anthropic, settings);
            let error = ask(&client, &user("hi"), stream).await.unwrap_err();
            let outcome = error.outcome().name();
            // How a connection breaks, the system says in its own words.
            let error = error.to_string();
            let error = error.split(": error").next().unwrap_or_default();
            told.push_str(&format!("{fault}: {outcome} ({error})\n"));
        }
    }
    insta::assert_snapshot!(told, @"
    status: { code: 401, message: who are you }: auth_failed (the vendor refuses the key: who are you)
    status: { code: 401, message: who are you }: auth_failed (the vendor refuses the key: who are you)
    status: { code: 402, message: no credit }: quota_exhausted (the quota is used up: no credit)
    status: { code: 402, message: no credit }: quota_exhausted (the quota is used up: no credit)
    status: { code: 429, retry_after: 2h, message: slow down }: rate_limited (rate-limited: slow down)
    status: { code: 429, retry_after: 2h, message: slow down }: rate_limited (rate-limited: slow down)
    status: { code: 529, message: busy }: overloaded (the vendor answers 529: busy)
    status: { code: 529, message: busy }: overloaded (the vendor answers 529: busy)
    status: { code: 404, message: no such model }: failed (the vendor refuses the request (404): no such model)
    status: { code: 404, message: no such model }: failed (the vendor refuses the request (404): no such model)
    cut: 2: unreachable (the answer was cut)
    cut: 2: unreachable (the answer was cut)
    hang_after: 1: unreachable (nothing more of the answer within 100 ms)
    hang_after: 1: unreachable (nothing more of the answer within 100 ms)
    ");

    settings.limits.first_byte = Duration::from_millis(100);
    let theatre = Theatre::play("turns:\n  - fault: hang\n");
    let (client, _) = client(&theatre.stage, Dialect::Anthropic, settings);
    let error = ask(&client, &user("hi"), true).await.unwrap_err();
    assert_eq!(error.to_string(), "no answer within 100 ms");
}

#[tokio::test]
async fn what_was_recorded_over_http_is_played_in_process() {
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            let vendor = Theatre::play(TASK);
            let proxy = Proxy::before(&format!("http://{}", vendor.stage.address()));
            let given = work(&client(&proxy.stage, dialect, patient()).0, stream).await;
            let cassette = proxy.finish().await;

            let player = Player::new(
                cassette,
                Matching::Strict,
                &KNOWN.model_clients(),
                &place("/spot/here"),
                &Secrets::default(),
            )
            .unwrap();
            let clock = Arc::new(VirtualClock::starting_at(NOW));
            let replaying = ReplayingModel::new(player, dialect, clock);
            assert_eq!(work(&replaying, stream).await, given, "{dialect:?}");
            assert!(replaying.report().is_faithful(), "{:?}", replaying.report());
        }
    }
}
