//! Confines a child process: a test run, a tool, later any agent.
//!
//! A [`Policy`] says what may be seen, written and used. [`Sandbox::prepare`] tries it once in a child that is thrown
//! away, steps down where the kernel refuses a layer, and knows from then on what holds: see [`Sandbox::report`].
//! [`Sandbox::spawn`] starts a command inside. Nothing of it outlives its [`Confined`], whatever it forks, and nothing
//! is left on the disk.
//!
//! ```no_run
//! # async fn example() -> Result<(), rehearsal_sandbox::SandboxError> {
//! use rehearsal_sandbox::{Command, Policy, Sandbox};
//! let sandbox = Sandbox::prepare(&Policy::new("/home/ann/project"))?;
//! let mut tests = sandbox.spawn(Command::new("pytest", "/home/ann/project").env("PATH", "/usr/bin:/bin"))?;
//! let ended = tests.wait().await;
//! assert!(ended.is_success() && ended.limits_hit.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! **The layers**, each used where the kernel has it: namespaces (user, mount, pid, ipc, uts, network), the whole file system
//! read-only but for what the policy names, home directories hidden, Landlock, seccomp, cgroups (v2 or v1), rlimits, no new
//! privileges, no capabilities.
//!
//! **What it does not do.** Unix sockets of the machine that lie outside of the home, `/run` and the temporary directories can be
//! connected to. A read-only file system is still readable: what the machine keeps readable for everybody outside of home
//! directories can be read. Time and CPU caches are shared.
//!
//! **Invariant:** between the fork and the exec only system calls are made: no allocation, no lock, no panic. The code that
//! runs there is in `child`, all that it needs is laid out before in a `Plan`. All `unsafe` is in `sys`.
//!
//! Linux only.

mod bubblewrap;
mod cgroup;
mod child;
mod command;
mod confined;
mod error;
mod filter;
mod home;
mod landlock;
mod layout;
mod means;
mod owner;
mod plan;
mod policy;
mod probe;
mod proven;
mod reap;
mod sandbox;
mod scratch;
mod sys;
mod written;

pub use command::Command;
pub use confined::{Confined, Ended, Status};
pub use error::{SandboxError, Stage};
pub use home::{HIDDEN, READABLE_IN_HOME, holds_secrets};
pub use policy::{Limits, Network, Policy};
pub use probe::probe;
pub use rehearsal_core::sandbox::{
    Demand, Layer, LayerReport, Layers, Limit, ProjectMode, Rung, SandboxReport, State,
};
pub use rustix::process::Signal;
pub use sandbox::Sandbox;
pub use written::{Change, Written, WrittenFile};
