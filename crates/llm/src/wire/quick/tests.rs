//! It reads what `serde_json` reads, and nothing else.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::chat::Json;

fn quick(text: &str) -> Option<Value> {
    read(text).ok()
}

fn theirs(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

#[test]
fn what_is_special_is_found_wherever_it_stands() {
    for before in 0..40 {
        for after in 0..20 {
            for special in
                ["", "\\n", "\\\"", "\\\\", "\\u00e9", "\\ud834\\udd1e", "é", "\u{7f}", "]", "\\\\\\\""]
            {
                let text = format!("\"{}{special}{}\"", "a".repeat(before), "é".repeat(after));
                let read = quick(&text);
                assert!(read.is_some() && read == theirs(&text), "{text}");
            }
            for wrong in
                ["\n", "\u{1f}", "\\x", "\\u12", "\\u+123", "\\ud834", "\\udd1e\\ud834", "\\ud834\\n", "\""]
            {
                let text = format!("\"{}{wrong}{}\"", "a".repeat(before), "z".repeat(after));
                assert!(quick(&text).is_none() && theirs(&text).is_none(), "{text}");
            }
        }
    }
}

#[test]
fn a_text_that_does_not_end_is_refused() {
    for text in
        ["\"", "\"a", "\"\\", "\"\\\"", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\\\\\\"", "[\"a", "{\"a"]
    {
        assert!(quick(text).is_none(), "{text}");
    }
}

#[test]
fn commas_and_colons_stand_where_they_should() {
    for text in [
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{1:2}",
        "{\"a\":}",
        "[1}",
        "1 2",
        "",
        "[01]",
        "nul",
    ] {
        assert!(quick(text).is_none() && theirs(text).is_none(), "{text}");
    }
}

/// Were it otherwise, all that has such a value would be read twice.
#[test]
fn what_is_kept_letter_by_letter_is_read_here() {
    let text = r#" [ { "a" : [1.0, "\u0041"] } , 2e0 ] "#;
    let raw: Vec<Json> = read(text).unwrap();
    let raw: Vec<&str> = raw.iter().map(Json::as_str).collect();
    assert_eq!(raw, [r#"{ "a" : [1.0, "\u0041"] }"#, "2e0"]);
}

#[test]
fn an_error_is_told_as_serde_json_tells_it() {
    let deep = "[".repeat(200);
    for text in ["{\"a\":\n tru}", "\"\\ud834\"", "[1", deep.as_str()] {
        let told = from_str::<Value>(text).unwrap_err().to_string();
        assert_eq!(told, serde_json::from_str::<Value>(text).unwrap_err().to_string());
    }
}

#[test]
fn what_is_too_deep_here_is_read_by_serde_json() {
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    assert_eq!(quick(&deep), None);
    assert_eq!(from_str::<Value>(&deep).ok(), theirs(&deep));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "(\\PC|[\"\\\\\n\t\u{0}]){0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("(\\PC|\n){0,9}", inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// As some clients write: nothing but ASCII.
fn in_ascii(text: &str) -> String {
    let escaped = |letter: char| {
        let units: Vec<u16> = letter.encode_utf16(&mut [0; 2]).to_vec();
        units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>()
    };
    text.chars().map(|letter| if letter.is_ascii() { letter.to_string() } else { escaped(letter) }).collect()
}

proptest! {
    #[test]
    fn every_document_is_read_as_serde_json_reads_it(value in any_value()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap(), in_ascii(&value.to_string())] {
            prop_assert_eq!(quick(&text), theirs(&text));
        }
    }

    #[test]
    fn nothing_is_read_that_serde_json_refuses(
        value in any_value(),
        at in any::<prop::sample::Index>(),
        damage in r#"[\[\]{}",:\\a-u0-9. \n-]{0,3}"#,
    ) {
        let mut letters: Vec<char> = value.to_string().chars().collect();
        let at = at.index(letters.len());
        let end = (at + 1).min(letters.len());
        letters.splice(at..end, damage.chars());
        let text: String = letters.into_iter().collect();
        if let Some(read) = quick(&text) {
            prop_assert_eq!(Some(read), theirs(&text));
        }
    }
}
