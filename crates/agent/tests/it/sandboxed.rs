//! Agents in a sandbox: what they cannot do, what they still can, and that nothing of them is left.

use std::net::TcpListener;
use std::time::Duration;

use rehearsal_agent::{Confinement, Containment, cli_of};
use rehearsal_core::config::{Layer, Origin, Overrides, resolve};
use rehearsal_core::{Exit, Notice, Outcome, Stop};
use rehearsal_process::{Supervised, become_subreaper, processes_of_run};
use rehearsal_sandbox::{Limit, Policy, ProjectMode};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;

use crate::support::{Bench, FOR_EVER, eventually, launcher, runaways};

/// As a project's configuration says it.
fn confinement(driver: &str, sandbox: &str) -> Confinement {
    let text = format!("agents: {{ implementer: {{ driver: {driver}, sandbox: {sandbox} }} }}");
    let layer = Layer::parse(&text, Origin::file("config.yaml")).unwrap();
    let settings = resolve(&[layer], Overrides::default(), Overrides::default()).unwrap();
    let profile = settings.profile().unwrap();
    let containment = Containment::new(&profile.sandbox, cli_of(profile.driver), "/".into());
    containment.sandbox().unwrap().clone()
}

/// A repository, a home with a secret, a file outside, and an agent confined as `sandbox` says.
struct Place(Bench);

impl Place {
    fn new(sandbox: &str) -> Self {
        Self::of("command", sandbox)
    }

    fn of(driver: &str, sandbox: &str) -> Self {
        let mut bench = Bench::new();
        for (path, content) in
            [("home/.ssh/id", "the secret"), ("home/notes", "private"), ("outside", "untouched")]
        {
            let path = bench.root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        bench.ours.insert("HOME".to_owned(), bench.root.join("home").into_string());
        bench.confinement = Some(confinement(driver, sandbox));
        let this = Self(bench);
        this.git(this.0.work().as_str(), "init --quiet --initial-branch=main");
        this.git(this.0.work().as_str(), "commit --quiet --allow-empty --message Beginning");
        this
    }

    fn git(&self, dir: &str, args: &str) -> String {
        let output = std::process::Command::new("git")
            .current_dir(dir)
            .args(args.split(' '))
            .env_clear()
            .envs([
                ("PATH", std::env::var("PATH").unwrap()),
                ("HOME", self.0.root.join("home").into_string()),
            ])
            .envs(["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "Ada")))
            .envs(["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "ada@example.invalid")))
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    fn path(&self, relative: &str) -> String {
        self.0.root.join(relative).into_string()
    }

    fn read(&self, relative: &str) -> String {
        std::fs::read_to_string(self.0.root.join(relative)).unwrap()
    }

    /// Each command with whether it succeeded.
    async fn tries(&self, commands: &[String]) -> Vec<bool> {
        let script: String = commands
            .iter()
            .map(|command| format!("if ( {command} ) >&2; then echo yes; else echo no; fi\n"))
            .collect();
        let report = self.0.sh(&script).await;
        assert_eq!(report.evidence.exit, Some(Exit::Code(0)), "{report:?}");
        self.0.file("stdout.log").lines().map(|line| line == "yes").collect()
    }
}

/// How often a word is on a command line of this machine.
fn processes_with(word: &str) -> usize {
    let command_line = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
    let lines = std::fs::read_dir("/proc").unwrap().flatten().filter_map(command_line);
    lines.filter(|line| line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())).count()
}

#[tokio::test]
async fn a_confined_agent_writes_its_worktree_and_nothing_else() {
    let place = Place::new("required");
    let tried = place
        .tries(&[
            "echo done > result.txt".to_owned(),
            format!("echo changed > {}", place.path("outside")),
            format!("echo changed > {}", place.path("home/notes")),
            "echo scratch > /tmp/scratch && cat /tmp/scratch".to_owned(),
            "echo x > /etc/rehearsal-was-here".to_owned(),
        ])
        .await;
    // What is hidden can be written privately, or not at all; the machine's own stays as it was.
    assert_eq!((tried[0], tried[3], tried[4]), (true, true, false), "{}", place.0.file("stderr.log"));
    assert_eq!(place.read("work/result.txt"), "done\n");
    assert_eq!(place.read("outside"), "untouched");
    assert_eq!(place.read("home/notes"), "private");
    assert!(!std::path::Path::new("/tmp/scratch").exists());
    assert!(!std::path::Path::new("/etc/rehearsal-was-here").exists());
}

#[tokio::test]
async fn a_confined_agent_reads_no_secret_of_the_home() {
    let place = Place::new("required");
    let (secret, notes) = (place.path("home/.ssh/id"), place.path("home/notes"));
    assert_eq!(place.tries(&[format!("cat {secret}"), format!("cat {notes}")]).await, [false, false]);
}

#[tokio::test]
async fn a_confined_agent_commits_and_reports() {
    let place = Place::new("required");
    std::fs::write(place.path("home/.gitconfig"), "[user]\n name = Ada\n email = ada@example.invalid\n")
        .unwrap();
    let report = place
        .0
        .sh("echo hi > hello.txt && git add hello.txt && git commit --quiet -m Greet || exit 1
            echo '{\"type\":\"progress\",\"text\":\"half way\"}' >> $TASK_DIR/report.jsonl
            echo '{\"outcome\":\"success\"}' > $TASK_DIR/result.json")
        .await;
    assert_eq!(report.verdict.outcome, Outcome::Done, "{}", place.0.file("stderr.log"));
    assert_eq!(report.progress, ["half way"]);
    assert_eq!(report.warnings, [] as [Notice; 0]);
    assert_eq!(report.evidence.git.unwrap().commits.len(), 1);
    assert_eq!(place.git(place.0.work().as_str(), "log -1 --format=%s"), "Greet");
    let sandbox = serde_json::to_value(report.sandbox.unwrap()).unwrap();
    assert_eq!(sandbox["layers"]["files"]["state"], "enforced");
}

#[tokio::test]
async fn in_a_linked_worktree_it_commits_to_the_main_repository() {
    let mut place = Place::new("required");
    place.git(place.0.work().as_str(), "worktree add --quiet ../linked");
    place.0.request.working_dir = place.0.root.join("linked");
    let report = place
        .0
        .sh("export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b
            git commit --quiet --allow-empty -m Linked || exit 1
            if echo x > ../work/stray; then echo stray; fi; if rm -f .git || echo 'gitdir: /x' > .git; then echo moved; fi")
        .await;
    assert_eq!(report.verdict.outcome, Outcome::Done, "{}", place.0.file("stderr.log"));
    assert_eq!(place.git(place.0.work().as_str(), "log -1 --format=%s linked"), "Linked");
    assert!(!place.0.root.join("work/stray").exists());
    assert!(!place.0.file("stdout.log").contains("moved"));
}

#[tokio::test]
async fn what_git_would_execute_outside_cannot_be_planted() {
    let place = Place::new("required");
    let tried = place
        .tries(&[
            "echo evil > .git/hooks/post-checkout".to_owned(),
            "git config core.fsmonitor /tmp/evil".to_owned(),
            "mv .git .hidden".to_owned(),
            "mv .git/hooks .git/old".to_owned(),
            "git branch topic".to_owned(),
        ])
        .await;
    assert_eq!(tried, [false, false, false, false, true], "{}", place.0.file("stderr.log"));
}

#[tokio::test]
async fn a_cli_keeps_its_login_and_sessions_but_not_its_settings() {
    let place = Place::of("claude", "required");
    std::fs::create_dir_all(place.path("home/.claude")).unwrap();
    for name in ["home/.claude/.credentials.json", "home/.claude/settings.json"] {
        std::fs::write(place.path(name), "as it was").unwrap();
    }
    let tried = place
        .tries(&[
            "echo renewed > ~/.claude/.credentials.json".to_owned(),
            "echo session > ~/.claude/session".to_owned(),
            "echo evil > ~/.claude/settings.json".to_owned(),
            "cat ~/.ssh/id".to_owned(),
        ])
        .await;
    assert_eq!(tried, [true, true, false, false], "{}", place.0.file("stderr.log"));
    assert_eq!(place.read("home/.claude/.credentials.json"), "renewed\n");
    assert_eq!(place.read("home/.claude/session"), "session\n");
    assert_eq!(place.read("home/.claude/settings.json"), "as it was");
    // It is nobody else's.
    let other = Place::of("codex", "required");
    std::fs::create_dir_all(other.path("home/.claude")).unwrap();
    std::fs::write(other.path("home/.claude/.credentials.json"), "a login").unwrap();
    assert_eq!(other.tries(&["cat ~/.claude/.credentials.json".to_owned()]).await, [false]);
}

#[tokio::test]
async fn a_reader_changes_neither_files_nor_history() {
    let place = Place::new("{ level: required, project: read_only }");
    let tried =
        place.tries(&["echo x > file".to_owned(), "git branch topic".to_owned(), "git log".to_owned()]).await;
    assert_eq!(tried, [false, false, true]);
}

#[tokio::test]
async fn the_network_is_there_unless_it_is_forbidden() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("bash -c ': < /dev/tcp/127.0.0.1/{port}'");
    let open = Place::new("required");
    assert_eq!(open.tries(std::slice::from_ref(&connect)).await, [true], "{}", open.0.file("stderr.log"));
    let closed = Place::new("{ level: required, allow_network: false }");
    assert_eq!(closed.tries(&[connect]).await, [false]);
    assert!(closed.0.file("stderr.log").contains("Connection refused"), "{}", closed.0.file("stderr.log"));
}

#[tokio::test]
async fn what_outlives_a_confined_agent_is_ended_and_told() {
    let place = Place::new("required");
    let mark = format!("1000.{}", std::process::id());
    let report = place
        .0
        .sh(&format!("(setsid env -i /bin/sleep {mark} & setsid sleep {mark} &); until [ \"$(pgrep -c sleep)\" = 2 ]; do :; done; echo ready"))
        .await;
    assert_eq!(report.evidence.exit, Some(Exit::Code(0)), "{}", place.0.file("stderr.log"));
    assert_eq!(report.warnings, [Notice::LeftoversKilled { count: 2, names: vec![] }]);
    assert_eq!(processes_with(&mark), 0);
    assert!(processes_of_run(&place.0.run).is_empty());
}

#[tokio::test]
async fn an_agent_that_takes_too_much_memory_is_killed_and_the_limit_told() {
    let place = Place::new("{ level: required, max_memory: 64MB }");
    let report = place.0.sh("exec tail /dev/zero").await;
    assert_eq!(report.evidence.exit, Some(Exit::Signal(9)), "{report:?}");
    assert_eq!(report.warnings, [Notice::LimitReached { limit: Limit::Memory }]);
}

#[tokio::test]
async fn a_required_sandbox_that_is_not_to_be_had_is_the_outcome() {
    let mut place = Place::new("required");
    place.0.request.run_dir = place.0.root.join("home/.ssh/runs");
    let report = place.0.sh("echo never").await;
    let secret = place.path("home/.ssh/runs");
    let reason = format!("`{secret}` holds secrets and is never shown to a confined process");
    assert_eq!(report.verdict.outcome, Outcome::SandboxUnavailable { reason });
    assert_eq!(report.warnings, [Notice::SandboxFailed]);
    assert_eq!(place.0.file("stdout.log"), "");
}

#[tokio::test]
async fn a_confined_agent_that_is_missing_is_told_as_any_other() {
    let place = Place::new("required");
    let report = place.0.program("no-such-agent", &[]).await;
    assert_eq!(report.verdict.outcome, Outcome::AgentMissing { program: "no-such-agent".to_owned() });
}

#[tokio::test]
async fn a_confined_agent_that_is_silent_for_too_long_may_tidy_up() {
    let mut place = Place::new("required");
    place.0.request.idle_timeout = Some(Duration::from_millis(150));
    let report = place.0.sh("trap 'echo tidied > tidied; exit 0' TERM; while :; do sleep 0.01; done").await;
    assert!(matches!(report.evidence.stop, Some(Stop::TimedOut { .. })), "{report:?}");
    assert_eq!(place.read("work/tidied"), "tidied\n");
}

/// A confined process below the agent, with runaways, that has said that it is ready.
async fn running(bench: &Bench) -> Supervised {
    let mut policy = Policy::new(bench.work());
    policy.mode = ProjectMode::Writable;
    let spec = bench.spec(&runaways("echo ready; sleep 1000"));
    let spec = rehearsal_process::SpawnSpec { sandbox: Some(policy), ..spec };
    let mut process = Supervised::spawn(&launcher(), spec).await.unwrap();
    let mut said = [0; 6];
    process.stdout.as_mut().unwrap().read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"ready\n");
    assert!(processes_of_run(&bench.run).len() >= 4);
    process
}

fn parent_of(pid: i32) -> Pid {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let parent = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap();
    Pid::from_raw(parent).unwrap()
}

#[tokio::test]
async fn a_confined_process_is_ended_with_all_that_it_started() {
    let bench = Bench::new();
    let mut process = running(&bench).await;
    process.kill().await;
    let ended = process.wait().await;
    assert_eq!((ended.exit, ended.left, ended.supervisor_lost), (Exit::Signal(9), 0, false));
    assert!(processes_of_run(&bench.run).is_empty());
    let mut process = running(&bench).await;
    process.terminate(FOR_EVER).await;
    let ended = process.wait().await;
    assert_eq!((ended.exit, ended.left), (Exit::Signal(15), 0));
    assert!(processes_of_run(&bench.run).is_empty());
}

#[tokio::test]
async fn when_the_shim_of_a_confined_process_is_killed_nothing_is_left() {
    become_subreaper().unwrap();
    let bench = Bench::new();
    let mut process = running(&bench).await;
    let init = process.pid();
    kill_process(parent_of(init), Signal::KILL).unwrap();
    let ended = process.wait().await;
    assert_eq!((ended.exit, ended.supervisor_lost), (Exit::Signal(9), true));
    eventually("the init is gone", || !std::path::Path::new(&format!("/proc/{init}/exe")).exists());
    eventually("the run is gone", || processes_of_run(&bench.run).is_empty());
}
