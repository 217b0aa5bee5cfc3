//! The tools of the crew, on real files, a real repository and the real sandbox.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

mod bash;
mod place;
mod reading;
