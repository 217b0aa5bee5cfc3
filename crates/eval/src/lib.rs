//! Measures agents: cases, assertions, trials, statistics, reports.
//!
//! A [`case::Eval`] is what people write. A [`trial::Trial`] is all that is known of one attempt of an agent at a case. An [`assertion::Assertion`] is what is expected of it, and
//! [`grade::grade`] compares the two; it is pure, so that stored trials can be graded again. [`statistics`] says what many of them mean.
//!
//! **Invariant:** what the world around an agent did to it never counts as its failure, and what is not known is not zero.

pub mod assertion;
pub mod attempt;
pub mod case;
pub mod direct;
pub mod grade;
pub mod import;
pub mod judge;
pub mod mining;
pub mod mutation;
pub mod mutation_test;
pub mod oracle;
pub mod recorded_run;
pub mod report;
pub mod run;
pub mod statistics;
pub mod summary;
pub mod trial;
