use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use rustix::fs::{CWD, RenameFlags};

use super::*;

/// A worktree with a directory beside it that nobody may see.
struct Place {
    _dir: tempfile::TempDir,
    outside: Utf8PathBuf,
    worktree: Worktree,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let (root, outside) = (base.join("worktree"), base.join("outside"));
        for directory in
            [root.join("sub/.git"), root.join(".git"), root.join(".rehearsal/flows"), outside.clone()]
        {
            fs_err::create_dir_all(directory).unwrap();
        }
        fs_err::write(root.join("a.txt"), "inside").unwrap();
        fs_err::write(root.join("sub/b.txt"), "inside").unwrap();
        fs_err::write(root.join(".git/config"), "git").unwrap();
        fs_err::write(outside.join("secret"), "secret").unwrap();
        Self { _dir: dir, outside, worktree: Worktree::open(&root).unwrap() }
    }

    /// As on a kernel without `openat2`.
    fn walking() -> Self {
        let mut place = Self::new();
        place.worktree.resolution = Resolution::Walk;
        place
    }

    fn root(&self) -> &Utf8Path {
        self.worktree.path()
    }

    fn link(&self, target: impl AsRef<Utf8Path>, name: &str) {
        symlink(target.as_ref(), self.root().join(name)).unwrap();
    }

    fn read(&self, path: &str) -> Result<String, String> {
        let told = |error: AccessError| error.to_string();
        let wanted = self.worktree.wanted(path).map_err(told)?;
        let content = self.worktree.read_whole(&wanted, 1000).map_err(told)?;
        Ok(String::from_utf8(content).unwrap())
    }

    fn write(&self, path: &str) -> Result<Written, String> {
        let told = |error: AccessError| error.to_string();
        let wanted = self.worktree.wanted(path).map_err(told)?;
        self.worktree.write(&wanted, b"written").map_err(told)
    }

    fn assert_refused(&self, path: &str, why: &str) {
        assert_eq!(self.read(path).unwrap_err(), why, "reading");
        assert_eq!(self.write(path).unwrap_err(), why, "writing");
        self.assert_outside_is_untouched();
    }

    fn assert_outside_is_untouched(&self) {
        let names: Vec<_> =
            fs_err::read_dir(&self.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["secret"]);
        assert_eq!(fs_err::read_to_string(self.outside.join("secret")).unwrap(), "secret");
    }
}

fn outside(path: &str) -> String {
    format!("`{path}` is outside of the worktree: only files below it can be used")
}

fn of_git(path: &str) -> String {
    format!("`{path}` belongs to git: it can be neither read nor changed as a file")
}

#[test]
fn this_kernel_confines_by_itself() {
    assert_eq!(Place::new().worktree.resolution, Resolution::Kernel);
}

#[test]
fn paths_that_lead_out_are_refused_as_they_are_written() {
    for place in [Place::new(), Place::walking()] {
        for path in [
            "../outside/secret",
            "sub/../../outside/secret",
            "sub/..",
            "..",
            "/etc/passwd",
            "/proc/self/environ",
            "/proc/self/root/etc/passwd",
            "//etc/passwd",
            "/",
        ] {
            place.assert_refused(path, &outside(path));
        }
        let beside = format!("{}2/x", place.root());
        place.assert_refused(&beside, &outside(&beside));
        place.assert_refused("", "the path is empty");
        place.assert_refused("a\0b", "the path has a NUL in it");
        place.assert_refused(&"x/".repeat(3000), "the path is longer than 4096 bytes");
        let long = "n".repeat(300);
        assert_eq!(
            place.read(&long).unwrap_err(),
            format!("`{long}` cannot be used: File name too long (os error 36)")
        );
    }
}

#[test]
fn absolute_paths_below_the_worktree_are_as_good_as_relative_ones() {
    let place = Place::new();
    assert_eq!(place.read(place.root().join("sub/b.txt").as_str()).unwrap(), "inside");
    assert_eq!(place.read("./sub//./b.txt").unwrap(), "inside");
}

#[test]
fn links_that_lead_out_are_refused() {
    for place in [Place::new(), Place::walking()] {
        place.link(place.outside.join("secret"), "to-file");
        place.link(&place.outside, "to-directory");
        place.link("../outside", "relative");
        place.link("/proc/self", "magic");
        place.link("loop", "loop");
        for path in [
            "to-file",
            "to-directory/secret",
            "to-directory/new",
            "relative/secret",
            "magic/environ",
            "magic/root/etc/passwd",
            "magic/cwd/Cargo.toml",
            "loop",
        ] {
            place.assert_refused(path, &outside(path));
        }
    }
}

#[test]
fn links_inside_are_followed_and_kept() {
    let place = Place::new();
    place.link("a.txt", "alias");
    place.link("sub", "directory");
    assert_eq!(place.read("alias").unwrap(), "inside");
    assert_eq!(place.write("alias"), Ok(Written::Replaced));
    assert_eq!(place.write("directory/new.txt"), Ok(Written::Created));
    assert!(fs_err::symlink_metadata(place.root().join("alias")).unwrap().is_symlink());
    assert_eq!(place.read("a.txt").unwrap(), "written");
    assert_eq!(place.read("sub/new.txt").unwrap(), "written");
    // A kernel without `openat2` follows none.
    let place = Place::walking();
    place.link("a.txt", "alias");
    place.assert_refused("alias", &outside("alias"));
}

#[test]
fn what_is_gits_is_refused_however_it_is_reached() {
    let place = Place::new();
    place.link(".git", "g");
    place.link(".git/config", "c");
    for (path, real) in [
        (".git/config", ".git/config"),
        ("sub/.git/hooks/x", "sub/.git/hooks/x"),
        (".GIT/config", ".GIT/config"),
        ("./.git", ".git"),
        ("g/config", ".git/config"),
        ("c", ".git/config"),
    ] {
        place.assert_refused(path, &of_git(real));
    }
    assert_eq!(place.write("g/new").unwrap_err(), of_git(".git"));
    assert_eq!(place.read(".gitignore").unwrap_err(), "`.gitignore` does not exist");
    assert_eq!(place.write(".gitignore"), Ok(Written::Created));
}

#[test]
fn what_says_how_agents_work_is_not_written() {
    let place = Place::new();
    place.link(".rehearsal", "r");
    let refused = |path: &str| format!("`{path}` says how agents work: no agent changes it");
    for path in [
        ".rehearsal/config.yaml",
        ".rehearsal/flows/x.yaml",
        ".rehearsal/agents/code.yaml",
        ".rehearsal/state/db",
        ".Rehearsal/Config.yaml",
    ] {
        assert_eq!(place.write(path).unwrap_err(), refused(path));
    }
    assert_eq!(place.write("r/flows/x.yaml").unwrap_err(), refused(".rehearsal/flows/x.yaml"));
    assert_eq!(place.write("r/agents/x.yaml").unwrap_err(), refused(".rehearsal/agents"));
    assert_eq!(place.write(".rehearsal/scenarios/x.yaml"), Ok(Written::Created));
    assert_eq!(place.read(".rehearsal/scenarios/x.yaml").unwrap(), "written");
}

#[test]
fn pipes_sockets_devices_and_directories_are_told_at_once() {
    for place in [Place::new(), Place::walking()] {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = place.root().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, fifo.as_str(), FileType::Fifo, mode, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(place.root().join("socket")).unwrap();
        place.assert_refused("fifo", "`fifo` is a pipe, and no regular file");
        assert_eq!(
            place.read("socket").unwrap_err(),
            "`socket` is a socket or a device, and no regular file"
        );
        assert_eq!(place.write("socket").unwrap_err(), "`socket` is a socket, and no regular file");
        place.assert_refused("sub", "`sub` is a directory, and no regular file");
    }
}

#[test]
fn a_file_with_another_name_is_not_written() {
    let place = Place::new();
    fs_err::hard_link(place.outside.join("secret"), place.root().join("hard")).unwrap();
    assert_eq!(
        place.write("hard").unwrap_err(),
        "`hard` has more than one name (hard links), and others may be outside of the worktree: remove it first, then write it anew"
    );
    place.assert_outside_is_untouched();
}

#[test]
fn a_link_to_nothing_is_not_written_through() {
    for place in [Place::new(), Place::walking()] {
        place.link("nothing", "dangling");
        let refused = place.write("dangling").unwrap_err();
        let dangling = "`dangling` is a link to nothing: remove it first, then write it anew";
        assert!(refused == dangling || refused == outside("dangling"), "{refused}");
        assert!(place.write("dangling/x").is_err());
        place.link(place.outside.join("new"), "dangling-outside");
        assert!(place.write("dangling-outside").is_err());
        place.assert_outside_is_untouched();
    }
}

#[test]
fn a_file_keeps_its_mode_and_nothing_is_left_beside_it() {
    let place = Place::new();
    let script = place.root().join("a.txt");
    fs_err::set_permissions(&script, PermissionsExt::from_mode(0o750)).unwrap();
    assert_eq!(place.write("a.txt"), Ok(Written::Replaced));
    assert_eq!(fs_err::metadata(&script).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(place.write("new/deep/file"), Ok(Written::Created));
    let names: Vec<_> = fs_err::read_dir(place.root().join("new/deep"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["file"]);
}

#[test]
fn a_file_that_is_too_large_is_told_with_its_size() {
    let place = Place::new();
    let sparse = fs_err::File::create(place.root().join("sparse")).unwrap();
    sparse.set_len(10 << 30).unwrap();
    assert_eq!(
        place.read("sparse").unwrap_err(),
        "`sparse` has 10737418240 bytes, and more than 1000 cannot be handled at once"
    );
}

/// A directory becomes a link to the outside and back, while it is used.
#[test]
fn a_link_that_is_swapped_in_between_does_not_lead_out() {
    for place in [Place::new(), Place::walking()] {
        let (switched, link) = (place.root().join("d"), place.root().join("link"));
        fs_err::create_dir(&switched).unwrap();
        fs_err::write(switched.join("secret"), "inside").unwrap();
        symlink(&place.outside, &link).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let (one, other) = (switched.as_str(), link.as_str());
                    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                }
            });
            for _ in 0..3000 {
                if let Ok(content) = place.read("d/secret") {
                    assert_ne!(content, "secret");
                }
                let _inside_or_refused = place.write("d/secret");
                let _inside_or_refused = place.write("d/new/file");
            }
            over.store(true, Ordering::Relaxed);
        });
        place.assert_outside_is_untouched();
    }
}

fn tricky() -> impl Strategy<Value = String> {
    const NAMES: [&str; 15] = [
        "..", ".", "", "sub", "a.txt", ".git", "out", "up", "abs", "proc", "self", "root", "cwd", "secret",
        "outside",
    ];
    let piece = prop_oneof![15 => prop::sample::select(&NAMES[..]).prop_map(str::to_owned), 1 => "[a-z\\\\ é%2e]{1,6}"];
    (any::<bool>(), prop::collection::vec(piece, 1..8))
        .prop_map(|(absolute, pieces)| format!("{}{}", if absolute { "/" } else { "" }, pieces.join("/")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_path_leads_out(paths in prop::collection::vec(tricky(), 1..20), walk: bool) {
        let place = if walk { Place::walking() } else { Place::new() };
        place.link(&place.outside, "out");
        place.link("..", "up");
        place.link("/", "abs");
        place.link("/proc", "proc");
        place.link("../..", "sub/up");
        for path in paths {
            if let Ok(content) = place.read(&path) {
                prop_assert!(content == "inside" || content == "written", "{} was read: {}", path, content);
            }
            let _inside_or_refused = place.write(&path);
        }
        place.assert_outside_is_untouched();
        prop_assert_eq!(fs_err::read_to_string(place.root().join(".git/config")).unwrap(), "git");
    }
}
