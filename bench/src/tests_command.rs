//! What `rehearsal test` adds to the runner's own time.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 40;
const RUNNER: &str = "#!/bin/sh\necho 1..1\necho 'ok 1 - adds'\n";

pub(crate) fn measure(program: &Path) {
    let project = tempfile::tempdir().unwrap();
    make_project(project.path());
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    // In turn, so that what else the machine does meets both alike. The first of each makes files, and does not count.
    for run in 0..=RUNS {
        let times =
            [wall(program, &["test"], project.path()), wall(Path::new("./test"), &[], project.path())];
        if run > 0 {
            ours.push(times[0]);
            bare.push(times[1]);
        }
    }
    let least = |times: &[Duration]| times.iter().copied().min().unwrap_or_default();
    crate::row("test: `rehearsal test`, bare runner (least)", least(&ours), least(&bare), "< 50 ms more");
    let medians = (crate::median(ours), crate::median(bare));
    crate::row("test: `rehearsal test`, bare runner (median)", medians.0, medians.1, "< 50 ms more");
}

fn make_project(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let test = directory.join("test");
    std::fs::write(&test, RUNNER).unwrap();
    std::fs::set_permissions(&test, std::fs::Permissions::from_mode(0o755)).unwrap();
    let author = ["-c", "user.name=Bench", "-c", "user.email=bench@example.invalid"];
    let commands: [&[&str]; 3] =
        [&["init", "--quiet"], &["add", "--all"], &["commit", "--quiet", "--message", "Test"]];
    for args in commands {
        let status = Command::new("git").args(author).args(args).current_dir(directory).status().unwrap();
        assert!(status.success(), "git {args:?}");
    }
}

fn wall(program: &Path, args: &[&str], directory: &Path) -> Duration {
    let began = Instant::now();
    let status =
        Command::new(program).args(args).current_dir(directory).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{}", program.display());
    began.elapsed()
}
