//! Reading what is private, writing what is not one's own.

use rehearsal_sandbox::{Change, Layer, Policy, ProjectMode, Rung, Sandbox, WrittenFile};

use crate::support::{Escape, Place, Without, is_root, outside, read, read_only};

const BY_MOUNTS: (Layer, &str) = (Layer::Files, "mount-namespace");

#[test]
fn a_key_in_the_home_cannot_be_read() {
    let place = Place::new();
    let key = place.path("home/.ssh/id_ed25519");
    Escape { act: "read", on: &key, held_with: "ENOENT", by: BY_MOUNTS }.is_held_in(place, Without::Succeeds);
}

#[test]
fn the_home_is_empty_but_for_toolchains() {
    let sandbox = Place::new().prepare();
    assert_eq!(sandbox.attempt("list", &sandbox.path("home")).outcome(), ".cargo");
    assert_eq!(sandbox.attempt("read", &sandbox.path("home/.cargo/bin/tool")).outcome(), "a tool");
    sandbox.assert_enforced(Layer::Files, "mount-namespace");
}

#[test]
fn a_secret_inside_of_what_is_shown_is_masked() {
    let place = Place::new().with(|policy| policy.readable.push(".cargo".into()));
    std::fs::write(place.path("home/.cargo/credentials.toml"), "the secret").unwrap();
    let sandbox = place.prepare();
    assert_eq!(sandbox.attempt("read", &sandbox.path("home/.cargo/credentials.toml")).outcome(), "");
    assert_eq!(sandbox.attempt("read", &sandbox.path("home/.cargo/bin/tool")).outcome(), "a tool");
}

#[test]
fn secrets_are_masked_when_the_project_is_the_home() {
    let place = Place::new();
    let home = place.root.join("home");
    let sandbox = place.with(|policy| policy.project = home).prepare();
    assert_eq!(sandbox.attempt("list", &sandbox.path("home/.ssh")).outcome(), "");
    assert_eq!(sandbox.attempt("list", &sandbox.path("home")).outcome(), ".cargo .ssh .tools");
}

#[test]
fn a_home_inside_of_the_project_stays_hidden() {
    let place = Place::new();
    let root = place.root.clone();
    let sandbox = place.with(|policy| policy.project = root).prepare();
    assert_eq!(sandbox.attempt("list", &sandbox.path("home")).outcome(), ".cargo");
    assert_eq!(sandbox.attempt("read", &sandbox.path("outside/file")).outcome(), "untouched");
}

#[test]
fn what_is_readable_inside_of_the_project_can_be_written_like_the_rest() {
    let place = Place::new();
    let source = place.root.join("project/source");
    let sandbox = place.with(|policy| policy.readable.push(source)).prepare();
    assert_eq!(sandbox.attempt("write", &sandbox.path("project/source")).outcome(), "done");
}

#[test]
fn a_policy_that_shows_a_secret_is_refused() {
    let place = Place::new().with(|policy| policy.readable.push(".ssh".into()));
    let error = Sandbox::prepare(&place.policy).unwrap_err();
    let path = place.path("home/.ssh");
    assert_eq!(error.to_string(), format!("`{path}` holds secrets and is never shown to a confined process"));
}

#[test]
fn what_is_a_programs_own_can_be_written_even_if_it_holds_secrets() {
    let place = Place::new().with(|policy| policy.own.extend([".ssh".into(), ".no-such-thing".into()]));
    let sandbox = place.prepare();
    let key = sandbox.path("home/.ssh/id_ed25519");
    assert_eq!(sandbox.attempt("read", &key).outcome(), "the secret");
    assert_eq!(sandbox.shell("echo new > ~/.ssh/known_hosts").code(), Some(0));
    assert_eq!(read(sandbox.path("home/.ssh/known_hosts")), "new\n");
    assert_eq!(sandbox.attempt("list", &sandbox.path("home")).outcome(), ".cargo .ssh");
}

#[test]
fn what_is_protected_stays_read_only_inside_of_what_can_be_written() {
    for highest in [Rung::Full, Rung::Bwrap] {
        if highest == Rung::Bwrap && which::which("bwrap").is_err() {
            println!("SKIPPED: bwrap is not installed");
            continue;
        }
        let place = Place::new().at_most(highest);
        let hooks = place.root.join("project/hooks");
        std::fs::create_dir_all(hooks.join("allowed")).unwrap();
        let sandbox = place
            .with(|policy| {
                policy.mode = ProjectMode::Writable;
                policy.protected.extend([hooks.clone(), hooks.join("no-such-thing")]);
                policy.writable.push(hooks.join("allowed"));
            })
            .prepare();
        let refused = sandbox.shell("echo x > hooks/file || mv hooks away || rm -r hooks");
        assert_ne!(refused.code(), Some(0), "{highest}: {}", refused.output);
        let allowed = sandbox.shell("echo x > hooks/allowed/file && echo x > beside");
        assert_eq!(allowed.code(), Some(0), "{highest}: {}", allowed.output);
        assert!(!hooks.join("file").exists() && hooks.join("allowed/file").exists());
    }
}

#[test]
fn where_protection_is_not_to_be_had_the_report_says_so() {
    let place = Place::new().at_most(Rung::Lsm).with(|policy| {
        policy.mode = ProjectMode::Writable;
        policy.protected.push(policy.project.join("source"));
    });
    let source = place.path("project/source");
    let sandbox = place.prepare();
    let why = sandbox.report().layers.files.why.clone().unwrap();
    assert!(why.ends_with(&format!("; not protected below what can be written: {source}")), "{why}");
}

#[test]
fn what_lies_outside_cannot_be_written() {
    // Not in a temporary directory, which would be hidden as a whole.
    let outside = outside();
    let file = outside.path().join("file");
    let on = file.to_str().unwrap();
    Escape { act: "write", on, held_with: "EROFS", by: BY_MOUNTS }
        .is_held_in(Place::new(), Without::Succeeds);
    assert!(!is_root() || file.exists(), "the attempt without a sandbox wrote it");
}

#[test]
fn system_files_cannot_be_written() {
    Escape { act: "write over", on: "/etc/passwd", held_with: read_only(), by: BY_MOUNTS }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn passwords_of_the_system_cannot_be_read() {
    let sandbox = Place::new().prepare();
    let run = sandbox.attempt("read", "/etc/shadow");
    assert_eq!(run.outcome(), if is_root() { "" } else { "EACCES" });
}

#[test]
fn the_project_cannot_be_written_when_it_is_read_only() {
    let place = Place::new().with(|policy| policy.mode = ProjectMode::ReadOnly);
    let source = place.path("project/source");
    Escape { act: "write", on: &source, held_with: "EROFS", by: BY_MOUNTS }
        .is_held_in(place, Without::Succeeds);
}

#[test]
fn the_project_can_be_written_when_that_is_allowed() {
    let sandbox = Place::new().with(|policy| policy.mode = ProjectMode::Writable).prepare();
    assert_eq!(sandbox.shell("echo new > source && rm doomed").code(), Some(0));
    assert_eq!(read(sandbox.path("project/source")), "new\n");
    assert!(!sandbox.place.root.join("project/doomed").exists());
}

#[test]
fn an_overlay_takes_all_writes_and_lists_them() {
    let sandbox = Place::new().prepare();
    let run = sandbox.shell("echo new >> source; rm doomed; mkdir -p a/b; echo x > a/b/made; ls");
    assert_eq!(run.output, "a\nsource\n");
    let file = |path: &str, change| WrittenFile { path: path.into(), change };
    let expected = [
        file("a/b/made", Change::Created),
        file("doomed", Change::Deleted),
        file("source", Change::Modified),
    ];
    assert_eq!(run.written.files, expected);
    assert!(!run.written.truncated);
    assert_eq!(read(sandbox.path("project/source")), "as it was");
    assert_eq!(read(sandbox.path("project/doomed")), "to be deleted");
    assert!(!sandbox.place.root.join("project/a").exists());
}

#[test]
fn a_deleted_and_made_directory_is_listed_as_both() {
    let place = Place::new();
    std::fs::create_dir(place.path("project/dir")).unwrap();
    std::fs::write(place.path("project/dir/old"), "old").unwrap();
    let sandbox = place.prepare();
    let run = sandbox.shell("rm -r dir; mkdir dir; echo x > dir/new; ls dir");
    assert_eq!(run.output, "new\n");
    let names: Vec<_> = run.written.files.iter().map(|file| (file.path.as_str(), file.change)).collect();
    assert_eq!(names, [("dir", Change::Deleted), ("dir/new", Change::Created)]);
}

#[test]
fn the_list_of_written_files_is_bounded() {
    let sandbox = Place::new().prepare();
    let (mut confined, _) =
        sandbox.start("/bin/sh", &["-c", "for i in 1 2 3 4 5 6 7 8 9; do echo x > f$i; done"]);
    crate::support::in_time(confined.wait());
    let written = confined.written(4);
    assert_eq!((written.files.len(), written.truncated), (4, true));
}

#[test]
fn each_run_begins_with_the_project_as_it_is() {
    let sandbox = Place::new().prepare();
    sandbox.shell("echo x > left; echo x > /tmp/left");
    assert_eq!(sandbox.shell("ls . /tmp").output.matches("left").count(), 0);
}

#[test]
fn a_cache_can_be_written_and_keeps_what_is_written() {
    let place = Place::new();
    let cache = place.root.join("cache");
    let sandbox = place.with(|policy| policy.writable.push(cache)).prepare();
    let file = sandbox.path("cache/entry");
    assert_eq!(sandbox.attempt("write", &file).outcome(), "done");
    assert_eq!(read(&file), "x");
}

#[test]
fn a_symbolic_link_does_not_lead_out() {
    let outside = outside();
    let file = outside.path().join("file");
    std::fs::write(&file, "untouched").unwrap();
    let on = file.to_str().unwrap();
    Escape { act: "write through a symbolic link", on, held_with: "EROFS", by: BY_MOUNTS }
        .is_held_in(Place::new().with(|policy| policy.mode = ProjectMode::Writable), Without::NotTried);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "untouched");
}

#[test]
fn a_writable_directory_that_became_a_link_is_refused() {
    let place = Place::new();
    std::os::unix::fs::symlink(place.root.join("outside"), place.root.join("project/target")).unwrap();
    let target = place.root.join("project/target");
    let place = place.with(|policy| policy.writable.push(target));
    let error = Sandbox::prepare(&place.policy).unwrap_err();
    let (from, to) = (place.path("project/target"), place.path("outside"));
    assert_eq!(error.to_string(), format!("`{from}` leads out of the project, to `{to}`"));
}

#[test]
fn a_hard_link_does_not_lead_out() {
    Escape { act: "hard link", on: "/etc/passwd", held_with: "EXDEV", by: BY_MOUNTS }
        .is_held_in(Place::new().with(|policy| policy.mode = ProjectMode::Writable), Without::NotTried);
}

#[test]
fn a_file_cannot_be_moved_out() {
    let outside = outside();
    let on = outside.path().join("file");
    Escape { act: "rename into", on: on.to_str().unwrap(), held_with: "EXDEV", by: BY_MOUNTS }
        .is_held_in(Place::new(), Without::NotTried);
    assert!(!on.exists());
}

#[test]
fn the_temporary_directory_is_private() {
    let host = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let path = host.path().to_str().unwrap().to_owned();
    Escape { act: "read", on: &path, held_with: "ENOENT", by: BY_MOUNTS }
        .is_held_in(Place::new(), Without::Succeeds);
}

#[test]
fn sockets_of_services_are_out_of_sight() {
    let sandbox = Place::new().prepare();
    assert_eq!(sandbox.attempt("list", "/run").outcome(), "");
}

#[test]
fn too_wide_a_project_is_refused() {
    let error = Sandbox::prepare(&Policy::new("/")).unwrap_err();
    assert_eq!(error.to_string(), "`/` is too wide to be written to");
}
