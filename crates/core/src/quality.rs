//! Whether a change needs a second pair of eyes, by facts and not by opinion.
//!
//! [`assess`] is a pure function of what git says about a change ([`Facts`]) and of [`Rules`] that a user can set. It
//! says yes where it cannot know: a picture, a link, a diff that is too long to be read.

mod diff;
mod interface;
mod rules;
mod words;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use diff::{NotADiff, listed};
pub use rules::{Rules, check_pattern, risky_paths, risky_words};

/// What is known about a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The files that differ.
    pub files: Vec<ChangedFile>,
    /// A reviewer has sent this work back before.
    pub sent_back: bool,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Where it is, or was.
    pub path: String,
    /// What can be said about how.
    pub change: FileChange,
}

/// How a file differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// In these lines.
    Lines {
        /// Lines that are new.
        added: Vec<String>,
        /// Lines that are gone.
        removed: Vec<String>,
    },
    /// In something that has no lines.
    Binary,
    /// In what it is: a link, a repository inside of this one, a file that can be executed now.
    Kind,
    /// Nobody has looked: the change is too large, or has too many files anyway.
    Unread,
}

/// What a change needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assessment {
    /// Nothing: it goes on.
    Harmless,
    /// A review.
    NeedsReview {
        /// Why, each once, the plainest first.
        reasons: Vec<Reason>,
    },
}

/// Why a change needs a review.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// It has more files than a change that is seen at a glance.
    ManyFiles {
        /// So many.
        files: usize,
        /// So many are few.
        most: u32,
    },
    /// A reviewer rejected it before.
    SentBack,
    /// It is where mistakes are dear.
    RiskyPath {
        /// Which file.
        path: String,
        /// By which rule.
        rule: String,
    },
    /// It speaks of something dangerous.
    RiskyWord {
        /// In which file.
        path: String,
        /// The word.
        word: String,
    },
    /// Others may depend on what it changes.
    PublicInterface {
        /// In which file.
        path: String,
        /// The line, without its indentation.
        line: String,
    },
    /// A file without lines.
    Binary {
        /// Which file.
        path: String,
    },
    /// A file is something else now.
    Kind {
        /// Which file.
        path: String,
    },
    /// It is too large to be looked through.
    TooLarge {
        /// Which file.
        path: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ManyFiles { files, most } => write!(f, "{files} files changed, more than {most}"),
            Self::SentBack => write!(f, "a review sent it back before"),
            Self::RiskyPath { path, rule } => write!(f, "`{path}` is at a risky place (`{rule}`)"),
            Self::RiskyWord { path, word } => write!(f, "`{path}`: a changed line speaks of `{word}`"),
            Self::PublicInterface { path, line } => {
                write!(f, "`{path}`: a public interface changes (`{line}`)")
            }
            Self::Binary { path } => write!(f, "`{path}` is not text"),
            Self::Kind { path } => write!(f, "`{path}` is a link, a submodule, or executable now"),
            Self::TooLarge { path } => write!(f, "`{path}`: the change is too large to be looked through"),
        }
    }
}

/// More reasons of one kind are not told: nobody reads them.
const REASONS_TOLD: usize = 5;
/// A line is told so far.
const LINE_TOLD: usize = 120;

/// Says what a change needs.
pub fn assess(facts: &Facts, rules: &Rules) -> Assessment {
    let mut reasons = Vec::new();
    if facts.files.len() > rules.most_files as usize {
        reasons.push(Reason::ManyFiles { files: facts.files.len(), most: rules.most_files });
    }
    if facts.sent_back {
        reasons.push(Reason::SentBack);
    }
    let by_path = facts.files.iter().filter_map(|file| {
        let rule = rules.risky_path(&file.path)?;
        Some(Reason::RiskyPath { path: file.path.clone(), rule: rule.to_owned() })
    });
    reasons.extend(by_path.take(REASONS_TOLD));
    // Of a change with many files nobody has read the lines: that alone is a reason.
    let unread = reasons.is_empty();
    let mut found: BTreeSet<Reason> = BTreeSet::new();
    for file in &facts.files {
        of_file(file, rules, unread, &mut found);
    }
    reasons.extend(found.into_iter().take(REASONS_TOLD));
    if reasons.is_empty() { Assessment::Harmless } else { Assessment::NeedsReview { reasons } }
}

fn of_file(file: &ChangedFile, rules: &Rules, unread_counts: bool, found: &mut BTreeSet<Reason>) {
    let path = || file.path.clone();
    match &file.change {
        FileChange::Binary => drop(found.insert(Reason::Binary { path: path() })),
        FileChange::Kind => drop(found.insert(Reason::Kind { path: path() })),
        FileChange::Unread if unread_counts => drop(found.insert(Reason::TooLarge { path: path() })),
        FileChange::Unread => {}
        // What people read is not what machines do.
        FileChange::Lines { .. } if interface::is_prose(&file.path) => {}
        FileChange::Lines { added, removed } => {
            for line in added.iter().chain(removed) {
                let words = rules.risky_words(line);
                found.extend(words.map(|word| Reason::RiskyWord { path: path(), word: word.to_owned() }));
            }
            if rules.interfaces {
                let changed = interface::changed(&file.path, added, removed);
                let told = changed.into_iter().map(|line| line.chars().take(LINE_TOLD).collect());
                found.extend(told.map(|line| Reason::PublicInterface { path: path(), line }));
            }
        }
    }
}

#[cfg(test)]
mod tests;
