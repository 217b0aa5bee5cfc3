//! The same for an unprivileged user, and inside of containers.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use rehearsal_sandbox::Rung;

use crate::support::{Place, is_root};

const NOBODY: u32 = 65534;

/// This test binary at a place where everybody can execute it, with a temporary directory for everybody.
struct ForEverybody {
    directory: tempfile::TempDir,
}

impl ForEverybody {
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        std::fs::copy(std::env::current_exe().unwrap(), directory.path().join("tests")).unwrap();
        Self { directory }
    }

    fn program(&self) -> String {
        self.directory.path().join("tests").to_str().unwrap().to_owned()
    }

    /// Runs tests of this binary through a shell's script that executes `$TESTS`.
    fn run(&self, user: u32, script: &str) -> Output {
        let mut command = Command::new("/bin/sh");
        command.args(["-ec", script]).env_clear().current_dir("/");
        command
            .env("TESTS", self.program())
            .env("TMPDIR", self.directory.path())
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        if user != 0 {
            command.uid(user).gid(user);
        }
        command.output().unwrap()
    }
}

fn assert_passed(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains(" 0 passed"), "nothing ran:\n{text}");
}

#[test]
fn an_unprivileged_user_is_confined_as_well() {
    if !is_root() {
        return;
    }
    let everybody = ForEverybody::new();
    let output = everybody.run(
        NOBODY,
        "$TESTS --test-threads=2 network:: processes:: kernel:: exhaustion:: working:: files::an_overlay files::a_key \
         files::the_home files::the_temporary files::passwords files::system --skip ends::",
    );
    assert_passed(&output);
}

#[test]
fn it_works_in_a_pid_namespace_with_a_proc_of_its_own() {
    if is_root() {
        let output = ForEverybody::new()
            .run(0, "unshare --fork --pid --mount-proc $TESTS working:: ends::a_daemon network::a_");
        assert_passed(&output);
    }
}

/// Containers mask parts of `/proc`, and then the kernel allows no fresh one.
#[test]
fn in_a_container_with_a_masked_proc_it_steps_down_by_itself() {
    if is_root() {
        let script = "unshare --mount sh -ec 'mount -t tmpfs none /proc/tty; exec $TESTS --exact users::steps_down_without_a_fresh_proc --ignored'";
        assert_passed(&ForEverybody::new().run(0, script));
    }
}

#[test]
#[ignore = "run by the test above, where it is true"]
fn steps_down_without_a_fresh_proc() {
    let sandbox = Place::new().prepare();
    assert_eq!(sandbox.report().rung, Rung::NoProc);
    let why = sandbox.report().layers.files.why.clone().unwrap();
    let expected = "/proc shows the processes of the machine (mounting a private /proc: Operation not permitted (os error 1))";
    assert_eq!(why, expected);
    assert_eq!(sandbox.shell("echo ran").output, "ran\n");
}

/// As where the administrator allows no user namespaces.
#[test]
fn without_user_namespaces_it_steps_down_by_itself() {
    if is_root() {
        let script = "exec $TESTS --exact users::steps_down_without_namespaces --ignored";
        // Inside of a sandbox of ours namespaces are refused: what is more, sandboxes can be nested.
        let everybody = ForEverybody::new();
        let program = everybody.program();
        let place = Place::new().with(|policy| policy.readable.push(program.clone().into()));
        let sandbox = place.prepare();
        let (command, output) = sandbox.command("/bin/sh", &["-ec", script]);
        let mut confined = sandbox.sandbox.spawn(command.env("TESTS", &program)).unwrap();
        let ended = crate::support::in_time(confined.wait());
        assert!(ended.is_success(), "{}", crate::support::all_of(output));
    }
}

#[test]
#[ignore = "run by the test above, where it is true"]
fn steps_down_without_namespaces() {
    let sandbox = Place::new().prepare();
    assert_eq!(sandbox.report().rung, Rung::Lsm);
    let why = sandbox.report().layers.network.why.clone().unwrap();
    let expected = "loopback is refused as well, without a network namespace (starting a process in new namespaces: \
                    Operation not permitted (os error 1))";
    assert_eq!(why, expected);
    assert_eq!(sandbox.attempt("read", &sandbox.path("home/.ssh/id_ed25519")).outcome(), "EACCES");
    assert_eq!(sandbox.shell("echo ran").output, "ran\n");
}
