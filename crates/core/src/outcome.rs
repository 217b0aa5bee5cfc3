//! How a run ends, who is to blame for it, and what that costs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It returned this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Exit {
    /// Whether the process itself said that all went well.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// The signal that a status stands for: shells, and programs that catch a signal, return 128 and its number.
    /// Only the signals that end processes; other high statuses have other meanings (gemini: 401 becomes 145).
    pub fn signal_told_as_status(self) -> Option<i32> {
        match self {
            Self::Code(code @ (129..=132 | 134..=137 | 139 | 141 | 143)) => Some(code - 128),
            _ => None,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "signal {signal} ({name})"),
                None => write!(f, "signal {signal}"),
            },
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        6 => "SIGABRT",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return None,
    })
}

/// Which of the two limits a run hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimeLimit {
    /// Nothing came from the agent for too long.
    Idle,
    /// The run as a whole took too long.
    Total,
}

/// Whose failure it is. A system's failure is never the task's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// Nobody: a proper end.
    Nobody,
    /// The task could not be done as it stands.
    Task,
    /// The agent broke down.
    Agent,
    /// The world around it: limits, keys, disks, networks.
    System,
    /// Whoever stopped it.
    User,
}

/// The typed end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// The work is done.
    Done,
    /// A reviewer let it pass.
    Approved,
    /// A reviewer sent it back.
    Rejected {
        /// What has to change; goes into the next prompt.
        comment: String,
    },
    /// A proper end, with more to do.
    Continue {
        /// What the agent wants the next iteration to know.
        message: String,
    },
    /// A proper end that left the repository as it was.
    NoChanges,
    /// It ran into its turn limit, or said that it needs another run in the same place.
    NeedsContinuation {
        /// Why it stopped.
        reason: String,
    },
    /// A human is needed.
    Blocked {
        /// What for.
        reason: String,
    },
    /// The agent gave up, or its request was refused for what it contained.
    Failed {
        /// Why.
        reason: String,
    },
    /// The money, token or turn budget of the run is used up.
    BudgetReached {
        /// Which limit.
        reason: String,
    },
    /// The process ended without a proper end of its work.
    Crashed {
        /// How it ended.
        exit: Exit,
    },
    /// We ended it, because a time limit was reached.
    TimedOut {
        /// Which limit.
        limit: TimeLimit,
        /// After how long.
        after_ms: u64,
    },
    /// Its output broke the format that it promised.
    ProtocolError {
        /// What was wrong.
        reason: String,
    },
    /// It ended well and said nothing.
    EmptyOutput,
    /// Too many requests; a wait helps.
    RateLimited {
        /// When it may go on, if the vendor said so.
        until: Option<Timestamp>,
    },
    /// The plan's quota is used up.
    QuotaExhausted {
        /// When it is filled again, if the vendor said so.
        until: Option<Timestamp>,
    },
    /// The vendor's servers cannot keep up, or fail.
    Overloaded,
    /// The model cannot be reached.
    Unreachable {
        /// What the network said.
        reason: String,
    },
    /// No key, or one that is not accepted.
    AuthFailed {
        /// What the agent said.
        reason: String,
    },
    /// The agent's program is not there.
    AgentMissing {
        /// Which program.
        program: String,
    },
    /// It was not allowed to do its work.
    PermissionDenied {
        /// What was denied.
        reason: String,
    },
    /// The confinement that was asked for cannot be set up here.
    SandboxUnavailable {
        /// Why.
        reason: String,
    },
    /// There is no room to write.
    DiskFull {
        /// Where, or what could not be done.
        path: String,
    },
    /// A person or a signal stopped it.
    Cancelled,
}

/// The name of an outcome, as flows and listings write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is described at the `Outcome` of the same name")]
pub enum OutcomeName {
    Done,
    Approved,
    Rejected,
    Continue,
    NoChanges,
    NeedsContinuation,
    Blocked,
    Failed,
    BudgetReached,
    Crashed,
    TimedOut,
    ProtocolError,
    EmptyOutput,
    RateLimited,
    QuotaExhausted,
    Overloaded,
    Unreachable,
    AuthFailed,
    AgentMissing,
    PermissionDenied,
    SandboxUnavailable,
    DiskFull,
    Cancelled,
}

impl OutcomeName {
    /// Every outcome there is.
    pub const ALL: [Self; 23] = [
        Self::Done,
        Self::Approved,
        Self::Rejected,
        Self::Continue,
        Self::NoChanges,
        Self::NeedsContinuation,
        Self::Blocked,
        Self::Failed,
        Self::BudgetReached,
        Self::Crashed,
        Self::TimedOut,
        Self::ProtocolError,
        Self::EmptyOutput,
        Self::RateLimited,
        Self::QuotaExhausted,
        Self::Overloaded,
        Self::Unreachable,
        Self::AuthFailed,
        Self::AgentMissing,
        Self::PermissionDenied,
        Self::SandboxUnavailable,
        Self::DiskFull,
        Self::Cancelled,
    ];

    /// The name as users write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Continue => "continue",
            Self::NoChanges => "no_changes",
            Self::NeedsContinuation => "needs_continuation",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::BudgetReached => "budget_reached",
            Self::Crashed => "crashed",
            Self::TimedOut => "timed_out",
            Self::ProtocolError => "protocol_error",
            Self::EmptyOutput => "empty_output",
            Self::RateLimited => "rate_limited",
            Self::QuotaExhausted => "quota_exhausted",
            Self::Overloaded => "overloaded",
            Self::Unreachable => "unreachable",
            Self::AuthFailed => "auth_failed",
            Self::AgentMissing => "agent_missing",
            Self::PermissionDenied => "permission_denied",
            Self::SandboxUnavailable => "sandbox_unavailable",
            Self::DiskFull => "disk_full",
            Self::Cancelled => "cancelled",
        }
    }

    /// Who is to blame for it.
    pub fn blame(self) -> Blame {
        match self {
            Self::Done
            | Self::Approved
            | Self::Rejected
            | Self::Continue
            | Self::NoChanges
            | Self::NeedsContinuation => Blame::Nobody,
            Self::Blocked | Self::Failed | Self::BudgetReached => Blame::Task,
            Self::Crashed | Self::TimedOut | Self::ProtocolError | Self::EmptyOutput => Blame::Agent,
            Self::RateLimited
            | Self::QuotaExhausted
            | Self::Overloaded
            | Self::Unreachable
            | Self::AuthFailed
            | Self::AgentMissing
            | Self::PermissionDenied
            | Self::SandboxUnavailable
            | Self::DiskFull => Blame::System,
            Self::Cancelled => Blame::User,
        }
    }

    /// Whether it uses up one of the task's attempts.
    pub fn costs_attempt(self) -> bool {
        self != Self::NeedsContinuation && !matches!(self.blame(), Blame::System | Blame::User)
    }

    /// Whether another agent may be able to work meanwhile: it is this agent's model, login or program that is not to be had.
    pub fn is_of_one_agent(self) -> bool {
        self.passes_with_time() || matches!(self, Self::AuthFailed | Self::AgentMissing)
    }

    /// Whether waiting alone can cure it. The other failures of the system need a hand.
    pub fn passes_with_time(self) -> bool {
        matches!(self, Self::RateLimited | Self::QuotaExhausted | Self::Overloaded | Self::Unreachable)
    }
}

impl fmt::Display for OutcomeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Outcome {
    /// Its name alone.
    pub fn name(&self) -> OutcomeName {
        match self {
            Self::Done => OutcomeName::Done,
            Self::Approved => OutcomeName::Approved,
            Self::Rejected { .. } => OutcomeName::Rejected,
            Self::Continue { .. } => OutcomeName::Continue,
            Self::NoChanges => OutcomeName::NoChanges,
            Self::NeedsContinuation { .. } => OutcomeName::NeedsContinuation,
            Self::Blocked { .. } => OutcomeName::Blocked,
            Self::Failed { .. } => OutcomeName::Failed,
            Self::BudgetReached { .. } => OutcomeName::BudgetReached,
            Self::Crashed { .. } => OutcomeName::Crashed,
            Self::TimedOut { .. } => OutcomeName::TimedOut,
            Self::ProtocolError { .. } => OutcomeName::ProtocolError,
            Self::EmptyOutput => OutcomeName::EmptyOutput,
            Self::RateLimited { .. } => OutcomeName::RateLimited,
            Self::QuotaExhausted { .. } => OutcomeName::QuotaExhausted,
            Self::Overloaded => OutcomeName::Overloaded,
            Self::Unreachable { .. } => OutcomeName::Unreachable,
            Self::AuthFailed { .. } => OutcomeName::AuthFailed,
            Self::AgentMissing { .. } => OutcomeName::AgentMissing,
            Self::PermissionDenied { .. } => OutcomeName::PermissionDenied,
            Self::SandboxUnavailable { .. } => OutcomeName::SandboxUnavailable,
            Self::DiskFull { .. } => OutcomeName::DiskFull,
            Self::Cancelled => OutcomeName::Cancelled,
        }
    }

    /// Who is to blame for it.
    pub fn blame(&self) -> Blame {
        self.name().blame()
    }

    /// When the vendor said that it may go on.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::RateLimited { until } | Self::QuotaExhausted { until } => *until,
            _ => None,
        }
    }

    /// What is known beyond the name, in a few words.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Rejected { comment: text }
            | Self::Continue { message: text }
            | Self::NeedsContinuation { reason: text }
            | Self::Blocked { reason: text }
            | Self::Failed { reason: text }
            | Self::BudgetReached { reason: text }
            | Self::ProtocolError { reason: text }
            | Self::Unreachable { reason: text }
            | Self::AuthFailed { reason: text }
            | Self::PermissionDenied { reason: text }
            | Self::SandboxUnavailable { reason: text } => Some(text.clone()).filter(|text| !text.is_empty()),
            Self::AgentMissing { program } => Some(format!("`{program}` was not found")),
            Self::DiskFull { path } if path.starts_with('/') => Some(format!("no space left at `{path}`")),
            Self::DiskFull { path: what } => Some(format!("no space left: {what}")),
            Self::Crashed { exit } => Some(exit.to_string()),
            Self::TimedOut { limit, after_ms } => {
                let what = match limit {
                    TimeLimit::Idle => "silent",
                    TimeLimit::Total => "running",
                };
                Some(format!("{what} for {} s", after_ms / 1000))
            }
            Self::Done
            | Self::Approved
            | Self::NoChanges
            | Self::EmptyOutput
            | Self::RateLimited { .. }
            | Self::QuotaExhausted { .. }
            | Self::Overloaded
            | Self::Cancelled => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail() {
            Some(detail) => write!(f, "{}: {detail}", self.name()),
            None => self.name().fmt(f),
        }
    }
}
