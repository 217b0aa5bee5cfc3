//! `edit_file`: another text in the place of one.

mod matching;
mod nearest;

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::to_its_end;
use super::tool::{BuiltIn, ToolError};
use crate::Permission;
use crate::limits::MAX_EDITED;
use crate::worktree::{Wanted, Worktree};
use matching::{LineEnds, Match, Rung};

pub(super) struct EditFile {
    pub(super) worktree: Arc<Worktree>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to the worktree.
    path: String,
    /// The text to replace, as it is in the file, with enough around it to be there once.
    old_string: String,
    /// The text that takes its place.
    new_string: String,
    /// Replace it wherever it is.
    replace_all: Option<bool>,
}

#[async_trait]
impl BuiltIn for EditFile {
    type Arguments = Arguments;

    const NAME: &'static str = "edit_file";
    const SCHEMA: &'static str = include_str!("../../../../schemas/tools/edit_file.json");
    const ABOUT: &'static str = "Replace a text in a file of the worktree by another. The text must be there once, unless all of them \
    are to be replaced. Line numbers of `read_file` are not part of it.";
    const NEEDS: Option<Permission> = Some(Permission::Write);
    const ONLY_READS: bool = false;

    async fn run(&self, asked: Arguments, _cancel: &CancellationToken) -> Result<String, ToolError> {
        let worktree = Arc::clone(&self.worktree);
        to_its_end(move || {
            let wanted = worktree.wanted(&asked.path)?;
            let content = worktree.read_whole(&wanted, MAX_EDITED)?;
            let content = String::from_utf8(content).map_err(|_| {
                ToolError::failed(format!("`{wanted}` is no UTF-8 text, and cannot be edited"))
            })?;
            let edited = edit(&content, &asked, &wanted)?;
            worktree.write(&wanted, edited.content.as_bytes())?;
            Ok(edited.told)
        })
        .await
    }
}

#[derive(Debug)]
struct Edited {
    content: String,
    told: String,
}

fn edit(content: &str, asked: &Arguments, wanted: &Wanted) -> Result<Edited, ToolError> {
    let (old, new) = (&asked.old_string, &asked.new_string);
    if old.is_empty() {
        return Err(ToolError::failed("`old_string` is empty; `write_file` writes a whole file"));
    }
    if old == new {
        return Err(ToolError::failed("`old_string` and `new_string` are the same"));
    }
    let Some((rung, matches)) = matching::find(content, old) else {
        return Err(ToolError::failed(format!(
            "`old_string` is not in `{wanted}`. What is nearest to it:\n{}",
            nearest::nearest(content, old)
        )));
    };
    let lines = matching::line_numbers(content, &matches);
    if matches.len() > 1 && asked.replace_all != Some(true) {
        return Err(ToolError::failed(format!(
            "`old_string` is in `{wanted}` {} times (lines {}): add lines around it that make it unique, or set `replace_all`",
            matches.len(),
            listed(&lines)
        )));
    }
    let content = replaced(content, rung, &matches, asked).ok_or_else(|| {
        ToolError::failed(format!("`{wanted}` would have more than {MAX_EDITED} bytes then"))
    })?;
    let how = match rung {
        Rung::Exact => "",
        Rung::LineEnds => "; line ends or blanks at the end of lines were not as in `old_string`",
        Rung::Indentation => "; it is indented otherwise than `old_string`, and so was `new_string` then",
        Rung::Whitespace => "; its blanks are not those of `old_string`: read the lines again",
    };
    let plural = if lines.len() == 1 { "line" } else { "lines" };
    Ok(Edited { content, told: format!("edited `{wanted}` at {plural} {}{how}", listed(&lines)) })
}

/// None if it becomes too large: a short text can be there very often.
fn replaced(content: &str, rung: Rung, matches: &[Match], asked: &Arguments) -> Option<String> {
    let mut out = String::with_capacity(content.len());
    let mut from = 0;
    let ends = LineEnds::of(content);
    for found in matches {
        let there = &content[found.range.clone()];
        out.push_str(&content[from..found.range.start]);
        out.push_str(&matching::replacement(there, rung, ends, &asked.old_string, &asked.new_string));
        if out.len() as u64 > MAX_EDITED {
            return None;
        }
        from = found.range.end;
    }
    out.push_str(&content[from..]);
    (out.len() as u64 <= MAX_EDITED).then_some(out)
}

fn listed(lines: &[usize]) -> String {
    const LISTED: usize = 10;
    let mut list: Vec<String> = lines.iter().take(LISTED).map(ToString::to_string).collect();
    if lines.len() > LISTED {
        list.push("…".to_owned());
    }
    list.join(", ")
}

#[cfg(test)]
mod tests;
