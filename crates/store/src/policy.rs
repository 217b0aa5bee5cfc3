//! The numbers that are decisions, with the reason for each.

use std::time::Duration;

/// How long a writer waits for another process. A commit takes milliseconds: ten seconds is thousands of them.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections that only read. Each is a thread; they are opened when first needed.
pub(crate) const READERS: u32 = 4;

/// Bytes that the write-ahead log may keep between commits: one huge import should not fill the disk for ever.
pub(crate) const LARGEST_IDLE_WAL: &str = "16777216";

/// Rows that go into one statement: enough to make its overhead small, few enough to hold.
pub(crate) const CHUNK: usize = 1_000;

/// Rows that are read at a time where all are read.
pub(crate) const PAGE: i64 = 1_000;

/// Tasks of one lane that a claim looks at: if so many in a row are held back each for itself, it can wait.
pub(crate) const CANDIDATES: i64 = 32;

/// Ids that an ambiguous prefix shows.
pub(crate) const MOST_CANDIDATES: i64 = 10;

/// Findings that [`verify`](crate::Store::verify) lists: whoever has a hundred does not need more.
pub(crate) const MOST_FINDINGS: usize = 100;

/// Runs of one project's tests that are remembered: enough to tell a flaky test from a broken one.
pub(crate) const TEST_HISTORY_RUNS: i64 = 200;

/// Bytes of their results: a project with very many tests has a shorter memory, not a larger file.
pub(crate) const TEST_HISTORY_BYTES: i64 = 16 << 20;

/// A title is one line in a list. In characters, as all of these.
pub const LONGEST_TITLE: usize = 500;

/// A description or a context goes into a prompt: a million characters are more than any model reads.
pub const LONGEST_TEXT: usize = 1_000_000;

/// A criterion, a reason, a session's description or a line of its journal: a page or two.
pub const LONGEST_LINE: usize = 20_000;

/// A label is a word.
pub const LONGEST_LABEL: usize = 100;

/// Criteria, labels or dependencies of one task, or criteria of a session.
pub const MOST_ITEMS: usize = 1_000;
