//! Calls that change the machine, and devices.

use rehearsal_sandbox::Layer;

use crate::support::{Escape, Place, Without, is_root, read_only};

const BY_FILTER: (Layer, &str) = (Layer::Syscalls, "seccomp");
const BY_MOUNTS: (Layer, &str) = (Layer::Files, "mount-namespace");

/// The answer of the filter differs from the kernel's own: with no right at all, the kernel checks arguments first.
fn refused(act: &str, on: &str) {
    Escape { act, on, held_with: "EPERM", by: BY_FILTER }.is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn nothing_can_be_mounted() {
    refused("mount", "/tmp");
}

#[test]
fn the_read_only_root_cannot_be_remounted() {
    refused("remount", "/");
}

#[test]
fn what_covers_the_home_cannot_be_unmounted() {
    let place = Place::new();
    let home = place.path("home");
    Escape { act: "unmount", on: &home, held_with: "EPERM", by: BY_FILTER }
        .is_held_in(place, Without::NotTried);
}

#[test]
fn no_user_namespace_can_be_made() {
    Escape { act: "unshare", on: "", held_with: "EPERM", by: BY_FILTER }
        .is_held_in(Place::new(), Without::Succeeds);
    Escape { act: "clone", on: "", held_with: "EPERM", by: BY_FILTER }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn clone3_with_its_hidden_flags_is_not_there() {
    Escape { act: "clone3", on: "", held_with: "ENOSYS", by: BY_FILTER }
        .is_held_in(Place::new(), Without::Succeeds);
}

#[test]
fn another_namespace_cannot_be_entered() {
    refused("setns", "");
}

#[test]
fn the_root_directory_cannot_be_changed() {
    refused("chroot", "/tmp");
}

#[test]
fn bpf_is_refused() {
    refused("bpf", "");
}

#[test]
fn perf_is_refused() {
    Escape { act: "perf_event_open", on: "", held_with: "EPERM", by: BY_FILTER }
        .is_held_in(Place::new(), Without::Succeeds);
}

#[test]
fn io_uring_is_refused() {
    Escape { act: "io_uring_setup", on: "", held_with: "EPERM", by: BY_FILTER }
        .is_held_in(Place::new(), Without::Succeeds);
}

#[test]
fn the_kernels_keyrings_are_refused() {
    Escape { act: "keyctl", on: "", held_with: "EPERM", by: BY_FILTER }
        .is_held_in(Place::new(), Without::Succeeds);
}

#[test]
fn files_cannot_be_opened_by_handle() {
    refused("open_by_handle_at", "");
}

#[test]
fn userfaultfd_is_refused() {
    refused("userfaultfd", "");
}

#[test]
fn the_machine_cannot_be_changed() {
    for act in ["init_module", "reboot", "sethostname", "settimeofday"] {
        refused(act, "");
    }
}

#[test]
fn nothing_can_be_typed_into_a_terminal() {
    refused("type into a terminal", "");
}

#[test]
fn the_sysrq_trigger_cannot_be_written() {
    let on = "/proc/sysrq-trigger";
    let held_with = if std::path::Path::new(on).exists() { read_only() } else { "ENOENT" };
    Escape { act: "write over", on, held_with, by: BY_MOUNTS }.is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn kernel_settings_cannot_be_written() {
    Escape { act: "write over", on: "/proc/sys/kernel/core_pattern", held_with: "EROFS", by: BY_MOUNTS }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn sysfs_cannot_be_written() {
    Escape { act: "make directory", on: "/sys/fs/cgroup/mine", held_with: "EROFS", by: BY_MOUNTS }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn the_machines_memory_is_not_a_device_here() {
    Escape { act: "read memory", on: "/dev/mem", held_with: "ENOENT", by: BY_MOUNTS }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn no_disk_is_a_device_here() {
    let sandbox = Place::new().prepare();
    let names = sandbox.attempt("list", "/dev");
    assert_eq!(names.outcome(), "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero");
    sandbox.assert_enforced(Layer::Files, "mount-namespace");
}

#[test]
fn no_device_can_be_made() {
    Escape {
        act: "make device",
        on: "/tmp/disk",
        held_with: "EPERM",
        by: (Layer::Privileges, "no-capabilities"),
    }
    .is_held_in(Place::new(), if is_root() { Without::Succeeds } else { Without::NotTried });
}

#[test]
fn no_privilege_is_held_or_can_be_gained() {
    let sandbox = Place::new().prepare();
    let status = sandbox.shell("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status");
    let none = "0000000000000000";
    let expected = format!(
        "CapInh:\t{none}\nCapPrm:\t{none}\nCapEff:\t{none}\nCapBnd:\t{none}\nCapAmb:\t{none}\nNoNewPrivs:\t1\nSeccomp:\t2\n"
    );
    assert_eq!(status.output, expected);
    sandbox.assert_enforced(Layer::Privileges, "no-new-privileges");
}

#[test]
fn a_set_user_id_program_changes_nothing() {
    let place = Place::new();
    let program = place.root.join("project/id");
    std::fs::copy("/usr/bin/id", &program).unwrap();
    if is_root() {
        std::os::unix::fs::chown(&program, Some(65534), None).unwrap();
    }
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
    let sandbox = place.prepare();
    let run = sandbox.shell("id -u; ./id -u");
    let own = rustix::process::geteuid().as_raw();
    assert_eq!(run.output, format!("{own}\n{own}\n"));
    sandbox.assert_enforced(Layer::Privileges, "no-new-privileges");
}

#[test]
fn no_other_user_can_be_become() {
    Escape { act: "setuid", on: "12345", held_with: "EINVAL", by: (Layer::Privileges, "user-namespace") }
        .is_held_in(Place::new(), if is_root() { Without::Succeeds } else { Without::NotTried });
}
