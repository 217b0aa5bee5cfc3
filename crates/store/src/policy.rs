//! The numbers that are decisions, with the reason for each.

use std::time::Duration;

/// How long a writer waits for another process. A commit takes milliseconds: ten seconds is thousands of them.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections that only read. Each is a thread; they are opened when first needed.
pub(crate) const READERS: u32 = 4;

/// Bytes that the write-ahead log may keep between commits: one huge import should not fill the disk for ever.
pub(crate) const LARGEST_IDLE_WAL: &str = "16777216";

/// Pages that the write-ahead log gathers until they go to their places: as many as it may keep. The fewer times that
/// happens, the fewer times a page that is written often goes there.
pub(crate) const PAGES_OF_WAL: &str = "4000";

/// Connections to a PostgreSQL server at most: a worker does one thing at a time, and servers have few to give.
pub(crate) const CONNECTIONS: usize = 8;

/// A statement takes milliseconds. One that takes this long waits for something that will not come.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// After this the client gives up, if the server has not: then it is gone without a word.
pub(crate) const LONGEST_SILENCE: Duration = Duration::from_secs(45);

/// How long a server may be away until that is an error: longer than it takes to restart, shorter than a lease.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The first pause before another try, and the longest.
pub(crate) const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// Tries of a commit that others keep getting in the way of.
pub(crate) const MOST_TRIES: u32 = 20;

/// Others are told of changes at most this often: PostgreSQL hands out notifications one transaction after the other.
pub(crate) const BETWEEN_HINTS: Duration = Duration::from_millis(10);

/// A listener that has heard nothing for so long asks anew: a cut connection is silent, too.
pub(crate) const LONGEST_QUIET: Duration = Duration::from_secs(60);

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
