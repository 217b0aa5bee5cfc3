//! The wire formats of the stand-in, through the real drivers and a real process: what was scripted is what
//! comes out.
#![expect(clippy::unwrap_used, reason = "a test stops where something goes wrong")]
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]

mod again;
mod ends;
mod stage;
