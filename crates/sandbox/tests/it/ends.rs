//! How runs end, and that nothing outlives them.

use std::io::Write;
use std::time::{Duration, Instant};

use rehearsal_sandbox::{Command, SandboxError, Signal, Status};

use crate::support::{Place, all_of, in_time};

/// How many processes of the machine have a word in their command line.
fn processes_with(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

/// A number of seconds that nobody else sleeps for.
fn unique_sleep() -> String {
    format!("9{}{:03}", std::process::id(), rand_like())
}

fn rand_like() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Waits for a condition of the machine, with a deadline.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_daemon_does_not_outlive_the_command() {
    let sandbox = Place::new().prepare();
    let sleep = unique_sleep();
    let run =
        sandbox.shell(&format!("(setsid sh -c 'sleep {sleep} & sleep {sleep}' >/dev/null 2>&1 &) ; exit 0"));
    assert_eq!(run.code(), Some(0));
    assert!(run.ended.all_gone);
    assert_eq!(processes_with(&sleep), 0);
}

#[test]
fn what_is_dropped_is_gone() {
    let sandbox = Place::new().prepare();
    let sleep = unique_sleep();
    let (confined, _) = sandbox.start("/bin/sh", &["-c", &format!("setsid sleep {sleep} & sleep {sleep}")]);
    eventually("it sleeps", || processes_with(&sleep) == 3);
    drop(confined);
    assert_eq!(processes_with(&sleep), 0);
}

#[test]
fn the_first_signal_of_the_ladder_is_enough_for_who_listens() {
    let sandbox = Place::new().prepare();
    let script = "trap 'echo stopped; exit 7' INT; echo ready > ready; while :; do sleep 0.01; done";
    let place = sandbox.path("project");
    let (mut confined, output) = sandbox.start("/bin/sh", &["-c", script]);
    eventually("it is ready", || confined.written(10).files.len() == 1);
    let ended = in_time(confined.end(&[(Signal::INT, Duration::from_secs(30))]));
    assert_eq!(ended.status, Status::Exited { code: 7 });
    assert_eq!(all_of(output), "stopped\n", "in {place}");
}

#[test]
fn who_ignores_all_signals_is_killed_with_all_it_started() {
    let sandbox = Place::new().prepare();
    let sleep = unique_sleep();
    let script = format!(
        "trap '' INT TERM QUIT HUP; setsid sleep {sleep} & echo x > ready; while :; do sleep {sleep}; done"
    );
    let (mut confined, _) = sandbox.start("/bin/sh", &["-c", &script]);
    eventually("it is ready", || confined.written(10).files.len() == 1);
    let grace = Duration::from_millis(20);
    let ended = in_time(confined.end(&[(Signal::INT, grace), (Signal::TERM, grace)]));
    assert_eq!(ended.status, Status::Signaled { signal: libc::SIGKILL });
    assert!(ended.all_gone);
    assert_eq!(processes_with(&sleep), 0);
}

#[test]
fn ending_what_has_ended_says_how_it_ended() {
    let sandbox = Place::new().prepare();
    let (mut confined, _) = sandbox.start("/bin/sh", &["-c", "exit 5"]);
    let first = in_time(confined.wait());
    assert_eq!(first.status, Status::Exited { code: 5 });
    assert_eq!(in_time(confined.end(&[(Signal::TERM, Duration::from_secs(1))])), first);
}

#[test]
fn a_crash_is_told_from_an_exit() {
    let run = Place::new().prepare().shell("kill -SEGV $$");
    assert_eq!(run.ended.status, Status::Signaled { signal: libc::SIGSEGV });
}

#[test]
fn who_kills_the_init_kills_all() {
    let sandbox = Place::new().prepare();
    let sleep = unique_sleep();
    let (mut confined, _) =
        sandbox.start("/bin/sh", &["-c", &format!("setsid sleep {sleep} & sleep {sleep}")]);
    eventually("it sleeps", || processes_with(&sleep) == 3);
    let init = rustix::process::Pid::from_raw(i32::try_from(confined.pid()).unwrap()).unwrap();
    rustix::process::kill_process(init, Signal::KILL).unwrap();
    let ended = in_time(confined.wait());
    assert_eq!(ended.status, Status::Lost);
    assert!(ended.all_gone);
    assert_eq!(processes_with(&sleep), 0);
}

#[test]
fn when_the_owner_is_killed_everything_goes_and_its_groups_are_swept() {
    let sleep = unique_sleep();
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ends::own_a_sandbox_until_killed", "--nocapture"])
        .env("SANDBOX_TEST_OWNER", &sleep)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("it sleeps", || processes_with(&sleep) >= 2);
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("its processes are gone", || processes_with(&sleep) == 0);
    // The last to leave a group is the init, a moment after all others.
    eventually("its groups are swept by the next sandbox", || {
        drop(Place::new().prepare());
        groups_of(owner.id()) == 0
    });
}

/// Not a test of its own: what the test above kills.
#[test]
fn own_a_sandbox_until_killed() {
    let Ok(sleep) = std::env::var("SANDBOX_TEST_OWNER") else { return };
    let sandbox = Place::new().prepare();
    let run = sandbox.shell(&format!("setsid sleep {sleep} & sleep {sleep}"));
    std::io::stderr().write_all(run.output.as_bytes()).unwrap();
}

/// Control groups, in every hierarchy, whose name has the number of a process.
fn groups_of(owner: u32) -> usize {
    fn count(directory: &std::path::Path, word: &str, depth: usize) -> usize {
        let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
        let directories = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().is_dir() && !entry.path().is_symlink());
        directories
            .map(|entry| {
                let is_one = entry.file_name().to_str().is_some_and(|name| {
                    name.starts_with("rehearsal-sandbox-") && name.split('-').nth(3) == Some(word)
                });
                usize::from(is_one) + if depth > 0 { count(&entry.path(), word, depth - 1) } else { 0 }
            })
            .sum()
    }
    count("/sys/fs/cgroup".as_ref(), &owner.to_string(), 4)
}

#[test]
fn a_program_that_is_not_there_is_an_error_at_once() {
    let sandbox = Place::new().prepare();
    let (command, _) = sandbox.command("no-such-program", &[]);
    let error = sandbox.sandbox.spawn(command).unwrap_err();
    assert_eq!(error.to_string(), "cannot execute `no-such-program`");
    assert!(
        matches!(error, SandboxError::Execute { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    );
}

#[test]
fn a_directory_that_is_hidden_is_an_error_at_once() {
    let sandbox = Place::new().prepare();
    let command = Command::new("/bin/true", sandbox.path("outside"));
    let error = sandbox.sandbox.spawn(command).unwrap_err();
    assert_eq!(error.to_string(), "cannot set up the sandbox: entering the working directory");
}
