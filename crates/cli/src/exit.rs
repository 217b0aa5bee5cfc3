//! Exit codes: an API. Scripts depend on them; they never change their meaning.

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Ok = 0,
    Internal = 1,
    Usage = 2,
    Red = 3,
    Git = 4,
    Forge = 5,
    Agent = 6,
    NeedsHuman = 7,
    Budget = 8,
    Sandbox = 9,
    TryLater = 75,
    Timeout = 124,
    Interrupted = 130,
    Terminated = 143,
}

/// What each code means, as `--help` shows it.
pub(crate) const TABLE: &str = "\
Exit codes:
  0    ok
  1    internal error
  2    usage or configuration
  3    a gate is red: a check failed
  4    git
  5    forge
  6    an agent failed
  7    needs a human
  8    budget reached
  9    sandbox unavailable
  75   rate-limited: try again later
  124  timeout
  130  interrupted, 143 terminated";

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
