use proptest::prelude::*;

use super::*;
use crate::environment::Variables;

fn redactor(variables: &[(&str, &str)]) -> Redactor {
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Redactor::new(variables.iter().map(|(name, value)| (name, value)))
}

#[test]
fn the_value_of_a_secret_variable_is_replaced_by_its_name() {
    let redactor = redactor(&[("MY_API_KEY", "hunter2hunter2"), ("DB_PASSWORD", "correct horse")]);
    assert_eq!(
        redactor.redact("key hunter2hunter2, then correct horse."),
        "key [redacted:MY_API_KEY], then [redacted:DB_PASSWORD]."
    );
}

#[test]
fn short_values_counts_and_plain_variables_are_no_secrets() {
    let redactor =
        redactor(&[("PIN_KEY", "1234"), ("MAX_OUTPUT_TOKENS", "100000000"), ("EDITOR", "emacs -nw")]);
    let text = "1234 100000000 emacs -nw";
    assert!(matches!(redactor.redact(text), Cow::Borrowed(same) if same == text));
}

#[test]
fn keys_of_well_known_shapes_are_found_without_being_known() {
    let redactor = redactor(&[]);
    for key in [
        "sk-ant-api03-abcdefgh",
        "sk-proj-abcdefghij0123456789",
        "ghp_0123456789abcdefghij0123456789abcdef",
        "github_pat_0123456789abcdefghij",
        "AIzaSyA0123456789abcdefghijklmnopqrstuv",
        "xoxb-1234567890-abc",
        "AKIAIOSFODNN7EXAMPLE",
        "Bearer eyJhbGciOi.JIUzI1NiJ9.abc==",
    ] {
        assert_eq!(redactor.redact(&format!("<{key}>")), "<[redacted]>", "{key}");
    }
}

#[test]
fn words_that_only_begin_like_a_key_stay() {
    let redactor = redactor(&[]);
    for text in [
        "the disk-usage-of-the-whole-machine-is-high",
        "sk-short",
        "ghp_x",
        "Bearer of bad news",
        "MAKIAVELLIANISMUSXXXX",
        "task-list-item-abcdefghijklmnopqrstuvwxyz",
    ] {
        assert_eq!(redactor.redact(text), text);
    }
}

#[test]
fn each_line_of_a_long_secret_is_hidden_also_where_json_escapes_it() {
    let redactor = redactor(&[("PRIVATE_KEY", "first-line-1\nsecond\"line\\2")]);
    assert_eq!(redactor.redact("first-line-1"), "[redacted:PRIVATE_KEY]");
    assert_eq!(
        redactor.redact(r#"{"k":"first-line-1\nsecond\"line\\2"}"#),
        r#"{"k":"[redacted:PRIVATE_KEY]\n[redacted:PRIVATE_KEY]"}"#
    );
}

#[test]
fn a_finished_line_is_written_at_once() {
    let redactor = redactor(&[("A_TOKEN", "a very long secret indeed, longer than any line here")]);
    let (mut stream, mut out) = (redactor.stream(), Vec::new());
    stream.push(b"short\nopen", &mut out);
    assert_eq!(out, b"short\n");
    stream.finish(&mut out);
    assert_eq!(out, b"short\nopen");
}

#[test]
fn an_endless_key_needs_no_memory() {
    let redactor = redactor(&[]);
    let (mut stream, mut out) = (redactor.stream(), Vec::new());
    stream.push(b"sk-ant-", &mut out);
    for _ in 0..1000 {
        stream.push(&[b'x'; 1000], &mut out);
    }
    stream.push(b" end", &mut out);
    stream.finish(&mut out);
    assert_eq!(out, b"[redacted] end");
    assert!(stream.held.capacity() < 100_000);
}

#[test]
fn every_text_of_an_activity_is_redacted() {
    let redactor = redactor(&[("A_TOKEN", "hunter2hunter2")]);
    let activity = Activity::ToolCalled {
        tool: "Bash".into(),
        detail: "curl -H hunter2hunter2".into(),
        arguments: Some(
            r#"{"command":"curl -H hunter2hunter2","\u0068unter2hunter2":["\u0068unter2hunter2"]}"#.into(),
        ),
    };
    let expected = Activity::ToolCalled {
        tool: "Bash".into(),
        detail: "curl -H [redacted:A_TOKEN]".into(),
        arguments: Some(
            r#"{"command":"curl -H [redacted:A_TOKEN]","[redacted:A_TOKEN]":["[redacted:A_TOKEN]"]}"#.into(),
        ),
    };
    assert_eq!(redactor.redact_activity(activity), expected);
}

proptest! {
    /// Whatever the chunks, the stream says the same as the whole.
    #[test]
    fn a_secret_cut_anywhere_is_found(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "hunter2hunter2", "hunter2", "sk-ant-abcdefgh", "sk-", "ant-", "abcdefghij", "-", " ", "\n", "é",
                "AKIA", "IOSFODNN7EXAMPLE", "Bearer ", "0123456789",
            ]),
            0..20,
        ),
        sizes in prop::collection::vec(1_usize..9, 1..40),
    ) {
        let redactor = redactor(&[("A_TOKEN", "hunter2hunter2")]);
        let text = parts.concat();
        let (mut stream, mut out) = (redactor.stream(), Vec::new());
        let mut rest = text.as_bytes();
        for size in sizes.iter().cycle() {
            if rest.is_empty() { break }
            let (chunk, after) = rest.split_at((*size).min(rest.len()));
            stream.push(chunk, &mut out);
            rest = after;
        }
        stream.finish(&mut out);
        let streamed = String::from_utf8(out).unwrap();
        prop_assert_eq!(redactor.redact(&text).into_owned(), streamed);
    }
}

#[test]
fn a_redactor_is_kept_for_the_same_secrets_and_no_others() {
    let of =
        |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into_iter().collect::<Variables>();
    let (first, renamed, changed) =
        (of("A_KEY", "hunter2-hunter2"), of("B_KEY", "hunter2-hunter2"), of("A_KEY", "other-other-other"));
    let redactor = Redactor::new(&first);
    let again = Redactor::renewed(Some(redactor.clone()), &first);
    assert!(Arc::ptr_eq(&redactor.inner, &again.inner));
    let text = "hunter2-hunter2 other-other-other";
    let shown = |variables| Redactor::renewed(Some(redactor.clone()), variables).redact(text).into_owned();
    assert_eq!(shown(&renamed), "[redacted:B_KEY] other-other-other");
    assert_eq!(shown(&changed), "hunter2-hunter2 [redacted:A_KEY]");
}
