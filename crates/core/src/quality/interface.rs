//! Which changed lines are part of what others depend on, by language. A rough eye on single lines, on purpose: it
//! decides only whether someone looks more closely.

use std::collections::BTreeSet;

/// The lines of a public interface that are new or gone. A line that only moved is neither.
pub(super) fn changed(path: &str, added: &[String], removed: &[String]) -> Vec<String> {
    let Some(is_public) = language(path).filter(|_| !is_test(path)) else { return Vec::new() };
    let public = |lines: &[String]| -> BTreeSet<String> {
        lines.iter().filter(|line| is_public(line)).map(|line| line.trim().to_owned()).collect()
    };
    public(added).symmetric_difference(&public(removed)).cloned().collect()
}

/// Whether a file is for people only.
pub(super) fn is_prose(path: &str) -> bool {
    matches!(extension(path), "md" | "markdown" | "txt" | "rst" | "adoc")
}

/// Whether a line is part of an interface.
type IsPublic = fn(&str) -> bool;

fn language(path: &str) -> Option<IsPublic> {
    Some(match extension(path) {
        "rs" => rust,
        "go" => go,
        "py" | "pyi" => python,
        "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => javascript,
        "java" | "kt" | "kts" | "cs" | "swift" | "php" | "scala" => marked_public,
        "rb" => ruby,
        "h" | "hh" | "hpp" | "hxx" | "proto" | "graphql" | "graphqls" | "thrift" => declares,
        _ => return None,
    })
}

fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// Whether a file holds tests: nobody depends on these.
fn is_test(path: &str) -> bool {
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.split('.').next().unwrap_or(name);
    let inside =
        directories.split('/').any(|part| matches!(part, "test" | "tests" | "__tests__" | "spec" | "specs"));
    inside
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_spec")
        || stem.ends_with("Test")
        || name.contains(".test.")
        || name.contains(".spec.")
        || name == "conftest.py"
}

fn rust(line: &str) -> bool {
    let line = line.trim_start();
    // `pub(crate)` is nobody else's.
    line.starts_with("pub ") || line.starts_with("#[macro_export]")
}

fn go(line: &str) -> bool {
    let is_exported = |name: &str| name.starts_with(char::is_uppercase);
    if let Some(rest) = line.strip_prefix("func ") {
        // A method's name comes after its receiver.
        let name = match rest.strip_prefix('(') {
            Some(receiver) => receiver.split_once(')').map_or("", |(_, name)| name.trim_start()),
            None => rest,
        };
        return is_exported(name);
    }
    ["type ", "var ", "const "].iter().any(|word| line.strip_prefix(word).is_some_and(is_exported))
}

fn python(line: &str) -> bool {
    let (indented, text) = (line.starts_with([' ', '\t']), line.trim_start());
    let definition = text.strip_prefix("async ").unwrap_or(text).trim_start();
    let (word, rest) = definition.split_once(' ').unwrap_or((definition, ""));
    let is_ours = rest.starts_with('_') && !rest.starts_with("__init__");
    match word {
        "class" => !indented && !is_ours,
        // What is indented is a method if it says so, and otherwise a function's own.
        "def" => !is_ours && (!indented || rest.contains("(self") || rest.contains("(cls")),
        _ => !indented && text.starts_with("__all__"),
    }
}

fn javascript(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("export ") || line.starts_with("module.exports") || line.starts_with("exports.")
}

fn marked_public(line: &str) -> bool {
    let line = line.trim_start();
    ["public ", "open ", "protected "].iter().any(|word| line.starts_with(word))
}

fn ruby(line: &str) -> bool {
    let line = line.trim_start();
    let named = ["def ", "class ", "module "].iter().find_map(|word| line.strip_prefix(word));
    named.is_some_and(|name| !name.starts_with('_'))
}

/// In a file that only declares, every line that is no comment is the interface.
fn declares(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !["//", "/*", "*", "#"].iter().any(|comment| line.starts_with(comment))
}
