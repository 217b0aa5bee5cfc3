//! The numbers that are policy: how long we wait, how much we keep. Each with its reason.

use std::time::Duration;

/// One call of `gh`. GitHub itself gives up after 10 s; the rest is for its retries.
pub(crate) const GH_LIMIT: Duration = Duration::from_secs(90);

/// The setup command of a worktree, which may install dependencies.
pub(crate) const SETUP_LIMIT: Duration = Duration::from_secs(30 * 60);

/// How long one waits for another process that prepares a worktree of the same repository. Under the lock there is
/// no checkout, so it is held for milliseconds.
pub(crate) const REPOSITORY_LOCK_LIMIT: Duration = Duration::from_secs(120);

/// How long one waits for a worktree that another process is preparing or clearing, before it is said to be busy.
pub(crate) const SLOT_LOCK_LIMIT: Duration = Duration::from_secs(2);

/// How long one waits for a worktree that this very process works in: whoever hands it over leaves it with its claim, and
/// whoever does not know yet that it was taken away stays for longer than anybody wants to wait.
pub(crate) const HANDOVER_LIMIT: Duration = Duration::from_millis(10);

/// How often a lock that is held is asked for again.
pub(crate) const LOCK_PAUSE: Duration = Duration::from_millis(3);

/// The most files that `.worktreeinclude` copies: it is for settings, not for dependencies.
pub(crate) const MAX_INCLUDED_FILES: usize = 10_000;

/// The most bytes that `.worktreeinclude` copies.
pub(crate) const MAX_INCLUDED_BYTES: u64 = 1 << 30;

/// The first port of slot 0. Above what services are usually given, below the kernel's ephemeral range (32768).
pub(crate) const FIRST_PORT: u16 = 20_000;

/// The ports of one slot: a web server, a database, an end-to-end stack.
pub(crate) const PORTS_PER_SLOT: u16 = 20;

/// How many slots have ports of their own below the ephemeral range.
pub(crate) const PORT_SLOTS: u32 = 600;

/// After this a reference of ours that holds something for a while has been forgotten: no fetch and no run of tests
/// takes a day.
pub(crate) const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(24 * 3600);

/// The largest file that git does not know and that is copied before a run: what people write is smaller, and what a build left is not
/// worth the time.
pub(crate) const LARGEST_COPIED: u64 = 16 << 20;
