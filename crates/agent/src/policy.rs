//! The numbers that are policy: how long we wait, how much we keep. Each with its reason.

use std::time::Duration;

/// From SIGTERM to SIGKILL. Agents write their session files on SIGTERM, which takes them well under a second;
/// a developer who cancels does not want to wait longer.
pub const TERMINATE_GRACE: Duration = Duration::from_secs(5);

/// From an agent's final event to SIGTERM. Every CLI measured ends within a second of its result; those that do
/// not hold on to a tool server or a daemon and never end.
pub const LINGER_GRACE: Duration = Duration::from_secs(5);

/// How long the supervisor tries to end what is left of a run. Only a process stuck in the kernel outlives a
/// SIGKILL, and waiting longer does not help.
pub const SWEEP_LIMIT: Duration = Duration::from_secs(5);

/// How long a sweep waits for the processes it killed before it looks again.
pub(crate) const SWEEP_PAUSE: Duration = Duration::from_millis(5);

/// How long a sandbox may take to end all in it, before it is ended as a whole, and to fold up then.
pub(crate) const SANDBOX_KILL_LIMIT: Duration = Duration::from_secs(2);

/// As good as never: a moment to wait for when no limit is set.
pub(crate) const NEVER: Duration = Duration::from_hours(365 * 24);

/// How long the pipes may stay open once every process of a run is gone: someone outside holds them.
pub(crate) const DRAIN_GRACE: Duration = Duration::from_secs(2);

/// How long the supervisor may take to say anything after it was started.
pub(crate) const SHIM_START_LIMIT: Duration = Duration::from_secs(30);

/// Beyond its grace and its sweep, how long the supervisor may take to report before we take over.
pub(crate) const SHIM_REPORT_MARGIN: Duration = Duration::from_secs(5);

/// How long a shim waits for what whoever calls on it has to say: it says it at once. Far less than the time between
/// a freeze and the end of a lease, so that a caller who is silent keeps the shim from nothing.
pub(crate) const ADOPTER_PATIENCE: Duration = Duration::from_millis(500);

/// How often, and after which pause, a shim is asked again that turned us away: it may not have seen yet that its worker
/// is dead.
pub(crate) const ADOPTION_TRIES: u32 = 25;
/// See [`ADOPTION_TRIES`].
pub(crate) const ADOPTION_PAUSE: Duration = Duration::from_millis(20);

/// How long a shim may take to greet whoever adopts its agent.
pub(crate) const GREETING_LIMIT: Duration = Duration::from_secs(5);

/// What is kept for an adopter at most. A run with more (tens of thousands of files that are not committed) ends with
/// its worker.
pub(crate) const MAX_MEMO: usize = 4 << 20;

/// How much of an agent's output is kept in memory until its line is whole. Longer lines are written in parts, and the
/// rest of one that was cut is lost when its worker dies.
pub(crate) const MAX_SPOOLED: u64 = 4 << 20;
/// From this size on, memory through which output went is given back: not after every line, for that takes time.
pub(crate) const SPOOL_RENEWED: u64 = 1 << 20;

/// The largest order or report between us and the supervisor. The kernel's own limit for arguments and
/// environment together is 6 MiB at most.
pub(crate) const MAX_FRAME: usize = 16 << 20;

/// How many escaped processes are named in a report; the rest are counted.
pub(crate) const MAX_NAMED_ESCAPED: usize = 16;

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

/// The longest one git command may take: a cold `git status` of a very large repository on a slow disk.
pub(crate) const GIT_LIMIT: Duration = Duration::from_mins(2);

/// How long the locks of a killed git are left alone while another git is at work in the repository, and how
/// often we look: a command that writes is over in well under a second.
pub(crate) const GIT_LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// See [`GIT_LOCK_PATIENCE`].
pub(crate) const GIT_LOCK_PAUSE: Duration = Duration::from_millis(10);

/// How many directories of branches are searched for locks. A repository with more has them packed.
pub(crate) const MAX_LOCK_DIRS: usize = 1_000;

/// The most commits listed for one run: one that merged the base branch would bring its whole history.
pub(crate) const MAX_COMMITS: usize = 500;

/// The longest chain of commits that is read without git: a run makes a few.
pub(crate) const MAX_CHAIN: usize = 64;

/// The largest commit or tree that is read without git. A directory of ten thousand files fits.
pub(crate) const MAX_GIT_OBJECT: usize = 1 << 20;

/// Trees that are read without git for one chain, all together: it must stay cheaper than to start git.
pub(crate) const MAX_CHAIN_TREES: usize = 4 << 20;

/// The longest path that is read from trees without git, in bytes: the kernel's limit.
pub(crate) const MAX_TREE_PATH: usize = 4096;

/// Dirty files that are compared by content, and up to which size: beyond that, size and time must do, so that
/// an unignored `node_modules` does not cost seconds.
pub(crate) const MAX_HASHED_FILES: usize = 200;
/// See [`MAX_HASHED_FILES`].
pub(crate) const MAX_HASHED_BYTES: u64 = 256 << 10;

/// How long a look at the repository holds. Between two iterations lie milliseconds; in a longer pause somebody
/// may have committed, and that is not the agent's work.
pub const SNAPSHOT_FRESH: Duration = Duration::from_millis(200);
