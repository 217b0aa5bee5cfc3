//! Where a text is in a file, also if whoever wrote it down was careless with blanks.
//!
//! A ladder: the first rung on which the text is found at all decides. Beyond the first, whole lines are compared.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// How alike two texts had to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rung {
    /// Byte by byte.
    Exact,
    /// But for line ends, and blanks at the end of lines.
    LineEnds,
    /// But for an indentation that all lines have more or less.
    Indentation,
    /// But for any blanks within lines.
    Whitespace,
}

/// A place where the text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Match {
    /// In bytes.
    pub(super) range: Range<usize>,
}

/// How the lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnds {
    Lf,
    /// Some at least.
    Crlf,
}

impl LineEnds {
    pub(super) fn of(content: &str) -> Self {
        if content.contains("\r\n") { Self::Crlf } else { Self::Lf }
    }
}

/// A line of a text: where it begins, where it ends, and where the next begins.
#[derive(Debug, Clone, Copy)]
struct Line {
    start: usize,
    end: usize,
    next: usize,
}

/// Lines whose indentation is compared for one text. Only in a file of lines that are all alike there are more.
const MOST_COMPARED: usize = 16 << 20;

/// All places, none of which overlap; none if it is nowhere.
pub(super) fn find(content: &str, old: &str) -> Option<(Rung, Vec<Match>)> {
    let exact: Vec<Match> =
        content.match_indices(old).map(|(at, text)| Match { range: at..at + text.len() }).collect();
    if !exact.is_empty() {
        return Some((Rung::Exact, exact));
    }
    if old.trim().is_empty() {
        return None;
    }
    let lines = lines_of(content);
    [Rung::LineEnds, Rung::Indentation, Rung::Whitespace].into_iter().find_map(|rung| {
        let found = by_lines(content, &lines, old, rung);
        (!found.is_empty()).then_some((rung, found))
    })
}

/// What takes the place of `there`: indented and with line ends as the file has them.
pub(super) fn replacement<'a>(
    there: &str,
    rung: Rung,
    ends: LineEnds,
    old: &str,
    new: &'a str,
) -> Cow<'a, str> {
    // Where the text itself has line ends, and was found as it is, it says what it wants.
    let has_crlf = match rung {
        Rung::Exact => ends == LineEnds::Crlf && !old.contains('\n'),
        _ => there.contains("\r\n") || ends == LineEnds::Crlf && !there.contains('\n'),
    };
    let indent = matches!(rung, Rung::Indentation | Rung::Whitespace)
        .then(|| (indentation_of_first(old), indentation_of_first(there)))
        .filter(|(old, there)| old != there);
    if !has_crlf && indent.is_none() {
        return Cow::Borrowed(new);
    }
    let lines = new.split('\n').map(|line| {
        let line = if has_crlf { line.strip_suffix('\r').unwrap_or(line) } else { line };
        match indent {
            Some((old, there)) if !line.trim().is_empty() => {
                line.strip_prefix(old).map_or(Cow::Borrowed(line), |rest| format!("{there}{rest}").into())
            }
            _ => Cow::Borrowed(line),
        }
    });
    let lines: Vec<Cow<'_, str>> = lines.collect();
    Cow::Owned(lines.join(if has_crlf { "\r\n" } else { "\n" }))
}

/// The line that each match begins in, from 1.
pub(super) fn line_numbers(content: &str, matches: &[Match]) -> Vec<usize> {
    let (mut line, mut from) = (1, 0);
    let mut numbers = Vec::with_capacity(matches.len());
    for found in matches {
        line += content[from..found.range.start].matches('\n').count();
        from = found.range.start;
        numbers.push(line);
    }
    numbers
}

fn by_lines(content: &str, lines: &[Line], old: &str, rung: Rung) -> Vec<Match> {
    let old_lines: Vec<&str> = old.lines().collect();
    let takes_last_end = old.ends_with('\n');
    // Lines by number, so that the search for a sequence is one of numbers. What is in no line of the text has none.
    let mut numbers: HashMap<Cow<'_, str>, u32> = HashMap::new();
    let wanted: Vec<u32> = old_lines
        .iter()
        .map(|line| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX - 1);
            *numbers.entry(key(line, rung)).or_insert(next)
        })
        .collect();
    let known =
        |line: &Line| numbers.get(&key(&content[line.start..line.end], rung)).copied().unwrap_or(u32::MAX);
    let ids: Vec<u32> = lines.iter().map(known).collect();
    let mut found: Vec<Match> = Vec::new();
    let mut compared = 0;
    for at in sequences(&ids, &wanted) {
        let these = &lines[at..at + wanted.len()];
        let (Some(first), Some(last)) = (these.first(), these.last()) else { continue };
        if found.last().is_some_and(|before| before.range.end > first.start) {
            continue;
        }
        if rung == Rung::Indentation {
            compared += these.len();
            if compared > MOST_COMPARED {
                break;
            }
            if !is_shifted(content, these, &old_lines) {
                continue;
            }
        }
        let end = if takes_last_end { last.next } else { last.end };
        found.push(Match { range: first.start..end });
    }
    found
}

/// What of a line is compared.
fn key(line: &str, rung: Rung) -> Cow<'_, str> {
    match rung {
        Rung::Exact => Cow::Borrowed(line),
        Rung::LineEnds => Cow::Borrowed(line.trim_end()),
        Rung::Indentation => Cow::Borrowed(line.trim()),
        Rung::Whitespace => Cow::Owned(line.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

/// Whether all lines are indented by the same more or less: in some languages that is what they mean.
fn is_shifted(content: &str, lines: &[Line], old: &[&str]) -> bool {
    let mut pairs = lines
        .iter()
        .map(|line| &content[line.start..line.end])
        .zip(old)
        .filter(|(there, _)| !there.trim().is_empty())
        .map(|(there, old)| (indentation(there), indentation(old)));
    let Some((there_first, old_first)) = pairs.next() else { return true };
    pairs.all(|(there, old)| {
        match (there.strip_prefix(there_first), old.strip_prefix(old_first)) {
            (Some(there), Some(old)) => there == old,
            // Further out than the first line: then by as much in both.
            (None, None) => there_first.strip_prefix(there) == old_first.strip_prefix(old),
            _ => false,
        }
    })
}

fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

fn indentation_of_first(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).map_or("", indentation)
}

fn lines_of(content: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut start = 0;
    for piece in content.split_inclusive('\n') {
        let text = piece.strip_suffix('\n').map_or(piece, |text| text.strip_suffix('\r').unwrap_or(text));
        lines.push(Line { start, end: start + text.len(), next: start + piece.len() });
        start += piece.len();
    }
    lines
}

/// Where a sequence is in another, overlapping or not: by Knuth, Morris and Pratt, so that no file makes it slow.
fn sequences(all: &[u32], wanted: &[u32]) -> Vec<usize> {
    let mut fallback = vec![0; wanted.len()];
    let mut matched = 0;
    for at in 1..wanted.len() {
        while matched > 0 && wanted[at] != wanted[matched] {
            matched = fallback[matched - 1];
        }
        matched += usize::from(wanted[at] == wanted[matched]);
        fallback[at] = matched;
    }
    let mut found = Vec::new();
    matched = 0;
    for (at, number) in all.iter().enumerate() {
        while matched > 0 && *number != wanted[matched] {
            matched = fallback[matched - 1];
        }
        matched += usize::from(*number == wanted[matched]);
        if matched == wanted.len() {
            found.push(at + 1 - matched);
            matched = fallback[matched - 1];
        }
    }
    found
}
