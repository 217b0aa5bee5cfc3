//! The numbers that are policy: how long we wait, how much we keep. Each with its reason.

use std::time::Duration;

/// How long the supervisor tries to end what is left of a run. Only a process stuck in the kernel outlives a
/// SIGKILL, and waiting longer does not help.
pub const SWEEP_LIMIT: Duration = Duration::from_secs(5);

/// How long a sweep waits for the processes it killed before it looks again.
pub(crate) const SWEEP_PAUSE: Duration = Duration::from_millis(5);

/// How long a sandbox may take to end all in it, before it is ended as a whole, and to fold up then.
pub(crate) const SANDBOX_KILL_LIMIT: Duration = Duration::from_secs(2);

/// How long the supervisor may take to say anything after it was started.
pub(crate) const SHIM_START_LIMIT: Duration = Duration::from_secs(30);

/// How long a shim waits for what whoever calls on it has to say: it says it at once. Far less than the time between
/// a freeze and the end of a lease, so that a caller who is silent keeps the shim from nothing.
pub(crate) const ADOPTER_PATIENCE: Duration = Duration::from_millis(500);

/// How often, and after which pause, a shim is asked again that turned us away: it may not have seen yet that its worker
/// is dead.
pub const ADOPTION_TRIES: u32 = 25;

/// See [`ADOPTION_TRIES`].
pub(crate) const ADOPTION_PAUSE: Duration = Duration::from_millis(20);

/// How long a shim may take to greet whoever adopts its agent.
pub(crate) const GREETING_LIMIT: Duration = Duration::from_secs(5);

/// What is kept for an adopter at most. A run with more (tens of thousands of files that are not committed) ends with
/// its worker.
pub(crate) const MAX_MEMO: usize = 4 << 20;

/// The largest order or report between us and the supervisor. The kernel's own limit for arguments and
/// environment together is 6 MiB at most.
pub(crate) const MAX_FRAME: usize = 16 << 20;

/// How many escaped processes are named in a report; the rest are counted.
pub(crate) const MAX_NAMED_ESCAPED: usize = 16;
