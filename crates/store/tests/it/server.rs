//! The PostgreSQL server that all tests of this process share. It ends with the process, however that ends.

use std::sync::OnceLock;

use rehearsal_store::Durability;
use rehearsal_store::scratch::{Scratch, ScratchError};

/// The server; none where PostgreSQL is not installed, which is said aloud.
pub(crate) fn server() -> Option<&'static Scratch> {
    static SERVER: OnceLock<Option<Scratch>> = OnceLock::new();
    SERVER.get_or_init(start).as_ref()
}

/// A server for one test, which may do with it what it likes.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
pub(crate) fn start() -> Option<Scratch> {
    match Scratch::start(Durability::UntilPowerFails) {
        Ok(server) => Some(server),
        Err(error @ ScratchError::NotInstalled) => {
            eprintln!("left out: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
