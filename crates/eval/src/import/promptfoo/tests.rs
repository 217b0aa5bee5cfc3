use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::case::parse;

fn import(text: &str) -> Result<Imported, SourceError> {
    import_judged(text, None)
}

fn import_judged(text: &str, judge: Option<&str>) -> Result<Imported, SourceError> {
    let read = |path: &str| {
        match path {
        "prompt.txt" => Ok("Say {{word}}\n---\nWhisper {{word}}\n".to_owned()),
        "more.yaml" => {
            Ok("- vars: { word: one }\n  assert:\n    - { type: python, value: x }\n    - { type: contains, value: one }\n".to_owned())
        }
        "table.csv" => Ok(TABLE.to_owned()),
        "broken.csv" => Ok("word,__expected\n\"x,contains: y\n".to_owned()),
        "word.txt" => Ok("a long word\n".to_owned()),
        "schema.json" => Ok(r#"{"type": "object"}"#.to_owned()),
        other => Err(format!("`{other}` is outside of the directory")),
    }
    };
    promptfoo(text, &Wanted { name: "imported", judge, most: None, read: &read })
}

fn told(imported: &Imported) -> String {
    let place = |note: &super::super::Note| {
        let file = note.file.as_ref().map(|file| format!("{file}:")).unwrap_or_default();
        format!("{file}{}:{}", note.line.unwrap_or(0), note.column.unwrap_or(0))
    };
    let line = |note: &super::super::Note| format!("{} {}", place(note), note.text);
    imported.notes.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn prompts_and_tests_become_cases() {
    let imported = import(
        "description: Routing
prompts:
  - 'Plan this: {{task}}'
providers:
  - anthropic:messages:claude-sonnet
  - id: openai:gpt-5-mini
    label: small
evaluateOptions:
  repeat: 3
defaultTest:
  assert:
    - { type: latency, threshold: 5000 }
tests:
  - description: 'Search: where is it?'
    vars: { task: Find the test files }
    assert:
      - type: contains
        value: search
        weight: 2
        metric: routing
      - { type: not-icontains, value: 'sorry, {{task}}' }
  - vars: { task: What is it? }
    provider: small
    threshold: 0.5
    assert:
      - type: assert-set
        weight: 2
        assert:
          - { type: contains-any, value: 'a, b' }
          - { type: regex, value: '^It', weight: 3 }
      - type: is-json
        value: { required: [tasks], type: object, properties: { tasks: { type: array, items: { type: object } } } }
",
    )
    .unwrap();
    assert_eq!(told(&imported), "");
    assert_snapshot!(imported.text, @r#"
    # Imported from promptfoo. `rehearsal schema eval` has the form of this file, `rehearsal eval run` runs it.
    name: imported
    about: Routing
    agents:
    - anthropic:claude-sonnet
    - openai:gpt-5-mini
    repeat: 3
    assert:
    - {type: latency, threshold: 5000}
    cases:
    - name: Search-where-is-it
      prompt: "Plan this: Find the test files"
      assert:
      - {type: contains, value: search, weight: 2, metric: routing}
      - {type: not-icontains, value: "sorry, Find the test files"}
    - name: test-2
      prompt: "Plan this: What is it?"
      agents:
      - openai:gpt-5-mini
      assert:
      - {type: contains-any, value: [a, b], weight: 0.5}
      - {type: regex, value: ^It, weight: 1.5}
      - type: is-json
        value:
          properties:
            tasks:
              items:
                type: object
              type: array
          required:
          - tasks
          type: object
      threshold: 0.5
    "#);
}

#[test]
fn lists_of_texts_stand_for_a_case_each_and_other_lists_do_not() {
    let imported = import(
        "prompts: ['{{a}} {{b}} {{c}}', 'Also {{d.e[0]}}']
defaultTest:
  vars: { c: default }
  assert: [{ type: contains, value: '{{a}}' }]
tests:
  - vars: { a: [x, y], b: [1, 2], d: { e: [deep, z] } }
  - { vars: { a: [x, y] }, options: { disableVarExpansion: true, prefix: '> ' } }
",
    )
    .unwrap();
    let eval = parse(&imported.text, "agent").unwrap();
    let cases: Vec<String> = eval
        .cases
        .iter()
        .map(|case| {
            let group = case.file.group.as_deref().unwrap_or("-");
            format!("{} ({group}): {} -> {}", case.name, case.file.prompt, case.assertions[0].name)
        })
        .collect();
    assert_snapshot!(cases.join("\n"), @"
    test-1-prompt-1 (test-1): x 1,2 default -> contains: x
    test-1-prompt-2 (test-1): Also deep -> contains: x
    test-1-prompt-1-2 (test-1): y 1,2 default -> contains: y
    test-1-prompt-2-2 (test-1): Also deep -> contains: y
    test-2-prompt-1 (test-2): > x,y  default -> contains: x,y
    test-2-prompt-2 (test-2): > Also  -> contains: x,y
    ");
}

#[test]
fn what_has_no_counterpart_is_told_with_its_place() {
    let imported = import(
        "prompts: [file://prompt.txt, file://prompt.py, { id: x }]
providers: [echo, 'exec: ./ask.sh', { id: openai:gpt-5, config: { temperature: 0 } }]
outputPath: out.json
tests:
  - file://more.yaml
  - file://cases.xlsx
  - file://../../etc/passwd.yaml
  - vars: { word: file://word.txt }
    metadata: { team: a }
    options: { transform: output.trim() }
    assert:
      - { type: javascript, value: output.length > 3 }
      - { type: similar, value: hello, threshold: 0.8 }
      - { type: contains, value: word, transform: output.trim() }
      - { type: regex, value: '(?=x)' }
      - { type: is-json, value: file://schema.json }
      - { type: llm-rubric, value: is polite }
      - { type: assert-set, threshold: 0.5, assert: [{ type: equals, value: x }] }
      - { type: equals, value: { a: 1 } }
      - { $ref: '#/assertionTemplates/none' }
      - { type: 'trajectory:tool-args-match', value: { name: x, args: {}, mode: exact } }
  - vars: { word: x }
    assert: [{ type: webhook, value: 'https://example.org' }]
  - vars: { word: y }
",
    )
    .unwrap();
    assert_snapshot!(told(&imported), @r#"
    1:30 a prompt is left out: `prompt.py` is not read: only .txt and .md are
    2:19 the provider `exec: ./ask.sh` has no counterpart
    2:65 `config` has no counterpart
    3:13 `outputPath` has no counterpart
    6:5 `cases.xlsx` is not read: only YAML, JSON and CSV are
    7:5 `../../etc/passwd.yaml` is not read: `../../etc/passwd.yaml` is outside of the directory
    9:15 `metadata` has no counterpart
    10:27 `transform` has no counterpart: what is asserted of the answer is now asserted of all of it
    12:9 `javascript` is left out: it has no counterpart
    13:9 `similar` is left out: it has no counterpart
    14:51 `contains` is left out: its `transform` has no counterpart
    15:9 `regex` is left out: `(?=x)` is not a regular expression: look-around, including look-ahead and look-behind, is not supported
    17:9 `llm-rubric` is left out: no model is named that judges: give it with --judge vendor:model
    18:9 `assert-set` is left out: its `threshold` has no counterpart
    19:9 `equals` is left out: it compares JSON, not a text
    20:9 an assertion is left out: what its `$ref` names is not there
    21:9 `trajectory:tool-args-match` is left out: its `mode` "exact" has no counterpart
    22:5 a case is left out: no assertion of it is left
    23:14 `webhook` is left out: it has no counterpart
    24:5 a case is left out: nothing is asserted of it, so it could not fail
    more.yaml:3:7 `python` is left out: it has no counterpart
    "#);
    let eval = parse(&imported.text, "agent").unwrap();
    let cases: Vec<String> =
        eval.cases.iter().map(|case| format!("{}: {}", case.name, case.file.prompt)).collect();
    assert_snapshot!(cases.join("\n"), @"
    test-1-prompt-1: Say one
    test-1-prompt-2: Whisper one
    test-1-x: x
    test-2-prompt-1: Say a long word
    test-2-prompt-2: Whisper a long word
    test-2-x: x
    ");
}

/// A table as people keep it: quotes, commas and lines in cells.
const TABLE: &str = "word,__expected,__expected2,__description,__threshold,__metadata:team
hello,contains: hello,latency(1000),Greets,,a
\"two, or
three\",\"contains-any: two, three\",not-is-json,,0.5,
x,fn: output.length > 3,python: x,Left out,,
y,y,grade: is polite,,,
z,note: z,,,,
";

#[test]
fn a_table_has_a_test_in_each_row() {
    let imported = import("prompts: ['Say {{word}}']\ntests: file://table.csv\n").unwrap();
    assert_snapshot!(imported.text, @r#"
    # Imported from promptfoo. `rehearsal schema eval` has the form of this file, `rehearsal eval run` runs it.
    name: imported
    cases:
    - name: Greets
      prompt: Say hello
      assert:
      - {type: contains, value: hello}
      - {type: latency, threshold: 1000}
    - name: test-2
      prompt: |-
        Say two, or
        three
      assert:
      - {type: contains-any, value: [two, three]}
      - {type: not-is-json}
      threshold: 0.5
    - name: test-4
      prompt: Say y
      assert:
      - {type: equals, value: "y"}
    - name: test-5
      prompt: Say z
      assert:
      - {type: equals, value: "note: z"}
    "#);
    assert_snapshot!(told(&imported), @"
    table.csv:2:1 `__metadata:team` has no counterpart
    table.csv:5:1 `javascript` is left out: it has no counterpart
    table.csv:5:1 `python` is left out: it has no counterpart
    table.csv:5:1 a case is left out: no assertion of it is left
    table.csv:6:1 `llm-rubric` is left out: no model is named that judges: give it with --judge vendor:model
    ");
    let error = import("prompts: [x]\ntests: [file://broken.csv]\n").unwrap_err();
    assert_eq!(error.message, "`broken.csv` cannot be read: a quote that begins in line 2 has no end");
}

#[test]
fn a_rubric_needs_who_judges_it() {
    let text =
        "prompts: [Hi]\ntests: [{ assert: [{ type: llm-rubric, value: is polite, threshold: 0.7 }] }]\n";
    let error = import(text).unwrap_err();
    assert_eq!(error.message, "nothing can be imported: no case has an assertion that there is here");
    assert!(error.hint.unwrap().contains("line 2: `llm-rubric` is left out: no model is named that judges"));
    let imported = import_judged(text, Some("openai:gpt-5")).unwrap();
    assert!(imported.text.contains("judge: openai:gpt-5"), "{}", imported.text);
    assert!(told(&imported).contains("its `threshold` is left out"), "{}", told(&imported));
    let own = format!("{text}defaultTest: {{ options: {{ provider: anthropic:claude-sonnet }} }}\n");
    assert!(import(&own).unwrap().text.contains("judge: anthropic:claude-sonnet"));
}

#[test]
fn a_small_file_that_stands_for_too_much_is_refused() {
    let list = (0..100).map(|number| format!("v{number}")).collect::<Vec<_>>().join(", ");
    let vars: String = ["a", "b", "c", "d"].map(|name| format!("      {name}: [{list}]\n")).concat();
    let error = import(&format!(
        "prompts: ['{{{{a}}}}']\ntests:\n  - vars:\n{vars}    assert: [{{ type: contains, value: x }}]\n"
    ));
    assert!(error.unwrap_err().hint.unwrap().contains("its `vars` stand for more than 5000 cases"));

    let long = "x".repeat(100_000);
    let error = import(&format!(
        "prompts: ['{{{{a}}}}{{{{a}}}}']\ntests:\n  - vars: {{ a: {long}, b: [{list}] }}\n    assert: [{{ type: contains, value: x }}]\n"
    ));
    assert_eq!(error.unwrap_err().message, "the eval would be larger than 4 MiB");

    let too_much = "this stands for more than is read: too deep, too long, or anchors in anchors";
    let mut bomb = "a0: &a0 [x]\n".to_owned();
    for level in 1..12 {
        let before = vec![format!("*a{}", level - 1); 8].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    assert_eq!(import(&format!("{bomb}prompts: [*a11]\n")).unwrap_err().message, too_much);
    let aliases = vec!["*a"; 45].join(", ");
    let long = format!("a: &a {}\nprompts: [{aliases}]\n", "x".repeat(3 << 20));
    assert_eq!(import(&long).unwrap_err().message, too_much);
    let deep = format!("prompts: {}{}", "[".repeat(3000), "]".repeat(3000));
    assert_eq!(import(&deep).unwrap_err().message, too_much);
}

#[test]
fn what_is_no_configuration_is_said_so() {
    for (text, message) in [
        ("[]", "a configuration of promptfoo is a map"),
        ("tests: []", "there are no `prompts`"),
        ("prompts: [file://x.js]", "none of the prompts can be read"),
        ("prompts: [x]\ntests: []", "nothing can be imported: no case has an assertion that there is here"),
        ("prompts: [x", "unclosed bracket '['"),
    ] {
        assert_eq!(import(text).unwrap_err().message, message, "{text}");
    }
}

proptest! {
    #[test]
    fn any_table_is_taken_or_refused(text in "([a-z_:,()\"\r\n ]|__expected|\\PC){0,200}") {
        let read = |_: &str| Ok(text.clone());
        let _ = promptfoo("prompts: ['{{a}}']\ntests: file://t.csv\n", &Wanted { name: "t", judge: None, most: None, read: &read });
    }

    #[test]
    fn any_bytes_are_taken_or_refused(text in "(.|\n){0,300}") {
        let _ = import(&text);
    }

    #[test]
    fn whatever_texts_a_file_has_come_through(prompt in "[\\PC\n\t]{1,120}", value in "[\\PC\n\t]{1,80}", name in "\\PC{0,90}", metric in "\\PC{1,20}") {
        let file = serde_json::json!({
            "prompts": [prompt],
            "tests": [{ "description": name, "vars": { "x": value }, "assert": [{ "type": "contains", "value": value, "metric": metric }] }],
        });
        let is_plain = !template::is_template(&prompt) && !template::is_template(&value) && !prompt.starts_with("file://") && !value.starts_with("file://");
        let imported = import(&file.to_string());
        prop_assert!(imported.is_ok() || !is_plain || prompt.trim().is_empty(), "{:?}", imported);
        if let Ok(imported) = imported {
            let eval = parse(&imported.text, "agent").unwrap();
            prop_assert_eq!(eval.cases.len(), 1);
            if is_plain {
                prop_assert_eq!(&eval.cases[0].file.prompt, &prompt);
            }
            prop_assert_eq!(&eval.cases[0].assertions[0].name, &metric);
        }
    }

    #[test]
    fn keys_in_any_order_with_anything_behind_them_do_no_harm(pairs in prop::collection::vec((
        prop::sample::select(vec!["prompts", "tests", "vars", "assert", "defaultTest", "providers", "options", "type", "value", "threshold"]),
        prop::sample::select(vec!["[x]", "{}", "[{}]", "1", "null", "[{ assert: [{ type: contains, value: x }] }]", "'{{x}}'", "file://more.yaml", "[[]]", "-1.5", "{ vars: [] }"]),
    ), 0..6)) {
        let text: String = pairs.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
        let _ = import(&text);
    }
}
