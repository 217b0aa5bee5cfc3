//! A vendor that fails again and again is left alone.

use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::{Clock as _, VirtualClock};
use rehearsal_llm::assembly;
use rehearsal_llm::clients::{Client, Settings};
use rehearsal_llm::model::{ChatModel, ModelError};
use rehearsal_llm::wire::Dialect;

use crate::vendor::{NOW, PATIENCE, Reply, Vendor, once, samples, user};

const REST: Duration = Duration::from_secs(30);

fn overloaded() -> Reply {
    Reply::json(529, &[], r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#)
}

fn answer() -> Reply {
    Reply::ok(samples(Dialect::Anthropic).0)
}

fn fragile() -> Settings {
    let mut settings = once();
    settings.breaker.failures = 3;
    settings.breaker.rest = REST;
    settings
}

async fn ill(then: impl IntoIterator<Item = Reply>) -> (Vendor, Client, Arc<VirtualClock>) {
    let replies = [overloaded(), overloaded(), overloaded()].into_iter().chain(then);
    let vendor = Vendor::open(replies).await;
    let (client, clock) = vendor.client_with(Dialect::Anthropic, fragile());
    for _ in 0..3 {
        client.chat(&user("hi")).await.unwrap_err();
    }
    (vendor, client, clock)
}

#[tokio::test]
async fn it_is_not_asked_until_it_has_rested() {
    let (vendor, client, clock) = ill([answer(), answer()]).await;
    let error = client.chat(&user("hi")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the vendor failed 3 times in a row and is left alone for now: the vendor answers 529: Overloaded"
    );
    assert_eq!((error.until(), vendor.requests().len()), (Some(NOW.plus(REST)), 3));
    assert_eq!(error.outcome().name().as_str(), "overloaded");

    clock.advance(REST);
    assert!(client.chat(&user("hi")).await.is_ok());
    assert!(client.chat(&user("hi")).await.is_ok());
    assert_eq!(vendor.requests().len(), 5);
}

#[tokio::test]
async fn who_fails_the_probe_rests_anew() {
    let (vendor, client, clock) = ill([overloaded(), answer()]).await;
    clock.advance(REST);
    assert_eq!(client.chat(&user("hi")).await.unwrap_err().to_string(), "the vendor answers 529: Overloaded");
    let error = client.chat(&user("hi")).await.unwrap_err();
    assert_eq!(error.until(), Some(NOW.plus(REST).plus(REST)));
    assert_eq!(vendor.requests().len(), 4);
}

#[tokio::test]
async fn one_at_a_time_tries_it_out_and_who_hangs_up_makes_room_for_the_next() {
    let (vendor, client, clock) = ill([Reply::silence(), answer()]).await;
    clock.advance(REST);
    let request = user("hi");
    let mut probe = client.chat(&request);
    while vendor.requests().len() < 4 {
        // The probe waits for its answer; each look lets it get a little further.
        let _ = tokio::time::timeout(Duration::from_millis(1), &mut probe).await;
    }
    let error = client.chat(&request).await.unwrap_err();
    assert!(matches!(error, ModelError::Resting { .. }), "{error}");
    drop(probe);
    assert!(tokio::time::timeout(PATIENCE, client.chat(&request)).await.unwrap().is_ok());
}

#[tokio::test]
async fn who_asks_too_much_is_refused_by_a_vendor_that_is_well() {
    let limited = || Reply::json(429, &[], "");
    let vendor = Vendor::open([limited(), limited(), limited(), answer()]).await;
    let (client, _) = vendor.client_with(Dialect::Anthropic, fragile());
    for _ in 0..3 {
        client.chat(&user("hi")).await.unwrap_err();
    }
    assert!(client.chat(&user("hi")).await.is_ok());
}

#[tokio::test]
async fn a_success_in_between_is_a_new_beginning() {
    let vendor =
        Vendor::open([overloaded(), overloaded(), answer(), overloaded(), overloaded(), answer()]).await;
    let (client, _) = vendor.client_with(Dialect::Anthropic, fragile());
    let mut well = 0;
    for _ in 0..6 {
        well += u32::from(client.chat(&user("hi")).await.is_ok());
    }
    assert_eq!((well, vendor.requests().len()), (2, 6));
}

#[tokio::test]
async fn streams_that_are_cut_count_as_failures() {
    let begun: String = samples(Dialect::Anthropic).1.split_inclusive("\n\n").take(3).collect();
    let vendor = Vendor::open(vec![Reply::cut_stream(&begun); 3]).await;
    let (client, _) = vendor.client_with(Dialect::Anthropic, fragile());
    for _ in 0..3 {
        let stream = client.chat_stream(&user("hi")).await.unwrap();
        assembly::whole(stream).await.unwrap_err();
    }
    let Err(error) = client.chat_stream(&user("hi")).await else { panic!("it was asked") };
    assert!(matches!(error, ModelError::Resting { failures: 3, .. }), "{error}");
}

#[tokio::test]
async fn a_call_that_opens_it_does_not_try_on() {
    let mut settings = fragile();
    settings.retry.tries = 10;
    let vendor = Vendor::open(vec![overloaded(); 10]).await;
    let (client, clock) = vendor.client_with(Dialect::Anthropic, settings);
    let error = client.chat(&user("hi")).await.unwrap_err();
    assert!(matches!(error, ModelError::Resting { failures: 3, .. }), "{error}");
    assert_eq!(vendor.requests().len(), 3);
    assert!(clock.now().since(NOW) < REST);
}
