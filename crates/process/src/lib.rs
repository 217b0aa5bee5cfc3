//! The one way a child process is run.
//!
//! A [`Command`] runs to its end within a time limit, with bounded output, in a process group that is killed if the
//! caller gives up.
//!
//! ```no_run
//! # async fn example() -> Result<(), rehearsal_process::RunError> {
//! use rehearsal_process::{Command, Keep};
//!
//! let output = Command::new("make", "/home/ann/project").args(["test"]).keep(Keep::Tail(4096)).run().await?;
//! assert!(output.status.success(), "{}", output.stderr);
//! # Ok(())
//! # }
//! ```
//!
//! A process group is not enough for agents: they start their tools in sessions of their own, and some leave daemons
//! behind. So each agent runs under a *shim*, a small process of ours that is the subreaper of everything the agent
//! ever starts: whatever loses its parent becomes a child of the shim, and the shim ends it all when the agent ends,
//! when we say so, and when we ourselves die (it sees its control socket close). [`Supervised`] is our end of it.
//!
//! An agent under a [`Lease`] does not end with us: its shim keeps its pipes and waits until the end of the lease for
//! another process of ours that adopts it.
//!
//! Should the shim itself be killed, the agent dies with it (`PR_SET_PDEATHSIG`), the rest become children of the
//! worker if it called [`become_subreaper`], and are found by their session and by the run's id in their environment.
//! Linux only.
//!
//! **Invariant:** dropping a run or a [`Supervised`] ends all of it.
#![expect(clippy::disallowed_methods, reason = "this is where processes are started")]

mod adopt;
mod adoption;
mod command;
mod control;
mod freeze;
mod lease;
mod policy;
mod resolve;
mod sandboxed;
mod shim;
mod socket;
mod spawn;
mod sweep;
mod sys;
mod table;
mod wire;

pub use adopt::{AdoptError, Adoptable, Foundling, somebody_listens};
pub use command::{Command, Input, Keep, Output, RunError, block_on, run_in_terminal};
pub use lease::{BootInstant, Lease, LeaseKeeper, TimeLeft};
pub use policy::{ADOPTION_TRIES, SWEEP_LIMIT};
pub use resolve::find_program;
pub use shim::shim_main;
pub use spawn::{Ended, IdleShim, Launcher, SpawnError, SpawnSpec, Supervised};
pub use sweep::{
    become_subreaper, kill_processes_in, kill_processes_marked, kill_processes_of_run, processes_marked,
    processes_of_run,
};
pub use table::{ProcessId, is_below_agent, processes_at_work};
pub use wire::Escaped;

/// The variable that every process of a run inherits, and by which it can be found again.
pub const RUN_ID_VARIABLE: &str = "REHEARSAL_RUN_ID";
/// The variable that names the directory of a run.
pub const RUN_DIR_VARIABLE: &str = "REHEARSAL_TASK_DIR";

/// The first argument that makes a binary a shim: see [`shim_main`].
pub const SHIM_ARGUMENT: &str = "__shim";
