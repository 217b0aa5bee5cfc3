//! The tools of the crew, on real files, a real repository and the real sandbox.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

mod bash;
mod diffs;
mod editing;
mod hooks;
mod mcp;
mod permissions;
mod place;
mod reading;
mod reporting;
mod searching;
mod testing;
mod web;
