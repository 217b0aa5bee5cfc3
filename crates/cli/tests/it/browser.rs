//! A real browser, spoken to through a pipe: no port, no network, nothing but the page.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use camino::Utf8Path;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// What those are called that speak the `DevTools` protocol.
const NAMES: [&str; 4] = ["chromium-headless-shell", "chromium", "google-chrome", "google-chrome-stable"];

/// A browser that says nothing for so long is ended, and the test with it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page in it.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Value,
    asked: u64,
    /// Whoever waits at its other end gives up.
    _alive: Sender<()>,
    /// All that the page did meanwhile.
    pub(crate) events: Vec<Value>,
}

impl Browser {
    /// Opens one; none where none is installed, which is said aloud.
    pub(crate) fn open(scratch: &Utf8Path) -> Option<Self> {
        let Some(program) = installed() else {
            drop(writeln!(std::io::stderr(), "left out: no browser is installed ({})", NAMES.join(", ")));
            return None;
        };
        let home = scratch.join("browser");
        std::fs::create_dir(&home).unwrap();
        // It reads what it is told from its third and answers on its fourth descriptor.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh", &program])
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .args([
                "--host-resolver-rules=MAP * ~NOTFOUND",
                &format!("--user-data-dir={home}"),
                "about:blank",
            ])
            .env_clear()
            .envs([("HOME", home.as_str()), ("PATH", "/usr/bin:/bin"), ("TMPDIR", home.as_str())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let alive = watched(&child);
        let mut this =
            Self { child, to, from, session: Value::Null, asked: 0, _alive: alive, events: Vec::new() };
        let page = this.ask("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        this.session = this.ask("Target.attachToTarget", &attach)["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            this.ask(&format!("{domain}.enable"), &json!({}));
        }
        Some(this)
    }

    /// Loads a page, to its end.
    pub(crate) fn load(&mut self, url: &str) {
        let answer = self.ask("Page.navigate", &json!({ "url": url }));
        assert!(answer["errorText"].is_null(), "{answer}");
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.read();
            self.events.push(event);
        }
    }

    /// What an expression is worth in the page.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true });
        let answer = self.ask("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer:#}");
        answer["result"]["value"].clone()
    }

    /// The events of some name.
    pub(crate) fn happened(&self, method: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["method"] == method).map(|event| &event["params"]).collect()
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let mut message = json!({ "id": self.asked, "method": method, "params": params });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.to.write_all(message.to_string().as_bytes()).unwrap();
        self.to.write_all(b"\0").unwrap();
        loop {
            let told = self.read();
            if told["id"] == self.asked {
                assert!(told["error"].is_null(), "{method}: {told}");
                return told["result"].clone();
            }
            self.events.push(told);
        }
    }

    fn read(&mut self) -> Value {
        let mut message = Vec::new();
        self.from.read_until(0, &mut message).unwrap();
        assert_eq!(message.pop(), Some(0), "the browser went away");
        serde_json::from_slice(&message).unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends a browser when the time is over, unless what comes back was dropped before.
fn watched(child: &Child) -> Sender<()> {
    let (alive, gone) = channel::<()>();
    let pid = Pid::from_child(child);
    std::thread::spawn(move || {
        if gone.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    alive
}

/// One of this machine.
fn installed() -> Option<String> {
    let path = std::env::var("PATH").unwrap();
    let in_path = |name: &&str| {
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
    };
    NAMES.iter().find_map(in_path).map(|file| file.to_str().unwrap().to_owned())
}
