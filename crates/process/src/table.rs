//! The processes of this machine, as `/proc` shows them.

use std::collections::{HashMap, HashSet};

use camino::Utf8PathBuf;
use rustix::process::{Pid, PidfdFlags, Signal};

/// A process that is not mistaken for another: its number may be used again, but not with the same start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

impl ProcessId {
    /// The process that has this number now.
    pub fn of(pid: i32) -> Option<Self> {
        Entry::read(pid).map(|entry| entry.id)
    }

    /// Whether it is there and not yet dead.
    pub fn is_alive(self) -> bool {
        Entry::read(self.pid).is_some_and(|entry| entry.id == self && !entry.is_dead())
    }

    /// Sends a signal to this very process, and to no other that took over its number.
    pub(super) fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return;
        };
        let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
            return;
        };
        // Looked at again after the handle was taken: now the handle cannot belong to a successor.
        if Entry::read(self.pid).is_some_and(|entry| entry.id == self) {
            let _ = rustix::process::pidfd_send_signal(handle, signal);
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: ProcessId,
    pub(super) name: String,
    pub(super) state: u8,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
}

impl Entry {
    pub(super) fn read(pid: i32) -> Option<Self> {
        Self::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `pid (name) state ppid pgrp session … starttime …`. The name may hold blanks and brackets, so the fields
    /// are counted from the last closing one.
    fn parse(stat: &[u8]) -> Option<Self> {
        let stat = String::from_utf8_lossy(stat);
        let (pid, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let number = |index: usize| fields.get(index)?.parse::<i32>().ok();
        Some(Self {
            id: ProcessId { pid: pid.parse().ok()?, start: fields.get(19)?.parse().ok()? },
            name: name.to_owned(),
            state: *fields.first()?.as_bytes().first()?,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
        })
    }

    /// A zombie holds nothing but its number.
    pub(super) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// Whether it was started as a shim.
    pub(super) fn is_shim(&self) -> bool {
        std::fs::read(format!("/proc/{}/cmdline", self.id.pid)).is_ok_and(|line| {
            line.split(|byte| *byte == 0).nth(1).is_some_and(|word| word == super::SHIM_ARGUMENT.as_bytes())
        })
    }

    /// Whether the process was started with exactly this variable. Not ours to read: no.
    pub(super) fn has_variable(&self, assignment: &str) -> bool {
        self.any_variable(|variable| variable == assignment)
    }

    /// Whether one of its variables, as `NAME=value`, is wanted.
    pub(super) fn any_variable(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        std::fs::read(format!("/proc/{}/environ", self.id.pid)).is_ok_and(|environment| {
            let variables =
                environment.split(|byte| *byte == 0).filter_map(|it| std::str::from_utf8(it).ok());
            variables.into_iter().any(is_wanted)
        })
    }
}

/// Everything that runs now. A process that ends while we look is left out.
pub(super) fn all() -> Vec<Entry> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Entry::read)
        .collect()
}

/// The living processes whose name begins so and whose working directory is in one of the places. Those of other
/// users are not ours to see.
pub fn processes_at_work(name: &str, places: &[Utf8PathBuf]) -> Vec<ProcessId> {
    let is_here = |pid: i32| {
        std::fs::read_link(format!("/proc/{pid}/cwd"))
            .is_ok_and(|cwd| places.iter().any(|place| cwd.starts_with(place)))
    };
    let found = all().into_iter().filter(|entry| entry.name.starts_with(name) && !entry.is_dead());
    found.map(|entry| entry.id).filter(|id| is_here(id.pid)).collect()
}

/// Whether this process was started, however indirectly, by an agent that is supervised. An agent can change its environment, but
/// not its ancestors: what it starts in the background stays below its supervisor.
pub fn is_below_agent() -> bool {
    let mut next =
        std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| Entry::parse(stat.as_bytes()));
    // A table that changes while it is read must not lead in circles.
    for _ in 0..MOST_ANCESTORS {
        match next.and_then(|entry| Entry::read(entry.parent)) {
            Some(entry) if entry.is_shim() => return true,
            parent => next = parent,
        }
    }
    false
}

/// No shell nests this deep.
const MOST_ANCESTORS: usize = 1000;

/// Those of the table that descend from one of the roots; the roots themselves not.
pub(super) fn descendants(table: &[Entry], roots: &HashSet<i32>) -> Vec<Entry> {
    let mut children: HashMap<i32, Vec<&Entry>> = HashMap::new();
    for entry in table {
        children.entry(entry.parent).or_default().push(entry);
    }
    let mut open: Vec<i32> = roots.iter().copied().collect();
    let mut seen = roots.clone();
    let mut found = Vec::new();
    while let Some(parent) = open.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if seen.insert(child.id.pid) {
                open.push(child.id.pid);
                found.push((*child).clone());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_brackets_does_not_shift_the_fields() {
        let stat = b"42 (evil ) S 1 (x) S 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1";
        let entry = Entry::parse(stat).unwrap();
        assert_eq!(entry.name, "evil ) S 1 (x");
        assert_eq!((entry.parent, entry.group, entry.session), (7, 8, 9));
        assert_eq!(entry.id, ProcessId { pid: 42, start: 12345 });
    }

    #[test]
    fn we_find_ourselves_alive_and_not_a_namesake() {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let me = all().into_iter().find(|entry| entry.id.pid == pid).unwrap();
        assert!(me.id.is_alive());
        assert!(!ProcessId { start: me.id.start + 1, ..me.id }.is_alive());
    }

    #[test]
    fn descendants_are_found_through_all_generations() {
        let entry = |pid, parent| Entry {
            id: ProcessId { pid, start: 0 },
            name: String::new(),
            state: b'S',
            parent,
            group: 0,
            session: 0,
        };
        let table = [entry(2, 1), entry(3, 2), entry(4, 3), entry(5, 1), entry(6, 5)];
        let mut found: Vec<i32> = descendants(&table, &HashSet::from([2])).iter().map(|e| e.id.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 4]);
    }
}
