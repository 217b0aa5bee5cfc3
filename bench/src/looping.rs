//! What an iteration costs beyond its agent.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Enough for a steady figure; the start-up of a loop is subtracted by running two lengths.
const SHORT: u32 = 20;
const LONG: u32 = 120;
const ROUNDS: usize = 5;

/// The agent does nothing but say that it goes on: what is left is our own work.
const AGENT_ENV: (&str, &str) = ("MOCK_OUTCOME", "needs_continuation");

pub(crate) fn measure(program: &Path) {
    let repository = tempfile::tempdir().unwrap();
    prepare(program, repository.path());
    let mut ours = Vec::new();
    let mut bare = Vec::new();
    for _ in 0..ROUNDS {
        let (short, long) = (run(program, repository.path(), SHORT), run(program, repository.path(), LONG));
        ours.push(long.saturating_sub(short) / (LONG - SHORT));
        bare.push(spawn_bare(program, repository.path(), LONG));
    }
    let (ours, bare) = (crate::median(ours), crate::median(bare));
    crate::row("loop: one iteration, a bare spawn", ours, bare, "");
    let more = ours.saturating_sub(bare);
    println!("{:<44} {:>9.2} ms {:>24} < 5 ms", "loop: overhead of an iteration", crate::millis(more), "");
}

fn prepare(program: &Path, root: &Path) {
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
        let done = Command::new("git").args(identity).args(args).current_dir(root).status().unwrap();
        assert!(done.success());
    };
    std::fs::write(root.join("README.md"), "# bench\n").unwrap();
    std::fs::create_dir(root.join(".rehearsal")).unwrap();
    let config = format!(
        "agents:\n  implementer:\n    driver: command\n    program: \"{}\"\n    args: [mock-agent]\n    env: {{ {}: {} }}\n",
        program.display(),
        AGENT_ENV.0,
        AGENT_ENV.1
    );
    std::fs::write(root.join(".rehearsal/config.yaml"), config).unwrap();
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message=bench"]);
    ours(program, root, &["session", "new", "bench"]);
    ours(program, root, &["task", "add", "go on and on"]);
}

fn ours(program: &Path, root: &Path, args: &[&str]) {
    let mut command = Command::new(program);
    command.args(args).current_dir(root).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().unwrap().success(), "{args:?}");
}

fn run(program: &Path, root: &Path, iterations: u32) -> Duration {
    let start = Instant::now();
    ours(program, root, &["run", "bench", "--iterations", &iterations.to_string()]);
    start.elapsed()
}

fn spawn_bare(program: &Path, root: &Path, times: u32) -> Duration {
    let task_dir = tempfile::tempdir().unwrap();
    let start = Instant::now();
    for _ in 0..times {
        let mut command = Command::new(program);
        command.arg("mock-agent").current_dir(root).env(AGENT_ENV.0, AGENT_ENV.1);
        command.env("TASK_DIR", task_dir.path()).env("REHEARSAL_TASK_DIR", task_dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().unwrap().success());
    }
    start.elapsed() / times
}
