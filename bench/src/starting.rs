//! CPU time of a start.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const STARTS: u32 = 300;

pub(crate) fn measure(program: &Path) {
    let ours = cpu_per_start(program, &["--version"]);
    let empty = cpu_per_start(Path::new("/bin/true"), &[]);
    crate::row("start: CPU of `rehearsal --version`, `true`", ours, empty, "< 5 ms");
}

fn cpu_per_start(program: &Path, args: &[&str]) -> Duration {
    let before = cpu_of_children();
    for _ in 0..STARTS {
        let status = Command::new(program).args(args).stdout(Stdio::null()).status().unwrap();
        assert!(status.success());
    }
    cpu_of_children().saturating_sub(before) / STARTS
}

/// User and system time of ended children, from fields 16 and 17 of /proc/self/stat, in ticks of 10 ms.
fn cpu_of_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let ticks: u64 = after_name.split_whitespace().skip(13).take(2).map(|n| n.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}
