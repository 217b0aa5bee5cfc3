//! What a run can do to a checkout that no run may do.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Oid;

/// Something of the user's that was there before a run, and was gone or changed after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Damage {
    /// The branch that was checked out no longer has its commits.
    CommitsDropped {
        /// Its name; none: no branch was checked out.
        branch: Option<String>,
        /// Its newest commit before the run.
        commit: Oid,
    },
    /// Another branch is checked out, or none.
    HeadMoved {
        /// The branch that was checked out.
        from: Option<String>,
        /// The one that was checked out after the run.
        to: Option<String>,
    },
    /// A branch is gone.
    BranchDeleted {
        /// Its name.
        branch: String,
        /// Its newest commit before the run.
        commit: Oid,
    },
    /// A branch, which was not checked out, no longer has its commits.
    BranchMoved {
        /// Its name.
        branch: String,
        /// Its newest commit before the run.
        commit: Oid,
    },
    /// An entry of the stash is gone.
    StashDropped {
        /// Its commit.
        commit: Oid,
    },
    /// A rebase, merge or the like was begun and not finished.
    Unfinished {
        /// Which.
        operation: String,
    },
    /// Uncommitted changes are gone.
    EditsLost {
        /// In these files.
        files: FileList,
    },
    /// A run that may only read changed files.
    ReadOnly {
        /// These.
        files: FileList,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommitsDropped { branch: Some(branch), commit } | Self::BranchMoved { branch, commit } => {
                write!(f, "dropped commits of branch `{branch}` (it was at {commit:.10})")
            }
            Self::CommitsDropped { branch: None, commit } => {
                write!(f, "dropped commits (HEAD was at {commit:.10})")
            }
            Self::HeadMoved { from, to } => {
                let shown = |branch: &Option<String>| match branch {
                    Some(branch) => format!("branch `{branch}`"),
                    None => "a detached HEAD".to_owned(),
                };
                write!(f, "checked out {} instead of {}", shown(to), shown(from))
            }
            Self::BranchDeleted { branch, commit } => {
                write!(f, "deleted branch `{branch}` (it was at {commit:.10})")
            }
            Self::StashDropped { commit } => write!(f, "dropped the stash entry {commit:.10}"),
            Self::Unfinished { operation } => write!(f, "left a {operation} unfinished"),
            Self::EditsLost { files } => write!(f, "discarded uncommitted changes in {files}"),
            Self::ReadOnly { files } => write!(f, "changed {files}, though it may only read"),
        }
    }
}

/// The first of some files, and how many more there are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileList {
    /// The first ones.
    pub files: Vec<String>,
    /// How many more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
}

/// How many files are named.
const NAMED: usize = 10;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl FileList {
    /// The first of these.
    pub fn of<T: AsRef<str>>(files: &[T]) -> Self {
        Self {
            files: files.iter().take(NAMED).map(|file| file.as_ref().to_owned()).collect(),
            more: files.len().saturating_sub(NAMED),
        }
    }
}

impl fmt::Display for FileList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<String> = self.files.iter().map(|file| format!("`{file}`")).collect();
        f.write_str(&named.join(", "))?;
        match self.more {
            0 => Ok(()),
            1 => f.write_str(" and 1 other file"),
            more => write!(f, " and {more} other files"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_names_its_first_files() {
        assert_eq!(FileList::of(&["a", "b"]).to_string(), "`a`, `b`");
        let many: Vec<String> = (0..12).map(|number| number.to_string()).collect();
        assert!(FileList::of(&many).to_string().ends_with("`9` and 2 other files"));
    }
}
