//! All that a child needs between its fork and its exec, laid out before, so that it need not allocate.

use std::ffi::CString;

use libc::sock_filter;
use rustix::process::{Resource, Rlimit};

use crate::sys::LandlockHandled;

/// How to confine. One is made for a sandbox, and used for each of its processes.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) namespaces: Option<Namespaces>,
    pub(crate) limits: Vec<(Resource, Rlimit)>,
    /// No new privileges, no capabilities.
    pub(crate) drop_privileges: bool,
    pub(crate) landlock: Option<LandlockRules>,
    pub(crate) filter: Option<Vec<sock_filter>>,
}

#[derive(Debug)]
pub(crate) struct Namespaces {
    pub(crate) network: bool,
    /// The contents of `/proc/self/uid_map` and `gid_map`.
    pub(crate) user_map: String,
    pub(crate) group_map: String,
    pub(crate) mounts: Vec<MountStep>,
    /// How many trees are held between steps.
    pub(crate) slots: usize,
    pub(crate) proc: Proc,
}

/// What `/proc` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proc {
    /// The processes of the namespace.
    Fresh,
    /// Those of the machine; its tree is held in this slot until then.
    Machine { slot: usize },
}

/// A step of laying out the file system. A slot holds a tree of mounts that is not attached anywhere.
#[derive(Debug)]
pub(crate) enum MountStep {
    /// Copies the mounts at and below a path. No component of the path may be a link.
    Copy { from: CString, slot: usize },
    /// Makes everything that is mounted read-only.
    ReadOnly,
    /// Mounts a file system in memory.
    Memory { at: CString, options: CString },
    /// Makes a directory, unless it is there.
    Directory { path: CString, mode: u32 },
    /// Makes an empty file, unless it is there.
    File { path: CString },
    /// Makes a symbolic link.
    Link { path: CString, to: CString },
    /// Lays the directory `upper` over `lower`.
    Overlay { lower: CString, upper: CString, work: CString, slot: usize },
    /// Keeps a directory open, and hands it to the parent.
    HandOver { path: CString },
    /// Attaches a tree.
    Attach { slot: usize, at: CString },
    /// Shows a part of the private file system, or a device, at another place as well.
    Bind { from: CString, at: CString },
    /// Mounts private terminals.
    Terminals { at: CString },
}

/// What Landlock is to allow; all else that it handles is forbidden.
#[derive(Debug)]
pub(crate) struct LandlockRules {
    pub(crate) handled: LandlockHandled,
    /// Paths with the rights at and below them. What is not there when it is applied is passed over.
    pub(crate) allowed: Vec<(CString, u64)>,
}
