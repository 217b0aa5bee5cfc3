//! What runs between the fork and the exec, and the init that stays.
//!
//! The parent forks a child into new namespaces. That child lays everything out ([`set_up`]), forks the *target*, which
//! restricts itself and executes the command ([`target`]), and stays as the init of the namespace ([`init`]): it reaps,
//! passes signals on, and ends everything when the target ends, when it is told to, or when the parent is gone.
//!
//! **Invariant:** nothing here allocates, locks, prints or panics: another thread of the parent may have held any lock when
//! the fork happened, and it will never be released in the copy. Only system calls, on data that the parent laid out.
//!
//! **Invariant:** the init is a copy of the parent's memory. It is hidden from the target (not dumpable, outside of the target's
//! Landlock domain), and closes every descriptor but its own.

mod init;
mod set_up;
mod target;
mod wire;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

pub(crate) use set_up::Slots;
pub(crate) use wire::{Ending, KILL_ALL, Message, receive};

use crate::command::Executable;
use crate::error::Stage;
use crate::plan::Plan;
use crate::sys::{self, Forked};
use rustix::io::Errno;

/// What to do once everything is laid out.
pub(crate) enum Job {
    /// Nothing: it was only to be tried.
    Try,
    /// Execute this.
    Run(Executable),
}

pub(crate) struct Launch {
    pub(crate) plan: Arc<Plan>,
    pub(crate) job: Job,
    /// Open `cgroup.procs` files that the target writes itself into.
    pub(crate) groups: Vec<OwnedFd>,
    /// The child's end of the control socket.
    pub(crate) control: OwnedFd,
}

/// A step that failed, and what the system said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    pub(crate) errno: Errno,
}

/// Gives errors of system calls their stage.
trait AtStage<T> {
    fn at(self, stage: Stage) -> Result<T, Failure>;
}

impl<T> AtStage<T> for Result<T, Errno> {
    fn at(self, stage: Stage) -> Result<T, Failure> {
        self.map_err(|errno| Failure { stage, errno })
    }
}

/// Forks a child for this launch. What becomes of it is told on the control socket.
pub(crate) fn start(mut launch: Launch) -> Result<Forked, Errno> {
    let mut slots = Slots::new(&launch.plan);
    sys::fork(namespace_flags(&launch.plan), || become_init(&mut launch, &mut slots))
}

fn become_init(launch: &mut Launch, slots: &mut Slots) -> ! {
    let Launch { plan, job, groups, control } = launch;
    let control = control.as_fd();
    let target = set_up::set_up(plan, slots).and_then(|()| {
        let mut target = || target::become_target(plan, job, groups, control);
        let target = sys::fork_beside(&mut slots.stack, sys::Files::Own, &mut target, |_| ());
        target.map(|(target, ())| target).at(Stage::Start)
    });
    match target {
        Ok(target) => {
            let is_namespaced = plan.namespaces.is_some();
            init::supervise(control, slots.handed_over.as_ref(), target, is_namespaced)
        }
        Err(failure) => {
            wire::send(control, Message::Failed(failure));
            sys::exit(1)
        }
    }
}

fn namespace_flags(plan: &Plan) -> libc::c_int {
    if plan.namespaces.is_none() {
        return 0;
    }
    // The network is made later: that takes as long as all else.
    libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS
}
