//! Whatever a model sends is answered.

use proptest::prelude::*;
use rehearsal_crew::{CallEnd, TOOL_NAMES, Tools};
use rehearsal_llm::chat::{Arguments, ToolCall};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::place::{Place, call};

/// Tools that start no process, so that many calls take no time.
fn quick_tool() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["read_file", "write_file", "edit_file", "glob", "grep", "progress", "decide"])
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z./*{}\\[\\]!?,()|+^$\\\\-]{0,20}",
        prop::sample::select(vec![
            "..",
            "/",
            "a.txt",
            "outside/secret.txt",
            "../outside/secret.txt",
            "**/*",
            "(a|b)*"
        ])
        .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_arguments_are_answered_and_nothing_leaves_the_worktree(
        tool in quick_tool(),
        one in text(),
        other in text(),
        number in any::<i64>(),
    ) {
        let place = Place::new().file("a.txt", "one\ntwo\n");
        std::os::unix::fs::symlink(&place.outside, place.root.join("outside")).unwrap();
        let arguments = match tool {
            "read_file" => json!({"path": one, "offset": number.checked_abs(), "limit": number.checked_abs()}),
            "write_file" => json!({"path": one, "content": other}),
            "edit_file" => json!({"path": "a.txt", "old_string": one, "new_string": other, "replace_all": number > 0}),
            "glob" => json!({"pattern": one, "path": other}),
            "grep" => json!({"pattern": one, "glob": other}),
            "progress" => json!({"text": one}),
            _ => json!({"decision": "reject", "comment": one}),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let called = runtime.block_on(async { place.call(tool, arguments).await });
        prop_assert_eq!(called.text.starts_with("ERROR: "), called.end != CallEnd::Done);
        prop_assert!(!called.text.contains("the secret of somebody else"), "{}", called.text);
        prop_assert!(called.text.len() < 32 << 10);
        place.assert_outside_is_untouched();
    }

    #[test]
    fn any_text_in_the_place_of_a_call_is_answered(
        name in prop_oneof![any::<String>(), prop::sample::select(TOOL_NAMES.to_vec()).prop_map(str::to_owned)],
        arguments in any::<String>(),
    ) {
        let place = Place::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let call = ToolCall { name, arguments: Arguments::Text(arguments), ..call("", &json!({})) };
        let called = runtime.block_on(async { place.toolbox().await.call(&call, &CancellationToken::new()).await });
        prop_assert!(called.text.starts_with("ERROR: ") && called.end != CallEnd::Done, "{}", called.text);
    }
}
