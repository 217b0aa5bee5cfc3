//! Laying out the namespaces: who we are in them, their network, their file system.
//!
//! Of the time that this takes most goes to the network, of which the kernel makes much anew for each, and most of that is
//! waiting. So another process lays the files out meanwhile, in the same memory and the same mount namespace.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdir, open, openat2, symlink};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount, mount_bind_recursive, move_mount,
    open_tree,
};
use rustix::process::{WaitOptions, umask, waitpid};

use super::{AtStage, Failure};
use crate::error::Stage;
use crate::plan::{MountStep, Namespaces, Plan, Proc};
use crate::sys;

/// Many times what the target uses. Pages that it does not touch cost nothing.
const STACK_SIZE: usize = 256 * 1024;

/// Room for what the child needs, made before the fork.
pub(crate) struct Slots {
    trees: Vec<Option<OwnedFd>>,
    /// For a process that shares this memory: the one that lays out the files, and then the target until it executes.
    pub(super) stack: Vec<u8>,
    /// What the parent gets.
    pub(super) handed_over: Option<OwnedFd>,
}

impl Slots {
    pub(super) fn new(plan: &Plan) -> Self {
        let count = plan.namespaces.as_ref().map_or(0, |namespaces| namespaces.slots);
        Self { trees: (0..count).map(|_| None).collect(), stack: vec![0; STACK_SIZE], handed_over: None }
    }

    fn put(&mut self, slot: usize, tree: OwnedFd) -> Result<(), Errno> {
        *self.trees.get_mut(slot).ok_or(Errno::INVAL)? = Some(tree);
        Ok(())
    }

    fn take(&mut self, slot: usize) -> Result<OwnedFd, Errno> {
        self.trees.get_mut(slot).and_then(Option::take).ok_or(Errno::INVAL)
    }
}

pub(super) fn set_up(plan: &Plan, slots: &mut Slots) -> Result<(), Failure> {
    if let Some(namespaces) = &plan.namespaces {
        map_user(namespaces).at(Stage::Identity)?;
        if namespaces.network {
            lay_out_beside(namespaces, slots)?;
        } else {
            lay_out(namespaces, slots)?;
        }
    } else {
        sys::adopt_orphans().at(Stage::Start)?;
    }
    sys::hide_memory().at(Stage::Privileges)?;
    if plan.drop_privileges {
        sys::forbid_new_privileges().at(Stage::Privileges)?;
        sys::drop_capabilities().at(Stage::Privileges)?;
    }
    Ok(())
}

/// Makes the network while another process lays out the files.
fn lay_out_beside(namespaces: &Namespaces, slots: &mut Slots) -> Result<(), Failure> {
    let mut stack = std::mem::take(&mut slots.stack);
    let mut laid_out = Err(Failure { stage: Stage::Mounts, errno: Errno::CHILD });
    let mut files = || {
        laid_out = lay_out(namespaces, slots);
        sys::exit(0)
    };
    let network = |helper| {
        sys::put_aside(helper);
        make_network()
    };
    let beside = sys::fork_beside(&mut stack, sys::Files::Shared, &mut files, network);
    let (helper, network) = beside.at(Stage::Start)?;
    let _ended = waitpid(Some(helper), WaitOptions::empty());
    slots.stack = stack;
    network.and(laid_out)
}

fn make_network() -> Result<(), Failure> {
    sys::leave_network().at(Stage::Start)?;
    sys::bring_up_loopback().at(Stage::Loopback)
}

fn lay_out(namespaces: &Namespaces, slots: &mut Slots) -> Result<(), Failure> {
    let mask = umask(Mode::empty());
    for step in &namespaces.mounts {
        let stage = if matches!(step, MountStep::Overlay { .. }) { Stage::Overlay } else { Stage::Mounts };
        take_step(step, slots).at(stage)?;
    }
    umask(mask);
    mount_proc(namespaces.proc, slots).at(Stage::Proc)
}

/// Writes who we are. Groups must be given up first: else a user could leave a group that is denied something.
fn map_user(namespaces: &Namespaces) -> Result<(), Errno> {
    let files = [
        (c"/proc/self/setgroups", "deny"),
        (c"/proc/self/uid_map", namespaces.user_map.as_str()),
        (c"/proc/self/gid_map", namespaces.group_map.as_str()),
    ];
    for (path, content) in files {
        let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::io::write(file, content.as_bytes())?;
    }
    Ok(())
}

fn take_step(step: &MountStep, slots: &mut Slots) -> Result<(), Errno> {
    match step {
        MountStep::Copy { from, slot } => {
            let place = openat2(
                CWD,
                from.as_c_str(),
                OFlags::PATH | OFlags::CLOEXEC,
                Mode::empty(),
                ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
            )?;
            let flags = OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_RECURSIVE
                | OpenTreeFlags::AT_EMPTY_PATH;
            slots.put(*slot, open_tree(place, c"", flags)?)
        }
        MountStep::ReadOnly => sys::set_all_mounts(true),
        MountStep::Memory { at, options } => {
            let flags = MountFlags::NOSUID | MountFlags::NODEV;
            mount(c"tmpfs", at.as_c_str(), c"tmpfs", flags, options.as_c_str())
        }
        MountStep::Directory { path, mode } => {
            unless_there(mkdir(path.as_c_str(), Mode::from_raw_mode(*mode)))
        }
        MountStep::File { path } => {
            let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            open(path.as_c_str(), flags, Mode::from_raw_mode(0o600)).map(drop)
        }
        MountStep::Link { path, to } => unless_there(symlink(to.as_c_str(), path.as_c_str())),
        MountStep::Overlay { lower, upper, work, slot } => {
            let overlay = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_set_string(overlay.as_fd(), c"lowerdir", lower.as_c_str())?;
            fsconfig_set_string(overlay.as_fd(), c"upperdir", upper.as_c_str())?;
            fsconfig_set_string(overlay.as_fd(), c"workdir", work.as_c_str())?;
            fsconfig_set_flag(overlay.as_fd(), c"userxattr")?;
            fsconfig_create(overlay.as_fd())?;
            let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
            slots.put(*slot, fsmount(overlay.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
        }
        MountStep::HandOver { path } => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            slots.handed_over = Some(open(path.as_c_str(), flags, Mode::empty())?);
            Ok(())
        }
        MountStep::Attach { slot, at } => attach(slots.take(*slot)?, at),
        MountStep::Bind { from, at } => mount_bind_recursive(from.as_c_str(), at.as_c_str()),
        MountStep::Terminals { at } => {
            let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
            mount(c"devpts", at.as_c_str(), c"devpts", flags, c"newinstance,ptmxmode=0666,mode=620")
        }
    }
}

/// Over the private file system, which so vanishes from sight.
fn mount_proc(proc: Proc, slots: &mut Slots) -> Result<(), Errno> {
    match proc {
        Proc::Fresh => {
            let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            mount(c"proc", c"/proc", c"proc", flags, None)
        }
        Proc::Machine { slot } => attach(slots.take(slot)?, c"/proc"),
    }
}

fn attach(tree: OwnedFd, at: &CStr) -> Result<(), Errno> {
    move_mount(tree, c"", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

fn unless_there(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::EXIST) => Ok(()),
        other => other,
    }
}
