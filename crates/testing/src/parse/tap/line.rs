//! The grammar of one line, TAP 12 to 14.

/// What a line says, its indentation left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TapLine<'a> {
    Version,
    Plan {
        tests: u64,
    },
    Point(Point<'a>),
    Comment(&'a str),
    BailOut(&'a str),
    Pragma,
    /// The end of a group in braces.
    Close,
    Other,
}

/// `not ok 3 - name # TODO why`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Point<'a> {
    pub ok: bool,
    pub number: Option<u64>,
    /// Escapes and all.
    pub name: &'a str,
    pub directive: Directive<'a>,
    /// `# time=1.5ms`.
    pub ms: Option<u64>,
    /// Whether a brace at the end opens a group of tests.
    pub opens: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive<'a> {
    None,
    Skip(&'a str),
    Todo(&'a str),
}

impl<'a> TapLine<'a> {
    pub(super) fn read(body: &'a str) -> Self {
        let first = body.as_bytes().first().copied().unwrap_or(b' ');
        match first {
            b'o' | b'n' => Point::read(body).map_or(Self::Other, Self::Point),
            b'#' => Self::Comment(body[1..].strip_prefix(' ').unwrap_or(&body[1..])),
            b'1' => plan(body).map_or(Self::Other, |tests| Self::Plan { tests }),
            b'}' if body.trim_end() == "}" => Self::Close,
            b'T' if body.starts_with("TAP version ") => Self::Version,
            b'B' if body.starts_with("Bail out!") => Self::BailOut(body["Bail out!".len()..].trim()),
            b'p' if body.starts_with("pragma ") => Self::Pragma,
            _ => Self::Other,
        }
    }
}

/// `1..5`, perhaps with `# SKIP why`.
fn plan(body: &str) -> Option<u64> {
    let rest = body.strip_prefix("1..")?;
    let (digits, more) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
    let more = more.trim_start();
    (more.is_empty() || more.starts_with('#')).then(|| digits.parse().ok())?
}

impl<'a> Point<'a> {
    fn read(body: &'a str) -> Option<Self> {
        let (ok, rest) = match body.strip_prefix("not ok") {
            Some(rest) => (false, rest),
            None => (true, body.strip_prefix("ok")?),
        };
        // `okay` is no result.
        if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
            return None;
        }
        let rest = rest.trim();
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let ends = rest[digits..].is_empty() || rest[digits..].starts_with([' ', '\t']);
        let number = rest[..digits].parse().ok().filter(|_| ends);
        let mut text = if number.is_some() { rest[digits..].trim_start() } else { rest };
        let (mut ms, mut opens) = (None, false);
        if let Some((before, time)) = timed(text) {
            opens = time.ends_with('{');
            ms = Some(time.trim_end_matches(['{', ' ']));
            text = before;
        } else if let Some(before) = text.strip_suffix(" {") {
            opens = true;
            text = before;
        }
        let text = text.strip_prefix("- ").or_else(|| (text == "-").then_some("")).unwrap_or(text);
        let (name, directive) = directive(text);
        Some(Self { ok, number, name: name.trim_end(), directive, ms: ms.and_then(milliseconds), opens })
    }
}

/// A text without the ` # time=…` at its end.
fn timed(text: &str) -> Option<(&str, &str)> {
    let (before, time) = text.rsplit_once("# time=")?;
    Some((before.trim_end(), time))
}

/// `1.5ms`, `2s`.
fn milliseconds(time: &str) -> Option<u64> {
    let (number, factor) = match time.strip_suffix("ms") {
        Some(number) => (number, 1.0),
        None => (time.strip_suffix('s')?, 1000.0),
    };
    number.trim().parse::<f64>().ok().map(|number| crate::parse::milliseconds::of(number * factor))
}

/// Only SKIP and TODO are directives; any other `#` is part of the name.
fn directive(text: &str) -> (&str, Directive<'_>) {
    for (at, _) in text.match_indices('#') {
        let at_word = text[..at].is_empty() || text[..at].ends_with([' ', '\t']);
        let after = text[at + 1..].trim_start();
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (word, reason) = after.split_at(end);
        let reason = reason.trim_start_matches(':').trim();
        if at_word && (word.eq_ignore_ascii_case("skip") || word.eq_ignore_ascii_case("skipped")) {
            return (&text[..at], Directive::Skip(reason));
        }
        if at_word && word.eq_ignore_ascii_case("todo") {
            return (&text[..at], Directive::Todo(reason));
        }
    }
    (text, Directive::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(line: &str) -> (bool, Option<u64>, &str, Directive<'_>) {
        match TapLine::read(line) {
            TapLine::Point(point) => (point.ok, point.number, point.name, point.directive),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn results_are_read_in_all_their_forms() {
        use Directive::{None as Plain, Skip, Todo};
        assert_eq!(point("ok"), (true, None, "", Plain));
        assert_eq!(point("ok 1"), (true, Some(1), "", Plain));
        assert_eq!(point("not ok 2 - a - b"), (false, Some(2), "a - b", Plain));
        assert_eq!(point("ok - no number"), (true, None, "no number", Plain));
        assert_eq!(point("ok 3 name # hash"), (true, Some(3), "name # hash", Plain));
        assert_eq!(point("ok 4 # skip no db"), (true, Some(4), "", Skip("no db")));
        assert_eq!(point("ok 4 - # SKIP later"), (true, Some(4), "", Skip("later")));
        assert_eq!(point("not ok 5 - x # TODO: soon"), (false, Some(5), "x", Todo("soon")));
        assert_eq!(point("ok 6 - fix #skipping"), (true, Some(6), "fix #skipping", Plain));
        assert_eq!(point("ok 7 - 3rd # time=1.5ms"), (true, Some(7), "3rd", Plain));
        assert_eq!(point("ok 8 - x\\# SKIP"), (true, Some(8), "x\\# SKIP", Plain));
    }

    #[test]
    fn what_only_resembles_a_result_is_none() {
        for line in ["okay", "not okay", "ok5", "nothing", "ok: done", "1..", "1..x", "1.5", "} else"] {
            assert_eq!(TapLine::read(line), TapLine::Other, "{line}");
        }
    }
}
