//! What a player gives back, and what it refuses.

use std::sync::LazyLock;

use insta::assert_snapshot;
use rehearsal_llm::cassette::{Cassette, Matching, Miss, Rung};
use serde_json::json;

use crate::scene::{
    FIRST, Question, Run, SECOND, Studio, assistant, call, play, player, result, said, session, stream,
    text_of, user,
};

fn recorded() -> Cassette {
    static CASSETTE: LazyLock<Cassette> = LazyLock::new(|| Studio::new().record(&FIRST, &session(&FIRST)));
    CASSETTE.clone()
}

#[test]
fn a_session_plays_at_another_place_on_another_day() {
    let cassette = recorded();
    let player = player(&cassette, Matching::Strict, &SECOND);
    let mut answers = Vec::new();
    for (question, _) in session(&SECOND) {
        answers.push(said(&play(&player, &question).unwrap()));
    }
    // The path was cut into pieces of three letters, and is the one of this place now.
    assert_eq!(answers, ["I write /home/someone/code/greet/hello.txt now", "Then I look", "Done"]);
    let report = player.report();
    assert!(report.is_faithful());
    assert_eq!((report.played, report.unplayed.len()), (3, 0));
}

#[test]
fn two_replays_are_the_same_byte_for_byte() {
    let cassette = recorded();
    let replay = || -> Vec<String> {
        let player = player(&cassette, Matching::Strict, &FIRST);
        session(&FIRST).iter().map(|(question, _)| text_of(&play(&player, question).unwrap())).collect()
    };
    let first = replay();
    assert_eq!(first, replay());
    assert_eq!(first[1], session(&FIRST)[1].1, "and what was recorded");
}

fn changed(change: impl Fn(&mut Question)) -> Question {
    let mut question = session(&FIRST).remove(0).0;
    change(&mut question);
    question
}

fn miss(question: &Question) -> Miss {
    let cassette = recorded();
    play(&player(&cassette, Matching::Strict, &FIRST), question).unwrap_err()
}

fn shown(miss: &Miss) -> String {
    let differences: Vec<String> = miss
        .differences
        .iter()
        .map(|difference| {
            let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".into());
            format!("{}\n  - {}\n  + {}", difference.place, text(&difference.expected), text(&difference.got))
        })
        .collect();
    format!("{miss}\n{}", differences.join("\n"))
}

#[test]
fn a_miss_shows_the_nearest_request_and_the_first_differences() {
    let question = changed(|question| {
        question.body["max_tokens"] = json!(8192);
        question.body["messages"][0]["content"] =
            json!("Today is 2026-11-16. You work in /tmp/first/work on 127.0.0.1:43799. Leave!");
        question.body["thinking"] = json!({"type": "adaptive"});
    });
    assert_snapshot!(shown(&miss(&question)), @r#"
    POST /v1/messages?beta=true was not recorded: it differs from request 1 in lane main
    /max_tokens
      - 4096
      + 8192
    /messages/0/content
      - …k in ⟦cwd⟧ on 127.0.0.1:⟦port⟧. Greet!
      + …k in ⟦cwd⟧ on 127.0.0.1:⟦port⟧. Leave!
    /thinking
      - nothing
      + {"type":"adaptive"}
    "#);
}

#[test]
fn strict_means_the_whole_request() {
    let differs = |change: fn(&mut Question)| shown(&miss(&changed(change)));
    assert_snapshot!(differs(|question| question.body["tools"][1]["description"] = json!("Runs.")), @"
    POST /v1/messages?beta=true was not recorded: it differs from request 1 in lane main
    /tools/1/description
      - Runs a command.
      + Runs.
    ");
    assert_snapshot!(differs(|question| question.target = "/v1/messages".into()), @"
    POST /v1/messages was not recorded: it differs from request 1 in lane main
    target
      - /v1/messages?beta=true
      + /v1/messages
    ");
    assert_snapshot!(differs(|question| question.headers[1].1 = "2024-01-01".into()), @"
    POST /v1/messages?beta=true was not recorded: it differs from request 1 in lane main
    header anthropic-version
      - 2023-06-01
      + 2024-01-01
    ");
    assert_snapshot!(differs(|question| question.body = json!({"messages": [], "tools": [1]})), @r#"
    POST /v1/messages?beta=true was not recorded: nothing is left in its lane, and request 1 is another
    /max_tokens
      - 4096
      + nothing
    /messages/0
      - {"content":"Today is ⟦date⟧. You work in ⟦cwd⟧ on 127.0.0.1:⟦port⟧. Greet!","role":"user"}
      + nothing
    /metadata
      - "⟦metadata⟧"
      + nothing
    /model
      - "claude-x"
      + nothing
    /system
      - "1 elements"
      + nothing
    /tools/0
      - {"description":"Writes a file.","name":"Write"}
      + 1
    /tools/1
      - {"description":"Runs a command.","name":"Bash"}
      + nothing
    "#);
}

#[test]
fn inside_a_lane_the_order_counts() {
    let cassette = recorded();
    let player = player(&cassette, Matching::Strict, &FIRST);
    let turns = session(&FIRST);
    play(&player, &turns[0].0).unwrap();
    let early = play(&player, &turns[2].0).unwrap_err();
    assert_eq!(early.nearest, Some(2));
    assert_snapshot!(early.why, @"it differs from request 2 in lane main");
}

#[test]
fn asked_past_its_end_it_says_so() {
    let cassette = recorded();
    let player = player(&cassette, Matching::Strict, &FIRST);
    for (question, _) in session(&FIRST) {
        play(&player, &question).unwrap();
    }
    assert_snapshot!(play(&player, &session(&FIRST)[2].0).unwrap_err(), @"POST /v1/messages?beta=true was not recorded: all 3 recorded requests were played already");
    assert!(!player.report().is_faithful());
}

#[test]
fn what_nobody_asks_for_fails_a_strict_replay() {
    let cassette = recorded();
    let strict = player(&cassette, Matching::Strict, &FIRST);
    play(&strict, &session(&FIRST)[0].0).unwrap();
    let report = strict.report();
    assert_eq!(
        report.unplayed.iter().map(|(number, lane)| format!("{number} {lane}")).collect::<Vec<_>>(),
        ["2 main", "3 main"]
    );
    assert!(!report.is_faithful());
    let relaxed = player(&cassette, Matching::Relaxed(Rung::Headers), &FIRST);
    assert!(relaxed.report().is_faithful());
}

/// Two calls at once, and their results in either order.
fn parallel(run: &Run, ids: [&str; 2], is_swapped: bool) -> Question {
    let calls =
        [call(ids[0], "Bash", &json!({"command": "a"})), call(ids[1], "Bash", &json!({"command": "b"}))];
    let mut results = [result(ids[0], "said a"), result(ids[1], "said b")];
    if is_swapped {
        results.reverse();
    }
    run.turn(&[assistant(&calls), user(&results)])
}

#[test]
fn results_of_parallel_tools_match_in_any_order() {
    let recorded = parallel(&FIRST, ["toolu_01AbCdEf9", "toolu_02AbCdEf9"], false);
    let cassette = Studio::new().record(&FIRST, &[(recorded, stream("ok"))]);
    let asked = parallel(&SECOND, ["toolu_99AbCdEf9", "toolu_98AbCdEf9"], true);
    play(&player(&cassette, Matching::Strict, &SECOND), &asked).unwrap();
}

#[test]
fn results_as_messages_of_their_own_match_in_any_order_as_well() {
    let chat = |is_swapped: bool| {
        let call =
            |id: &str| json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}});
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": format!("of {id}")});
        let mut results = vec![result("x1"), result("x2")];
        if is_swapped {
            results.reverse();
        }
        let mut messages = vec![
            json!({"role": "user", "content": "go"}),
            json!({"role": "assistant", "tool_calls": [call("x1"), call("x2")]}),
        ];
        messages.extend(results);
        let mut question =
            FIRST.question(json!({"model": "m", "tools": [{"type": "function"}], "messages": messages}));
        question.target = "/v1/chat/completions".into();
        question
    };
    let cassette = Studio::new().record(&FIRST, &[(chat(false), "{\"choices\":[]}".into())]);
    play(&player(&cassette, Matching::Strict, &FIRST), &chat(true)).unwrap();
}

#[test]
fn a_result_under_the_wrong_call_is_a_miss() {
    let recorded = parallel(&FIRST, ["toolu_01AbCdEf9", "toolu_02AbCdEf9"], false);
    let cassette = Studio::new().record(&FIRST, &[(recorded.clone(), stream("ok"))]);
    let mut exchanged = recorded;
    exchanged.body["messages"][2]["content"][0]["content"] = json!("said b");
    exchanged.body["messages"][2]["content"][1]["content"] = json!("said a");
    play(&player(&cassette, Matching::Strict, &FIRST), &exchanged).unwrap_err();
}

fn of_agent(run: &Run, id: &str, task: &str, messages: &[serde_json::Value]) -> Question {
    let mut question = run.turn(messages).with_header("x-claude-code-agent-id", id);
    question.body["messages"][0]["content"] = json!(task);
    question
}

fn title(run: &Run) -> Question {
    run.question(json!({"model": "small", "messages": [{"role": "user", "content": "A title for: greet"}]}))
}

#[test]
fn lanes_do_not_disturb_each_other() {
    let more = [assistant(&[json!({"type": "text", "text": "found"})])];
    let turns = session(&FIRST);
    let recorded = vec![
        turns[0].clone(),
        (title(&FIRST), "{\"title\":\"Greeting\"}".to_owned()),
        (of_agent(&FIRST, "a", "search", &[]), stream("searching")),
        (of_agent(&FIRST, "b", "read", &[]), stream("reading")),
        (of_agent(&FIRST, "a", "search", &more), stream("searched")),
        turns[1].clone(),
        turns[2].clone(),
    ];
    let cassette = Studio::new().record(&FIRST, &recorded);
    let lanes: Vec<String> = cassette.entries.iter().map(|entry| entry.lane.to_string()).collect();
    assert_eq!(lanes, ["main", "side", "agent-2", "agent-3", "agent-2", "main", "main"]);

    let player = player(&cassette, Matching::Strict, &SECOND);
    let again = session(&SECOND);
    let answers: Vec<String> = [
        of_agent(&SECOND, "q", "read", &[]),
        again[0].0.clone(),
        of_agent(&SECOND, "p", "search", &[]),
        again[1].0.clone(),
        of_agent(&SECOND, "p", "search", &more),
        again[2].0.clone(),
        title(&SECOND),
    ]
    .iter()
    .map(|question| said(&play(&player, question).unwrap()))
    .collect();
    assert_eq!(answers[0], "reading");
    assert_eq!((answers[2].as_str(), answers[4].as_str()), ("searching", "searched"));
    assert_eq!(answers[6], "{\"title\":\"Greeting\"}");
    assert!(player.report().is_faithful());
}

fn relaxed(rung: Rung, question: &Question) -> Result<String, Miss> {
    let cassette = recorded();
    let player = player(&cassette, Matching::Relaxed(rung), &FIRST);
    play(&player, question)?;
    Ok(player.report().relaxed.iter().map(|used| format!("{} {}", used.number, used.rung.name())).collect())
}

#[test]
fn the_ladder_allows_one_thing_after_the_other_and_tells() {
    let ladder = [
        (Rung::Headers, changed(|question| question.headers[1].1 = "2024-01-01".into())),
        (Rung::Settings, changed(|question| question.body["max_tokens"] = json!(1))),
        (Rung::Tools, changed(|question| question.body["tools"] = json!([{"name": "Else"}]))),
        (Rung::Instructions, changed(|question| question.body["system"] = json!([]))),
        (Rung::Texts, changed(|question| question.body["messages"][0]["content"] = json!("Else"))),
        (
            Rung::Everything,
            changed(|question| question.body["messages"] = json!([{"role": "assistant", "content": "?"}])),
        ),
    ];
    for (index, (rung, question)) in ladder.iter().enumerate() {
        assert_eq!(relaxed(*rung, question).unwrap(), format!("1 {}", rung.name()));
        assert_eq!(
            relaxed(Rung::Everything, question).unwrap(),
            format!("1 {}", rung.name()),
            "the lowest that does"
        );
        if let Some((below, _)) = index.checked_sub(1).and_then(|below| ladder.get(below)) {
            assert!(relaxed(*below, question).is_err(), "{below:?} is not enough for {rung:?}");
        }
    }
    assert_eq!(relaxed(Rung::Everything, &changed(|_| {})).unwrap(), "", "an exact match needs no ladder");
}

#[test]
fn the_wrong_vendor_is_a_miss_on_every_rung() {
    let question = changed(|question| question.target = "/v1/responses".into());
    assert!(relaxed(Rung::Everything, &question).is_err());
}
