//! Files that are broken, cut, changed or hostile.

use insta::assert_snapshot;
use proptest::prelude::*;
use rehearsal_llm::cassette::{Cassette, ChangeKind, compare};

use crate::scene::{FIRST, Studio, session, stream};

fn recorded() -> String {
    let studio = Studio::new();
    studio.record(&FIRST, &session(&FIRST));
    studio.text()
}

fn refused(text: &str) -> String {
    let error = Cassette::read(text.as_bytes()).unwrap_err();
    let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
    format!("{error}{source}")
}

#[test]
fn without_its_end_it_is_incomplete() {
    let text = recorded();
    let (without_end, _) = text.trim_end().rsplit_once('\n').unwrap();
    assert_snapshot!(refused(&format!("{without_end}\n")), @"the recording is incomplete: it has no end record");
    assert_snapshot!(refused(""), @"the recording is incomplete: it has no end record");
    assert_snapshot!(refused(&format!("{text}{{\"end\":{{\"requests\":0,\"blobs\":0,\"frames\":0,\"secrets\":0,\"sha256\":\"\"}}}}")), @"line 42 comes after the end record");
}

#[test]
fn a_file_that_was_changed_is_refused() {
    let text = recorded();
    assert_snapshot!(refused(&text.replacen("\"The\"", "\"Tha\"", 1)), @"line 41 says that this is not the file that was written: it was changed afterwards");
    assert_snapshot!(refused(&text.replacen("You are an agent", "You are a spy", 1)), @"line 3 is called c581561f9863e6f1 and holds 963873f6e0d94e01");
    assert_snapshot!(refused(&text.replacen("{\"version\":1", "{\"version\":7", 1)), @"line 1 is of version 7, and this program reads version 1");
    assert_snapshot!(refused(&text.replacen("paths@1", "paths@7", 1)), @"line 1 is no line of a cassette: the normaliser `paths` is of version 1 here, and not of version 7 at line 1 column 93");
    assert_snapshot!(refused("{\"blob\":{}}"), @"line 1 is no line of a cassette: missing field `id` at line 1 column 10");
    assert_snapshot!(refused("[]"), @"line 1 is no line of a cassette: expected value at line 1 column 1");
}

#[test]
fn references_that_lead_nowhere_are_refused() {
    let text = recorded();
    assert_snapshot!(refused(&text.replacen("{\"as_before\":2}", "{\"as_before\":9}", 1)), @"line 25 takes 9 elements of `tools` that are not there");
    let request = text.lines().position(|line| line.starts_with("{\"request\"")).unwrap();
    let without_blob: Vec<&str> =
        text.lines().enumerate().filter(|(index, _)| *index != request - 1).map(|(_, line)| line).collect();
    assert!(refused(&without_blob.join("\n")).contains("which did not come before"));
    let doubled: Vec<&str> = text.lines().take(request + 1).chain(text.lines().skip(request)).collect();
    assert_snapshot!(refused(&doubled.join("\n")), @"line 7 comes before the answer above it has ended");
}

#[test]
fn a_short_file_cannot_ask_for_all_memory() {
    let text = recorded();
    let header = text.lines().next().unwrap();
    let blob = text.lines().nth(1).unwrap();
    let id = &blob[15..31];
    let mut hostile = format!("{header}\n{blob}\n");
    let many: Vec<String> = (0..4000).map(|_| format!("{{\"blob\":\"{id}\"}}")).collect();
    for number in 1..4000 {
        let list = if number == 1 { many.join(",") } else { "{\"as_before\":4000}".to_owned() };
        hostile.push_str(&format!("{{\"request\":{{\"number\":{number},\"lane\":\"main\",\"method\":\"POST\",\"target\":\"/\",\"lists\":{{\"messages\":[{list}]}}}}}}\n"));
        hostile.push_str(&format!("{{\"response\":{{\"number\":{number},\"status\":200,\"at_ms\":0,\"ended\":\"whole\",\"text\":\"\"}}}}\n"));
    }
    assert!(refused(&hostile).contains("larger than a cassette may be"));
}

#[test]
fn two_recordings_can_be_compared() {
    let studio = Studio::new();
    let first = studio.record(&FIRST, &session(&FIRST));
    assert_eq!(compare(&first, &first), []);
    let mut other = session(&FIRST);
    other[0].1 = stream("Else");
    other[1].0.body["max_tokens"] = serde_json::json!(1);
    other.truncate(2);
    let second = studio.record(&FIRST, &other);
    let changes: Vec<(usize, ChangeKind)> =
        compare(&first, &second).iter().map(|change| (change.position, change.change)).collect();
    assert_eq!(changes, [(1, ChangeKind::Response), (2, ChangeKind::Request), (3, ChangeKind::Removed)]);
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_fail_otherwise(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Cassette::read(bytes.as_slice()).is_err());
    }

    /// A cassette with one byte changed, lost or doubled is never taken for a whole one.
    #[test]
    fn one_wrong_byte_is_noticed(at in any::<prop::sample::Index>(), byte in any::<u8>(), kind in 0..3) {
        static TEXT: std::sync::LazyLock<String> = std::sync::LazyLock::new(recorded);
        let mut bytes = TEXT.clone().into_bytes();
        // The line break after the end says nothing.
        let at = at.index(bytes.len() - 1);
        match kind {
            0 => prop_assume!(std::mem::replace(&mut bytes[at], byte) != byte),
            1 => { bytes.remove(at); }
            _ => { let doubled = bytes[at]; bytes.insert(at, doubled); }
        }
        match Cassette::read(bytes.as_slice()) {
            Err(_) => {}
            // In the last line spaces may differ, and the number of secrets is only told.
            Ok(_) => prop_assert!(at > TEXT.trim_end().rfind('\n').unwrap()),
        }
    }
}
