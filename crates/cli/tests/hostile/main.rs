//! Input from hell: broken, binary, endless, hostile. A clear error with its place and exit code 2, nothing
//! lost, little memory.
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent_files;
mod arguments;
mod files;
mod memory;
mod scene;
mod side_by_side;
