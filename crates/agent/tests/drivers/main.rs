//! The drivers, seen from outside: what they run, and what they make of what comes back.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod command_lines;
mod hostile_output;
mod recorded_runs;
mod told_ends;
