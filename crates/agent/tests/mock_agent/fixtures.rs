//! The shape of events: which keys they have, in our output and in that of the real agents.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The key paths of each kind of event.
pub(crate) type Shape = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn shape(output: &str) -> Shape {
    let mut shape = Shape::new();
    for line in output.lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        collect(&event, "", shape.entry(kind(&event)).or_default());
    }
    shape
}

pub(crate) fn real(name: &str) -> Shape {
    let path = format!("{}/tests/fixtures/mock/{name}", env!("CARGO_MANIFEST_DIR"));
    shape(&fs_err::read_to_string(path).unwrap())
}

/// Panics unless our events are of kinds that the real agent prints, with the same keys. What stands in a list
/// that is empty with us is not asked for.
#[track_caller]
pub(crate) fn assert_same_shape(ours: &Shape, real: &Shape) {
    for (kind, keys) in ours {
        let Some(real) = real.get(kind) else {
            panic!("no real agent prints `{kind}`, but {:?}", real.keys().collect::<Vec<_>>());
        };
        let invented: Vec<_> = keys.difference(real).collect();
        assert!(invented.is_empty(), "`{kind}` has keys that no real agent prints: {invented:?}");
        let empty = |path: &str| {
            path.match_indices("[]").any(|(at, _)| !keys.iter().any(|key| key.starts_with(&path[..at + 2])))
        };
        let missing: Vec<_> = real.difference(keys).filter(|path| !empty(path)).collect();
        assert!(missing.is_empty(), "`{kind}` lacks keys that the real agent prints: {missing:?}");
    }
}

/// What tells events apart in each of the formats.
fn kind(event: &Value) -> String {
    let tells = [
        "/type",
        "/subtype",
        "/item/type",
        "/message/content/0/type",
        "/message/content/0/name",
        "/role",
        "/tool_name",
    ];
    let parts = tells.iter().filter_map(|path| event.pointer(path).and_then(Value::as_str));
    let tool = event.pointer("/part/tool").and_then(Value::as_str);
    parts.chain(tool).collect::<Vec<_>>().join(" ")
}

fn collect(value: &Value, path: &str, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = format!("{path}.{key}");
                collect(value, &path, keys);
                keys.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, &format!("{path}[]"), keys)),
        _ => {}
    }
}
