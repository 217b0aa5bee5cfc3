//! What was recorded comes back.

use std::path::PathBuf;
use std::sync::Arc;

use rehearsal_core::{Clock as _, VirtualClock};
use rehearsal_llm::assembly;
use rehearsal_llm::cassette::{Cassette, Matching, Normaliser, Place, Player, Recorder, Rule, Rung, Secrets};
use rehearsal_llm::chat::{ChatRequest, ChatResponse, Json, Message, Part, Thinking, Usage};
use rehearsal_llm::model::{ChatModel, ModelError};
use rehearsal_llm::recording::RecordingModel;
use rehearsal_llm::replaying::ReplayingModel;
use rehearsal_llm::scripted::{ScriptedModel, asks_for, says, tool_call};
use rehearsal_llm::wire::Dialect;

use crate::vendor::{NOW, user};

struct Studio {
    directory: tempfile::TempDir,
    clock: Arc<VirtualClock>,
    dialect: Dialect,
}

impl Studio {
    fn new(dialect: Dialect) -> Self {
        let clock = Arc::new(VirtualClock::starting_at(NOW));
        Self { directory: tempfile::tempdir().unwrap(), clock, dialect }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("a.jsonl")
    }

    fn place() -> Place {
        Place {
            work_dir: vec!["/somewhere/work".into()],
            home: vec!["/somewhere/home".into()],
            temp: Vec::new(),
        }
    }

    fn record<M: ChatModel>(&self, model: M) -> RecordingModel<M> {
        let secrets = Secrets::of([]);
        let normaliser = Normaliser::new(&Rule::for_client(None), &Self::place(), &secrets).unwrap();
        let recorder = Recorder::create(&self.path(), "test", None, normaliser, &secrets).unwrap();
        RecordingModel::new(model, self.dialect, recorder, self.clock.clone())
    }

    fn replay(&self, matching: Matching) -> ReplayingModel {
        let cassette = Cassette::open(&self.path()).unwrap();
        let player = Player::new(cassette, matching, &[], &Self::place(), &Secrets::of([])).unwrap();
        ReplayingModel::new(player, self.dialect, self.clock.clone())
    }
}

fn script(dialect: Dialect) -> Vec<Result<ChatResponse, ModelError>> {
    let thinking = Thinking {
        text: "Which file?".into(),
        signature: (dialect != Dialect::OpenAiChat).then(|| "c2lnbmVk".to_owned()),
        id: (dialect == Dialect::OpenAiResponses).then(|| "rs_1".to_owned()),
        redacted: false,
    };
    let arguments =
        Json::parse(r#"{"file_path":"/somewhere/work/a.txt","content":"Hello."}"#.into()).unwrap();
    let mut calls = asks_for(vec![tool_call("c1", "Write", arguments)]);
    calls.parts.insert(0, Part::Thinking(thinking));
    calls.usage = Usage { input: 10, output: 20, cache_read: 5, cache_write: 0, thinking: 0 };
    let until = Some(NOW.plus(std::time::Duration::from_secs(9)));
    vec![
        Ok(calls),
        Ok(says("Done.")),
        Err(ModelError::RateLimited { until, message: "slow down".into() }),
        Err(ModelError::Cut { message: "it broke off when it was recorded".into() }),
        Ok(says("At last.")),
    ]
}

/// Asks five things, every other one piece by piece.
async fn session(model: &impl ChatModel, words: &[&str]) -> Vec<Result<ChatResponse, ModelError>> {
    let mut request = user(words[0]);
    let mut heard = Vec::new();
    for (number, word) in words.iter().enumerate() {
        request.messages.push(Message::user(*word));
        let answered = if number % 2 == 0 {
            match model.chat_stream(&request).await {
                Ok(stream) => assembly::whole(stream).await,
                Err(error) => Err(error),
            }
        } else {
            model.chat(&request).await
        };
        heard.push(answered);
    }
    heard
}

const WORDS: [&str; 5] = ["write", "and", "then", "what", "now"];

#[tokio::test]
async fn a_session_says_the_same_again_in_every_format() {
    for dialect in Dialect::ALL {
        let studio = Studio::new(dialect);
        let recording = studio.record(ScriptedModel::new(script(dialect)));
        let given = session(&recording, &WORDS).await;
        assert_eq!(given, script(dialect), "{dialect:?}");
        assert_eq!(recording.finish().unwrap().requests, 5);

        let replaying = studio.replay(Matching::Strict);
        assert_eq!(session(&replaying, &WORDS).await, given, "{dialect:?}");
        assert!(replaying.report().is_faithful(), "{:?}", replaying.report());
    }
}

#[tokio::test]
async fn a_changed_request_fails_loudly_and_says_where_it_differs() {
    let studio = Studio::new(Dialect::Anthropic);
    let recording = studio.record(ScriptedModel::from_strings(["Hello."]));
    recording.chat(&user("greet me")).await.unwrap();
    recording.finish().unwrap();

    let replaying = studio.replay(Matching::Strict);
    let error = replaying.chat(&user("greet us")).await.unwrap_err();
    insta::assert_snapshot!(error, @r#"the stand-in has no answer: POST /v1/messages was not recorded: it differs from request 1 in lane main; /messages/0/content/0/text: recorded "greet me", asked "greet us""#);
    assert!(!error.is_retryable());
    let report = replaying.report();
    assert_eq!((report.misses.len(), report.unplayed.len(), report.is_faithful()), (1, 1, false));

    // Nothing was used up by it.
    assert_eq!(replaying.chat(&user("greet me")).await.unwrap().text(), "Hello.");
    let error = replaying.chat(&user("greet me")).await.unwrap_err().to_string();
    assert!(error.contains("all 1 recorded requests were played already"), "{error}");
}

#[tokio::test]
async fn a_relaxed_player_answers_and_reports_what_differed() {
    let studio = Studio::new(Dialect::OpenAiChat);
    let recording = studio.record(ScriptedModel::from_strings(["Hello."]));
    recording.chat(&user("greet me")).await.unwrap();
    recording.finish().unwrap();

    let replaying = studio.replay(Matching::Relaxed(Rung::Texts));
    assert_eq!(replaying.chat(&user("greet us")).await.unwrap().text(), "Hello.");
    let report = replaying.report();
    assert!(report.is_faithful());
    let told: Vec<String> = report
        .relaxed
        .iter()
        .flat_map(|used| used.differences.iter().map(move |found| format!("{}: {found:?}", used.rung.name())))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"texts: Difference { place: "/messages/0/content", expected: Some("greet me"), got: Some("greet us") }"#);

    // Who speaks is more than a text.
    let other = ChatRequest::new("some-model", vec![Message::assistant("hi"), Message::user("greet us")]);
    assert!(studio.replay(Matching::Relaxed(Rung::Texts)).chat(&other).await.is_err());
}

#[tokio::test]
async fn what_cannot_come_back_is_not_recorded() {
    let studio = Studio::new(Dialect::OpenAiChat);
    let mut signed = says("");
    let thinking = Thinking { text: "hm".into(), signature: Some("c2ln".into()), ..Thinking::default() };
    signed.parts = vec![Part::Thinking(thinking)];
    let recording = studio.record(ScriptedModel::new([Ok(signed)]));
    recording.chat(&user("hi")).await.unwrap();
    let error = recording.finish().unwrap_err().to_string();
    assert_eq!(error, "request 1 cannot be played back: the format cannot say all that the answer says");
    assert!(!studio.path().exists());

    let down = ModelError::Unreachable { message: "no route".into() };
    let recording = studio.record(ScriptedModel::with_error(down));
    recording.chat(&user("hi")).await.unwrap_err();
    let error = recording.finish().unwrap_err().to_string();
    assert_eq!(error, "request 1 cannot be played back: the vendor cannot be reached: no route");
}

#[tokio::test]
async fn who_hangs_up_before_the_end_leaves_no_cassette() {
    let studio = Studio::new(Dialect::Anthropic);
    let recording = studio.record(ScriptedModel::from_strings(["Hello."]));
    drop(recording.chat_stream(&user("hi")).await.unwrap());
    assert_eq!(recording.finish().unwrap_err().to_string(), "1 answers had not ended");
    assert!(!studio.path().exists());
}

#[tokio::test]
async fn a_wait_begins_when_it_is_played() {
    let studio = Studio::new(Dialect::Anthropic);
    let until = Some(NOW.plus(std::time::Duration::from_secs(9)));
    let limited = ModelError::RateLimited { until, message: "slow down".into() };
    let recording = studio.record(ScriptedModel::with_error(limited));
    recording.chat(&user("hi")).await.unwrap_err();
    recording.finish().unwrap();

    studio.clock.advance(std::time::Duration::from_hours(1));
    let error = studio.replay(Matching::Strict).chat(&user("hi")).await.unwrap_err();
    assert_eq!(error.until(), Some(studio.clock.now().plus(std::time::Duration::from_secs(9))));
}
