//! Other processes cannot be seen, read, traced or signalled.

use rehearsal_sandbox::Layer;

use crate::support::{Escape, Place, Without};

const BY_FILTER: (Layer, &str) = (Layer::Syscalls, "seccomp");

fn own_pid() -> String {
    std::process::id().to_string()
}

#[test]
fn no_process_can_be_traced() {
    Escape { act: "ptrace", on: "1", held_with: "EPERM", by: BY_FILTER }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn no_memory_of_another_process_can_be_read() {
    Escape { act: "process_vm_readv", on: "1", held_with: "EPERM", by: BY_FILTER }
        .is_held_in(Place::new(), Without::NotTried);
}

/// The init is a copy of the program that made the sandbox, with all that was in its memory.
#[test]
fn the_memory_and_the_variables_of_the_init_are_hidden() {
    for file in ["mem", "environ", "maps", "auxv"] {
        let file = format!("/proc/1/{file}");
        Escape {
            act: "read memory",
            on: &file,
            held_with: "EACCES",
            by: (Layer::Privileges, "landlock-scope"),
        }
        .is_held_in(Place::new(), Without::NotTried);
    }
}

#[test]
fn a_process_of_the_machine_cannot_be_signalled() {
    let pid = own_pid();
    Escape { act: "signal", on: &pid, held_with: "ESRCH", by: (Layer::Kill, "pid-namespace") }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn the_init_cannot_be_signalled() {
    Escape { act: "signal", on: "1", held_with: "EPERM", by: (Layer::Privileges, "landlock-scope") }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn processes_of_the_machine_are_not_in_proc() {
    let sandbox = Place::new().prepare();
    let run = sandbox.shell("echo /proc/[0-9]*");
    // The second one laid out the files, and is gone.
    assert_eq!(run.output, "/proc/1 /proc/3\n");
    sandbox.assert_enforced(Layer::Kill, "pid-namespace");
}

#[test]
fn nothing_is_inherited() {
    let sandbox = Place::new().prepare();
    let run = sandbox.run("/usr/bin/env", &[]);
    let names: Vec<_> = run.output.lines().filter_map(|line| line.split('=').next()).collect();
    assert_eq!(names, ["PATH", "HOME"]);
    let descriptors = sandbox.shell("ls /proc/self/fd");
    // The last is that of the listing itself.
    assert_eq!(descriptors.output, "0\n1\n2\n3\n");
}
