//! Using up the machine.

use rehearsal_sandbox::{Layer, Limit, Limits, Sandbox, Status};

use crate::support::{Place, is_root};

/// Without control groups, which an unprivileged user seldom may make, these limits hold in other ways: see `users`.
fn has_groups(sandbox: &Sandbox) -> bool {
    sandbox.report().layers.memory.by.iter().any(|by| by.starts_with("cgroup"))
}

#[test]
fn a_fork_bomb_is_stopped_and_named() {
    let sandbox = Place::new().with(|policy| policy.limits.processes = Some(32)).prepare();
    let run = sandbox.attempt("fork until refused", "");
    assert_eq!(run.outcome(), "EAGAIN");
    assert!(run.ended.all_gone && run.ended.left_running > 0, "{:?}", run.ended);
    if has_groups(&sandbox.sandbox) {
        assert_eq!(run.ended.limits_hit, [Limit::Processes]);
    }
    assert_eq!(sandbox.report().layers.processes.state, rehearsal_sandbox::State::Enforced);
}

#[test]
fn a_memory_bomb_is_stopped_and_named() {
    let sandbox = Place::new().with(|policy| policy.limits.memory = Some(64 << 20)).prepare();
    let run = sandbox.attempt("take memory", &(256 << 20).to_string());
    if has_groups(&sandbox.sandbox) {
        assert_eq!(run.ended.status, Status::Signaled { signal: libc::SIGKILL });
        assert!(run.ended.oom_killed);
        assert_eq!(run.ended.limits_hit, [Limit::Memory]);
        assert!(run.ended.peak_memory > 32 << 20, "{}", run.ended.peak_memory);
    } else {
        assert_eq!(run.outcome(), "ENOMEM");
    }
}

#[test]
fn one_run_out_of_memory_does_not_accuse_the_next() {
    let sandbox = Place::new().with(|policy| policy.limits.memory = Some(64 << 20)).prepare();
    sandbox.attempt("take memory", &(256 << 20).to_string());
    let run = sandbox.shell("true");
    assert!(
        run.ended.is_success() && !run.ended.oom_killed && run.ended.limits_hit.is_empty(),
        "{:?}",
        run.ended
    );
}

#[test]
fn private_files_have_a_limit_and_it_is_named() {
    for place in ["/tmp/full", "full", "/dev/shm/full"] {
        let sandbox = Place::new().with(|policy| policy.limits.files = 16 << 20).prepare();
        let run = sandbox.attempt("fill", place);
        assert!(run.outcome().starts_with("ENOSPC after 1"), "{place}: {}", run.outcome());
        assert_eq!(run.ended.limits_hit, [Limit::Files], "{place}");
        sandbox.assert_enforced(Layer::Files, "mount-namespace");
    }
}

#[test]
fn a_process_has_a_limit_of_open_files() {
    let sandbox = Place::new().with(|policy| policy.limits.open_files = Some(64)).prepare();
    assert_eq!(sandbox.attempt("open until refused", "").outcome(), "EMFILE");
    assert_eq!(sandbox.shell("ulimit -Hn; ulimit -c").output, "64\n0\n");
}

#[test]
fn the_cpu_has_a_quota() {
    let sandbox = Place::new().with(|policy| policy.limits.cpus = Some(0.5)).prepare();
    let layer = &sandbox.report().layers.cpu;
    if layer.by == ["cgroup-v1"] {
        // Seen from inside: the quota of the group that the command is in.
        let script = "p=$(grep -E ':cpu(,cpuacct)?:' /proc/self/cgroup | cut -d: -f3); cat /sys/fs/cgroup/cpu$p/cpu.cfs_quota_us";
        assert_eq!(sandbox.shell(script).output, "50000\n");
    } else if !is_root() {
        assert_eq!(layer.why.as_deref(), Some("no control group can be made for it here"));
    }
}

#[test]
fn a_limit_that_cannot_be_meant_is_refused() {
    let usual = Limits::default();
    let cases = [
        (Limits { cpus: Some(f64::NAN), ..usual }, "a limit of NaN CPUs is not usable"),
        (Limits { memory: Some(0), ..usual }, "a limit of 0 bytes is not usable"),
        (Limits { processes: Some(1), ..usual }, "a limit of 1 processes is not usable"),
        (Limits { open_files: Some(0), ..usual }, "a limit of 0 open files is not usable"),
    ];
    for (limits, expected) in cases {
        let place = Place::new().with(|policy| policy.limits = limits);
        assert_eq!(Sandbox::prepare(&place.policy).unwrap_err().to_string(), expected);
    }
}
