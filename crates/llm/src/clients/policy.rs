//! How patient a client is, with the reason for each number.

use std::time::Duration;

/// How a client behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// How long it waits, and how much it takes.
    pub limits: Limits,
    /// How often it asks again.
    pub retry: RetryPolicy,
    /// When it stops asking.
    pub breaker: BreakerPolicy,
    /// What the jitter of its waits follows from.
    pub seed: u64,
}

/// What one try may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For the connection, with TLS.
    pub connect: Duration,
    /// From the request to the beginning of the answer.
    pub first_byte: Duration,
    /// From one piece of the answer to the next.
    pub idle: Duration,
    /// From the request to the end of the answer.
    pub total: Duration,
    /// Of the answer, as it comes over the wire.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            // An answer in one piece begins when it is finished; models think for minutes.
            first_byte: Duration::from_mins(10),
            // Vendors send pings every few seconds; those that do not may think for two minutes.
            idle: Duration::from_mins(3),
            total: Duration::from_mins(30),
            // 128,000 tokens, each in a frame of its own, have about 40 MB.
            answer_bytes: 128 << 20,
        }
    }
}

/// When a request is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// In all, the first one included.
    pub tries: u32,
    /// The longest wait before the second try. It doubles with each try; the wait itself is anything up to it (full jitter), so
    /// that clients do not come back in step.
    pub first_wait: Duration,
    /// The longest wait that is sat through. What takes longer is told to the caller, who can do something else meanwhile.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { tries: 4, first_wait: Duration::from_secs(1), longest_wait: Duration::from_mins(1) }
    }
}

/// When a vendor is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// After so many failures in a row, all calls together.
    pub failures: u32,
    /// For so long. Then one request tries it out.
    pub rest: Duration,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        // More than one call's tries, so that a single unlucky call does not stop all others.
        Self { failures: 8, rest: Duration::from_secs(30) }
    }
}
