//! The stage beside `@copilotkit/aimock`, a server of the same kind that runs on Node: CPU time of each server while one
//! client asks it the same. Without `AIMOCK`, the path of its program `llmock`, there is nothing beside.

mod session;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SMALL: u32 = 4000;
const LARGE: u32 = 2000;
const STREAMS: u32 = 40;
const STARTS: u32 = 5;
/// Of the long answer.
const WORDS: usize = 20_000;
/// Streams that are open at once, each with one frame in a second.
const SLOW: usize = 10_000;
const SLOW_FOR: Duration = Duration::from_secs(10);

/// A server that was started and is ended with the benchmark.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// Until it could be connected to.
    started_in: Duration,
}

pub(crate) fn measure(program: &Path) {
    let scratch = tempfile::tempdir().unwrap();
    write_scripts(scratch.path());
    let aimock = std::env::var_os("AIMOCK");
    let ours = || Server::start(stage(program, scratch.path()));
    let theirs = || aimock.as_ref().map(|path| Server::start(llmock(Path::new(path), scratch.path())));
    start_up(ours, theirs);
    let (ours, theirs) = (ours(), theirs());
    let both = |ask: &dyn Fn(&Server) -> Duration| (ask(&ours), theirs.as_ref().map(ask));
    let small = body("hello", 0);
    let (cpu, beside) = both(&|server| server.cpu_per_request(&small, SMALL));
    tell("stage: CPU of a small request", cpu, beside, "< 0.2x");
    let large = body("hello", 190_000);
    let (cpu, beside) = both(&|server| server.cpu_per_request(&large, LARGE));
    tell("stage: CPU of a request of 190 KB", cpu, beside, "< 0.25x");
    let long = body("long", 0);
    let (cpu, beside) = both(&|server| server.cpu_per_event(&long));
    tell("stage: CPU of 1000 events", cpu * 1000, beside.map(|cpu| cpu * 1000), "< 0.33x");
    drop((ours, theirs));
    session::measure(program, scratch.path());
    slow_streams(program, scratch.path());
}

/// Memory of the server with many slow streams, when all are open and a while later.
fn slow_streams(program: &Path, scratch: &Path) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let wanted = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, wanted).unwrap();
    let words = "word ".repeat(100);
    let script = format!(
        "speed: {{ profile: {{ first_token: 10ms, frames_per_second: 1, jitter: 0.5 }} }}\nturns:\n  - {{ say: {words}, times: any }}\n"
    );
    std::fs::write(scratch.join("stage.yaml"), script).unwrap();
    let server = Server::start(stage(program, scratch));
    let empty = server.memory();
    let body = body("hello", 0);
    let mut open: Vec<TcpStream> = (0..SLOW).map(|_| server.begin(&body)).collect();
    for stream in &mut open {
        stream.read_exact(&mut [0]).unwrap();
    }
    let (full, before) = (server.memory(), server.cpu());
    std::thread::sleep(SLOW_FOR);
    let (later, cpu) = (server.memory(), server.cpu().saturating_sub(before));
    println!(
        "stage: {SLOW} slow streams: {} KB without, {} KB with all, {} KB after {} s; {:.0} % of a core",
        empty,
        full,
        later,
        SLOW_FOR.as_secs(),
        100.0 * cpu.as_secs_f64() / SLOW_FOR.as_secs_f64(),
    );
}

fn start_up(ours: impl Fn() -> Server, theirs: impl Fn() -> Option<Server>) {
    let ours = crate::median((0..STARTS).map(|_| ours().started_in).collect());
    let times: Vec<Duration> = (0..STARTS).filter_map(|_| theirs()).map(|server| server.started_in).collect();
    let beside = (!times.is_empty()).then(|| crate::median(times));
    tell("stage: from its start to its first connection", ours, beside, "< 0.05x");
}

fn tell(what: &str, ours: Duration, beside: Option<Duration>, goal: &str) {
    match beside {
        Some(beside) => crate::row(what, ours, beside, goal),
        None => println!("{what:<44} {:>9.3} ms   (no AIMOCK)", crate::millis(ours)),
    }
}

fn write_scripts(scratch: &Path) {
    let long = "word ".repeat(WORDS);
    let yaml = format!(
        "turns:\n  - {{ when: {{ contains: hello }}, say: Hello there., times: any }}\n  - {{ when: {{ contains: long }}, say: {long}, times: any }}\n"
    );
    std::fs::write(scratch.join("stage.yaml"), yaml).unwrap();
    let fixtures = serde_json::json!({ "fixtures": [
        { "match": { "userMessage": "hello" }, "response": { "content": "Hello there." } },
        { "match": { "userMessage": "long" }, "response": { "content": long.trim_end() } },
    ] });
    std::fs::write(scratch.join("fixtures.json"), fixtures.to_string()).unwrap();
}

/// Plays `stage.yaml` of a directory.
pub(crate) fn stage(program: &Path, scratch: &Path) -> (Command, u16) {
    let port = free_port();
    let mut command = Command::new(program);
    command.args(["stage", "--script"]).arg(scratch.join("stage.yaml")).args(["--port", &port.to_string()]);
    (command, port)
}

fn llmock(path: &Path, scratch: &Path) -> (Command, u16) {
    let port = free_port();
    let mut command = Command::new(path);
    command.args(["-p", &port.to_string(), "--log-level", "silent", "-f"]).arg(scratch.join("fixtures.json"));
    (command, port)
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// An agent's request: a long system prompt, and many tools with schemas, up to a number of bytes.
fn body(text: &str, bytes: usize) -> String {
    let tool = serde_json::json!({ "type": "function", "function": {
        "name": "read_file", "description": "Reads a file from the workspace. ".repeat(40),
        "parameters": { "type": "object", "required": ["path"], "properties": {
            "path": { "type": "string", "description": "Where it is. ".repeat(20) },
            "limit": { "type": "integer" },
        } },
    } });
    let tools = vec![tool; bytes / 4 / 1700];
    let system = "You are an agent that works on a repository.\n".repeat(bytes / 4 / 45);
    let mut messages = vec![serde_json::json!({ "role": "system", "content": system })];
    for number in 0..bytes / 2 / 1000 {
        let id = format!("call_{number}");
        messages.push(serde_json::json!({ "role": "assistant", "content": null, "tool_calls": [
            { "id": id, "type": "function", "function": { "name": "read_file", "arguments": "{\"path\":\"a\"}" } },
        ] }));
        messages.push(serde_json::json!({ "role": "tool", "tool_call_id": id, "content": "a line of a file\n".repeat(45) }));
    }
    messages.push(serde_json::json!({ "role": "user", "content": text }));
    let mut body = serde_json::json!({ "model": "m", "stream": true, "messages": messages });
    if !tools.is_empty() {
        body["tools"] = tools.into();
    }
    body.to_string()
}

impl Server {
    pub(crate) fn start((mut command, port): (Command, u16)) -> Self {
        let begun = Instant::now();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "it does not start");
            std::thread::sleep(Duration::from_micros(200));
        }
        Self { child, port, started_in: begun.elapsed() }
    }

    fn cpu_per_request(&self, body: &str, requests: u32) -> Duration {
        let mut connection = Connection::open(self.port);
        for _ in 0..requests / 10 {
            connection.ask(body);
        }
        let before = self.cpu();
        for _ in 0..requests {
            connection.ask(body);
        }
        self.cpu().saturating_sub(before) / requests
    }

    fn cpu_per_event(&self, body: &str) -> Duration {
        let mut connection = Connection::open(self.port);
        connection.ask(body);
        let before = self.cpu();
        let events: u32 = (0..STREAMS).map(|_| connection.ask(body)).sum();
        assert!(events > STREAMS * 1000, "{events} events");
        self.cpu().saturating_sub(before) / events
    }

    /// Sends a request, and leaves the answer.
    fn begin(&self, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(&request(body)).unwrap();
        stream
    }

    /// What is in memory, in KB.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// CPU time of all threads, in nanoseconds; `/proc/PID/stat` has ticks of 10 ms only, and a small request takes a few
    /// hundredths of a millisecond. A thread that ends takes its time along, but none does: ours serves on one thread, and Node keeps
    /// the few that it starts until it ends itself.
    fn cpu(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let nanoseconds = threads.map(|thread| {
            let told = std::fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap();
            told.split_whitespace().next().unwrap().parse::<u64>().unwrap()
        });
        Duration::from_nanos(nanoseconds.sum())
    }
}

fn request(body: &str) -> Vec<u8> {
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that stays connected.
struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { reader: BufReader::with_capacity(1 << 20, stream) }
    }

    /// How many events came.
    fn ask(&mut self, body: &str) -> u32 {
        self.reader.get_mut().write_all(&request(body)).unwrap();
        let status = self.line();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        while !self.line().trim().is_empty() {}
        let mut events = 0;
        loop {
            let size = usize::from_str_radix(self.line().trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.reader.read_exact(&mut chunk).unwrap();
            if size == 0 {
                return events;
            }
            events += u32::try_from(memchr::memmem::find_iter(&chunk, b"data: ").count()).unwrap();
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line
    }
}
