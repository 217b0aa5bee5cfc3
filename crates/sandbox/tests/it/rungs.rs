//! Lower rungs: what still holds there, and that the report says what does not.

use std::net::TcpListener;

use insta::assert_snapshot;
use rehearsal_sandbox::{Demand, ProjectMode, Rung, Sandbox, SandboxReport, State};

use crate::support::{Place, Prepared, is_root, outside};

/// The report in lines, without the limits: those depend on who runs this.
fn told(report: &SandboxReport) -> String {
    let mut lines = vec![format!("{:?}, project {:?}", report.rung, report.project)];
    for (layer, report) in report.layers.all() {
        if !["memory", "processes", "cpu"].contains(&layer.to_string().as_str()) {
            let why = report.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            lines.push(format!("{layer}: {:?} by {}{why}", report.state, report.by.join(", ")));
        }
    }
    lines.join("\n")
}

fn on(rung: Rung) -> Prepared {
    Place::new().at_most(rung).prepare()
}

fn what_is_tried(sandbox: &Prepared) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let outside = outside();
    let outside = outside.path().join("file");
    let tries = [
        ("read", sandbox.path("home/.ssh/id_ed25519")),
        ("read", sandbox.path("home/.cargo/bin/tool")),
        ("write", outside.to_str().unwrap().to_owned()),
        ("write", sandbox.path("project/source")),
        ("connect", address),
        ("serve", "127.0.0.1:0".to_owned()),
        ("ptrace", "1".to_owned()),
        ("signal", std::process::id().to_string()),
    ];
    let lines = tries.map(|(act, on)| {
        // Without anything that holds it, this signal would end the test.
        if act == "signal" && sandbox.report().rung >= Rung::Rlimits {
            return "signal: not tried".to_owned();
        }
        format!("{act}: {}", sandbox.attempt(act, &on).outcome())
    });
    lines.join("\n")
}

#[test]
fn at_the_top_everything_holds() {
    let sandbox = on(Rung::Full);
    assert_snapshot!(told(sandbox.report()), @r"
    Full, project Overlay
    files: Enforced by mount-namespace, landlock
    network: Enforced by network-namespace
    kill: Enforced by pid-namespace
    syscalls: Enforced by seccomp
    privileges: Enforced by no-new-privileges, no-capabilities, user-namespace, landlock-scope
    ");
    assert_snapshot!(what_is_tried(&sandbox), @r"
    read: ENOENT
    read: a tool
    write: EROFS
    write: done
    connect: ECONNREFUSED
    serve: hello
    ptrace: EPERM
    signal: ESRCH
    ");
}

#[test]
fn without_a_proc_of_its_own_the_processes_of_the_machine_show() {
    let sandbox = on(Rung::NoProc);
    assert_snapshot!(told(sandbox.report()), @r"
    NoProc, project Overlay
    files: Partial by mount-namespace, landlock (/proc shows the processes of the machine (not used on this rung))
    network: Enforced by network-namespace
    kill: Enforced by pid-namespace
    syscalls: Enforced by seccomp
    privileges: Enforced by no-new-privileges, no-capabilities, user-namespace, landlock-scope
    ");
    assert_snapshot!(what_is_tried(&sandbox), @r"
    read: ENOENT
    read: a tool
    write: EROFS
    write: done
    connect: ECONNREFUSED
    serve: hello
    ptrace: EPERM
    signal: ESRCH
    ");
    let pid = std::process::id();
    assert_eq!(sandbox.attempt("read memory", &format!("/proc/{pid}/environ")).outcome(), "EACCES");
}

#[test]
fn bwrap_makes_the_namespaces_where_only_it_may() {
    if which::which("bwrap").is_err() {
        println!("SKIPPED: bwrap is not installed");
        return;
    }
    let sandbox = on(Rung::Bwrap);
    assert_snapshot!(told(sandbox.report()), @r"
    Bwrap, project ReadOnly
    files: Partial by bwrap (the project is read-only, without an overlay (not used on this rung); the size of private files is not limited)
    network: Enforced by bwrap
    kill: Enforced by bwrap, subreaper
    syscalls: Enforced by seccomp
    privileges: Enforced by no-new-privileges, no-capabilities
    ");
    assert_snapshot!(what_is_tried(&sandbox), @r"
    read: ENOENT
    read: a tool
    write: EROFS
    write: EROFS
    connect: ECONNREFUSED
    serve: hello
    ptrace: EPERM
    signal: ESRCH
    ");
}

#[test]
fn without_namespaces_landlock_and_the_filter_hold() {
    let sandbox = on(Rung::Lsm);
    assert_snapshot!(told(sandbox.report()), @r"
    Lsm, project ReadOnly
    files: Partial by landlock (the project is read-only, without an overlay (not used on this rung); the size of private files is not limited)
    network: Partial by seccomp (loopback is refused as well, without a network namespace (not used on this rung))
    kill: Partial by subreaper (processes are found by who started them, without a pid namespace (not used on this rung))
    syscalls: Enforced by seccomp
    privileges: Enforced by no-new-privileges, no-capabilities, landlock-scope
    ");
    assert_snapshot!(what_is_tried(&sandbox), @r"
    read: EACCES
    read: a tool
    write: EACCES
    write: EACCES
    connect: EPERM
    serve: EPERM
    ptrace: EPERM
    signal: EPERM
    ");
    assert_eq!(sandbox.shell("echo x > $TMPDIR/file && cat $TMPDIR/file").output, "x\n");
    assert_eq!(sandbox.shell("echo x > /tmp/file").code(), Some(2));
}

#[test]
fn without_namespaces_a_daemon_is_found_and_killed() {
    let sandbox = on(Rung::Lsm);
    let run = sandbox.shell(
        "(setsid sleep 987654 >/dev/null 2>&1 &) ; (setsid sh -c 'sleep 987654 & sleep 987654' &) ; exit 0",
    );
    assert_eq!(run.code(), Some(0));
    assert!(run.ended.all_gone);
    assert!(run.ended.left_running > 0, "{:?}", run.ended);
}

#[test]
fn the_temporary_directory_of_a_lower_rung_is_removed() {
    let sandbox = on(Rung::Lsm);
    let directory = sandbox.shell("printf %s $TMPDIR; mkdir -p $TMPDIR/a/b; ln -s / $TMPDIR/link").output;
    assert!(std::path::Path::new(&directory).exists());
    drop(sandbox);
    assert!(!std::path::Path::new(&directory).exists());
}

#[test]
fn with_limits_alone_the_report_says_so() {
    let sandbox = on(Rung::Rlimits);
    assert_snapshot!(told(sandbox.report()), @r"
    Rlimits, project Writable
    files: Unavailable by  (not used on this rung)
    network: Unavailable by  (not used on this rung)
    kill: Partial by subreaper (processes are found by who started them, without a pid namespace (not used on this rung))
    syscalls: Unavailable by  (not used on this rung)
    privileges: Partial by no-new-privileges, no-capabilities (other processes of the same user can be signalled)
    ");
    assert_eq!(sandbox.attempt("read", &sandbox.path("home/.ssh/id_ed25519")).outcome(), "the secret");
    assert_eq!(sandbox.shell("ulimit -n").output, "8192\n");
}

#[test]
fn off_is_off_and_still_ends_everything() {
    let sandbox = Place::new().with(|policy| policy.demand = Demand::Off).prepare();
    assert_snapshot!(told(sandbox.report()), @r"
    Off, project Writable
    files: Off by 
    network: Off by 
    kill: Partial by subreaper (processes are found by who started them, without a pid namespace (not used on this rung))
    syscalls: Off by 
    privileges: Off by
    ");
    assert!(sandbox.report().missing().iter().all(|(layer, _)| layer.to_string() == "kill"));
    assert!(sandbox.shell("(setsid sleep 987654 &); exit 0").ended.all_gone);
}

#[test]
fn what_is_required_and_not_there_is_refused() {
    let place = Place::new().with(|policy| {
        policy.demand = Demand::Required;
        policy.mode = ProjectMode::ReadOnly;
    });
    let error = Sandbox::prepare_at_most(&place.policy, Rung::Lsm).unwrap_err().to_string();
    let error = error.split(", memory").next().unwrap().split(", cpu").next().unwrap();
    assert_snapshot!(error, @"the sandbox is required, and does not hold: files (the size of private files is not limited), network (loopback is refused as well, without a network namespace (not used on this rung)), kill (processes are found by who started them, without a pid namespace (not used on this rung))");
}

#[test]
fn what_is_required_and_there_runs() {
    let place = Place::new().with(|policy| policy.demand = Demand::Required);
    if is_root() {
        let sandbox = place.prepare();
        assert!(sandbox.report().layers.all().iter().all(|(_, layer)| layer.state == State::Enforced));
        assert_eq!(sandbox.shell("echo ran").output, "ran\n");
    }
}

#[test]
fn the_report_is_a_document() {
    let report = on(Rung::Lsm).report().clone();
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<SandboxReport>(&json).unwrap(), report);
    assert!(json.starts_with(r#"{"requested":"best-effort","rung":"lsm","project":"read-only","layers":{"files":{"state":"partial","by":["landlock"]"#), "{json}");
}

#[test]
fn what_was_proven_is_tried_again_where_it_does_not_hold() {
    let place = Place::new();
    assert_eq!(Sandbox::prepare(&place.policy).unwrap().report().rung, Rung::Full);
    // Of the same shape; but this cannot be put into its place in a private `/proc`.
    let sandbox = place.with(|policy| policy.writable.push("/proc/sys".into())).prepare();
    assert_eq!(sandbox.report().rung, Rung::Full);
    assert_eq!(sandbox.shell("echo ran").output, "ran\n");
    assert!(sandbox.report().rung > Rung::Full, "{:?}", sandbox.report());
    assert_eq!(sandbox.shell("echo again").output, "again\n");
}

#[test]
fn a_directory_that_became_a_link_after_it_was_looked_at_is_refused() {
    let place = Place::new();
    Sandbox::prepare(&place.policy).unwrap();
    let cache = place.root.join("cache");
    let sandbox = place.with(|policy| policy.writable.push(cache.clone())).prepare();
    std::fs::remove_dir(&cache).unwrap();
    std::os::unix::fs::symlink("/etc", &cache).unwrap();
    let (command, _) = sandbox.command("/bin/true", &[]);
    let error = sandbox.sandbox.spawn(command).unwrap_err();
    assert_eq!(error.to_string(), "cannot set up the sandbox: laying out the file system");
}

#[test]
fn what_is_required_is_never_taken_from_memory() {
    let place = Place::new();
    Sandbox::prepare(&place.policy).unwrap();
    let required = place.with(|policy| {
        policy.demand = Demand::Required;
        policy.writable.push("/proc/sys".into());
    });
    let error = Sandbox::prepare(&required.policy).unwrap_err();
    assert!(error.to_string().starts_with("the sandbox is required, and does not hold: files ("), "{error}");
}
