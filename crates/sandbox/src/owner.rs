//! Names of what we make on the machine (control groups, temporary directories) say who owns it, so that what belongs to
//! the dead can be told from what belongs to the living.

use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const PREFIX: &str = "rehearsal-sandbox";

/// A process, for good: its number can come again, with another start.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    /// Numbers of processes mean something in one pid namespace only.
    namespace: u64,
    pid: u32,
    start: u64,
}

impl Owner {
    fn this_process() -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let namespace = std::fs::metadata("/proc/self/ns/pid")?.ino();
        let pid = std::process::id();
        let start = start_of(pid).ok_or_else(|| io::Error::other("/proc does not show this process"))?;
        Ok(Self { namespace, pid, start })
    }

    /// From `rehearsal-sandbox-NAMESPACE-PID-START-NUMBER`.
    fn parse(name: &str) -> Option<Self> {
        let mut fields = name.strip_prefix(PREFIX)?.strip_prefix('-')?.split('-');
        let mut next = || fields.next()?.parse::<u64>().ok();
        let owner = Self { namespace: next()?, pid: u32::try_from(next()?).ok()?, start: next()? };
        next().map(|_number| owner)
    }

    fn is_alive(&self) -> bool {
        start_of(self.pid) == Some(self.start)
    }
}

fn this_process() -> io::Result<&'static Owner> {
    static OWNER: OnceLock<Owner> = OnceLock::new();
    match OWNER.get() {
        Some(owner) => Ok(owner),
        None => {
            let owner = Owner::this_process()?;
            Ok(OWNER.get_or_init(|| owner))
        }
    }
}

pub(crate) fn new_name() -> io::Result<String> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let Owner { namespace, pid, start } = this_process()?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Ok(format!("{PREFIX}-{namespace}-{pid}-{start}-{number}"))
}

/// Removes what belongs to owners that are gone.
pub(crate) fn sweep(directory: &Path, remove: impl Fn(&Path) -> io::Result<()>) {
    let Ok(own) = this_process() else { return };
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        let owner = entry.file_name().to_str().and_then(Owner::parse);
        if owner.is_some_and(|owner| owner.namespace == own.namespace && !owner.is_alive()) {
            let _still_in_use = remove(&entry.path());
        }
    }
}

/// When a process was started, in ticks since the machine was.
fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain anything; the start is field 22, the 20th after it.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_who_owns_it() {
        let name = new_name().unwrap();
        let owner = Owner::parse(&name).unwrap();
        assert_eq!(owner, *this_process().unwrap());
        assert!(owner.is_alive());
        assert!(!Owner { start: owner.start + 1, ..owner }.is_alive());
        assert_eq!(Owner::parse("rehearsal-sandbox-1-2"), None);
        assert_eq!(Owner::parse("user.slice"), None);
    }
}
