//! Measures agents: cases, assertions, trials, statistics, reports.

pub mod statistics;
