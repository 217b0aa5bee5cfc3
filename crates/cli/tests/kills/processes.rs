//! Every process of a stage, found without the help of the program under test.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything takes; a test that reaches it has failed.
pub(crate) const FOR_EVER: Duration = Duration::from_mins(1);

/// Waits until something holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + FOR_EVER;
    while !holds() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A process that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) command: Vec<String>,
}

impl Process {
    pub(crate) fn is_shim(&self) -> bool {
        self.command.get(1).is_some_and(|argument| argument == "__shim")
    }

    pub(crate) fn has_child(&self) -> bool {
        all().any(|pid| !is_dead(pid) && parent(pid) == Some(self.pid))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid).unwrap(), signal).unwrap();
    }
}

/// All that was started on a stage: they run its own copy of the binary, or live in its home directory.
pub(crate) fn living(binary: &Utf8Path, home: &Utf8Path) -> Vec<Process> {
    let home = format!("HOME={home}");
    all()
        .filter(|pid| !is_dead(*pid))
        .filter(|pid| executable(*pid).as_deref() == Some(binary) || has_variable(*pid, &home))
        .map(|pid| Process { pid, command: command(pid) })
        .collect()
}

fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
}

fn parent(pid: i32) -> Option<i32> {
    let stat = read(pid, "stat");
    let stat = String::from_utf8_lossy(&stat).into_owned();
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn read(pid: i32, file: &str) -> Vec<u8> {
    fs::read(Path::new("/proc").join(pid.to_string()).join(file)).unwrap_or_default()
}

/// A zombie is nobody's burden but its parent's.
pub(crate) fn is_dead(pid: i32) -> bool {
    let stat = read(pid, "stat");
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

fn executable(pid: i32) -> Option<Utf8PathBuf> {
    Utf8PathBuf::from_path_buf(fs::read_link(format!("/proc/{pid}/exe")).ok()?).ok()
}

fn has_variable(pid: i32, assignment: &str) -> bool {
    read(pid, "environ").split(|byte| *byte == 0).any(|variable| variable == assignment.as_bytes())
}

fn command(pid: i32) -> Vec<String> {
    let line = read(pid, "cmdline");
    line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}
