//! What vendors say instead of an answer, and what it means.

use rehearsal_core::{Blame, OutcomeName};
use rehearsal_llm::assembly;
use rehearsal_llm::model::{ChatModel, ModelError};
use rehearsal_llm::wire::Dialect;

use crate::vendor::{NOW, Reply, Vendor, once, samples, user};

async fn told(dialect: Dialect, reply: Reply) -> ModelError {
    let vendor = Vendor::open([reply]).await;
    vendor.client_with(dialect, once()).0.chat(&user("hi")).await.unwrap_err()
}

/// The errors as the vendors document them.
const SAID: &[(Dialect, u16, &str)] = &[
    (
        Dialect::Anthropic,
        401,
        r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"req_1"}"#,
    ),
    (
        Dialect::Anthropic,
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization’s rate limit"}}"#,
    ),
    (
        Dialect::Anthropic,
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
    ),
    (
        Dialect::Anthropic,
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    ),
    (
        Dialect::Anthropic,
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210521 tokens > 200000 maximum"}}"#,
    ),
    (
        Dialect::Anthropic,
        413,
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
    ),
    (
        Dialect::Anthropic,
        404,
        r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-none"}}"#,
    ),
    (
        Dialect::OpenAiChat,
        401,
        r#"{"error":{"message":"Incorrect API key provided: x.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
    ),
    (
        Dialect::OpenAiChat,
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-4o","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
    ),
    (
        Dialect::OpenAiChat,
        429,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
    ),
    (
        Dialect::OpenAiResponses,
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ),
    (
        Dialect::OpenAiResponses,
        503,
        r#"{"error":{"message":"The engine is currently overloaded, please try again later","type":"server_error","param":null,"code":null}}"#,
    ),
    (
        Dialect::OpenAiResponses,
        200,
        r#"{"id":"resp_1","object":"response","status":"failed","error":{"code":"server_error","message":"The model failed to generate a response."},"output":[]}"#,
    ),
    (
        Dialect::Gemini,
        400,
        r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#,
    ),
    (
        Dialect::Gemini,
        429,
        r#"{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}"#,
    ),
    (
        Dialect::Gemini,
        429,
        r#"{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}"#,
    ),
    (
        Dialect::Gemini,
        400,
        r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
    ),
    (
        Dialect::Gemini,
        503,
        r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#,
    ),
    (Dialect::OpenAiChat, 502, "<html><body>Bad Gateway</body></html>"),
    (Dialect::OpenAiChat, 302, ""),
    (Dialect::Anthropic, 200, "<html>Welcome to the wireless network</html>"),
    (Dialect::Anthropic, 200, "{}"),
    (Dialect::OpenAiChat, 200, r#"{"choices":[]}"#),
    (Dialect::Gemini, 200, r#"{"candidates":[{"content":{"parts":[{"text":"so f"}]}}]}"#),
];

#[tokio::test]
async fn every_error_of_every_vendor_has_an_outcome() {
    let mut all = String::new();
    for (dialect, status, body) in SAID {
        let error = told(*dialect, Reply::json(*status, &[], body)).await;
        let wait =
            error.until().map(|until| format!(" for {} s", until.since(NOW).as_secs())).unwrap_or_default();
        all.push_str(&format!("{:<16} {error}{wait}\n", error.outcome().name().as_str()));
    }
    insta::assert_snapshot!(all, @"
    auth_failed      the vendor refuses the key: invalid x-api-key
    rate_limited     rate-limited: This request would exceed your organization’s rate limit
    quota_exhausted  the quota is used up: Your credit balance is too low to access the Anthropic API.
    overloaded       the vendor answers 529: Overloaded
    failed           the conversation is too long for the model: prompt is too long: 210521 tokens > 200000 maximum
    failed           the conversation is too long for the model: Request exceeds the maximum size
    failed           the vendor refuses the request (404): model: claude-none
    auth_failed      the vendor refuses the key: Incorrect API key provided: x.
    rate_limited     rate-limited: Rate limit reached for gpt-4o
    quota_exhausted  the quota is used up: You exceeded your current quota, please check your plan and billing details.
    failed           the conversation is too long for the model: This model's maximum context length is 128000 tokens.
    overloaded       the vendor answers 503: The engine is currently overloaded, please try again later
    overloaded       the vendor answers 500: The model failed to generate a response.
    auth_failed      the vendor refuses the key: API key not valid. Please pass a valid API key.
    rate_limited     rate-limited: You exceeded your current quota. for 34 s
    quota_exhausted  the quota is used up: You exceeded your current quota.
    failed           the conversation is too long for the model: The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).
    overloaded       the vendor answers 503: The model is overloaded. Please try again later.
    overloaded       the vendor answers 502: <html><body>Bad Gateway</body></html>
    failed           the vendor refuses the request (302): no reason given
    protocol_error   no answer: the answer is malformed: expected value at line 1 column 1
    protocol_error   no answer: the answer is malformed: it does not say why it ended
    protocol_error   no answer: the answer is malformed: it does not say why it ended
    protocol_error   no answer: the answer is malformed: it does not say why it ended
    ");
}

#[tokio::test]
async fn when_to_come_back_is_told_in_seconds_milliseconds_or_as_a_date() {
    let until = async |header: (&str, &str)| {
        told(Dialect::Anthropic, Reply::json(429, &[header], "")).await.until().map(|until| until.0 - NOW.0)
    };
    assert_eq!(until(("retry-after", "90")).await, Some(90_000));
    assert_eq!(until(("retry-after-ms", "1500")).await, Some(1500));
    assert_eq!(until(("retry-after", "Sun, 15 Nov 2026 20:01:00 GMT")).await, Some(60_000));
    assert_eq!(until(("retry-after", "soon")).await, None);
}

#[tokio::test]
async fn the_world_is_not_the_tasks_fault() {
    let limited = told(Dialect::Anthropic, Reply::json(429, &[], "")).await;
    assert_eq!((limited.blame(), limited.outcome().name()), (Blame::System, OutcomeName::RateLimited));
    let refused =
        told(Dialect::Anthropic, Reply::json(400, &[], r#"{"error":{"message":"no such role"}}"#)).await;
    assert_eq!((refused.blame(), refused.outcome().name()), (Blame::Task, OutcomeName::Failed));
}

#[tokio::test]
async fn a_vendor_that_breaks_off_in_the_middle_is_no_answer() {
    let begun = samples(Dialect::Anthropic).1.split_inclusive("\n\n").take(4).collect::<String>();
    let broken = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let vendor = Vendor::open([Reply::stream(&format!("{begun}{broken}"))]).await;
    let stream = vendor.client(Dialect::Anthropic).chat_stream(&user("hi")).await.unwrap();
    let error = assembly::whole(stream).await.unwrap_err();
    assert_eq!(error.to_string(), "the vendor answers 529: Overloaded");
}

#[tokio::test]
async fn a_question_that_google_blocks_is_refused_and_not_cut() {
    let blocked =
        r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}"#;
    let vendor = Vendor::open([Reply::ok(blocked), Reply::stream(&format!("data: {blocked}\n\n"))]).await;
    let client = vendor.client(Dialect::Gemini);
    let refused = rehearsal_llm::chat::FinishReason::Refused;
    assert_eq!(client.chat(&user("hi")).await.unwrap().finish, refused);
    let stream = client.chat_stream(&user("hi")).await.unwrap();
    assert_eq!(assembly::whole(stream).await.unwrap().finish, refused);
}
