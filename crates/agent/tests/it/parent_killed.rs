//! Our own process dies, the hard way.

use std::process::{Child, Command, Stdio};

use rehearsal_process::{ProcessId, processes_of_run};

use crate::support::{Bench, RUNAWAYS, eventually, example, runaways};

fn start(bench: &Bench, script: &str) -> Child {
    Command::new(example())
        .args([bench.request.run_dir.as_str(), bench.work().as_str(), "/bin/sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn when_the_worker_is_killed_nothing_of_its_run_survives() {
    let bench = Bench::new();
    let mut worker = start(&bench, &runaways("echo ready > ready; sleep 1000"));
    eventually("the agent and its runaways run", || bench.work().join("ready").exists());
    let noted = bench.noted_processes();
    assert_eq!(noted.len(), RUNAWAYS);
    assert!(noted.iter().copied().all(ProcessId::is_alive));
    worker.kill().unwrap();
    worker.wait().unwrap();
    eventually("the runaways are gone", || noted.iter().all(|process| !process.is_alive()));
    eventually("the run is gone", || processes_of_run(&bench.run).is_empty());
}

#[test]
fn a_line_without_end_needs_no_memory() {
    let bench = Bench::new();
    let worker = start(&bench, "head -c 200000000 /dev/zero | tr '\\0' x");
    let output = worker.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let peak = said.lines().find_map(|line| line.strip_prefix("peak memory: ")).unwrap();
    let kilobytes: u64 = peak.trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 64 << 10, "{said}");
    assert_eq!(std::fs::metadata(bench.request.run_dir.join("stdout.log")).unwrap().len(), 200_000_000);
}
