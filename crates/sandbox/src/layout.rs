//! The file system that a confined process sees.
//!
//! The machine's own, read-only, with empty private directories over what is hidden, and the trees that the policy names
//! put back into place on top. All private directories are parts of one file system in memory, so that one number limits what
//! can be filled, and nothing is left on the disk.

mod places;

use std::ffi::CString;

use camino::{Utf8Path, Utf8PathBuf};

pub(crate) use places::Places;

use crate::command::c_string;
use crate::error::SandboxError;
use crate::plan::MountStep;
use crate::policy::ProjectMode;

/// Where the private file system is attached while it is filled. Its final place is the same: it covers itself.
const STORAGE: &str = "/tmp";
/// Its directory for what is written over the project.
pub(crate) const UPPER: &str = "upper";
/// What everybody expects in `/dev`; disks, memory and terminals of the machine are not there.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];
/// On average a private file has at least this many bytes: limits the number of files.
const BYTES_PER_FILE: u64 = 1024;

/// The steps that lay it out, and how many trees they hold at most.
pub(crate) fn steps(
    places: &Places,
    mode: ProjectMode,
    bytes: u64,
) -> Result<(Vec<MountStep>, usize), SandboxError> {
    let mut layout = Layout { steps: Vec::new(), slots: 0, attached: Vec::new() };
    let trees = layout.copy_trees(places, mode)?;
    layout.fill_storage(places, mode, bytes, trees)?;
    layout.put_devices()?;
    Ok((layout.steps, layout.slots))
}

struct Layout {
    steps: Vec<MountStep>,
    slots: usize,
    /// In order; a later one lies over an earlier one.
    attached: Vec<(Utf8PathBuf, Kind)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Empty at first: what is to be attached below needs a directory made for it.
    Private,
    /// A part of the machine's own file system, or a copy.
    Tree,
}

struct Tree {
    at: Utf8PathBuf,
    kind: Kind,
    slot: usize,
}

impl Layout {
    /// Copies what is to be put back, before anything lies over it; what can be written before all becomes read-only.
    fn copy_trees(&mut self, places: &Places, mode: ProjectMode) -> Result<Vec<Tree>, SandboxError> {
        let mut trees = Vec::new();
        for name in DEVICES {
            trees.push(self.copy_tree(Utf8Path::new("/dev").join(name))?);
        }
        for path in &places.writable {
            trees.push(self.copy_tree(path.clone())?);
        }
        if mode == ProjectMode::Writable {
            trees.push(self.copy_tree(places.project.clone())?);
        }
        self.steps.push(MountStep::ReadOnly);
        for path in &places.readable {
            trees.push(self.copy_tree(path.clone())?);
        }
        if mode != ProjectMode::Writable {
            trees.push(self.copy_tree(places.project.clone())?);
        }
        Ok(trees)
    }

    fn copy_tree(&mut self, at: Utf8PathBuf) -> Result<Tree, SandboxError> {
        let slot = self.copy(&at)?;
        Ok(Tree { at, kind: Kind::Tree, slot })
    }

    fn copy(&mut self, from: &Utf8Path) -> Result<usize, SandboxError> {
        let slot = self.slots;
        self.slots += 1;
        self.steps.push(MountStep::Copy { from: c(from)?, slot });
        Ok(slot)
    }

    /// Makes the private file system, cuts it into its parts, and attaches everything from the root down.
    fn fill_storage(
        &mut self,
        places: &Places,
        mode: ProjectMode,
        bytes: u64,
        mut trees: Vec<Tree>,
    ) -> Result<(), SandboxError> {
        let options = format!("size={bytes},nr_inodes={},mode=0755", (bytes / BYTES_PER_FILE).max(1024));
        self.steps.push(MountStep::Memory { at: c(STORAGE)?, options: c(options)? });
        if mode == ProjectMode::Overlay {
            self.lay_over(&places.project, &mut trees)?;
        }
        let devices = Utf8PathBuf::from("/dev");
        for (number, hidden) in places.hidden.iter().chain([&devices]).enumerate() {
            let part = Utf8Path::new(STORAGE).join(number.to_string());
            self.directory(&part, places::mode_of_private(hidden))?;
            trees.push(Tree { at: hidden.clone(), kind: Kind::Private, slot: self.copy(&part)? });
        }
        for (number, (masked, is_directory)) in places.masked.iter().enumerate() {
            let part = Utf8Path::new(STORAGE).join(format!("masked-{number}"));
            if *is_directory {
                self.directory(&part, 0o500)?;
            } else {
                self.steps.push(MountStep::File { path: c(&part)? });
            }
            trees.push(Tree { at: masked.clone(), kind: Kind::Tree, slot: self.copy(&part)? });
        }
        self.steps.push(MountStep::HandOver { path: c(STORAGE)? });
        self.steps.push(MountStep::Detach { at: c(STORAGE)? });
        // The sort is stable: where two have one place, the later one (the secrets' masks come last) lies on top.
        trees.sort_by_key(|tree| (tree.at.components().count(), tree.kind));
        trees.into_iter().try_for_each(|tree| self.attach(tree))
    }

    /// Replaces the project's tree by an overlay over it.
    fn lay_over(&mut self, project: &Utf8Path, trees: &mut [Tree]) -> Result<(), SandboxError> {
        let [lower, upper, work] = ["lower", UPPER, "work"].map(|name| Utf8Path::new(STORAGE).join(name));
        for directory in [&lower, &upper, &work] {
            self.directory(directory, 0o755)?;
        }
        for tree in trees.iter_mut().filter(|tree| tree.at == project) {
            self.steps.push(MountStep::Attach { slot: tree.slot, at: c(&lower)? });
            let (lower, upper, work) = (c(&lower)?, c(&upper)?, c(&work)?);
            self.steps.push(MountStep::Overlay { lower, upper, work, slot: tree.slot });
        }
        Ok(())
    }

    fn attach(&mut self, tree: Tree) -> Result<(), SandboxError> {
        let is_around = |(path, _): &&(Utf8PathBuf, Kind)| tree.at != *path && tree.at.starts_with(path);
        let around = self.attached.iter().rev().find(is_around).cloned();
        if let Some((around, Kind::Private)) = around {
            let mut missing: Vec<&Utf8Path> =
                tree.at.ancestors().take_while(|ancestor| *ancestor != around).collect();
            let place = missing.remove(0);
            for directory in missing.into_iter().rev() {
                self.directory(directory, 0o755)?;
            }
            if place.is_dir() {
                self.directory(place, 0o755)?;
            } else {
                self.steps.push(MountStep::File { path: c(place)? });
            }
        }
        self.steps.push(MountStep::Attach { slot: tree.slot, at: c(&tree.at)? });
        self.attached.push((tree.at, tree.kind));
        Ok(())
    }

    fn put_devices(&mut self) -> Result<(), SandboxError> {
        self.directory("/dev/shm".into(), 0o1777)?;
        self.directory("/dev/pts".into(), 0o755)?;
        self.steps.push(MountStep::Terminals { at: c("/dev/pts")? });
        for (path, to) in DEVICE_LINKS {
            self.steps.push(MountStep::Link { path: c(path)?, to: c(to)? });
        }
        Ok(())
    }

    fn directory(&mut self, path: &Utf8Path, mode: u32) -> Result<(), SandboxError> {
        self.steps.push(MountStep::Directory { path: c(path)?, mode });
        Ok(())
    }
}

fn c(text: impl AsRef<std::ffi::OsStr>) -> Result<CString, SandboxError> {
    c_string(text.as_ref())
}
