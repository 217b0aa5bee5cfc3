use super::*;

fn error_of(text: &str) -> String {
    let error = Script::parse(text).unwrap_err();
    let place = error.place.map(|place| place.to_string()).unwrap_or_default();
    let hint = error.hint.map(|hint| format!(" [{hint}]")).unwrap_or_default();
    format!("{place}: {}{hint}", error.message)
}

#[test]
fn a_mistake_is_shown_with_its_place_and_advice() {
    insta::assert_snapshot!(error_of("turns:\n  - sya: hi\n"), @"2:5: unknown field `sya`, expected one of name, when, expect, capture, think, say, do, finish, usage, fault, times [did you mean `say`?]");
    insta::assert_snapshot!(error_of("turns:\n  - say: hi\n    do:\n      - wirte_file: { path: a, content: b }\n"), @"4:9: unknown variant `wirte_file`, expected one of write_file, edit_file, read_file, run, tool [did you mean `write_file`?]");
    insta::assert_snapshot!(error_of("turns:\n  - say: 'hello {{nmae}}'\nvars: { name: x }\n"), @"2:10: unknown variable `nmae` [did you mean `name`?]");
    insta::assert_snapshot!(error_of("turns:\n  - when: { matches: '(' }\n    say: hi\n"), @"2:22: `(` is no regular expression: unclosed group");
    insta::assert_snapshot!(error_of("turns:\n  - when: { lane: sub }\n    say: hi\n"), @"2:19: unknown lane `sub` [lanes: main, side, agent (any sub-agent), agent-1, agent-2, …]");
    insta::assert_snapshot!(error_of("turns:\n  - name: nothing\n"), @"2:5: a turn needs one of `say`, `think`, `do` and `fault` [write `- say: Done.`, or `- fault: { status: { code: 529 } }`]");
    insta::assert_snapshot!(error_of("turns:\n  - say: hi\n    times: often\n"), @"3:12: `often`: expected a number, or `any`");
    insta::assert_snapshot!(error_of("turns:\n  - fault: { status: { code: 200 } }\n"), @"2:30: 200 is no error: a status from 400 to 599 is");
    insta::assert_snapshot!(error_of("turns:\n  - fault: { stall: { after: 1, for: soon } }\n"), @"2:38: `soon` is not a duration: write `90s`, `30m`, `1h30m` or `2d`");
    insta::assert_snapshot!(error_of("turns:\n  - do: [{ tool: { name: x, text: a, arguments: {} } }]\n"), @"2:10: tool `x` has both `arguments` and `text` [`text` is for a tool that takes free text, `arguments` for all others]");
    insta::assert_snapshot!(error_of("{}"), @"1:1: missing field `turns` [add `turns: …` here]");
}

#[test]
fn what_should_be_a_list_is_shown_as_one() {
    insta::assert_snapshot!(error_of("turns:\n  - do: { run: make }\n"), @"2:9: expected a list [write `do: [{ run: make test }]`]");
    insta::assert_snapshot!(error_of("turns:\n  - say: hi\n    do:\n      run: make\n"), @"4:7: expected a list [write `do: [{ run: make test }]`]");
    insta::assert_snapshot!(error_of("turns: { say: hi }\n"), @"1:8: expected a list [write `turns: [{ say: Done. }]`]");
    insta::assert_snapshot!(error_of("turns:\n  say: what to do\n"), @"2:3: expected a list [write `turns: [{ say: Done. }]`]");
    insta::assert_snapshot!(error_of("turns:\n  - { when: { tools: Bash }, say: hi }\n"), @"2:22: expected a list [write `tools: [Bash]`]");
    insta::assert_snapshot!(error_of("models: gpt\nturns: []\n"), @"1:9: expected a list [write `models: [gpt-6]`]");
}

const EVERYTHING: &str = include_str!("everything.yaml");

#[test]
fn every_key_can_be_written() {
    assert_eq!(Script::parse(EVERYTHING).unwrap().turns(), 11);
}

/// What an editor would report for a script.
fn wrong_by_schema(text: &str) -> Vec<String> {
    let script: serde_json::Value = rehearsal_core::yaml::from_str(text).unwrap();
    let schema = serde_json::from_str(include_str!("../../../../schemas/stage-script.json")).unwrap();
    let schema = rehearsal_llm::json_schema::JsonSchema::compile(&schema).unwrap();
    schema.violations(&script).into_iter().map(|violation| violation.message).collect()
}

#[test]
fn the_schema_takes_what_the_parser_takes() {
    assert_eq!(wrong_by_schema(EVERYTHING), Vec::<String>::new());
    for wrong in [
        "{}",
        "turns: [{ sya: hi }]",
        "turns: [{ say: hi, times: often }]",
        "turns: [{ fault: stall }]",
        "turns: [{ fault: { status: { code: 429, retry_after: 7 } } }]",
    ] {
        assert!(Script::parse(wrong).is_err(), "the parser takes {wrong}");
        assert_ne!(wrong_by_schema(wrong), Vec::<String>::new(), "the schema takes {wrong}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "(turns:|\n|  - |say|fault|do|: |\\{|\\}|\\[|hang|1h|é|.){0,20}") {
        let _ = Script::parse(&text);
    }
}
