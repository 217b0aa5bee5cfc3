//! What is written when a session is recorded.

use std::time::Duration;

use insta::assert_snapshot;
use rehearsal_llm::cassette::{Cassette, Ended, Recorder, lint};
use serde_json::{Value, json};

use crate::scene::{FIRST, Studio, assistant, exchange, session, stream, user};

#[test]
fn a_cassette_can_be_read_in_a_diff() {
    let studio = Studio::new();
    let (question, _) = session(&FIRST).remove(0);
    let answer = "event: message_start\ndata: {\"type\": \"message_start\"}\n\n: ping\n\nevent: message_stop\ndata: {\"type\": \"message_stop\"}\n\n";
    studio.record(&FIRST, &[(question, answer.into())]);
    assert_snapshot!(studio.text());
}

#[test]
fn what_is_said_once_is_stored_once() {
    let studio = Studio::new();
    let mut messages: Vec<Value> = Vec::new();
    let mut turns = Vec::new();
    let mut unique = 0;
    for turn in 0..60 {
        turns.push((FIRST.turn(&messages), stream("ok")));
        let text = format!("turn {turn}: {}", "x".repeat(2000));
        unique += text.len();
        messages.push(assistant(&[json!({"type": "text", "text": text})]));
        messages.push(user(&[json!({"type": "text", "text": format!("go on with {turn}")})]));
    }
    let cassette = studio.record(&FIRST, &turns);
    assert_eq!(cassette.entries.len(), 60);
    let length = studio.text().len();
    assert!(length < unique * 2, "{length} bytes for {unique}");
    let longest = studio.text().lines().filter(|line| line.starts_with("{\"request\"")).map(str::len).max();
    assert!(longest.unwrap() < 700, "a request refers to what came before: {longest:?}");
}

#[test]
fn nothing_but_a_finished_recording_has_its_name() {
    let studio = Studio::new();
    let recorder = studio.recorder(&FIRST);
    for (question, answer) in session(&FIRST) {
        exchange(&recorder, &question, &answer);
    }
    assert!(!studio.path().exists());
    recorder.finish().unwrap();
    assert_eq!(studio.files(), ["session.jsonl"]);
    drop(studio.recorder(&FIRST));
    assert_eq!(studio.files(), ["session.jsonl"], "a recording that is given up leaves nothing");
}

#[test]
fn an_answer_that_has_not_ended_keeps_the_cassette_from_being_finished() {
    let studio = Studio::new();
    let recorder = studio.recorder(&FIRST);
    let _open = session(&FIRST)[0].0.asked(|asked| recorder.ask(asked));
    assert_snapshot!(recorder.finish().unwrap_err(), @"1 answers had not ended");
    assert!(!studio.path().exists());
}

fn kept(answer: &str, ended: Ended) -> Ended {
    let studio = Studio::new();
    let recorder = studio.recorder(&FIRST);
    take(&recorder, answer, ended);
    recorder.finish().unwrap();
    Cassette::open(&studio.path()).unwrap().entries[0].response.ended
}

fn take(recorder: &Recorder, answer: &str, ended: Ended) {
    let mut take = session(&FIRST)[0].0.asked(|asked| recorder.ask(asked));
    take.answered(200, &[("content-type".into(), "text/event-stream".into())], Duration::ZERO);
    take.bytes(answer.as_bytes(), Duration::ZERO);
    recorder.keep(take, ended).unwrap();
}

#[test]
fn a_stream_that_broke_off_is_never_kept_as_a_whole_one() {
    let whole = stream("hello");
    assert_eq!(kept(&whole, Ended::Whole), Ended::Whole);
    // The connection ended well, and the stream did not.
    let without_its_end = whole.split("event: message_stop").next().unwrap();
    assert_eq!(kept(without_its_end, Ended::Whole), Ended::Cut);
    assert_eq!(kept(&whole[..whole.len() - 1], Ended::Whole), Ended::Cut);
}

#[test]
fn a_finished_stream_is_whole_although_the_client_hung_up_after_it() {
    assert_eq!(kept(&stream("hello"), Ended::Cut), Ended::Whole);
}

#[test]
fn answers_that_a_cassette_cannot_hold_are_refused() {
    let studio = Studio::new();
    let recorder = studio.recorder(&FIRST);
    let mut zipped = session(&FIRST)[0].0.asked(|asked| recorder.ask(asked));
    zipped.answered(200, &[("Content-Encoding".into(), "gzip".into())], Duration::ZERO);
    assert_snapshot!(recorder.keep(zipped, Ended::Whole).unwrap_err(), @"the answer to request 1 came compressed although nobody asked for that");
    let mut bytes = session(&FIRST)[0].0.asked(|asked| recorder.ask(asked));
    bytes.answered(200, &[], Duration::ZERO);
    bytes.bytes(&[0xff, 0xfe], Duration::ZERO);
    assert_snapshot!(recorder.keep(bytes, Ended::Whole).unwrap_err(), @"the answer to request 2 is not UTF-8");
}

#[test]
fn a_good_cassette_has_nothing_to_complain_about() {
    let studio = Studio::new();
    studio.record(&FIRST, &session(&FIRST));
    assert_eq!(lint(&studio.path(), &studio.secrets).unwrap(), []);
}

#[test]
fn recording_the_same_work_elsewhere_writes_the_same_requests() {
    let (first, second) = (Studio::new(), Studio::new());
    first.record(&FIRST, &session(&FIRST));
    second.record(&crate::scene::SECOND, &session(&crate::scene::SECOND));
    let requests = |text: String| {
        let is_asked = |line: &&str| line.starts_with("{\"blob\"") || line.starts_with("{\"request\"");
        text.lines().filter(is_asked).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(requests(first.text()), requests(second.text()));
}
