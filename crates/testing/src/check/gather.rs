//! What a tool says, while it says it: each thing once, counted, the worst kept.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use camino::Utf8Path;

use super::DiagnosticCounts;
use crate::text::{floor_char, shortened};
use crate::{Diagnostic, Severity, strip_ansi};

/// Of each severity so many are kept: who has more to mend than this mends the first, and asks again.
const MOST: [(Severity, usize); 3] = [(Severity::Error, 300), (Severity::Warning, 200), (Severity::Note, 50)];
/// So many different ones are told apart; what comes then is counted as it comes.
const MOST_KNOWN: usize = 100_000;
/// Of a message so much is kept at each end.
const MESSAGE: usize = 1000;
/// No file has a longer name.
const FILE: usize = 1000;

/// What was said by any tool of the check: clippy says again what rustc has said.
#[derive(Debug, Default)]
pub(super) struct Known(HashSet<u64>);

/// What one tool has said up to now.
#[derive(Debug)]
pub(super) struct Gather<'a> {
    /// The repository, with a slash at its end, as it is named and as it is.
    repository: Vec<String>,
    /// Where the tool runs, relative to the repository, with a slash at its end unless it is that.
    directory: String,
    /// What was said before, also by others.
    known: &'a mut Known,
    kept: [Vec<Diagnostic>; 3],
    pub counts: DiagnosticCounts,
}

impl<'a> Gather<'a> {
    pub(super) fn new(repository: &Utf8Path, directory: &str, known: &'a mut Known) -> Self {
        let as_prefix = |path: &Utf8Path| format!("{}/", path.as_str().trim_end_matches('/'));
        let mut names = vec![as_prefix(repository)];
        names.extend(repository.canonicalize_utf8().ok().map(|real| as_prefix(&real)));
        Self {
            repository: names,
            directory: if directory.is_empty() { String::new() } else { format!("{directory}/") },
            known,
            kept: [Vec::new(), Vec::new(), Vec::new()],
            counts: DiagnosticCounts::default(),
        }
    }

    pub(super) fn take(&mut self, mut diagnostic: Diagnostic) {
        diagnostic.file = diagnostic.file.as_deref().map(|file| self.relative(file));
        diagnostic.message = shortened(strip_ansi(diagnostic.message.trim()).as_ref(), MESSAGE);
        if self.known.0.len() < MOST_KNOWN && !self.known.0.insert(key(&diagnostic)) {
            return;
        }
        let counts = &mut self.counts;
        let (place, count) = match diagnostic.severity {
            Severity::Error => (0, &mut counts.errors),
            Severity::Warning => (1, &mut counts.warnings),
            Severity::Note => (2, &mut counts.notes),
        };
        *count += 1;
        if self.kept[place].len() < MOST[place].1 {
            self.kept[place].push(diagnostic);
        }
    }

    /// The worst first, and how many are not among them.
    pub(super) fn finish(self) -> (Vec<Diagnostic>, u64) {
        let kept: Vec<Diagnostic> = self.kept.into_iter().flatten().collect();
        let left_out = self.counts.total() - kept.len() as u64;
        (kept, left_out)
    }

    /// The name of a file from the repository.
    fn relative(&self, file: &str) -> String {
        let file = file.strip_prefix("file://").unwrap_or(file);
        let file = &file[..floor_char(file, FILE)];
        let inside = self.repository.iter().find_map(|root| file.strip_prefix(root.as_str()));
        match inside {
            Some(inside) => inside.to_owned(),
            None if file.starts_with('/') => file.to_owned(),
            None => format!("{}{}", self.directory, file.strip_prefix("./").unwrap_or(file)),
        }
    }
}

fn key(diagnostic: &Diagnostic) -> u64 {
    let mut hasher = DefaultHasher::new();
    let Diagnostic { tool: _, severity, code, message, file, line, column } = diagnostic;
    (severity, code, message, file, line, column).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(severity: Severity, file: &str, line: u32) -> Diagnostic {
        let (tool, message) = ("gcc".to_owned(), "no".to_owned());
        Diagnostic {
            tool,
            severity,
            code: None,
            message,
            file: Some(file.to_owned()),
            line: Some(line),
            column: None,
        }
    }

    #[test]
    fn the_same_is_told_once_however_its_file_is_named_and_errors_come_first() {
        let mut known = Known::default();
        let mut gather = Gather::new(Utf8Path::new("/repo"), "web", &mut known);
        gather.take(said(Severity::Warning, "a.c", 1));
        for file in ["a.c", "./a.c", "/repo/web/a.c", "file:///repo/web/a.c"] {
            gather.take(said(Severity::Error, file, 2));
        }
        gather.take(said(Severity::Error, "/usr/include/stdio.h", 2));
        assert_eq!(gather.counts, DiagnosticCounts { errors: 2, warnings: 1, notes: 0 });
        let (kept, left_out) = gather.finish();
        let files: Vec<_> = kept.iter().map(|it| it.file.as_deref().unwrap()).collect();
        assert_eq!((files, left_out), (vec!["web/a.c", "/usr/include/stdio.h", "web/a.c"], 0));
    }

    #[test]
    fn a_flood_is_counted_and_the_first_of_it_kept() {
        let mut known = Known::default();
        let mut gather = Gather::new(Utf8Path::new("/repo"), "", &mut known);
        for line in 0..5000 {
            gather.take(said(Severity::Note, "a.c", line));
            gather.take(Diagnostic { message: "x".repeat(10_000), ..said(Severity::Error, "a.c", line) });
        }
        assert_eq!(gather.counts, DiagnosticCounts { errors: 5000, warnings: 0, notes: 5000 });
        let (kept, left_out) = gather.finish();
        assert_eq!((kept.len(), left_out), (350, 9650));
        assert!(kept[0].message.len() < 2100 && kept[0].message.contains("bytes left out"));
    }
}
