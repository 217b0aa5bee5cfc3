use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::*;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    text: String,
    #[serde(default)]
    whole: Option<u16>,
    #[serde(default)]
    share: Option<f64>,
    #[serde(default)]
    flag: bool,
    #[serde(default)]
    list: Vec<String>,
    #[serde(default)]
    map: BTreeMap<String, Option<i64>>,
    #[serde(default)]
    one: Option<Kind>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Unit,
    Newtype(String),
    Struct { count: u8 },
}

fn error(text: &str) -> String {
    let error = from_str::<Sample>(text).unwrap_err();
    let place = error.place.map(|place| format!("{place}: ")).unwrap_or_default();
    let hint = error.hint.map(|hint| format!(" [{hint}]")).unwrap_or_default();
    format!("{place}{}{hint}", error.message)
}

#[test]
fn the_type_decides_what_unquoted_text_is() {
    let sample: Sample = from_str(
        "text: 1.10\nwhole: 0x10\nshare: 3\nflag: on\nlist: [yes, 007, '3', null_, 2026-11-18]\nmap: { a: -4, b: ~, 3: 1 }\none: { struct: { count: '7' } }\n",
    )
    .unwrap();
    assert_eq!(sample.text, "1.10");
    assert_eq!((sample.whole, sample.share, sample.flag), (Some(16), Some(3.0), true));
    assert_eq!(sample.list, ["yes", "007", "3", "null_", "2026-11-18"]);
    assert_eq!(
        sample.map,
        BTreeMap::from([("a".into(), Some(-4)), ("b".into(), None), ("3".into(), Some(1))])
    );
    assert_eq!(sample.one, Some(Kind::Struct { count: 7 }));
    let value: Value = from_str("[1.10, '1.10', on, ~, 0x10, -3]").unwrap();
    assert_eq!(value, serde_json::json!([1.1, "1.10", true, null, 16, -3]));
}

#[test]
fn aliases_and_merge_keys_are_resolved() {
    let text = "base: &base { a: 1, b: 2 }\nsame: *base\nmore: { <<: *base, b: 3 }\nname: &n x\nagain: *n\n";
    let direct: Value = serde_saphyr::from_str(text).unwrap();
    assert_eq!(from_str::<Value>(text).unwrap(), direct);
    assert_eq!(direct["more"], serde_json::json!({ "a": 1, "b": 3 }));
    let again: BTreeMap<String, Spanned<Value>> = from_str(text).unwrap();
    assert_eq!(again["again"].place.unwrap().to_string(), "5:8");
}

#[test]
fn a_mistake_has_the_place_of_what_is_wrong() {
    insta::assert_snapshot!(error("text: a\nfalg: true\n"), @"2:1: unknown field `falg`, expected one of text, whole, share, flag, list, map, one [did you mean `flag`?]");
    insta::assert_snapshot!(error("flag: true\n"), @"1:1: missing field `text` [add `text: …` here]");
    insta::assert_snapshot!(error("{}"), @"1:1: missing field `text` [add `text: …` here]");
    insta::assert_snapshot!(error("text: [a]\n"), @"1:7: expected a text");
    insta::assert_snapshot!(error("text:\n"), @"1:5: expected a text, and there is nothing");
    insta::assert_snapshot!(error("text: a\nwhole: 3.5\n"), @"2:8: expected a whole number");
    insta::assert_snapshot!(error("text: a\nwhole: 70000\n"), @"2:8: expected a whole number from 0 to 65535");
    insta::assert_snapshot!(error("text: a\nshare: much\n"), @"2:8: expected a number");
    insta::assert_snapshot!(error("text: a\nflag: maybe\n"), @"2:7: expected `true` or `false`");
    insta::assert_snapshot!(error("text: a\nlist: b\n"), @"2:7: expected a list");
    insta::assert_snapshot!(error("text: a\nmap: [b]\n"), @"2:6: expected a mapping");
    insta::assert_snapshot!(error("text: a\none: nuit\n"), @"2:6: unknown variant `nuit`, expected one of unit, newtype, struct [did you mean `unit`?]");
    insta::assert_snapshot!(error("text: a\none: { unit: 3 }\n"), @"2:14: `unit` has no value");
    insta::assert_snapshot!(error("text: a\none: newtype\n"), @"2:6: `newtype` needs a value: write `newtype: …`");
    insta::assert_snapshot!(error("text: a\none: { newtype: b, unit: }\n"), @"2:20: expected only one key");
    insta::assert_snapshot!(error("text: a\none: { struct: {} }\n"), @"2:16: missing field `count` [add `count: …` here]");
    insta::assert_snapshot!(error("text: a\ntext: b\n"), @"2:1: duplicate mapping key: text");
    insta::assert_snapshot!(error("text: *nowhere\n"), @"1:7: alias references unknown anchor");
    insta::assert_snapshot!(error("text: 'a\n"), @"2:1: invalid indentation in multiline quoted scalar");
    insta::assert_snapshot!(error(""), @"1:1: missing field `text` [add `text: …` here]");
    insta::assert_snapshot!(error("text: a\n---\ntext: b\n"), @"3:1: multiple YAML documents detected");
}

#[test]
fn a_file_that_stands_for_more_than_is_read_is_refused() {
    let bomb = (1..12).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, n| {
        let uses = vec![format!("*a{}", n - 1); 10].join(", ");
        format!("{text}a{n}: &a{n} [{uses}]\n")
    });
    let heavy = format!("big: &big {}\nall: [{}]\n", "x".repeat(1 << 20), vec!["*big"; 90].join(", "));
    let texts = [
        ("flow lists", "[".repeat(100_000)),
        ("flow maps", "{a: ".repeat(100_000)),
        ("block lists", "- ".repeat(10_000)),
        ("closed lists", format!("{}{}", "[".repeat(200), "]".repeat(200))),
        ("anchors in anchors", bomb),
        ("copies of a large text", heavy),
        ("many values", format!("[{}]", "1,".repeat(300_000))),
    ];
    for (name, text) in texts {
        let error = read(&text).expect_err(name);
        assert!(error.message.starts_with("this stands for more than is read"), "{name}: {}", error.message);
    }
    let own = read("a: &a [*a]\n").unwrap_err();
    assert_eq!(own.message, "this anchor contains itself");
}

#[test]
fn another_format_has_values_without_places() {
    let spanned: Spanned<u8> = serde_json::from_str("3").unwrap();
    assert_eq!((spanned.value, spanned.place), (3, None));
}

/// Scalars that YAML reads in more than one way.
const SCALARS: [&str; 29] = [
    "a",
    "3",
    "-3",
    "+3",
    "3.50",
    "1e3",
    "0x1F",
    "0o17",
    "007",
    "1_000",
    "true",
    "False",
    "on",
    "NO",
    "y",
    "~",
    "null",
    "",
    "é ü",
    "1:30",
    ".5",
    "a b",
    "18446744073709551615",
    "99999999999999999999",
    "-9223372036854775809",
    "2026-11-18",
    ".inf",
    "1e999",
    "65536",
];

fn scalar() -> impl Strategy<Value = String> {
    (prop::sample::select(&SCALARS[..]), any::<bool>()).prop_map(|(text, in_quotes)| {
        // In quotes, only plain decimal numbers can be read as numbers.
        let is_odd = ["0x1F", "0o17", "007", "1_000", ".inf"].contains(&text);
        if in_quotes && !is_odd { format!("'{text}'") } else { text.to_owned() }
    })
}

fn document() -> impl Strategy<Value = String> {
    scalar().prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::btree_map("[a-z]{1,3}|3|'1.0'|on", inner, 0..5).prop_map(|map| {
                let pairs: Vec<String> = map.iter().map(|(key, value)| format!("{key}: {value}")).collect();
                format!("{{ {} }}", pairs.join(", "))
            }),
        ]
    })
}

/// Both readers take it for the same, or both refuse it.
fn same<T: DeserializeOwned + PartialEq + std::fmt::Debug>(text: &str) -> Result<(), TestCaseError> {
    match (serde_saphyr::from_str::<T>(text), from_str::<T>(text)) {
        (Ok(direct), Ok(ours)) => prop_assert_eq!(ours, direct, "{}", text),
        (direct, ours) => prop_assert_eq!(ours.is_ok(), direct.is_ok(), "{}: {:?} {:?}", text, ours, direct),
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_tree_has_the_values_of_direct_reading(text in document()) {
        same::<Value>(&text)?;
        same::<BTreeMap<String, Value>>(&text)?;
    }

    #[test]
    fn every_type_reads_a_scalar_as_in_direct_reading(text in scalar()) {
        same::<Vec<String>>(&format!("[{text}]"))?;
        same::<Vec<Option<String>>>(&format!("- {text}\n"))?;
        same::<Option<bool>>(&text)?;
        same::<Vec<u64>>(&format!("[{text}]"))?;
        same::<Vec<i8>>(&format!("[{text}]"))?;
        // The library takes `0x1F` for an integer, but not for a float.
        if !["0x", "0o", "1_"].iter().any(|start| text.starts_with(start)) {
            same::<BTreeMap<String, f64>>(&format!("a: {text}"))?;
        }
        same::<Vec<Kind>>(&format!("- newtype: {text}\n- struct: {{ count: {text} }}\n"))?;
        same::<Sample>(&format!("text: {text}\nlist: [{text}]\nmap: {{ {text}: }}\n"))?;
    }

    #[test]
    fn any_text_is_read_or_refused_as_in_direct_reading(text in "([a-z]+: |- |\n|  |'|\"|[&*]a |<<: |\\[|\\]|\\{|\\}|, |#|\\||>|---\n|\t|é|[0-9]){0,20}") {
        same::<Value>(&text)?;
        let _ = from_str::<Sample>(&text);
        let _ = read_multiple(&text);
        let _ = read_foreign(&text);
    }
}
