//! Starting a command in the sandbox, beside other ways to start it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use rehearsal_sandbox::{Demand, Policy, Sandbox};

/// Of each, in turns: what else the machine does then hits all alike.
const STARTS: usize = 200;
/// A start of `srt` takes half a second.
const STARTS_OF_SLOW: usize = 10;
const BWRAP: &[&str] = &[
    "--unshare-all",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    "/tmp",
    "/bin/true",
];

/// A way to start `true`.
struct Way<'a> {
    name: &'static str,
    start: Box<dyn FnMut() + 'a>,
    every: usize,
    wall: Vec<Duration>,
    cpu: Duration,
}

impl<'a> Way<'a> {
    fn new(name: &'static str, every: usize, start: impl FnMut() + 'a) -> Self {
        Self { name, start: Box::new(start), every, wall: Vec::new(), cpu: Duration::ZERO }
    }

    fn take_turn(&mut self) {
        let (began, cpu) = (Instant::now(), cpu_time());
        (self.start)();
        self.wall.push(began.elapsed());
        self.cpu += cpu_time().saturating_sub(cpu);
    }

    fn least(&self) -> Duration {
        self.wall.iter().copied().min().unwrap_or_default()
    }

    fn median(&self) -> Duration {
        crate::median(self.wall.clone())
    }

    fn mean_cpu(&self) -> Duration {
        self.cpu / u32::try_from(self.wall.len()).unwrap()
    }
}

pub(crate) fn measure() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let project = tempfile::tempdir().unwrap();
    let project = Utf8PathBuf::from_path_buf(project.path().canonicalize().unwrap()).unwrap();
    std::fs::create_dir_all(&project).unwrap();
    let sandbox = Sandbox::prepare(&Policy::new(&project)).unwrap();
    println!("sandbox: {:?}, not held: {:?}", sandbox.report().rung, sandbox.report().missing());
    measure_preparing(&project);
    let mut ways = vec![Way::new("full sandbox", 1, || {
        let mut started = sandbox.spawn(rehearsal_sandbox::Command::new("/bin/true", &project)).unwrap();
        assert!(runtime.block_on(started.wait()).is_success());
    })];
    ways.push(Way::new("plain spawn", 1, || run("/bin/true", &[])));
    for (name, every, arguments) in
        [("bwrap", 1, BWRAP), ("srt", STARTS / STARTS_OF_SLOW, &["/bin/true"] as &[&str])]
    {
        match which::which(name) {
            Ok(program) => {
                ways.push(Way::new(name, every, move || run(program.to_str().unwrap(), arguments)))
            }
            Err(_) => println!("sandbox: left out, because it is not installed: {name}"),
        }
    }
    for turn in 0..STARTS {
        ways.iter_mut().filter(|way| turn % way.every == 0).for_each(Way::take_turn);
    }
    let (ours, others) = ways.split_first().unwrap();
    for other in others {
        let goal = match other.name {
            "bwrap" => "0.5x",
            "srt" => "0.02x",
            _ => "",
        };
        crate::row(&format!("sandbox: wall, least, {}", other.name), ours.least(), other.least(), goal);
        crate::row(&format!("sandbox: wall, median, {}", other.name), ours.median(), other.median(), goal);
        crate::row(&format!("sandbox: CPU, {}", other.name), ours.mean_cpu(), other.mean_cpu(), "");
    }
}

/// What it takes to get a sandbox ready: tried out, beside what was found to hold just before.
fn measure_preparing(project: &Utf8PathBuf) {
    let policy = Policy::new(project);
    let required = Policy { demand: Demand::Required, ..policy.clone() };
    let mut remembered = Way::new("prepare again", 1, || drop(Sandbox::prepare(&policy).unwrap()));
    let mut tried = Way::new("prepare by trying", 1, || drop(Sandbox::prepare(&required)));
    for _ in 0..STARTS {
        remembered.take_turn();
        tried.take_turn();
    }
    crate::row("sandbox: prepare, median, by trying", remembered.median(), tried.median(), "");
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{program} failed");
}

/// User and system time of this process and its ended children, from fields 14 to 17 of /proc/self/stat, in ticks of 10 ms: coarse
/// for one start, fair over all of them.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let ticks: u64 = after_name.split_whitespace().skip(11).take(4).map(|n| n.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}
