//! Processes that cannot get away.
//!
//! A process group is not enough: agents start their tools in sessions of their own, and some leave daemons
//! behind. So each agent runs under a *shim*, a small process of ours that is the subreaper of everything the
//! agent ever starts: whatever loses its parent becomes a child of the shim, and the shim ends it all, when the
//! agent ends, when we say so, and when we ourselves die (it sees its control socket close).
//!
//! An agent under a lease does not end with us: its shim keeps its pipes and waits until the end of the lease for
//! another process of ours that adopts it.
//!
//! Should the shim itself be killed, the agent dies with it (`PR_SET_PDEATHSIG`), the rest become children of
//! the worker if it called [`become_subreaper`], and are found by their session and by the run's id in their
//! environment. Linux only.

mod adopt;
mod adoption;
mod control;
mod freeze;
mod resolve;
mod sandboxed;
mod shim;
mod socket;
mod spawn;
mod sweep;
mod sys;
mod table;
mod wire;

pub use adopt::AdoptError;
pub(crate) use adopt::{Adoptable, Foundling, somebody_listens};
pub use resolve::find_program;
pub use shim::shim_main;
pub use spawn::{Ended, IdleShim, Launcher, SpawnError, SpawnSpec, Supervised};
pub use sweep::{
    become_subreaper, kill_processes_in, kill_processes_of_run, processes_marked, processes_of_run,
};
pub use table::ProcessId;
pub(crate) use table::working_dirs_of;
pub use wire::Escaped;

/// The variable that every process of a run inherits, and by which it can be found again.
pub const RUN_ID_VARIABLE: &str = "REHEARSAL_RUN_ID";
/// The variable that names the directory of a run.
pub const RUN_DIR_VARIABLE: &str = "REHEARSAL_TASK_DIR";

/// The first argument that makes a binary a shim: see [`shim_main`].
pub const SHIM_ARGUMENT: &str = "__shim";
