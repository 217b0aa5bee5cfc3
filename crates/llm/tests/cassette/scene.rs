//! A small agent and its model: enough of both to record a session and to play it at another place.

use std::path::PathBuf;
use std::time::Duration;

use rehearsal_agent::clis::KNOWN;
use rehearsal_llm::cassette::{
    Asked, Cassette, Ended, Matching, Miss, Normaliser, Place, Playback, PlayedBody, Player, Recorder, Rule,
    Secrets,
};
use serde_json::{Value, json};

/// Where, when and as whom an agent runs: all that differs between two runs of the same work.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) directory: &'static str,
    pub(crate) session: &'static str,
    pub(crate) date: &'static str,
    pub(crate) port: u16,
}

pub(crate) const FIRST: Run = Run {
    directory: "/tmp/first/work",
    session: "01a1e2ae-d2f4-7ee3-a7ee-7207afbd9ba1",
    date: "2026-11-16",
    port: 43799,
};
pub(crate) const SECOND: Run = Run {
    directory: "/home/someone/code/greet",
    session: "75b15841-278a-5630-b55f-02183de4a6ca",
    date: "2027-01-02",
    port: 8080,
};

/// A request that can be asked.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Run {
    pub(crate) fn place(&self) -> Place {
        Place {
            work_dir: vec![self.directory.into()],
            home: vec!["/tmp/home-of-it".into()],
            temp: Vec::new(),
        }
    }

    /// A turn of the main conversation, in the form of the Messages API.
    pub(crate) fn turn(&self, messages: &[Value]) -> Question {
        let first = json!({"role": "user", "content": format!(
            "Today is {}. You work in {} on 127.0.0.1:{}. Greet!", self.date, self.directory, self.port
        )});
        let messages: Vec<Value> = std::iter::once(first).chain(messages.iter().cloned()).collect();
        self.question(json!({
            "model": "claude-x",
            "max_tokens": 4096,
            "system": [{"type": "text", "text": format!("You are an agent in {}.", self.directory)}],
            "tools": [{"name": "Write", "description": "Writes a file."}, {"name": "Bash", "description": "Runs a command."}],
            "metadata": {"user_id": format!("user_{}", self.session)},
            "messages": messages,
        }))
    }

    pub(crate) fn question(&self, body: Value) -> Question {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Question {
            target: "/v1/messages?beta=true".into(),
            headers: vec![
                header("Content-Type", "application/json"),
                header("anthropic-version", "2023-06-01"),
                header("x-api-key", "sk-ant-not-for-anyone"),
                header("X-Claude-Code-Session-Id", self.session),
            ],
            body,
        }
    }
}

impl Question {
    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn asked<R>(&self, then: impl FnOnce(&Asked<'_>) -> R) -> R {
        let body = self.body.to_string();
        then(&Asked { method: "POST", target: &self.target, headers: &self.headers, body: body.as_bytes() })
    }
}

/// The call of a tool, and its result.
pub(crate) fn call(id: &str, name: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

pub(crate) fn result(id: &str, content: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

pub(crate) fn assistant(blocks: &[Value]) -> Value {
    json!({"role": "assistant", "content": blocks})
}

pub(crate) fn user(blocks: &[Value]) -> Value {
    json!({"role": "user", "content": blocks})
}

/// A stream with this text, cut into pieces of three letters.
pub(crate) fn stream(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut out =
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\"}}\n\n"
            .to_owned();
    for piece in letters.chunks(3) {
        let data = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece.iter().collect::<String>()}});
        out.push_str(&format!("event: content_block_delta\ndata: {data}\n\n"));
    }
    out + "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
}

pub(crate) fn text_of(playback: &Playback) -> String {
    match &playback.body {
        PlayedBody::Whole(text) => text.clone(),
        PlayedBody::Frames(frames) => frames.iter().map(|frame| frame.text.as_str()).collect(),
    }
}

/// The text of a stream, put together again.
pub(crate) fn said(playback: &Playback) -> String {
    let PlayedBody::Frames(frames) = &playback.body else { return text_of(playback) };
    let data =
        frames.iter().filter_map(|frame| frame.text.trim_end().rsplit_once("data: ").map(|(_, data)| data));
    let values = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    values.filter_map(|value| value["delta"]["text"].as_str().map(str::to_owned)).collect()
}

/// A directory for cassettes, and the recorder of one.
pub(crate) struct Studio {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) secrets: Secrets,
}

impl Studio {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), secrets: Secrets::default() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("session.jsonl")
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn recorder(&self, run: &Run) -> Recorder {
        let normaliser = Normaliser::new(&claude_rules(), &run.place(), &self.secrets).unwrap();
        Recorder::create(&self.path(), "claude", Some("2.1.325"), normaliser, &self.secrets).unwrap()
    }

    /// Records these exchanges one after the other.
    pub(crate) fn record(&self, run: &Run, exchanges: &[(Question, String)]) -> Cassette {
        let recorder = self.recorder(run);
        for (question, answer) in exchanges {
            exchange(&recorder, question, answer);
        }
        recorder.finish().unwrap();
        Cassette::open(&self.path()).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }
}

pub(crate) fn exchange(recorder: &Recorder, question: &Question, answer: &str) {
    let mut take = question.asked(|asked| recorder.ask(asked));
    let kind = if answer.starts_with("event") { "text/event-stream" } else { "application/json" };
    take.answered(200, &[("Content-Type".into(), kind.into())], Duration::from_millis(12));
    for (index, chunk) in answer.as_bytes().chunks(40).enumerate() {
        take.bytes(chunk, Duration::from_millis(20 + index as u64));
    }
    recorder.keep(take, Ended::Whole).unwrap();
}

/// The rules for Claude Code.
pub(crate) fn claude_rules() -> Vec<Rule> {
    Rule::for_client(KNOWN.named("claude").unwrap().requests.as_ref())
}

pub(crate) fn player(cassette: &Cassette, matching: Matching, run: &Run) -> Player {
    Player::new(cassette.clone(), matching, &KNOWN.model_clients(), &run.place(), &Secrets::default())
        .unwrap()
}

pub(crate) fn play(player: &Player, question: &Question) -> Result<Playback, Miss> {
    question.asked(|asked| player.play(asked))
}

/// A short session: write a file, run a command, say it is done.
pub(crate) fn session(run: &Run) -> Vec<(Question, String)> {
    let directory = run.directory;
    let file = format!("{directory}/hello.txt");
    let write = call("toolu_01AbCdEf9", "Write", &json!({"file_path": file, "content": "hi"}));
    let wrote = result("toolu_01AbCdEf9", &format!("File created at: {file}"));
    let list = call("toolu_02AbCdEf9", "Bash", &json!({"command": "ls -l"}));
    let listed = result("toolu_02AbCdEf9", "-rw-r--r-- 1 me me 2 Nov 16 04:47 hello.txt");
    let mut messages = Vec::new();
    let mut turns = vec![(run.turn(&messages), stream(&format!("I write {file} now")))];
    messages.extend([assistant(&[write]), user(&[wrote])]);
    turns.push((run.turn(&messages), stream("Then I look")));
    messages.extend([assistant(&[list]), user(&[listed])]);
    turns.push((run.turn(&messages), stream("Done")));
    turns
}
