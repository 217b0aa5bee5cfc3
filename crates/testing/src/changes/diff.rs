//! Reading `git diff -U0`.

use std::collections::BTreeMap;

use super::ChangedLines;

/// The changed lines of each file, by its name now (a deleted one by its old name). A file that moved is there twice: it
/// is gone from where it was.
pub(crate) type Hunks = BTreeMap<String, ChangedLines>;

/// Reads a diff without context lines.
pub(crate) fn hunks(diff: &str) -> Hunks {
    let mut files = Hunks::new();
    let mut reader = Reader::default();
    for line in diff.split('\n') {
        reader.line(line, &mut files);
    }
    reader.end_file(&mut files);
    files
}

#[derive(Debug, Default)]
struct Reader {
    old: Option<String>,
    new: Option<String>,
    moved_from: Option<String>,
    lines: ChangedLines,
    /// Lines of the present hunk that are still to come: a text in them may look like a header.
    removed: u32,
    added: u32,
}

impl Reader {
    fn line(&mut self, line: &str, files: &mut Hunks) {
        if self.removed > 0 && line.starts_with('-') {
            self.removed -= 1;
        } else if self.added > 0 && line.starts_with('+') {
            self.added -= 1;
        } else if let Some(names) = line.strip_prefix("diff --git ") {
            self.end_file(files);
            self.new = same_name(names);
        } else if line.starts_with("new file mode") {
            self.lines.added = true;
        } else if line.starts_with("deleted file mode") {
            self.lines.deleted = true;
        } else if let Some(name) = line.strip_prefix("rename from ") {
            self.moved_from = Some(unquoted(name));
        } else if let Some(name) = line.strip_prefix("rename to ") {
            self.new = Some(unquoted(name));
        } else if let Some(name) = line.strip_prefix("--- ") {
            self.old = named(name, "a/").or_else(|| self.old.take());
        } else if let Some(name) = line.strip_prefix("+++ ") {
            self.new = named(name, "b/");
        } else if let Some(header) = line.strip_prefix("@@ -") {
            self.hunk(header);
        }
    }

    /// `12,3 +15,2 @@ context`
    fn hunk(&mut self, header: &str) {
        let Some((old, rest)) = header.split_once(" +") else { return };
        let (_, removed) = range(old);
        let (start, added) = range(rest.split(' ').next().unwrap_or(""));
        (self.removed, self.added) = (removed, added);
        let last = start.saturating_add(added.saturating_sub(1));
        self.lines.pieces.push((start, last));
    }

    fn end_file(&mut self, files: &mut Hunks) {
        let Self { old, new, moved_from, lines, .. } = std::mem::take(self);
        if let Some(old) = moved_from {
            files.insert(old, ChangedLines { deleted: true, ..ChangedLines::default() });
        }
        let name = if lines.deleted { old.or(new) } else { new.or(old) };
        if let Some(name) = name {
            files.insert(name, lines);
        }
    }
}

/// `12,3`, or `12` for one line.
fn range(text: &str) -> (u32, u32) {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    (start.parse().unwrap_or(0), count.parse().unwrap_or(0))
}

/// The name in `a/NAME b/NAME`: a file without text (an image, a mode change) has no other line with its name.
fn same_name(names: &str) -> Option<String> {
    if let Some((_, new)) = names.split_once("\" \"") {
        return named(&format!("\"{new}"), "b/");
    }
    let half = names.len().checked_sub(1)? / 2;
    let (old, new) = (names.get(..half)?, names.get(half + 1..)?);
    let name = old.strip_prefix("a/")?;
    (new.strip_prefix("b/") == Some(name)).then(|| name.to_owned())
}

fn named(name: &str, prefix: &str) -> Option<String> {
    // Git ends a name that has a space with a tab.
    let name = unquoted(name.trim_end_matches('\t'));
    name.strip_prefix(prefix).map(str::to_owned)
}

/// Git quotes names with control characters, quotes or backslashes, as C does.
fn unquoted(name: &str) -> String {
    let Some(inner) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else {
        return name.to_owned();
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(first @ b'0'..=b'3') => {
                let digit = |byte: Option<u8>| byte.map_or(0, |byte| byte.wrapping_sub(b'0') & 7);
                let (second, third) = (digit(rest.next()), digit(rest.next()));
                bytes.push(((first - b'0') << 6) | (second << 3) | third);
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
