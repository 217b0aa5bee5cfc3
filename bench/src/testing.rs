//! Reading what test runners say: each format beside the barest reader of its syntax, and beside the tool that people
//! use for it. Every reading has a process of its own, so that its peak memory is its own.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rehearsal_testing::{Collector, Ending, Format, Limits, Stream};
use serde::Deserialize;

const CHUNK: usize = 128 << 10;

/// One stream: how `gen_big.py` makes it, the format that reads it, and what it is compared with.
struct Case {
    what: &'static str,
    kind: &'static str,
    tests: u32,
    format: &'static str,
    bare: Option<&'static str>,
    tool: Option<Tool>,
    goal: &'static str,
}

struct Tool {
    program: &'static str,
    args: &'static [&'static str],
}

const GOTESTSUM: Tool =
    Tool { program: "gotestsum", args: &["--format=standard-quiet", "--raw-command", "cat"] };
const PROVE: Tool = Tool { program: "prove", args: &["-e", "cat"] };

const CASES: [Case; 5] = [
    Case {
        what: "go test -json, 1 M events",
        kind: "go",
        tests: 110_000,
        format: "go-json",
        bare: Some("go"),
        tool: Some(GOTESTSUM),
        goal: ">= 0.7 of bare serde_json, >= 6 times gotestsum, < 20 MB",
    },
    Case {
        what: "go test -json, 1 GB",
        kind: "go",
        tests: 580_000,
        format: "go-json",
        bare: Some("go"),
        tool: None,
        goal: ">= 0.7 of bare serde_json, < 20 MB",
    },
    Case {
        what: "go test -v",
        kind: "gotext",
        tests: 110_000,
        format: "go-text",
        bare: None,
        tool: None,
        goal: "< 20 MB",
    },
    Case {
        what: "JUnit XML, 300,000 cases",
        kind: "junit",
        tests: 300_000,
        format: "junit",
        bare: Some("xml"),
        tool: None,
        goal: ">= 0.7 of bare quick-xml",
    },
    Case {
        what: "TAP, 300,000 results",
        kind: "tap",
        tests: 300_000,
        format: "tap",
        bare: Some("lines"),
        tool: Some(PROVE),
        goal: ">= 20 times prove",
    },
];

/// What a reading cost.
#[derive(Deserialize, serde::Serialize, Clone, Copy)]
struct Cost {
    cpu: Duration,
    peak_kib: u64,
}

pub(crate) fn measure() {
    for case in CASES {
        if Format::named(case.format).is_none() {
            println!("{:<28} left out: no format `{}`", case.what, case.format);
            continue;
        }
        let file = generate(&case);
        let ours = best(|| in_own_process("read", case.format, file.path()));
        let megabytes = file.path().metadata().unwrap().len() / 1_000_000;
        print!(
            "{:<28} {megabytes:>5} MB  {:>8.0} ms  {:>6} KiB",
            case.what,
            crate::millis(ours.cpu),
            ours.peak_kib
        );
        if let Some(bare) = case.bare {
            let bare = best(|| in_own_process("bare", bare, file.path()));
            print!(
                "  bare {:.0} ms ({:.2} of it)",
                crate::millis(bare.cpu),
                bare.cpu.as_secs_f64() / ours.cpu.as_secs_f64()
            );
        }
        if let Some(tool) = &case.tool {
            match tool.cost(file.path()) {
                Some(cpu) => print!(
                    "  {} {:.0} ms ({:.1} times)",
                    tool.program,
                    crate::millis(cpu),
                    cpu.as_secs_f64() / ours.cpu.as_secs_f64()
                ),
                None => print!("  {} is not installed", tool.program),
            }
        }
        println!("  goal {}", case.goal);
    }
}

/// The part that runs in a process of its own: `testing read FORMAT FILE`.
pub(crate) fn measure_one(args: &[String]) {
    let [what, name, file] = args else { panic!("read|bare NAME FILE") };
    match (what.as_str(), name.as_str()) {
        ("read", name) => read(Format::named(name).unwrap(), Path::new(file)),
        ("bare", "go") => bare_go(Path::new(file)),
        ("bare", "xml") => bare_xml(Path::new(file)),
        _ => bare_lines(Path::new(file)),
    }
    println!("{}", serde_json::to_string(&Cost { cpu: own_cpu(), peak_kib: peak_kib() }).unwrap());
}

/// As a live run does it, every test written to a file.
fn read(format: &Format, file: &Path) {
    let all = std::io::BufWriter::with_capacity(64 << 10, File::create("/dev/null").unwrap());
    let mut collector = Collector::new(None, Limits::default()).write_all_to(Box::new(all));
    let mut parser = format.parser();
    each_chunk(file, |chunk| parser.feed(Stream::Out, chunk, &mut collector));
    parser.finish(&mut collector);
    let run = collector.finish(&Ending::default());
    assert!(run.summary.total > 0 && run.ended, "{:?} {:?}", run.summary, run.complaints);
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event<'a> {
    #[serde(borrow)]
    action: &'a str,
    #[serde(borrow, default)]
    package: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    test: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    output: std::borrow::Cow<'a, str>,
    #[serde(default)]
    elapsed: f64,
}

/// What any reader must do: parse each line, and remember how each test ended.
fn bare_go(file: &Path) {
    let mut input = BufReader::with_capacity(CHUNK, File::open(file).unwrap());
    let mut line = Vec::new();
    let mut ended: HashMap<String, u64> = HashMap::new();
    let (mut printed, mut seconds) = (0, 0.0);
    while input.read_until(b'\n', &mut line).unwrap() > 0 {
        let event: Event<'_> = serde_json::from_slice(&line).unwrap();
        printed += event.output.len();
        seconds += event.elapsed;
        if !event.test.is_empty() && event.action != "output" {
            *ended.entry(format!("{} {}", event.package, event.action)).or_default() += 1;
        }
        line.clear();
    }
    std::hint::black_box((ended, printed, seconds));
}

/// Every event of the document, and nothing done with it.
fn bare_xml(file: &Path) {
    let mut reader =
        quick_xml::Reader::from_reader(BufReader::with_capacity(CHUNK, File::open(file).unwrap()));
    let (mut buffer, mut events) = (Vec::new(), 0_u64);
    while !matches!(reader.read_event_into(&mut buffer).unwrap(), quick_xml::events::Event::Eof) {
        events += 1;
        buffer.clear();
    }
    std::hint::black_box(events);
}

fn bare_lines(file: &Path) {
    let mut lines = 0;
    each_chunk(file, |chunk| lines += memchr::memchr_iter(b'\n', chunk).count());
    std::hint::black_box(lines);
}

fn each_chunk(file: &Path, mut each: impl FnMut(&[u8])) {
    let mut file = File::open(file).unwrap();
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk).unwrap() {
            0 => return,
            count => each(&chunk[..count]),
        }
    }
}

fn generate(case: &Case) -> tempfile::NamedTempFile {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("gen_big.py");
    let file = tempfile::NamedTempFile::new().unwrap();
    let status = Command::new("python3")
        .arg(script)
        .args([case.kind, "--tests", &case.tests.to_string(), "--out"])
        .arg(file.path())
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "gen_big.py {}", case.kind);
    file
}

/// The best of three: a busy machine only makes it slower.
fn best(run: impl Fn() -> Cost) -> Cost {
    (0..3).map(|_| run()).min_by_key(|cost| cost.cpu).unwrap()
}

fn in_own_process(what: &str, name: &str, file: &Path) -> Cost {
    let program: PathBuf = std::env::current_exe().unwrap();
    let output = Command::new(program).args(["testing", what, name]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

impl Tool {
    /// What it costs, the `cat` that feeds it included; none if it is not installed.
    fn cost(&self, file: &Path) -> Option<Duration> {
        let before = childrens_cpu();
        let mut command = Command::new(self.program);
        command.args(self.args).arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().ok()?;
        Some(childrens_cpu().saturating_sub(before))
    }
}

fn own_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    Duration::from_nanos(stat.split_whitespace().next().unwrap().parse().unwrap())
}

/// User and system time of children that ended, in the kernel's hundredths of a second.
fn childrens_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[13].parse::<u64>().unwrap() + fields[14].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
