//! What Java's runners share: names of methods, and files of classes.

use std::borrow::Cow;

/// A place in a Java, Kotlin, Groovy or Scala source, by the usual layout of projects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceLine {
    pub file: String,
    pub line: u32,
}

/// The deepest frame of a trace that belongs to the project of a test's class.
pub(super) fn place_in(trace: &str, test_class: &str) -> Option<SourceLine> {
    trace.lines().find_map(|line| place_of_frame(line, test_class))
}

fn place_of_frame(line: &str, test_class: &str) -> Option<SourceLine> {
    let (call, rest) = line.trim().strip_suffix(')')?.rsplit_once('(')?;
    let (name, line) = rest.rsplit_once(':')?;
    let line = line.parse().ok()?;
    // `at app//shop.Cart.len`, `java.base/java.util.ArrayList.forEach`
    let call = call.rsplit(['/', ' ', '\t']).next()?;
    let (class, _) = call.rsplit_once('.')?;
    let stem = name.rsplit_once('.')?.0;
    let language = language(name)?;
    if !same_project(package(class), package(test_class)) {
        return None;
    }
    let tree = if outer(class) == outer(test_class) || is_test(stem) { "test" } else { "main" };
    let package = package(class).replace('.', "/");
    let slash = if package.is_empty() { "" } else { "/" };
    Some(SourceLine { file: format!("src/{tree}/{language}/{package}{slash}{name}"), line })
}

/// A trace up to its first frame.
pub(super) fn before_frames(trace: &str) -> &str {
    let mut end = 0;
    for line in trace.split_inclusive('\n') {
        if is_frame(line) || line.trim_start().starts_with("Caused by: ") {
            break;
        }
        end += line.len();
    }
    &trace[..end]
}

/// The exception's type and what it says, of a trace that begins with both.
pub(super) fn exception(trace: &str) -> (&str, &str) {
    let said = before_frames(trace).trim();
    let end = said.find([':', ' ', '\n']).unwrap_or(said.len());
    let (class, rest) = said.split_at(end);
    let is_class = class.contains('.') && class.bytes().all(|byte| byte.is_ascii_graphic());
    let message = rest.trim_start_matches(':').trim();
    if is_class && !message.is_empty() { (class, said) } else { ("", said) }
}

/// The class with its package, as a frame of a trace has it.
pub(super) fn full_name<'a>(trace: &'a str, class: &str) -> Option<&'a str> {
    trace.lines().filter_map(called).find_map(|(called, _)| {
        (called.rsplit(['.', '$']).next() == Some(class) || called == class).then_some(called)
    })
}

/// The class that a trace has a method in.
pub(super) fn class_of_method<'a>(trace: &'a str, method: &str) -> Option<&'a str> {
    trace.lines().filter_map(called).find(|(_, it)| *it == method).map(|(class, _)| class)
}

fn is_frame(line: &str) -> bool {
    let line = line.trim();
    line == "[...]" || (called(line).is_some() && !line.trim_start_matches("at ").contains(' '))
}

/// Class and method of `at app//shop.Cart.len(Cart.java:6)`.
fn called(line: &str) -> Option<(&str, &str)> {
    let (call, _) = line.trim().strip_suffix(')')?.split_once('(')?;
    call.rsplit(['/', ' ', '\t']).next()?.rsplit_once('.')
}

fn language(file: &str) -> Option<&'static str> {
    match file.rsplit_once('.')?.1 {
        "java" => Some("java"),
        "kt" => Some("kotlin"),
        "groovy" => Some("groovy"),
        "scala" => Some("scala"),
        _ => None,
    }
}

fn package(class: &str) -> &str {
    class.rsplit_once('.').map_or("", |(package, _)| package)
}

/// The class that is named like its file.
fn outer(class: &str) -> &str {
    class.split('$').next().unwrap_or(class)
}

fn is_test(stem: &str) -> bool {
    ["Test", "Tests", "TestCase", "IT", "Spec"].iter().any(|end| stem.ends_with(end))
        || stem.starts_with("Test")
}

/// Projects keep to one name: `com.example` and all below it.
fn same_project(package: &str, of_test: &str) -> bool {
    let own: Vec<&str> = of_test.split('.').take(2).collect();
    package.split('.').take(own.len()).eq(own.iter().copied())
}

/// A method as people know it: `adds()` is `adds`, and `param(int)[3]` and `param{int}[3]` are `param[3]`.
pub(super) fn method(name: &str) -> Cow<'_, str> {
    let Some(open) = name.find(['(', '{']) else { return Cow::Borrowed(name) };
    let close = if name[open..].starts_with('(') { ')' } else { '}' };
    let Some(length) = name[open..].find(close) else { return Cow::Borrowed(name) };
    let (before, types, after) = (&name[..open], &name[open + 1..open + length], &name[open + length + 1..]);
    let is_method = !before.is_empty() && !before.contains(char::is_whitespace);
    match (after.is_empty(), types.is_empty()) {
        (true, true) => Cow::Borrowed(before),
        (true, false) if is_method && types.chars().all(is_of_type) => Cow::Borrowed(before),
        (false, _) if is_method && after.starts_with('[') => Cow::Owned(format!("{before}{after}")),
        _ => Cow::Borrowed(name),
    }
}

fn is_of_type(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | ',' | ' ' | '[' | ']' | '_' | '$' | '<' | '>')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_the_project_is_found_among_those_of_the_runner() {
        let trace = "java.lang.NullPointerException: x\n\tat java.base/java.util.Objects.x(Objects.java:3)\n\tat app//com.example.Cart.len(Cart.java:6)\n\tat com.example.CartTest.npe(CartTest.java:20)";
        let found = place_in(trace, "com.example.CartTest").unwrap();
        assert_eq!((found.file.as_str(), found.line), ("src/main/java/com/example/Cart.java", 6));
        let found = place_in("at CartTest$Inner.x(CartTest.kt:9)", "CartTest").unwrap();
        assert_eq!((found.file.as_str(), found.line), ("src/test/kotlin/CartTest.kt", 9));
        assert_eq!(place_in("at com.google.Gson.x(Gson.java:1)", "com.example.CartTest"), None);
    }

    #[test]
    fn types_of_parameters_are_no_part_of_a_name() {
        for (written, name) in [
            ("adds", "adds"),
            ("adds()", "adds"),
            ("adds two numbers()", "adds two numbers"),
            ("param(int, java.lang.String)[3]", "param[3]"),
            ("param{int}[3]", "param[3]"),
            ("param(int)", "param"),
            ("adds (quickly)", "adds (quickly)"),
            ("[1] value=1 (x)", "[1] value=1 (x)"),
            ("open(", "open("),
        ] {
            assert_eq!(method(written), name);
        }
    }
}
