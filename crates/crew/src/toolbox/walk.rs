//! The files of a worktree, as far as its ignore rules do not hide them.
//!
//! Directories and ignore files are opened as every other file here: confined, and without waiting. A `.gitignore` may be a pipe, a link to
//! a device or ten gigabytes long.

use std::ops::ControlFlow;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, Dir, FileType, statat};

use super::blocking::Until;
use super::tool::ToolError;
use crate::limits::{MAX_IGNORE_FILE, SEARCH_TAKES};
use crate::worktree::{Wanted, Worktree};

/// Read in each directory; the later one counts more.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// What a walk could not look at, and why it ended.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// In words; the first few.
    left_out: Vec<String>,
    more_left_out: usize,
    /// Whether its time was over.
    ran_out_of_time: bool,
}

impl Walked {
    pub(super) fn leave_out(&mut self, what: String) {
        const TOLD: usize = 5;
        if self.left_out.len() < TOLD {
            self.left_out.push(what);
        } else {
            self.more_left_out += 1;
        }
    }

    /// Lines to add to a result.
    pub(super) fn notes(&self) -> String {
        let mut notes: String = self.left_out.iter().map(|what| format!("[left out: {what}]\n")).collect();
        if self.more_left_out > 0 {
            notes.push_str(&format!("[left out: {} more]\n", self.more_left_out));
        }
        if self.ran_out_of_time {
            let seconds = SEARCH_TAKES.as_secs();
            notes.push_str(&format!("[… the search was stopped after {seconds} s; search a part …]\n"));
        }
        notes
    }
}

/// The ignore rules of a directory and of those above it.
#[derive(Debug)]
struct Rules {
    here: Vec<Gitignore>,
    above: Option<Arc<Rules>>,
}

impl Rules {
    /// The innermost rule that says anything decides.
    fn hide(&self, path: &Wanted, is_dir: bool) -> bool {
        let mut at = Some(self);
        while let Some(rules) = at {
            for rule in rules.here.iter().rev() {
                match rule.matched(path.as_path(), is_dir) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            at = rules.above.as_deref();
        }
        false
    }
}

/// Tells of every file below a directory, in a fixed order: the files of a directory by name, then its directories.
pub(super) fn files(
    worktree: &Worktree,
    below: &Wanted,
    until: &Until,
    mut tell: impl FnMut(&Wanted, &mut Walked) -> ControlFlow<()>,
) -> Result<Walked, ToolError> {
    let mut walked = Walked::default();
    let mut above: Option<Arc<Rules>> = None;
    for ancestor in below.ancestors() {
        above = Some(rules_of(worktree, &ancestor, above, &mut walked));
    }
    let mut waiting = vec![(below.clone(), above)];
    while let Some((directory, above)) = waiting.pop() {
        if is_over(until, &mut walked)? {
            return Ok(walked);
        }
        let rules = rules_of(worktree, &directory, above, &mut walked);
        let Some(Entries { files, directories }) = entries(worktree, &directory, &rules, &mut walked) else {
            continue;
        };
        for file in files {
            if is_over(until, &mut walked)? || tell(&file, &mut walked).is_break() {
                return Ok(walked);
            }
        }
        waiting.extend(directories.into_iter().rev().map(|next| (next, Some(Arc::clone(&rules)))));
    }
    Ok(walked)
}

/// Whether the time is over.
fn is_over(until: &Until, walked: &mut Walked) -> Result<bool, ToolError> {
    if until.is_cancelled() {
        return Err(ToolError::Cancelled);
    }
    walked.ran_out_of_time = until.took(SEARCH_TAKES);
    Ok(walked.ran_out_of_time)
}

fn rules_of(
    worktree: &Worktree,
    directory: &Wanted,
    above: Option<Arc<Rules>>,
    walked: &mut Walked,
) -> Arc<Rules> {
    let here = IGNORE_FILES.iter().filter_map(|name| {
        let path = directory.join(name);
        let content = match worktree.read_whole(&path, MAX_IGNORE_FILE) {
            Ok(content) => content,
            Err(error) if error.is_not_found() => return None,
            Err(error) => {
                walked.leave_out(format!("ignore rules, since {error}"));
                return None;
            }
        };
        let mut builder = GitignoreBuilder::new(directory.as_path());
        for line in String::from_utf8_lossy(&content).lines() {
            // A rule that is none hides nothing, as with git.
            let _no_rule = builder.add_line(None, line);
        }
        builder.build().ok()
    });
    Arc::new(Rules { here: here.collect(), above })
}

struct Entries {
    files: Vec<Wanted>,
    directories: Vec<Wanted>,
}

/// What is in a directory and not hidden, by name. Links are not followed.
fn entries(worktree: &Worktree, directory: &Wanted, rules: &Rules, walked: &mut Walked) -> Option<Entries> {
    let opened = match worktree.open_directory(directory) {
        Ok(opened) => opened,
        Err(error) => {
            walked.leave_out(error.to_string());
            return None;
        }
    };
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for entry in Dir::read_from(&opened).ok()? {
        let Ok(entry) = entry else { break };
        let Ok(name) = entry.file_name().to_str() else {
            walked.leave_out(format!("a name in `{directory}` that is no UTF-8"));
            continue;
        };
        if matches!(name, "." | "..") || name.eq_ignore_ascii_case(".git") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            kind => kind,
        };
        let path = directory.join(name);
        match kind {
            FileType::RegularFile if !rules.hide(&path, false) => files.push(path),
            FileType::Directory if !rules.hide(&path, true) => directories.push(path),
            _ => {}
        }
    }
    files.sort_unstable();
    directories.sort_unstable();
    Some(Entries { files, directories })
}
