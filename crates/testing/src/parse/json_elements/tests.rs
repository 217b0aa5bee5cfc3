use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn cut(layout: Layout, paths: &[&'static str], pieces: &[&[u8]]) -> Vec<(&'static str, Value)> {
    let mut elements = JsonElements::new(layout, paths);
    let mut seen = Vec::new();
    for piece in pieces {
        elements.feed(piece, &mut |path, text| seen.push((path, serde_json::from_str(text).unwrap())));
    }
    seen
}

const JEST: [&str; 3] = ["", "suites[]", "suites[].tests[]"];

#[test]
fn an_element_comes_after_those_in_it_and_without_them() {
    let report = br#"{"total": 2, "suites": [{"tests": [{"name": "a", "tests": [1]}, {"name": "b"}], "file": "x"}], "ok": true}"#;
    assert_eq!(
        cut(Layout::Document, &JEST, &[report]),
        [
            ("suites[].tests[]", json!({"name": "a", "tests": [1]})),
            ("suites[].tests[]", json!({"name": "b"})),
            ("suites[]", json!({"tests": [], "file": "x"})),
            ("", json!({"total": 2, "suites": [], "ok": true})),
        ]
    );
}

#[test]
fn fields_and_scalars_can_be_asked_for() {
    let report = br#"{"summary": {"failed": 1}, "exit": 3, "root": "/x", "other": [{"summary": 1}]}"#;
    assert_eq!(
        cut(Layout::Document, &["summary", "exit", "root", ""], &[report]),
        [
            ("summary", json!({"failed": 1})),
            ("exit", json!(3)),
            ("root", json!("/x")),
            ("", json!({"summary": null, "exit": null, "root": null, "other": [{"summary": 1}]})),
        ]
    );
}

#[test]
fn what_was_printed_around_a_document_is_passed_over() {
    let printed = b"{ a: 1 }\n[x] ready {\"torn\nno newline{\"suites\": [\n{}\n]}\ndone } ]\n";
    assert_eq!(cut(Layout::Document, &["suites[]"], &[printed]), [("suites[]", json!({}))]);
}

#[test]
fn a_line_that_breaks_off_does_not_take_the_next_with_it() {
    let lines = b"{\"a\": {\"b\": [1,\n{\"a\": \"\n[\"pass\", {}]\n{\"a\": 1}\n";
    assert_eq!(cut(Layout::Lines, &[""], &[lines]), [("", json!(["pass", {}])), ("", json!({"a": 1}))]);
}

#[test]
fn half_a_character_does_not_cost_the_element() {
    let line = br#"{"a": "x\udcff \ud83d\ude00 \ud83d! \ud83d\n \ud83d\ud83d\ude00 \ud83d"}"#;
    let expected = json!({"a": "x\u{fffd} 😀 \u{fffd}! \u{fffd}\n \u{fffd}😀 \u{fffd}"});
    assert_eq!(cut(Layout::Lines, &[""], &[line]), [("", expected)]);
}

#[test]
fn a_long_string_is_cut_and_its_element_stays() {
    let text = format!("{}\\u00e9é", "x".repeat(LONGEST_STRING - 3)).repeat(3);
    let line = format!(r#"{{"a": "{text}", "b": 2}}"#);
    let seen = cut(Layout::Lines, &[""], &[line.as_bytes()]);
    assert_eq!(seen[0].1["b"], 2);
    assert_eq!(seen[0].1["a"].as_str().unwrap().len(), LONGEST_STRING - 3);
}

#[test]
fn an_element_beyond_reason_is_counted_and_the_next_is_read() {
    let mut elements = JsonElements::new(Layout::Document, &["a[]"]);
    let large = format!(r#"{{"a": [[{}1], 2]}}"#, "1,".repeat(LARGEST_ELEMENT));
    let mut seen = Vec::new();
    elements.feed(large.as_bytes(), &mut |_, text| seen.push(text.to_owned()));
    assert_eq!((seen, elements.lost(), elements.is_inside()), (vec!["2".to_owned()], 1, false));
}

proptest! {
    #[test]
    fn pieces_do_not_matter(text in r#"([{}\[\],:"a\\u d8c\n]|"suites":|"tests":){0,60}"#, at in 0usize..60) {
        let bytes = text.as_bytes();
        let (left, right) = bytes.split_at(at.min(bytes.len()));
        for layout in [Layout::Document, Layout::Lines] {
            let whole = texts(layout, &[bytes]);
            prop_assert_eq!(&texts(layout, &[left, right]), &whole);
        }
    }
}

fn texts(layout: Layout, pieces: &[&[u8]]) -> Vec<String> {
    let mut elements = JsonElements::new(layout, &JEST);
    let mut seen = Vec::new();
    for piece in pieces {
        elements.feed(piece, &mut |path, text| seen.push(format!("{path} {text}")));
    }
    seen
}
