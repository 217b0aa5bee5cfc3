//! Workers are killed (SIGKILL) at every moment and at random ones, on one machine and on many, and their database with
//! them: every task comes to the end it would have come to, no effect happens twice, and nothing is left over.
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "a random test tells its seed and what it did")]

mod adoption;
mod checker;
#[expect(dead_code, reason = "the tests of the loop need more of it")]
#[path = "../kills/dice.rs"]
mod dice;
mod machines;
mod moments;
#[expect(dead_code, reason = "the tests of the loop need more of it")]
#[path = "../kills/processes.rs"]
mod processes;
mod random;
mod stage;
