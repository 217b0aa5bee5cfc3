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
use crate::plan::{MountStep, Proc};
use rehearsal_core::sandbox::ProjectMode;

/// Where the private file system lies while its parts are shown elsewhere: the place that every machine has, that nobody
/// keeps anything below, and that is covered last.
const STORAGE: &str = "/proc";
/// Its directory for what is written over the project.
pub(crate) const UPPER: &str = "upper";
/// What everybody expects in `/dev`; disks, memory and terminals of the machine are not there.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// On average a private file has at least this many bytes: limits the number of files.
const BYTES_PER_FILE: u64 = 1024;

/// The steps that lay it out.
pub(crate) struct Layout {
    pub(crate) steps: Vec<MountStep>,
    pub(crate) slots: usize,
    pub(crate) proc: Proc,
    /// In order; a later one lies over an earlier one.
    shown: Vec<(Utf8PathBuf, Source)>,
}

/// What is shown at a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// A part of the private file system, empty at first: what is to be shown below it needs a directory made for it.
    Private(Utf8PathBuf),
    /// A part of the machine's own file system, or a copy.
    Tree(usize),
    /// Something empty over a secret.
    Mask(Utf8PathBuf),
}

impl Layout {
    pub(crate) fn new(
        places: &Places,
        mode: ProjectMode,
        bytes: u64,
        fresh_proc: bool,
    ) -> Result<Self, SandboxError> {
        let mut layout = Self { steps: Vec::new(), slots: 0, proc: Proc::Fresh, shown: Vec::new() };
        let mut sources = layout.copy_trees(places, mode)?;
        if !fresh_proc {
            layout.proc = Proc::Machine { slot: layout.copy(STORAGE.into())? };
        }
        layout.make_storage(bytes)?;
        if mode == ProjectMode::Overlay {
            layout.lay_over(&places.project, &sources)?;
        }
        sources.extend(layout.private_parts(places)?);
        sources.extend(layout.masks(places)?);
        sources.sort_by_key(|(at, source)| (at.components().count(), source.clone()));
        sources.into_iter().try_for_each(|(at, source)| layout.show(at, source))?;
        Ok(layout)
    }

    /// Copies what is to be put back, before anything lies over it; what can be written, before all becomes read-only.
    fn copy_trees(
        &mut self,
        places: &Places,
        mode: ProjectMode,
    ) -> Result<Vec<(Utf8PathBuf, Source)>, SandboxError> {
        let is_writable = mode == ProjectMode::Writable;
        let project = [&places.project];
        let before = places.writable.iter().chain(project.into_iter().filter(|_| is_writable));
        let after = places.readable.iter().chain(project.into_iter().filter(|_| !is_writable));
        let mut trees = Vec::new();
        for path in before {
            trees.push((path.clone(), Source::Tree(self.copy(path)?)));
        }
        self.steps.push(MountStep::ReadOnly);
        for path in after.chain(&places.protected) {
            trees.push((path.clone(), Source::Tree(self.copy(path)?)));
        }
        Ok(trees)
    }

    fn copy(&mut self, from: &Utf8Path) -> Result<usize, SandboxError> {
        let slot = self.slots;
        self.slots += 1;
        self.steps.push(MountStep::Copy { from: c(from)?, slot });
        Ok(slot)
    }

    fn make_storage(&mut self, bytes: u64) -> Result<(), SandboxError> {
        let options = format!("size={bytes},nr_inodes={},mode=0755", (bytes / BYTES_PER_FILE).max(1024));
        self.steps.push(MountStep::Memory { at: c(STORAGE)?, options: c(options)? });
        self.steps.push(MountStep::HandOver { path: c(STORAGE)? });
        Ok(())
    }

    /// Puts an overlay over the project into the slot of its tree.
    fn lay_over(&mut self, project: &Utf8Path, trees: &[(Utf8PathBuf, Source)]) -> Result<(), SandboxError> {
        let [lower, upper, work] = ["lower", UPPER, "work"].map(part);
        for directory in [&lower, &upper, &work] {
            self.directory(directory, 0o755)?;
        }
        for (at, source) in trees {
            if let Source::Tree(slot) = *source
                && at == project
            {
                self.steps.push(MountStep::Attach { slot, at: c(&lower)? });
                let (lower, upper, work) = (c(&lower)?, c(&upper)?, c(&work)?);
                self.steps.push(MountStep::Overlay { lower, upper, work, slot });
            }
        }
        Ok(())
    }

    fn private_parts(&mut self, places: &Places) -> Result<Vec<(Utf8PathBuf, Source)>, SandboxError> {
        let mut parts = vec![("/dev".into(), Source::Private(self.devices()?))];
        for (number, hidden) in places.hidden.iter().enumerate() {
            let part = part(&number.to_string());
            self.directory(&part, places::mode_of_private(hidden))?;
            parts.push((hidden.clone(), Source::Private(part)));
        }
        Ok(parts)
    }

    fn devices(&mut self) -> Result<Utf8PathBuf, SandboxError> {
        let devices = part("dev");
        self.directory(&devices, 0o755)?;
        self.directory(&devices.join("shm"), 0o1777)?;
        self.directory(&devices.join("pts"), 0o755)?;
        self.steps.push(MountStep::Terminals { at: c(devices.join("pts"))? });
        for name in DEVICES {
            let place = devices.join(name);
            self.steps.push(MountStep::File { path: c(&place)? });
            self.steps.push(MountStep::Bind { from: c(Utf8Path::new("/dev").join(name))?, at: c(place)? });
        }
        for (name, to) in DEVICE_LINKS {
            self.steps.push(MountStep::Link { path: c(devices.join(name))?, to: c(to)? });
        }
        Ok(devices)
    }

    fn masks(&mut self, places: &Places) -> Result<Vec<(Utf8PathBuf, Source)>, SandboxError> {
        let (file, directory) = (part("masked-file"), part("masked-directory"));
        if !places.masked.is_empty() {
            self.steps.push(MountStep::File { path: c(&file)? });
            self.directory(&directory, 0o500)?;
        }
        let mask = |is_directory: &bool| if *is_directory { directory.clone() } else { file.clone() };
        Ok(places
            .masked
            .iter()
            .map(|(at, is_directory)| (at.clone(), Source::Mask(mask(is_directory))))
            .collect())
    }

    fn show(&mut self, at: Utf8PathBuf, source: Source) -> Result<(), SandboxError> {
        let is_around = |(path, _): &&(Utf8PathBuf, Source)| at != *path && at.starts_with(path);
        if let Some((around, Source::Private(_))) = self.shown.iter().rev().find(is_around).cloned() {
            self.make_place(&at, &around)?;
        }
        self.steps.push(match &source {
            Source::Tree(slot) => MountStep::Attach { slot: *slot, at: c(&at)? },
            Source::Private(from) | Source::Mask(from) => MountStep::Bind { from: c(from)?, at: c(&at)? },
        });
        self.shown.push((at, source));
        Ok(())
    }

    /// Makes the directories down to a place, and the file or directory there, below an empty one.
    fn make_place(&mut self, at: &Utf8Path, empty: &Utf8Path) -> Result<(), SandboxError> {
        let mut missing: Vec<&Utf8Path> =
            at.ancestors().skip(1).take_while(|ancestor| *ancestor != empty).collect();
        missing.reverse();
        for directory in missing {
            self.directory(directory, 0o755)?;
        }
        if at.is_dir() {
            return self.directory(at, 0o755);
        }
        self.steps.push(MountStep::File { path: c(at)? });
        Ok(())
    }

    fn directory(&mut self, path: &Utf8Path, mode: u32) -> Result<(), SandboxError> {
        self.steps.push(MountStep::Directory { path: c(path)?, mode });
        Ok(())
    }
}

/// A path in the private file system.
fn part(name: &str) -> Utf8PathBuf {
    Utf8Path::new(STORAGE).join(name)
}

fn c(text: impl AsRef<std::ffi::OsStr>) -> Result<CString, SandboxError> {
    c_string(text.as_ref())
}
