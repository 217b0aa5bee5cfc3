//! `read_file`: lines of a text, with their numbers.

use std::io::{self, BufRead, BufReader, Read, Seek};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::blocking;
use super::tool::{BuiltIn, ToolError};
use crate::Permission;
use crate::limits::{BINARY_HEAD, READ_LINE_BYTES, READ_LINES, READ_REACH, RESULT_HEAD, RESULT_TAIL};
use crate::worktree::{AccessError, Opened, Wanted, Worktree};

pub(super) struct ReadFile {
    pub(super) worktree: Arc<Worktree>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to the worktree.
    path: String,
    /// The first line to read; 1 if left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    offset: Option<u64>,
    /// How many lines; 2000 if left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    limit: Option<u64>,
}

#[async_trait]
impl BuiltIn for ReadFile {
    type Arguments = Arguments;

    const NAME: &'static str = "read_file";
    const SCHEMA: &'static str = include_str!("../../../../schemas/tools/read_file.json");
    const ABOUT: &'static str =
        "Read lines of a text file of the worktree, each with its number and a tab before it.";
    const NEEDS: Option<Permission> = Some(Permission::Read);
    const ONLY_READS: bool = true;

    async fn run(&self, asked: Arguments, cancel: &CancellationToken) -> Result<String, ToolError> {
        let worktree = Arc::clone(&self.worktree);
        blocking(cancel, move |_| {
            let wanted = worktree.wanted(&asked.path)?;
            let opened = worktree.read(&wanted)?;
            lines(opened, &wanted, asked.offset.unwrap_or(1).max(1), asked.limit.unwrap_or(READ_LINES))
        })
        .await
    }
}

fn lines(opened: Opened, wanted: &Wanted, first: u64, limit: u64) -> Result<String, ToolError> {
    let Opened { mut file, size } = opened;
    let io = |source: io::Error| AccessError::Io { path: wanted.to_string(), source };
    if is_binary(&mut file).map_err(io)? {
        return Err(ToolError::failed(format!(
            "`{wanted}` is binary ({size} bytes), and cannot be read as text"
        )));
    }
    let mut lines = Lines { from: BufReader::new(file.take(READ_REACH)), line: Vec::new(), number: 0 };
    let mut text = String::new();
    while lines.next().map_err(io)? {
        if lines.number < first {
            continue;
        }
        if lines.number - first >= limit {
            text.push_str(&format!("[… more lines follow; go on with `offset` {} …]\n", lines.number));
            break;
        }
        text.push_str(&format!("{:>6}\t{}\n", lines.number, lines.shown()));
        if text.len() > RESULT_HEAD + RESULT_TAIL - 2 * READ_LINE_BYTES {
            text.push_str(&format!(
                "[… the result is full, and the file has {size} bytes; go on with `offset` {} …]\n",
                lines.number + 1
            ));
            break;
        }
    }
    if text.is_empty() {
        return nothing(wanted, size, first, lines.number);
    }
    Ok(text)
}

fn nothing(wanted: &Wanted, size: u64, first: u64, last: u64) -> Result<String, ToolError> {
    match last {
        _ if size > READ_REACH => Err(ToolError::failed(format!(
            "line {first} of `{wanted}` ({size} bytes) is too far from its beginning; search it with `grep`"
        ))),
        0 => Ok(format!("`{wanted}` is empty")),
        last => Err(ToolError::failed(format!("`{wanted}` has only {last} lines"))),
    }
}

fn is_binary(file: &mut std::fs::File) -> io::Result<bool> {
    let mut head = Vec::new();
    file.take(BINARY_HEAD as u64).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(head.contains(&0))
}

/// Lines of any length, of which only so much is kept as is shown.
struct Lines<R> {
    from: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads the next line; whether there was one.
    fn next(&mut self) -> io::Result<bool> {
        self.line.clear();
        let mut any = false;
        loop {
            let buffer = self.from.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            any = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            // One more than is shown says that there was more.
            let room = (READ_LINE_BYTES + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            let used = end.map_or(buffer.len(), |end| end + 1);
            self.from.consume(used);
            if end.is_some() {
                break;
            }
        }
        self.number += u64::from(any);
        Ok(any)
    }

    fn shown(&self) -> String {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        if line.len() <= READ_LINE_BYTES {
            return String::from_utf8_lossy(line).into_owned();
        }
        format!("{}[… the line goes on …]", String::from_utf8_lossy(&line[..READ_LINE_BYTES]))
    }
}
