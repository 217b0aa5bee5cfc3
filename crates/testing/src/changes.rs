//! What changed lately in the project, and what that has to do with a failure.

mod diff;
mod git;

use std::collections::BTreeMap;

use camino::Utf8Path;
use rehearsal_core::BoxFuture;
use rehearsal_git::GitError;
use serde::{Deserialize, Serialize};

pub(crate) use diff::{Hunks, hunks};
pub(crate) use git::git;

/// Since when changes count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// The last commit, and what is not committed yet.
    LastCommit,
    /// Where the work left this branch or commit, and what is not committed yet.
    Base(String),
}

/// The files that changed, as they are now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    since: Since,
    /// Since then, uncommitted ones included.
    all: Hunks,
    /// Of them: those that are not committed.
    uncommitted: Hunks,
    /// Whether the change was too large to be read whole.
    cut: bool,
}

/// What a place has to do with the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// The line itself changed.
    InChangedLine,
    /// Another line of the file changed.
    InChangedFile,
    /// The file did not change.
    Unrelated,
}

/// A place that changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedPlace {
    /// Relative to the project.
    pub file: String,
    /// The line that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What it has to do with the change.
    pub relation: Relation,
    /// The same in words: `changed in the last commit`.
    pub words: String,
}

/// Lines of a file as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ChangedLines {
    /// First and last line of each piece, in order. A piece that only removes lines stands at the line before.
    pub pieces: Vec<(u32, u32)>,
    /// Whether the file as a whole is new.
    pub added: bool,
    /// Whether it is gone.
    pub deleted: bool,
}

impl ChangedLines {
    fn contain(&self, line: u32) -> bool {
        self.added || self.pieces.iter().any(|(first, last)| (*first..=*last).contains(&line))
    }
}

impl Changes {
    /// Asks git, in the directory of the project. Names are relative to it, and of what lies below it.
    pub fn read(project: &Utf8Path, since: Since) -> BoxFuture<'_, Result<Self, GitError>> {
        Box::pin(async move { git::read(project, since).await })
    }

    /// From the texts of `git diff -U0` against the beginning, and against HEAD.
    #[cfg(test)]
    pub(crate) fn of_diffs(since: Since, all: &str, uncommitted: &str) -> Self {
        Self { since, all: hunks(all), uncommitted: hunks(uncommitted), cut: false }
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether there is more than was read, so that more is related than is said.
    pub const fn is_cut(&self) -> bool {
        self.cut
    }

    /// The files that changed, in the order of their names.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.all.keys().map(String::as_str)
    }

    /// Those below a directory, named within it.
    pub(crate) fn below(&self, directory: &Utf8Path) -> Self {
        let below = |hunks: &Hunks| {
            let inside = |(file, lines): (&String, &ChangedLines)| {
                let name = Utf8Path::new(file).strip_prefix(directory).ok()?;
                Some((name.to_string(), lines.clone()))
            };
            hunks.iter().filter_map(inside).collect()
        };
        let (all, uncommitted) = (below(&self.all), below(&self.uncommitted));
        Self { since: self.since.clone(), all, uncommitted, cut: self.cut }
    }

    /// Since when, as it stands behind "changed".
    pub(crate) fn since_words(&self) -> String {
        match &self.since {
            Since::LastCommit => "in the last commit or after it".to_owned(),
            Since::Base(base) => format!("since `{base}`"),
        }
    }

    /// Whether a file is gone.
    pub fn is_deleted(&self, file: &str) -> bool {
        self.all.get(file).is_some_and(|lines| lines.deleted)
    }

    /// What a place has to do with the changes.
    pub fn relation(&self, file: &str, line: Option<u32>) -> Relation {
        match self.all.get(file) {
            None => Relation::Unrelated,
            Some(lines) if line.is_some_and(|line| lines.contain(line)) => Relation::InChangedLine,
            Some(_) => Relation::InChangedFile,
        }
    }

    /// The place, if it changed, with words on when.
    pub fn place(&self, file: &str, line: Option<u32>) -> Option<ChangedPlace> {
        let relation = self.relation(file, line);
        let words = match relation {
            Relation::Unrelated => return None,
            Relation::InChangedLine => self.when(file, line),
            Relation::InChangedFile => self.when(file, None),
        };
        Some(ChangedPlace { file: file.to_owned(), line, relation, words })
    }

    /// The changed lines of a file, as people write them: `10-12, 40`.
    pub fn lines(&self, file: &str) -> String {
        const MOST: usize = 4;
        let Some(lines) = self.all.get(file).filter(|lines| !lines.added) else { return String::new() };
        let piece = |(first, last): &(u32, u32)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        };
        let mut pieces: Vec<String> = lines.pieces.iter().take(MOST).map(piece).collect();
        if lines.pieces.len() > MOST {
            pieces.push("…".to_owned());
        }
        pieces.join(", ")
    }

    /// When a file or a line of it changed.
    pub fn when(&self, file: &str, line: Option<u32>) -> String {
        let now = self.uncommitted.get(file);
        let uncommitted = now.is_some_and(|lines| line.is_none_or(|line| lines.contain(line)));
        match (&self.since, uncommitted) {
            (_, true) if now.is_some_and(|lines| lines.added) => "is new and not committed".to_owned(),
            (_, true) => "changed and is not committed".to_owned(),
            (Since::LastCommit, false) => "changed in the last commit".to_owned(),
            (Since::Base(base), false) => format!("changed since `{base}`"),
        }
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self { since: Since::LastCommit, all: BTreeMap::new(), uncommitted: BTreeMap::new(), cut: false }
    }
}

#[cfg(test)]
mod tests;
