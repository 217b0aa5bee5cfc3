//! What goes wrong on the way, and what is asked again.

use std::future::poll_fn;
use std::time::Duration;

use rehearsal_core::Clock as _;
use rehearsal_llm::assembly;
use rehearsal_llm::clients::Settings;
use rehearsal_llm::model::{ChatModel, ModelError};
use rehearsal_llm::wire::Dialect;

use crate::vendor::{NOW, PATIENCE, Reply, Vendor, once, samples, settings, user};

/// Short enough for a test, where the vendor stays silent for ever.
const SOON: Duration = Duration::from_millis(100);

fn answer() -> Reply {
    Reply::ok(samples(Dialect::Anthropic).0)
}

fn limited(wait: &str) -> Reply {
    Reply::json(
        429,
        &[("retry-after", wait)],
        r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#,
    )
}

fn overloaded() -> Reply {
    Reply::json(529, &[], r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#)
}

#[tokio::test]
async fn who_is_told_to_wait_waits_and_is_answered() {
    let vendor = Vendor::open([limited("20"), answer()]).await;
    let (client, clock) = vendor.client_with(Dialect::Anthropic, settings());
    assert_eq!(client.chat(&user("hi")).await.unwrap().text(), "I write the file.");
    assert_eq!(clock.now().since(NOW), Duration::from_secs(20));
    assert_eq!(vendor.requests().len(), 2);
}

#[tokio::test]
async fn who_is_told_to_wait_for_long_tells_the_caller() {
    let vendor = Vendor::open([limited("3600"), answer()]).await;
    let (client, clock) = vendor.client_with(Dialect::Anthropic, settings());
    let error = client.chat(&user("hi")).await.unwrap_err();
    assert_eq!(error.until(), Some(NOW.plus(Duration::from_hours(1))));
    assert_eq!((clock.now(), vendor.requests().len()), (NOW, 1));
}

#[tokio::test]
async fn what_fails_for_a_moment_is_asked_again() {
    let broken = || Reply::ok("{\"id\":");
    let cut = || Reply::short_json(samples(Dialect::Anthropic).0);
    for first in [overloaded(), Reply::json(500, &[], ""), Reply::hang_up(), broken(), cut()] {
        let vendor = Vendor::open([first, answer()]).await;
        let (client, clock) = vendor.client_with(Dialect::Anthropic, settings());
        assert_eq!(client.chat(&user("hi")).await.unwrap().text(), "I write the file.");
        assert!(clock.now().since(NOW) <= Duration::from_secs(1));
    }
}

#[tokio::test]
async fn a_stream_that_fails_before_its_first_piece_is_asked_for_again() {
    let events = samples(Dialect::Anthropic).1;
    let html = || Reply::ok("<html>");
    for first in [overloaded(), Reply::stream(""), Reply::cut_stream("event: mess"), Reply::hang_up(), html()]
    {
        let vendor = Vendor::open([first, Reply::stream(events)]).await;
        let stream = vendor.client(Dialect::Anthropic).chat_stream(&user("hi")).await.unwrap();
        assert_eq!(assembly::whole(stream).await.unwrap().text(), "I write the file.");
        assert_eq!(vendor.requests().len(), 2);
    }
}

#[tokio::test]
async fn what_another_try_does_not_cure_is_asked_once() {
    for (status, headers) in
        [(401, &[][..]), (404, &[]), (413, &[]), (402, &[]), (529, &[("x-should-retry", "false")])]
    {
        let vendor = Vendor::open([Reply::json(status, headers, ""), answer()]).await;
        vendor.client(Dialect::Anthropic).chat(&user("hi")).await.unwrap_err();
        assert_eq!(vendor.requests().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_vendor_that_wants_to_be_asked_again_is() {
    let vendor = Vendor::open([Reply::json(400, &[("x-should-retry", "true")], ""), answer()]).await;
    assert!(vendor.client(Dialect::Anthropic).chat(&user("hi")).await.is_ok());
}

#[tokio::test]
async fn after_the_last_try_the_last_failure_is_told() {
    let vendor = Vendor::open([overloaded(), overloaded(), overloaded(), overloaded(), answer()]).await;
    let (client, clock) = vendor.client_with(Dialect::Anthropic, settings());
    let error = client.chat(&user("hi")).await.unwrap_err();
    assert_eq!(error.to_string(), "the vendor answers 529: Overloaded");
    assert_eq!(vendor.requests().len(), 4);
    assert!(clock.now().since(NOW) <= Duration::from_secs(1 + 2 + 4));
}

#[tokio::test]
async fn a_stream_that_is_cut_is_never_a_whole_answer() {
    for dialect in Dialect::ALL {
        let events = samples(dialect).1;
        let frames: Vec<&str> =
            events.split_inclusive("\n\n").flat_map(|part| part.split_inclusive("\r\n\r\n")).collect();
        let last = frames.len() - if dialect == Dialect::OpenAiChat { 3 } else { 1 };
        for kept in 1..=last {
            let begun: String = frames[..kept].concat();
            for reply in [Reply::cut_stream(&begun), Reply::stream(&begun)] {
                let vendor = Vendor::open([reply]).await;
                let (client, _) = vendor.client_with(dialect, once());
                let answered = match client.chat_stream(&user("hi")).await {
                    Ok(stream) => assembly::whole(stream).await,
                    Err(error) => Err(error),
                };
                let error = answered.unwrap_err();
                assert!(matches!(error, ModelError::Cut { .. }), "{dialect:?} {kept}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn a_broken_event_ends_the_stream_after_what_was_whole() {
    let begun: String = samples(Dialect::Anthropic).1.split_inclusive("\n\n").take(4).collect();
    let vendor = Vendor::open([Reply::stream(&format!("{begun}data: {{\"type\":\n\n"))]).await;
    let mut stream = vendor.client(Dialect::Anthropic).chat_stream(&user("hi")).await.unwrap();
    let mut pieces = Vec::new();
    while let Some(piece) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
        pieces.push(piece);
    }
    assert_eq!(pieces.len(), 4, "{pieces:?}");
    let error = pieces.pop().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "no answer: an event is malformed: EOF while parsing a value at line 1 column 8"
    );
}

fn impatient(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = once();
    change(&mut settings);
    settings
}

#[tokio::test]
async fn silence_ends() {
    let first_byte = impatient(|settings| settings.limits.first_byte = SOON);
    let idle = impatient(|settings| settings.limits.idle = SOON);
    let total = impatient(|settings| settings.limits.total = SOON);
    let begun: String = samples(Dialect::Anthropic).1.split_inclusive("\n\n").take(3).collect();
    let cases = [
        (first_byte, Reply::silence(), "no answer within 100 ms"),
        (total, Reply::silence(), "no end of the answer within 100 ms"),
        (idle, Reply::stalled_stream(&begun), "nothing more of the answer within 100 ms"),
        (total, Reply::stalled_stream(&begun), "no end of the answer within 100 ms"),
    ];
    for (settings, reply, expected) in cases {
        let vendor = Vendor::open([reply]).await;
        let (client, _) = vendor.client_with(Dialect::Anthropic, settings);
        let asked = async {
            match client.chat_stream(&user("hi")).await {
                Ok(stream) => assembly::whole(stream).await,
                Err(error) => Err(error),
            }
        };
        let error = tokio::time::timeout(PATIENCE, asked).await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.outcome().name().as_str(), "unreachable");
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_kept() {
    let small = impatient(|settings| settings.limits.answer_bytes = 100_000);
    let vendor = Vendor::open([
        Reply::endless("application/json", "[[[[[[[["),
        Reply::endless("text/event-stream", "event: ping\ndata: {\"type\":\"ping\"}\n\n"),
    ])
    .await;
    let (client, _) = vendor.client_with(Dialect::Anthropic, Settings { retry: settings().retry, ..small });
    let expected = "no answer: the answer is longer than 100000 bytes";
    assert_eq!(client.chat(&user("hi")).await.unwrap_err().to_string(), expected);
    let (client, _) = vendor.client_with(Dialect::Anthropic, small);
    let Err(error) = client.chat_stream(&user("hi")).await else { panic!("it began") };
    assert_eq!(error.to_string(), expected);
    assert_eq!(vendor.requests().len(), 2, "what is too long is not asked for again");
}

#[tokio::test]
async fn nobody_at_home_is_unreachable() {
    let vendor = Vendor::open([]).await;
    let (client, _) = vendor.client_with(Dialect::Gemini, once());
    let closed = {
        drop(vendor);
        client
    };
    // The port may be taken again by someone who hangs up: that is the same to us.
    let error = closed.chat(&user("hi")).await.unwrap_err();
    assert!(matches!(error, ModelError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn who_drops_a_call_or_a_stream_has_hung_up() {
    let begun: String = samples(Dialect::Anthropic).1.split_inclusive("\n\n").take(3).collect();
    let vendor = Vendor::open([Reply::stalled_stream(&begun), Reply::silence()]).await;
    let client = vendor.client(Dialect::Anthropic);
    drop(client.chat_stream(&user("hi")).await.unwrap());
    let request = user("hi");
    let mut call = client.chat(&request);
    while vendor.requests().len() < 2 {
        // Each look lets it get a little further.
        let _ = tokio::time::timeout(Duration::from_millis(1), &mut call).await;
    }
    drop(call);
    let both_gone = async {
        while vendor.left_alone() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, both_gone).await.unwrap();
}
