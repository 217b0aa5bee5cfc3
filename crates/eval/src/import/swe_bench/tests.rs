use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

fn import(text: &str) -> Result<Imported, SourceError> {
    let wanted =
        Wanted { name: "swe", judge: None, most: None, read: &|_| unreachable!("nothing is to be read") };
    swe_bench(text, &wanted, &|name| match name {
        "shop/cart" => Ok("/clones/shop__cart".to_owned()),
        other => Err(format!("/clones/{}", other.replace('/', "__"))),
    })
}

fn instance(change: impl FnOnce(&mut Map<String, Value>)) -> String {
    let Value::Object(mut map) = json!({
        "instance_id": "shop__cart-17",
        "repo": "shop/cart",
        "base_commit": "0123456789abcdef0123456789abcdef01234567",
        "problem_statement": "The total of an empty cart is wrong.\n\nIt should be 0.",
        "hints_text": "look at total()",
        "patch": "--- a/cart.py\n+++ b/cart.py\n@@ -1 +1 @@\n-x\n+y",
        "test_patch": "--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-x\n+y\n",
        "FAIL_TO_PASS": "[\"t.py::test_empty\"]",
        "PASS_TO_PASS": ["t.py::test_one"],
    }) else {
        unreachable!()
    };
    change(&mut map);
    Value::Object(map).to_string()
}

#[test]
fn an_instance_becomes_a_case_and_its_hints_stay_behind() {
    let imported = import(&instance(|_| {})).unwrap();
    assert_eq!(imported.notes, []);
    assert!(!imported.text.contains("look at total"), "{}", imported.text);
    assert_snapshot!(imported.text, @"
    # Imported from SWE-bench style instances. `rehearsal eval oracle` tries each with its known patch.
    name: swe
    cases:
    - name: shop__cart-17
      group: shop/cart
      prompt: |-
        The total of an empty cart is wrong.
        
        It should be 0.
      repository:
        path: /clones/shop__cart
        at: 0123456789abcdef0123456789abcdef01234567
        patch: |
          --- a/t.py
          +++ b/t.py
          @@ -1 +1 @@
          -x
          +y
      assert:
      - {type: tests, value: {fail_to_pass: [t.py::test_empty], pass_to_pass: [t.py::test_one]}}
      known_patch: |
        --- a/cart.py
        +++ b/cart.py
        @@ -1 +1 @@
        -x
        +y
    ");
}

#[test]
fn what_cannot_be_a_case_is_told_with_its_line() {
    let lines = [
        instance(|_| {}),
        instance(|map| drop(map.remove("base_commit"))),
        instance(|map| drop(map.insert("repo".into(), "../../etc".into()))),
        instance(|map| drop(map.insert("base_commit".into(), "--upload-pack=x".into()))),
        instance(|map| drop(map.insert("FAIL_TO_PASS".into(), "[]".into()))),
        instance(|map| drop(map.insert("FAIL_TO_PASS".into(), json!([1])))),
        instance(|map| drop(map.insert("repo".into(), "other/shop".into()))),
    ];
    let imported = import(&lines.join("\n\n")).unwrap();
    assert_eq!(imported.cases, 2);
    let told: Vec<String> =
        imported.notes.iter().map(|note| format!("{}: {}", note.line.unwrap(), note.text)).collect();
    assert_snapshot!(told.join("\n"), @"
    3: `shop__cart-17` is left out: it has no `base_commit`
    5: `shop__cart-17` is left out: its `repo` is not owner/name but `../../etc`
    7: `shop__cart-17` is left out: its `base_commit` is not a commit but `--upload-pack=x`
    9: `shop__cart-17` is left out: its `fail_to_pass` names no test, so doing nothing would pass
    11: `shop__cart-17` is left out: its `fail_to_pass` is not a list of tests
    13: `shop__cart-17`: there is no repository `other/shop` at `/clones/other__shop`: clone it there
    ");
}

#[test]
fn capital_and_small_keys_and_a_list_of_all_are_the_same() {
    let small = instance(|map| {
        for key in ["FAIL_TO_PASS", "PASS_TO_PASS"] {
            let value = map.remove(key).unwrap();
            map.insert(key.to_lowercase(), value);
        }
    });
    let one = import(&instance(|_| {})).unwrap();
    assert_eq!(import(&small).unwrap(), one);
    assert_eq!(import(&format!("[{small}]")).unwrap(), one);
}

#[test]
fn a_broken_line_is_an_error_at_its_place() {
    let error = import(&format!("{}\n{{\"instance_id\": ", instance(|_| {}))).unwrap_err();
    assert_eq!(error.place.unwrap().line, 2);
    assert!(error.message.starts_with("this is not an object of JSON: EOF"), "{}", error.message);
    assert_eq!(import("\n").unwrap_err().message, "nothing can be imported: there is no whole instance");
}

#[test]
fn an_eval_that_could_not_be_read_again_is_not_written() {
    let long = format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+{}\n", "y".repeat(300_000));
    let lines: Vec<String> =
        (0..20).map(|_| instance(|map| drop(map.insert("patch".into(), long.clone().into())))).collect();
    let error = import(&lines.join("\n")).unwrap_err();
    assert_eq!(error.message, "the eval would have 6 MiB, and 4 MiB are read");
    assert_eq!(error.hint.as_deref(), Some("take fewer cases: --most N"));
}

proptest! {
    #[test]
    fn whatever_texts_an_instance_has_come_through(id in "\\PC{1,20}", statement in "[\\PC\n\t ]{1,200}", patch in "(.|\n){0,200}") {
        let line = instance(|map| {
            map.insert("instance_id".into(), id.clone().into());
            map.insert("problem_statement".into(), statement.clone().into());
            map.insert("patch".into(), patch.clone().into());
        });
        match import(&line) {
            Ok(imported) => prop_assert_eq!(imported.cases, 1),
            Err(error) => prop_assert!(id.trim().is_empty() || statement.trim().is_empty(), "{:?}", error),
        }
    }

    #[test]
    fn any_bytes_are_taken_or_refused(text in "(.|\n){0,300}") {
        let _ = import(&text);
    }
}
