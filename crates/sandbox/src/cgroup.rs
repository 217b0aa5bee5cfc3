//! Control groups, of version 2 or 1: limits on memory, processes and CPU for all that one command starts.
//!
//! Making, entering and removing a group of version 1 can wait for milliseconds in the kernel, so groups are used again: a [`Pool`]
//! has one for each command that runs at the same time. Groups whose owner was killed are removed by the next owner.

mod find;
mod member;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use member::Member;

use crate::owner;
use crate::policy::Limits;

/// In a group of version 1 are, beside the command, the thread that forks, the init, and inits of commands before that are
/// not quite gone.
const OWN_TASKS: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Controller {
    Memory,
    Processes,
    Cpu,
}

/// Where groups can be made, and what can be limited there.
#[derive(Debug, Clone)]
pub(crate) struct Hierarchy {
    version: Version,
    directory: PathBuf,
    controllers: Vec<Controller>,
}

/// Groups with the same limits, made when needed and used again.
#[derive(Debug)]
pub(crate) struct Pool {
    hierarchies: Vec<Hierarchy>,
    limits: Limits,
    free: Mutex<Vec<Group>>,
    /// What was made to see whether it can be: for the first command.
    first: Mutex<Option<Vec<Part>>>,
}

impl Pool {
    /// With all hierarchies in which groups can be made for a limit that is wanted; one is tried in each.
    pub(crate) fn find(limits: &Limits) -> Self {
        let wanted = |controller: &Controller| match controller {
            Controller::Memory => limits.memory.is_some(),
            Controller::Processes => limits.processes.is_some(),
            Controller::Cpu => limits.cpus.is_some(),
        };
        let mut pool = Self { limits: *limits, ..Self::none() };
        let mut first = Vec::new();
        for mut hierarchy in find::hierarchies() {
            hierarchy.controllers.retain(|controller| wanted(controller) && !pool.has(*controller));
            if !hierarchy.controllers.is_empty()
                && let Ok(part) = Part::make(&hierarchy, limits)
            {
                first.push(part);
                pool.hierarchies.push(hierarchy);
            }
        }
        pool.first = Mutex::new(Some(first));
        pool
    }

    pub(crate) fn none() -> Self {
        let (free, first) = Default::default();
        Self { hierarchies: Vec::new(), limits: Limits::default(), free, first }
    }

    pub(crate) fn has(&self, controller: Controller) -> bool {
        self.version_for(controller).is_some()
    }

    pub(crate) fn version_for(&self, controller: Controller) -> Option<Version> {
        let has = |hierarchy: &&Hierarchy| hierarchy.controllers.contains(&controller);
        self.hierarchies.iter().find(has).map(|hierarchy| hierarchy.version)
    }

    /// A group that nobody else is in.
    pub(crate) fn take(&self) -> io::Result<Group> {
        let used_before = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut group = match used_before {
            Some(group) => group,
            None => {
                let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
                let make = |hierarchy| Part::make(hierarchy, &self.limits);
                let parts = first.map_or_else(|| self.hierarchies.iter().map(make).collect(), Ok);
                Group::enter(parts?)?
            }
        };
        group.reset();
        Ok(group)
    }

    /// Takes back a group that is empty again.
    pub(crate) fn give_back(&self, group: Group) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(group);
    }
}

/// One group in each hierarchy. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Group {
    /// Before the parts: they can be removed when it is gone.
    member: Option<Member>,
    parts: Vec<Part>,
    before: Counts,
}

/// What a group has counted since it was taken.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Processes killed for want of memory.
    pub(crate) memory_kills: u64,
    pub(crate) refused_forks: u64,
}

impl Group {
    fn enter(parts: Vec<Part>) -> io::Result<Self> {
        let doors = parts.iter().filter(|part| part.version == Version::V1).map(|part| part.door.try_clone());
        let doors = doors.collect::<io::Result<Vec<File>>>()?;
        let member = if doors.is_empty() { None } else { Some(Member::enter(doors)?) };
        Ok(Self { member, parts, before: Counts::default() })
    }

    /// Open files that a process writes `0` into to enter the parts in which it is not from the start.
    pub(crate) fn doors(&self) -> io::Result<Vec<OwnedFd>> {
        let parts = self.parts.iter().filter(|part| part.version == Version::V2);
        parts.map(|part| part.door.try_clone().map(OwnedFd::from)).collect()
    }

    /// Forks something that is in the group.
    pub(crate) fn fork<T: Send + 'static>(&self, fork: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        match &self.member {
            Some(member) => member.run(fork),
            None => Ok(fork()),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let now = self.counts_of_all_time();
        Counts {
            memory_kills: now.memory_kills.saturating_sub(self.before.memory_kills),
            refused_forks: now.refused_forks.saturating_sub(self.before.refused_forks),
        }
    }

    /// The most memory that was used at one time, in bytes.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let part = self.part(Controller::Memory)?;
        let file = match part.version {
            Version::V1 => "memory.max_usage_in_bytes",
            Version::V2 => "memory.peak",
        };
        part.read(file)?.trim().parse().ok()
    }

    fn reset(&mut self) {
        if let Some(part) = self.part(Controller::Memory).filter(|part| part.version == Version::V1) {
            let _keeps_the_old_peak = part.write("memory.max_usage_in_bytes", "0");
        }
        self.before = self.counts_of_all_time();
    }

    fn counts_of_all_time(&self) -> Counts {
        let memory_events = |part: &Part| match part.version {
            Version::V1 => part.count("memory.oom_control", "oom_kill"),
            Version::V2 => part.count("memory.events", "oom_kill"),
        };
        Counts {
            memory_kills: self.part(Controller::Memory).map_or(0, memory_events),
            refused_forks: self
                .part(Controller::Processes)
                .map_or(0, |part| part.count("pids.events", "max")),
        }
    }

    fn part(&self, controller: Controller) -> Option<&Part> {
        self.parts.iter().find(|part| part.controllers.contains(&controller))
    }
}

/// A group in one hierarchy.
#[derive(Debug)]
struct Part {
    version: Version,
    controllers: Vec<Controller>,
    directory: PathBuf,
    door: File,
}

impl Part {
    fn make(hierarchy: &Hierarchy, limits: &Limits) -> io::Result<Self> {
        let directory = hierarchy.directory.join(owner::new_name()?);
        std::fs::create_dir(&directory)?;
        let door = match hierarchy.version {
            Version::V1 => "tasks",
            Version::V2 => "cgroup.procs",
        };
        let made = File::options().write(true).open(directory.join(door)).and_then(|door| {
            let controllers = hierarchy.controllers.clone();
            let part = Self { version: hierarchy.version, controllers, directory: directory.clone(), door };
            part.set(limits)?;
            Ok(part)
        });
        if made.is_err() {
            let _nothing_more_to_do = std::fs::remove_dir(&directory);
        }
        made
    }

    fn set(&self, limits: &Limits) -> io::Result<()> {
        for controller in &self.controllers {
            match (controller, self.version) {
                (Controller::Memory, Version::V1) => self.set_memory_v1(limits)?,
                (Controller::Memory, Version::V2) => {
                    self.write_some("memory.max", limits.memory)?;
                    let _kernel_without_swap = self.write("memory.swap.max", "0");
                }
                (Controller::Processes, version) => {
                    let own = if version == Version::V1 { OWN_TASKS } else { 0 };
                    self.write_some("pids.max", limits.processes.map(|count| count.saturating_add(own)))?;
                }
                (Controller::Cpu, version) => self.set_cpu(version, limits)?,
            }
        }
        Ok(())
    }

    fn set_memory_v1(&self, limits: &Limits) -> io::Result<()> {
        self.write_some("memory.limit_in_bytes", limits.memory)?;
        // Memory and swap together: so there is no swap. Absent where swap is not accounted.
        let _kernel_without_swap = self.write_some("memory.memsw.limit_in_bytes", limits.memory);
        Ok(())
    }

    fn set_cpu(&self, version: Version, limits: &Limits) -> io::Result<()> {
        const PERIOD_MICROS: u32 = 100_000;
        let Some(cpus) = limits.cpus else { return Ok(()) };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "limits were checked to be sane"
        )]
        let quota = (cpus * f64::from(PERIOD_MICROS)) as u64;
        match version {
            Version::V1 => {
                self.write("cpu.cfs_period_us", &PERIOD_MICROS.to_string())?;
                self.write("cpu.cfs_quota_us", &quota.to_string())
            }
            Version::V2 => self.write("cpu.max", &format!("{quota} {PERIOD_MICROS}")),
        }
    }

    fn write_some(&self, file: &str, value: Option<u64>) -> io::Result<()> {
        value.map_or(Ok(()), |value| self.write(file, &value.to_string()))
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        write_existing(&self.directory.join(file), value)
    }

    fn read(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.directory.join(file)).ok()
    }

    /// A number from a file of lines `key number`.
    fn count(&self, file: &str, key: &str) -> u64 {
        let content = self.read(file).unwrap_or_default();
        let value =
            content.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok());
        value.unwrap_or(0)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        remove(self.directory.clone());
    }
}

/// Removes a group, and those that could not be removed before: a thread that was joined and an init that has said its last word are
/// in their group for a moment more.
fn remove(directory: PathBuf) {
    const TRIES: u32 = 1000;
    static LEFT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let is_busy = |directory: &PathBuf| matches!(std::fs::remove_dir(directory), Err(error) if error.kind() == io::ErrorKind::ResourceBusy);
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.push(directory);
    for _ in 0..TRIES {
        left.retain(is_busy);
        if left.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Never creates the file: a limit that the kernel does not have must be an error.
fn write_existing(path: &Path, value: &str) -> io::Result<()> {
    use std::io::Write;
    File::options().write(true).open(path)?.write_all(value.as_bytes())
}
