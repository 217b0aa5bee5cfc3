//! Which turn a request gets, and what is said when there is none.

use rehearsal_llm::chat::{ChatRequest, Json, Message};
use rehearsal_llm::wire::Dialect;

use crate::theatre::{Theatre, user};

#[tokio::test]
async fn past_its_end_the_script_refuses_in_each_vendors_form() {
    for dialect in Dialect::ALL {
        let theatre = Theatre::play("turns:\n  - say: Only this.\n");
        theatre.says(dialect, &user("first"), true).await;
        let reply = theatre.chat(dialect, &user("second"), true).await;
        assert_eq!(reply.status, 400);
        assert!(reply.head.contains("x-should-retry: false\r\n"), "{}", reply.head);
        assert_eq!(
            reply.message(),
            "no turn for this request: all 1 turns of the script were played. Asked: model `some-model`, lane `main`, 1 messages, 1 tools, the user said \"second\"",
        );
        let report = theatre.report();
        assert_eq!((report.is_clean(), report.misses), (false, 1));
    }
}

#[tokio::test]
async fn a_turn_is_chosen_by_what_was_asked() {
    let theatre = Theatre::play(
        "
turns:
  - { when: { contains: tests }, say: Tested., times: 2 }
  - { when: { matches: '(?i)^FIX \\w+$' }, say: Fixed. }
  - { when: { model: small }, say: Short., times: any }
  - { say: Else. }
",
    );
    let said = async |text: &str| theatre.says(Dialect::OpenAiChat, &user(text), false).await.text();
    assert_eq!(said("fix it").await, "Fixed.");
    assert_eq!(said("run the tests").await, "Tested.");
    assert_eq!(said("run the tests again").await, "Tested.");
    assert_eq!(said("run the tests once more").await, "Else.");
    let small = ChatRequest { model: "a-small-model".into(), ..user("anything") };
    assert_eq!(theatre.says(Dialect::OpenAiChat, &small, false).await.text(), "Short.");
    assert!(theatre.report().is_clean());

    let reply = theatre.chat(Dialect::OpenAiChat, &user("fix it"), false).await;
    insta::assert_snapshot!(reply.message(), @r#"no turn for this request: turn 3 (line 5) does not fit: the model is `some-model`, not `small`. Asked: model `some-model`, lane `main`, 1 messages, 1 tools, the user said "fix it""#);
}

#[tokio::test]
async fn a_turn_that_nobody_asked_for_is_told() {
    let theatre = Theatre::play("turns:\n  - say: First.\n  - name: farewell\n    say: Second.\n");
    theatre.says(Dialect::Anthropic, &user("hello"), false).await;
    let report = theatre.report();
    assert!(!report.is_clean());
    let unplayed: Vec<_> = report.turns.iter().filter(|turn| turn.is_unplayed()).collect();
    assert_eq!(unplayed.len(), 1);
    assert_eq!((unplayed[0].name.as_deref(), unplayed[0].line), (Some("farewell"), Some(3)));
}

#[tokio::test]
async fn what_was_captured_can_be_said() {
    let theatre = Theatre::play(
        "
turns:
  - capture: { file: 'called (\\S+)' }
    say: I write {{file}} in {{cwd}}.
  - say: '{{file}} is written, as {{lane}}, by {{model}}.'
  - capture: { file: 'no such thing' }
    say: never
",
    );
    let mut chat = user("Write the file called a.txt please");
    chat.messages.insert(0, Message::system("Working directory: /repo\nToday is a day."));
    let said = async |chat: &ChatRequest| theatre.says(Dialect::Gemini, chat, true).await.text();
    assert_eq!(said(&chat).await, "I write a.txt in /repo.");
    assert_eq!(said(&chat).await, "a.txt is written, as main, by some-model.");
    let reply = theatre.chat(Dialect::Gemini, &chat, true).await;
    assert_eq!(reply.status, 400);
    assert!(
        reply
            .message()
            .starts_with("turn 3 (line 6) captures `file`, but nothing matches `no such thing`. Asked: "),
        "{}",
        reply.message()
    );
}

#[tokio::test]
async fn a_request_that_is_not_as_expected_is_refused() {
    let theatre = Theatre::play("turns:\n  - { expect: { tools: [Write, Bash] }, say: Done. }\n");
    let reply = theatre.chat(Dialect::Anthropic, &user("hello"), true).await;
    assert_eq!(reply.status, 400);
    insta::assert_snapshot!(reply.message(), @r#"turn 1 (line 2) expects otherwise: tool `Bash` is not offered. Asked: model `some-model`, lane `main`, 1 messages, 1 tools, the user said "hello""#);
    assert_eq!(theatre.report().turns[0].played, 0);
}

#[tokio::test]
async fn a_tool_that_nobody_offers_is_told() {
    let theatre = Theatre::play("turns:\n  - { do: [{ run: ls }] }\n");
    let reply = theatre.chat(Dialect::Anthropic, &user("hello"), true).await;
    assert_eq!(
        reply.message(),
        "turn 1 (line 2): no tool that is offered can `run` (offered: Write); name one with `tool`"
    );
    assert_eq!(theatre.report().misses, 1);
}

const CLAUDE: (&str, &str) = ("user-agent", "claude-cli/2.1.325 (external, cli)");

#[tokio::test]
async fn requests_on_the_side_take_no_turn() {
    let theatre = Theatre::play("turns:\n  - say: The task.\n");
    let mut title = ChatRequest::new("small", vec![Message::user("Make a title")]);
    let schema = r#"{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}"#;
    title.answer_schema = Some(Json::parse(schema.into()).unwrap());
    let body = Dialect::Anthropic.write_request(&title, false);
    let reply = theatre.ask("POST", "/v1/messages", &[CLAUDE], &body).await;
    assert_eq!(Dialect::Anthropic.read_response(&reply.body).unwrap().text(), r#"{"title":"stage"}"#);

    // The same from an unknown client is what it is there for.
    let reply = theatre.post("/v1/messages", &body).await;
    assert_eq!(Dialect::Anthropic.read_response(&reply.body).unwrap().text(), "The task.");
    assert!(theatre.report().is_clean());
    let lanes: Vec<String> = theatre.report().exchanges.into_iter().map(|exchange| exchange.lane).collect();
    assert_eq!(lanes, ["side", "main"]);
}

#[tokio::test]
async fn sub_agents_have_lanes_of_their_own() {
    let theatre = Theatre::play(
        "
turns:
  - { say: Main. }
  - { when: { lane: agent-2 }, say: Second. }
  - { when: { lane: agent }, say: Any., times: 2 }
",
    );
    let body = Dialect::Anthropic.write_request(&user("search"), false);
    let mut said = Vec::new();
    for agent in ["x", "y", "x", ""] {
        let headers = [CLAUDE, ("x-claude-code-agent-id", agent)];
        let headers = if agent.is_empty() { &headers[..1] } else { &headers[..] };
        let reply = theatre.ask("POST", "/v1/messages", headers, &body).await;
        said.push(Dialect::Anthropic.read_response(&reply.body).unwrap().text());
    }
    assert_eq!(said, ["Any.", "Second.", "Any.", "Main."]);
}

#[tokio::test]
async fn what_a_vendor_would_refuse_is_told_or_refused() {
    let body = br#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}]}"#;
    let theatre = Theatre::play("turns:\n  - say: Well.\n");
    assert_eq!(theatre.post("/v1/messages", body).await.status, 200);
    let report = theatre.report();
    assert_eq!(report.refusable, 1);
    assert_eq!(report.exchanges[0].findings, ["message 1: result `t1` has no call before it"]);

    let strict = Theatre::play("lint: refuse\nturns:\n  - say: Well.\n");
    let reply = strict.post("/v1/messages", body).await;
    assert_eq!(
        (reply.status, reply.message().as_str()),
        (400, "message 1: result `t1` has no call before it")
    );
}
