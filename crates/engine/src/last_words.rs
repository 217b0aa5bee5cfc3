//! The end of what an agent wrote to standard error, where one that broke down often says why.

use std::io::{Read, Seek, SeekFrom};

use camino::Utf8Path;

/// How much of the file is looked at, how many lines of that are kept, and how much of a line.
const TAIL_BYTES: u64 = 4 << 10;
const LINES: usize = 5;
const LONGEST: usize = 400;

/// The last lines of a run's standard error; none if it wrote none.
pub fn last_words(run_dir: &Utf8Path) -> Vec<String> {
    let tail = tail_of(&run_dir.join("stderr.log")).unwrap_or_default();
    let text = String::from_utf8_lossy(&tail);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let short = |line: &&str| line.chars().take(LONGEST).collect();
    lines[lines.len().saturating_sub(LINES)..].iter().map(short).collect()
}

fn tail_of(path: &Utf8Path) -> std::io::Result<Vec<u8>> {
    let mut file = fs_err::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(tail)
}
