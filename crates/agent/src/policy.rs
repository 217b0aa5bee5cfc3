//! The numbers that are policy: how long we wait, how much we keep. Each with its reason.

use std::time::Duration;

/// From SIGTERM to SIGKILL. Agents write their session files on SIGTERM, which takes them well under a second;
/// a developer who cancels does not want to wait longer.
pub const TERMINATE_GRACE: Duration = Duration::from_secs(5);

/// From an agent's final event to SIGTERM. Every CLI measured ends within a second of its result; those that do
/// not hold on to a tool server or a daemon and never end.
pub const LINGER_GRACE: Duration = Duration::from_secs(5);

/// As good as never: a moment to wait for when no limit is set.
pub(crate) const NEVER: Duration = Duration::from_hours(365 * 24);

/// How long the pipes may stay open once every process of a run is gone: someone outside holds them.
pub(crate) const DRAIN_GRACE: Duration = Duration::from_secs(2);

/// Beyond its grace and its sweep, how long the supervisor may take to report before we take over.
pub(crate) const SHIM_REPORT_MARGIN: Duration = Duration::from_secs(5);

/// How much of an agent's output is kept in memory until its line is whole. Longer lines are written in parts, and the
/// rest of one that was cut is lost when its worker dies.
pub(crate) const MAX_SPOOLED: u64 = 4 << 20;
/// From this size on, memory through which output went is given back: not after every line, for that takes time.
pub(crate) const SPOOL_RENEWED: u64 = 1 << 20;

/// One read from an agent's pipe: the size of a pipe's buffer on Linux.
pub(crate) const READ_CHUNK: usize = 64 << 10;

/// The end of standard error that a parser gets to see: a stack trace fits, a day of warnings does not.
pub(crate) const STDERR_TAIL: usize = 64 << 10;

/// The largest log file of a run. An agent in a printing loop must not fill the disk of everyone else.
pub(crate) const MAX_LOG_BYTES: u64 = 256 << 20;

/// The largest `result.json`. It holds a verdict and a comment, not a transcript.
pub(crate) const MAX_RESULT_BYTES: u64 = 1 << 20;

/// The largest report of an agent on its tasks.
pub(crate) const MAX_REPORT_BYTES: u64 = 4 << 20;

/// The most commits listed for one run: one that merged the base branch would bring its whole history.
pub(crate) const MAX_COMMITS: usize = 500;

/// Dirty files that are compared by content, and up to which size: beyond that, size and time must do, so that
/// an unignored `node_modules` does not cost seconds.
pub(crate) const MAX_HASHED_FILES: usize = 200;
/// See [`MAX_HASHED_FILES`].
pub(crate) const MAX_HASHED_BYTES: u64 = 256 << 10;
