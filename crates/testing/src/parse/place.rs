//! Finding `file:line:column` in what runners print.

use crate::{Place, is_foreign};

/// A place written as `file:line` or `file:line:column`, at the end of a text; trailing colons are allowed.
pub(super) fn trailing(text: &str) -> Option<Place<'_>> {
    let text = text.trim_end().trim_end_matches(':');
    let (before, last) = text.rsplit_once(':')?;
    let last: u32 = last.parse().ok()?;
    match before.rsplit_once(':') {
        Some((file, line)) if !file.is_empty() && line.parse::<u32>().is_ok() => {
            Some(Place::new(file, line.parse().ok()?))
        }
        _ if before.is_empty() => None,
        _ => Some(Place::new(before, last)),
    }
}

/// A place written as `file:line:` or `file:line:column:` at the beginning of a text, and what follows it. A file may
/// have spaces and a drive letter; it may not hold a colon otherwise.
pub(super) fn leading(text: &str) -> Option<(Place<'_>, &str)> {
    let drive = usize::from(text.as_bytes().get(1) == Some(&b':')) * 2;
    let colon = drive + text.get(drive..)?.find(':')?;
    let (file, rest) = (text.get(..colon)?, text.get(colon + 1..)?);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let line = rest.get(..digits)?.parse().ok()?;
    let rest = rest.get(digits..)?;
    if file.is_empty() || !(rest.is_empty() || rest.starts_with(':')) {
        return None;
    }
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let column = rest.bytes().take_while(u8::is_ascii_digit).count();
    let after_column = rest.get(column..).and_then(|after| after.strip_prefix(':'));
    let rest = if column > 0 { after_column.unwrap_or(rest) } else { rest };
    Some((Place::new(file, line), rest.trim_start()))
}

/// A frame of JavaScript: `at name (file:1:2)` or `at file:1:2`.
pub(super) fn js_frame(line: &str) -> Option<Place<'_>> {
    let frame = line.trim().strip_prefix("at ")?;
    let frame = frame.strip_suffix(" {").unwrap_or(frame);
    let inside = match frame.strip_suffix(')') {
        Some(call) => call.rsplit_once('(').map(|(_, inside)| inside)?,
        None => frame.strip_prefix("async ").unwrap_or(frame),
    };
    trailing(inside)
}

/// The first place that is the project's own, of lines that may be frames.
pub(super) fn first_own<'a>(
    text: &'a str,
    frame: impl Fn(&'a str) -> Option<Place<'a>>,
) -> Option<Place<'a>> {
    text.lines().filter_map(frame).find(|place| is_own(place))
}

/// Whether a place is the project's own.
pub(super) fn is_own(place: &Place<'_>) -> bool {
    place.file.is_some_and(|file| !is_foreign(file) && !file.starts_with('<'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_at_either_end_of_a_text() {
        assert_eq!(trailing("panicked at src/lib.rs:21:5:"), Some(Place::new("panicked at src/lib.rs", 21)));
        assert_eq!(trailing("a/b.rb:5"), Some(Place::new("a/b.rb", 5)));
        assert_eq!(trailing("node:internal/timers:483:21"), Some(Place::new("node:internal/timers", 483)));
        assert_eq!(trailing(":5"), None);
        assert_eq!(trailing("12:30"), Some(Place::new("12", 30)));
        assert_eq!(leading("a b.c:3:4: error: x"), Some((Place::new("a b.c", 3), "error: x")));
        assert_eq!(leading("C:\\a.c:3: x"), Some((Place::new("C:\\a.c", 3), "x")));
        assert_eq!(leading("spec/a.lua:3: boom"), Some((Place::new("spec/a.lua", 3), "boom")));
        assert_eq!(leading("no place: here"), None);
        assert_eq!(leading("é:1"), Some((Place::new("é", 1), "")));
    }

    #[test]
    fn frames_of_javascript_are_read_in_all_their_forms() {
        for (frame, place) in [
            ("    at Context.<anonymous> (test/a.js:6:12)", Some(Place::new("test/a.js", 6))),
            ("at async file:///x/a.mjs:1:2", Some(Place::new("file:///x/a.mjs", 1))),
            ("  at x (eval at y (a.js:1:2)) {", None),
            ("    at /x/b.ts:1:11", Some(Place::new("/x/b.ts", 1))),
            ("    at <anonymous> (/x/c.ts:4:17)", Some(Place::new("/x/c.ts", 4))),
            ("no frame", None),
        ] {
            assert_eq!(js_frame(frame), place, "{frame}");
        }
    }
}
