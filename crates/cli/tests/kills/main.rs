//! The program is killed, its supervisor is killed, its disk is full: nothing is lost, nothing is doubled, no
//! process is left, and the next run goes on.
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "a random test tells its seed")]

mod dice;
mod eval_killed;
mod full_disk;
mod ledger;
mod loop_killed;
mod processes;
mod small_disk;
mod stage;
mod supervisor_killed;
