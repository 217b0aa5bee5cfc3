//! A key is sent, and never told.

use proptest::prelude::*;
use rehearsal_llm::ApiKey;
use rehearsal_llm::assembly;
use rehearsal_llm::clients::Client;
use rehearsal_llm::model::{ChatModel, ModelError};
use rehearsal_llm::wire::Dialect;

use crate::vendor::{NOW, Reply, Vendor, endpoint_at, once, user};

/// Everything that can be seen of an error.
fn shown(error: &ModelError) -> String {
    format!("{error} {error:?} {:?} {}", error.outcome(), error.outcome().detail().unwrap_or_default())
}

async fn errors_of(reply: Reply, dialect: Dialect, key: &str) -> String {
    let vendor = Vendor::open([reply.clone(), reply]).await;
    let clock = std::sync::Arc::new(rehearsal_core::VirtualClock::starting_at(NOW));
    let client = Client::new(endpoint_at(&vendor.address, dialect, key), once(), clock).unwrap();
    let mut seen = format!("{client:?} {:?}", vendor.endpoint(dialect));
    seen.push_str(&client.chat(&user("hi")).await.map_or_else(|error| shown(&error), |_| String::new()));
    let streamed = match client.chat_stream(&user("hi")).await {
        Ok(stream) => assembly::whole(stream).await,
        Err(error) => Err(error),
    };
    seen.push_str(&streamed.map_or_else(|error| shown(&error), |_| String::new()));
    seen
}

/// A vendor that repeats the key wherever it can.
fn telltale(form: usize, status: u16, key: &str) -> Reply {
    let json = |text: String| serde_json::to_string(&text).unwrap();
    let body = match form {
        0 => format!(r#"{{"error":{{"type":"t","message":{}}}}}"#, json(format!("Incorrect key: {key}."))),
        1 => format!(r#"{{"error":{}}}"#, json(format!("no {key}{key}"))),
        2 => format!("<html>{key}</html>"),
        3 => json(key.to_owned()),
        4 => format!("{}{key}", "x".repeat(990)),
        5 => format!(
            "data: {{\"type\":\"error\",\"error\":{{\"type\":\"e\",\"message\":{}}}}}\n\n",
            json(key.to_owned())
        ),
        _ => format!("data: {{\"type\":{}}}\n\n", json(key.to_owned())),
    };
    if form >= 5 { Reply::stream(&body) } else { Reply::json(status, &[("retry-after", key)], &body) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn no_error_tells_the_key(
        key in "[!-~]{8,40}",
        form in 0usize..7,
        status in prop::sample::select(vec![200u16, 302, 400, 401, 403, 404, 413, 429, 500, 529]),
        dialect in prop::sample::select(Dialect::ALL.to_vec()),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let seen = runtime.block_on(errors_of(telltale(form, status, &key), dialect, &key));
        prop_assert!(!seen.contains(&key), "{}", seen);
    }
}

#[test]
fn what_is_no_key_is_not_shown_either() {
    assert_eq!(ApiKey::new(" \n").unwrap_err().to_string(), "the key is empty");
    let error = ApiKey::new("sk-ant-half\nsk-ant-other").unwrap_err();
    assert_eq!(error.to_string(), "the key holds a line break or another character that no key has");
    assert_eq!(format!("{:?}", ApiKey::new("sk-ant-0123456789").unwrap()), "ApiKey(⟦key⟧)");
}

#[tokio::test]
async fn a_redirect_does_not_carry_the_key_away() {
    let elsewhere = Vendor::open([Reply::ok("{}")]).await;
    let vendor = Vendor::open([Reply::json(307, &[("location", &elsewhere.address)], "")]).await;
    let error = vendor.client(Dialect::Anthropic).chat(&user("hi")).await.unwrap_err();
    assert_eq!(error.to_string(), "the vendor refuses the request (307): no reason given");
    assert_eq!(elsewhere.requests(), Vec::<String>::new());
}
