//! The crew, with scripted models and tools.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod context_overflow;
mod hostile_model;
mod prompts;
mod runner_flow;
mod scene;
mod stand_in_failures;
mod time_and_abort;
mod tool_permissions;
