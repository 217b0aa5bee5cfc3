//! The numbers that are policy: how much a tool takes and gives, how long it may take. Each with its reason.

use std::time::Duration;

/// The largest arguments of a call. A file of ten thousand lines fits; more is no edit but an accident or an attack.
pub(crate) const MAX_ARGUMENTS: usize = 2 << 20;

/// What a model gets to read of one result, in bytes: about 8,000 tokens. The end matters as much as the beginning: compilers and
/// test runners say last what counts.
pub(crate) const RESULT_HEAD: usize = 20 << 10;
/// See [`RESULT_HEAD`].
pub(crate) const RESULT_TAIL: usize = 10 << 10;

/// Lines of a file that are read when nobody says how many.
pub(crate) const READ_LINES: u64 = 2000;
/// The longest line that is shown whole. Longer ones are generated.
pub(crate) const READ_LINE_BYTES: usize = 2000;
/// How far a file is read to find a line. A log of a gigabyte is for `grep`.
pub(crate) const READ_REACH: u64 = 64 << 20;
/// Where a NUL makes a file binary: as git looks.
pub(crate) const BINARY_HEAD: usize = 8000;

/// The largest file that is edited: it is in memory a few times over.
pub(crate) const MAX_EDITED: u64 = 4 << 20;

/// Files and lines that a search answers with.
pub(crate) const MAX_FOUND_FILES: usize = 500;
/// See [`MAX_FOUND_FILES`].
pub(crate) const MAX_FOUND_LINES: usize = 300;
/// The longest line that a search shows.
pub(crate) const FOUND_LINE_BYTES: usize = 300;
/// Larger files are not searched: they are data.
pub(crate) const MAX_SEARCHED: u64 = 32 << 20;
/// Larger ignore files are none.
pub(crate) const MAX_IGNORE_FILE: u64 = 64 << 10;
/// How long a search may take: a repository of a million files is searched in less.
pub(crate) const SEARCH_TAKES: Duration = Duration::from_secs(60);

/// How long a command may take when the model does not say, and at most.
pub(crate) const COMMAND_TAKES: Duration = Duration::from_mins(2);
/// See [`COMMAND_TAKES`].
pub(crate) const MAX_COMMAND_TAKES: Duration = Duration::from_mins(15);
/// From SIGTERM to SIGKILL, for a command whose time is over.
pub(crate) const COMMAND_GRACE: Duration = Duration::from_millis(500);
/// How long a pipe may stay open when every process is gone.
pub(crate) const DRAIN_GRACE: Duration = Duration::from_secs(2);
/// How long git may take to tell a difference.
pub(crate) const GIT_TAKES: Duration = Duration::from_mins(1);

/// How long a hook may take when its configuration does not say.
pub(crate) const HOOK_TAKES: Duration = Duration::from_secs(60);
/// The largest value of a variable that a hook is given: the kernel refuses one of more than 128 KiB.
pub(crate) const MAX_HOOK_VALUE: usize = 100 << 10;
/// What is kept of what a hook says.
pub(crate) const HOOK_SAYS: usize = 4 << 10;

/// How long a web search may take, and how much of its answer is read.
pub(crate) const WEB_TAKES: Duration = Duration::from_secs(30);
/// See [`WEB_TAKES`].
pub(crate) const WEB_BYTES: usize = 1 << 20;

/// How long a server of tools may take to start and to say what it has: `npx` downloads its package first.
pub(crate) const MCP_STARTS: Duration = Duration::from_secs(30);
/// How long one of its tools may take.
pub(crate) const MCP_TAKES: Duration = Duration::from_mins(10);
/// Tools of one server that are offered. A model chooses badly among hundreds.
pub(crate) const MCP_TOOLS: usize = 64;
/// The longest description of a tool that a server may put into the prompt.
pub(crate) const MCP_DESCRIPTION: usize = 2000;
