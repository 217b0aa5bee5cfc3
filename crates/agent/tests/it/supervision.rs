//! The shim and our end of it.

use rehearsal_core::Exit;
use rehearsal_process::{
    ProcessId, SpawnError, Supervised, become_subreaper, kill_processes_of_run, processes_of_run,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Bench, FOR_EVER, RUNAWAYS, eventually, launcher, runaways};

async fn output(process: &mut Supervised) -> String {
    let mut text = String::new();
    process.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    text
}

async fn line(process: &mut Supervised) -> String {
    let mut text = String::new();
    let stdout = process.stdout.as_mut().unwrap();
    while !text.ends_with('\n') {
        text.push(char::from(stdout.read_u8().await.unwrap()));
    }
    text
}

async fn spawn(bench: &Bench, script: &str) -> Supervised {
    Supervised::spawn(&launcher(), bench.spec(script)).await.unwrap()
}

fn assert_nothing_left(bench: &Bench, count: usize) {
    assert!(processes_of_run(&bench.run).is_empty());
    assert_eq!(std::fs::read_dir(bench.work()).unwrap().count(), count, "all of them had started");
    let alive: Vec<ProcessId> =
        bench.noted_processes().into_iter().filter(|process| process.is_alive()).collect();
    assert!(alive.is_empty(), "{alive:?}");
}

fn parent_of(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
}

fn signal(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[tokio::test]
async fn a_process_talks_through_its_pipes_and_its_status_is_told() {
    let bench = Bench::new();
    let mut process = spawn(&bench, "read word; echo out $word; echo err >&2; exit 3").await;
    process.stdin.take().unwrap().write_all(b"hello\n").await.unwrap();
    assert_eq!(output(&mut process).await, "out hello\n");
    let mut errors = String::new();
    process.stderr.take().unwrap().read_to_string(&mut errors).await.unwrap();
    assert_eq!(errors, "err\n");
    let ended = process.wait().await;
    assert_eq!(ended.exit, Exit::Code(3));
    assert_eq!((ended.escaped.count, ended.left, ended.supervisor_lost), (0, 0, false));
}

#[tokio::test]
async fn a_death_by_signal_is_told_as_such() {
    let mut process = spawn(&Bench::new(), "kill -SEGV $$").await;
    assert_eq!(process.wait().await.exit, Exit::Signal(11));
}

#[tokio::test]
async fn the_environment_is_what_was_given_and_nothing_else() {
    let bench = Bench::new();
    let mut spec = bench.spec("");
    (spec.program, spec.args) = ("env".into(), Vec::new());
    let mut expected: Vec<String> = spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    expected.sort();
    let mut process = Supervised::spawn(&launcher(), spec).await.unwrap();
    assert_eq!(output(&mut process).await.lines().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn no_descriptor_is_inherited_and_signals_are_as_usual() {
    let bench = Bench::new();
    let _leaked = rustix::io::dup(rustix::stdio::stderr()).unwrap();
    let script =
        "for fd in 3 4 5 6 7 8 9 10 11 12 13 14 15; do [ -e /proc/$$/fd/$fd ] && echo leaked $fd; done
        exec grep -E '^Sig(Blk|Ign)' /proc/self/status";
    let said = output(&mut spawn(&bench, script).await).await;
    let masks: Vec<u64> = said
        .lines()
        .map(|line| line.split_once(":\t").unwrap_or_else(|| panic!("{said}")).1)
        .map(|mask| u64::from_str_radix(mask, 16).unwrap() & 0x7fff_ffff)
        .collect();
    assert_eq!(masks, [0, 0], "{said}");
}

#[tokio::test]
async fn what_outlives_the_agent_is_ended_wherever_it_hides() {
    let bench = Bench::new();
    let mut process = spawn(&bench, &runaways("exit 0")).await;
    let ended = process.wait().await;
    assert_eq!(ended.exit, Exit::Code(0));
    // The deaf one has a child of its own.
    assert_eq!(ended.escaped.count as usize, RUNAWAYS + 1, "{}", ended.escaped);
    assert!(ended.escaped.names.contains(&"sleep".to_owned()), "{}", ended.escaped);
    assert_nothing_left(&bench, RUNAWAYS);
}

#[tokio::test]
async fn a_crowd_is_ended_to_the_last() {
    let bench = Bench::new();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do
        setsid sh -c 'for i in 1 2 3 4 5; do sleep 1000 & done; sleep 1000' & done; echo ready; exit 0";
    let mut process = spawn(&bench, script).await;
    let ended = process.wait().await;
    assert_eq!((ended.exit, ended.left), (Exit::Code(0), 0));
    assert!(processes_of_run(&bench.run).is_empty());
}

#[tokio::test]
async fn whoever_obeys_sigterm_ends_in_its_own_way() {
    let bench = Bench::new();
    let mut process = spawn(&bench, "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done").await;
    assert_eq!(line(&mut process).await, "ready\n");
    process.terminate(FOR_EVER).await;
    let ended = process.wait().await;
    assert_eq!(ended.exit, Exit::Code(7));
}

#[tokio::test]
async fn whoever_ignores_sigterm_is_killed_after_the_grace() {
    let bench = Bench::new();
    let mut process = spawn(&bench, "trap '' TERM; echo ready; while :; do sleep 0.01; done").await;
    assert_eq!(line(&mut process).await, "ready\n");
    process.terminate(std::time::Duration::from_millis(20)).await;
    assert_eq!(process.wait().await.exit, Exit::Signal(9));
    assert!(processes_of_run(&bench.run).is_empty());
}

#[tokio::test]
async fn a_kill_leaves_nothing() {
    let bench = Bench::new();
    let mut process = spawn(&bench, &runaways("echo ready; sleep 1000")).await;
    assert_eq!(line(&mut process).await, "ready\n");
    process.kill().await;
    let ended = process.wait().await;
    assert_eq!(ended.exit, Exit::Signal(9));
    assert!(ended.escaped.count >= 4, "all but those of its own group had got away: {}", ended.escaped);
    assert_nothing_left(&bench, RUNAWAYS);
}

#[tokio::test]
async fn dropping_it_ends_everything() {
    let bench = Bench::new();
    let mut process = spawn(&bench, &runaways("echo ready; sleep 1000")).await;
    assert_eq!(line(&mut process).await, "ready\n");
    drop(process);
    let noted = bench.noted_processes();
    eventually("all are gone", || noted.iter().all(|process| !process.is_alive()));
    eventually("the agent is gone", || processes_of_run(&bench.run).is_empty());
}

#[tokio::test]
async fn a_shim_that_is_asked_to_end_takes_all_with_it() {
    let bench = Bench::new();
    let mut process = spawn(&bench, &runaways("echo ready; sleep 1000")).await;
    assert_eq!(line(&mut process).await, "ready\n");
    signal(parent_of(process.pid()), rustix::process::Signal::TERM);
    let ended = process.wait().await;
    assert_eq!((ended.exit, ended.supervisor_lost), (Exit::Signal(9), false));
    assert_nothing_left(&bench, RUNAWAYS);
}

#[tokio::test]
async fn when_the_shim_is_killed_we_end_what_it_leaves() {
    become_subreaper().unwrap();
    let bench = Bench::new();
    let script = "setsid sh -c 'echo $$ > session.pid; exec sleep 1000' &
        (setsid sh -c 'echo $$ > daemon.pid; exec sleep 1000' &)
        env -i PATH=$PATH sh -c 'echo $$ > nameless.pid; exec sleep 1000' &
        for name in session daemon nameless; do until [ -s $name.pid ]; do sleep 0.01; done; done
        echo ready; sleep 1000";
    let mut process = spawn(&bench, script).await;
    assert_eq!(line(&mut process).await, "ready\n");
    signal(parent_of(process.pid()), rustix::process::Signal::KILL);
    let ended = process.wait().await;
    assert_eq!((ended.exit, ended.supervisor_lost), (Exit::Signal(9), true));
    assert_nothing_left(&bench, 3);
}

#[tokio::test]
async fn a_run_is_found_and_ended_by_its_mark_alone() {
    let bench = Bench::new();
    let mut process = spawn(&bench, "setsid sleep 1000 & sleep 1000").await;
    eventually("three processes carry the mark", || processes_of_run(&bench.run).len() == 3);
    assert_eq!(kill_processes_of_run(&bench.run).count, 3);
    assert!(processes_of_run(&bench.run).is_empty());
    assert_eq!(process.wait().await.exit, Exit::Signal(9));
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let bench = Bench::new();
    std::fs::write(bench.work().join("plain"), "no program").unwrap();
    std::fs::write(bench.work().join("script"), "#!/no/such/interpreter\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bench.work().join("script"), mode).unwrap();
    let refused = async |change: &dyn Fn(&mut rehearsal_process::SpawnSpec)| {
        let mut spec = bench.spec("exit 0");
        change(&mut spec);
        Supervised::spawn(&launcher(), spec).await.unwrap_err().to_string()
    };
    assert_eq!(
        refused(&|spec| spec.program = "no-such-agent".into()).await,
        "program `no-such-agent` was not found"
    );
    assert_eq!(refused(&|spec| spec.program = "./plain".into()).await, "`./plain` cannot be executed");
    assert_eq!(
        refused(&|spec| spec.program = "./script".into()).await,
        "the interpreter that `./script` asks for was not found"
    );
    assert_eq!(
        refused(&|spec| spec.cwd = "/no/such/place".into()).await,
        "the working directory `/no/such/place` does not exist"
    );
    assert_eq!(
        refused(&|spec| spec.args = vec!["x".repeat(1 << 20); 8]).await,
        "the command line and the environment of `sh` are too long for the system"
    );
}

#[tokio::test]
async fn a_shim_that_is_none_is_told_as_such() {
    let launcher = rehearsal_process::Launcher::new("/bin/true", []);
    let error = Supervised::spawn(&launcher, Bench::new().spec("exit 0")).await.unwrap_err();
    assert!(matches!(error, SpawnError::Supervisor { .. }), "{error}");
    let launcher = rehearsal_process::Launcher::new("/no/such/shim", []);
    let error = Supervised::spawn(&launcher, Bench::new().spec("exit 0")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the supervisor `/no/such/shim` does not work: No such file or directory (os error 2)"
    );
}
