//! The wire formats of the stand-in, through the real drivers and a real process: what was scripted is what
//! comes out.
#![expect(clippy::unwrap_used, reason = "a test stops where something goes wrong")]

mod again;
mod ends;
mod stage;
