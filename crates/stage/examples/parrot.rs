//! A made-up agent CLI, in one file: its description, and the program itself.
//!
//! `tests/fifth_cli` takes it through driver, stand-in, stage, record and replay, as a CLI that somebody adds. In this
//! repository a description is a folder of `crates/agent/src/clis` instead, and `main` is somebody else's program.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::ExitCode;

use rehearsal_agent::clis::{AgentCli, Clis, Endpoint, Sessions, StageSetup, VendorApi};
use rehearsal_agent::driver::check::{needed, optional};
use rehearsal_agent::driver::{Close, CommandLine, Format, JsonLines, Offer, Reading};
use rehearsal_agent::mock::wire::{Fault, FaultKind, Lines, MockCli, Tally, ToolCall, Wire};
use rehearsal_agent::mock::{MockArgs, MockEnv, mock_agent_main};
use rehearsal_agent::{OwnPlaces, Permission, RunRequest};
use rehearsal_core::{
    Activity, Bounds, Keep, ModelClient, Rewrite, Timestamp, ToolName, WireEnd, WireError, WireErrorKind,
    WireReport,
};
use rehearsal_process::{SHIM_ARGUMENT, shim_main};
use serde_json::{Value, json};

/// The one line in a registry.
pub(crate) static CLIS: Clis = Clis(&[&PARROT]);

/// The description.
pub(crate) static PARROT: AgentCli = AgentCli {
    name: "parrot",
    install: Some("npm install -g parrot"),
    flags: &[needed("--json", "structured output"), optional("--model", "choosing the model")],
    command,
    parser: |here| Box::new(JsonLines::new(ParrotFormat::default(), here)),
    sessions: Sessions { can_resume: false, reports_whole_session: false },
    variables: &["PARROT_URL", "PARROT_KEY"],
    places: |_| OwnPlaces { kept: vec![".parrot".into()], ..OwnPlaces::default() },
    vendor: Some(VendorApi::Anthropic),
    stage,
    keys: &[("PARROT_KEY", "PARROT_KEY")],
    requests: Some(ModelClient {
        working_directory: &[("My perch is ", '\n')],
        tool_names: &[(ToolName::Write, "peck"), (ToolName::Path, "where"), (ToolName::Content, "what")],
        varying_fields: &[("metadata", "⟦metadata⟧")],
        rewrites: &[Rewrite {
            find: r"Feather \d+",
            bounds: Bounds::Word,
            keep: Keep::UpToFirst(" "),
            put: "⟦feather⟧",
        }],
        ..ModelClient::new("parrot", &["parrot/"])
    }),
    mock: MockCli {
        version: "parrot 1.2.3",
        usage: "parrot [options]",
        options: &["--json", "--model <MODEL>", "--only-look"],
        wire: |_| Box::new(ParrotMock),
    },
    ..AgentCli::PLAIN
};

fn command(mut offer: Offer<'_>, request: &RunRequest) -> CommandLine {
    offer.flag("--json", &[]);
    offer.option("--model", request.model.as_deref());
    if request.permission == Permission::Plan {
        offer.args(&["--only-look"]);
    }
    offer.finish_with_system_prompt_in_prompt(request)
}

fn stage(endpoint: &Endpoint<'_>) -> StageSetup {
    let setup = StageSetup::with_variables([("PARROT_URL", endpoint.url), ("PARROT_KEY", "not-a-key")]);
    StageSetup { files: vec![(".parrot/settings", "updates = never\n".to_owned())], ..setup }
}

/// Reads its lines: `{"say": TEXT}`, `{"did": TOOL}`, and at last `{"bye": null}` or `{"bye": ERROR}`.
#[derive(Default)]
struct ParrotFormat {
    said: String,
    end: Option<WireEnd>,
}

impl Format for ParrotFormat {
    fn read(&mut self, line: &str, out: &mut Vec<Activity>) -> Reading {
        let event: Value = match serde_json::from_str(line) {
            Ok(event) => event,
            Err(error) => return Reading::Broken(error.to_string()),
        };
        if let Some(text) = event["say"].as_str() {
            text.clone_into(&mut self.said);
            out.push(Activity::Text { text: text.to_owned() });
        } else if let Some(tool) = event["did"].as_str() {
            out.push(Activity::ToolCalled { tool: tool.to_owned(), detail: String::new(), arguments: None });
        } else if let Some(end) = event.get("bye") {
            self.end = Some(end.as_str().map_or(WireEnd::Success, |message| {
                let kind = if message == "Out of seeds" {
                    WireErrorKind::Quota { until: None }
                } else {
                    WireErrorKind::Other
                };
                WireEnd::Error(WireError { kind, status: None, message: message.to_owned() })
            }));
        } else {
            return Reading::Foreign;
        }
        Reading::Event
    }

    fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    fn report(self, _: &Close) -> WireReport {
        WireReport { final_text: self.said, end: self.end, ..WireReport::default() }
    }
}

/// Writes them.
struct ParrotMock;

impl Wire for ParrotMock {
    fn agent(&self) -> &'static str {
        "parrot"
    }

    fn knows(&self, kind: FaultKind) -> bool {
        kind == FaultKind::Quota
    }

    fn begin(&mut self, _: &mut Lines) {}

    fn text(&mut self, text: &str, lines: &mut Lines) {
        lines.event(&json!({ "say": text }));
    }

    fn tool(&mut self, _: &ToolCall, lines: &mut Lines) {
        lines.event(&json!({ "did": "peck" }));
    }

    fn end(&mut self, _: &Tally, lines: &mut Lines) {
        lines.event(&json!({ "bye": null }));
    }

    fn fail(&mut self, fault: &Fault, _: &Tally, lines: &mut Lines) -> i32 {
        lines.event(&json!({ "bye": fault.message("Out of seeds") }));
        1
    }
}

/// As a shim, as the stand-in, or as the CLI itself.
fn main() -> ExitCode {
    let mut args = std::env::args_os();
    if args.nth(1).is_some_and(|first| first == SHIM_ARGUMENT) {
        return ExitCode::from(u8::try_from(shim_main(args)).unwrap_or(1));
    }
    let status = match std::env::args().nth(1).as_deref() {
        Some("mock-agent") => MockArgs::parse_for(CLIS, std::env::args().skip(2)).map_or(2, |args| {
            mock_agent_main(args, &MockEnv { vars: std::env::vars().collect(), now: Timestamp(0) })
        }),
        _ => i32::from(fly().is_err()),
    };
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}

/// Asks its model, does what that says, and tells of it, until the model wants nothing more.
fn fly() -> std::io::Result<()> {
    let mut prompt = String::new();
    std::io::stdin().read_to_string(&mut prompt)?;
    let perch = std::env::current_dir()?;
    let system = format!("My perch is {}\nFeather {}", perch.display(), std::process::id());
    let tool = json!({ "name": "peck", "description": "", "input_schema": { "type": "object", "properties": {
        "where": { "type": "string" }, "what": { "type": "string" } } } });
    ask(json!({ "system": "Give it a name", "messages": [{ "role": "user", "content": prompt }] }))?;
    let mut messages = vec![json!({ "role": "user", "content": prompt })];
    loop {
        let answer = ask(json!({ "system": system, "tools": [tool], "messages": messages }))?;
        let parts = answer["content"].as_array().cloned().unwrap_or_default();
        let mut results = Vec::new();
        for part in &parts {
            if let Some(text) = part["text"].as_str() {
                tell(&json!({ "say": text }))?;
            }
            if let (Some(path), Some(content)) =
                (part["input"]["where"].as_str(), part["input"]["what"].as_str())
            {
                std::fs::write(Path::new(path), content)?;
                tell(&json!({ "did": part["name"] }))?;
                results
                    .push(json!({ "type": "tool_result", "tool_use_id": part["id"], "content": "written" }));
            }
        }
        if results.is_empty() {
            return tell(&json!({ "bye": null }));
        }
        messages.push(json!({ "role": "assistant", "content": parts }));
        messages.push(json!({ "role": "user", "content": results }));
    }
}

fn tell(event: &Value) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{event}")
}

/// One request, in one piece.
fn ask(mut body: Value) -> std::io::Result<Value> {
    let variable = |name: &str| std::env::var(name).map_err(std::io::Error::other);
    let address = variable("PARROT_URL")?.replace("http://", "");
    body["model"] = json!("parrot-1");
    body["max_tokens"] = json!(100);
    body["metadata"] = json!({ "user_id": std::process::id().to_string() });
    let body = body.to_string();
    let mut connection = TcpStream::connect(&address)?;
    write!(
        connection,
        "POST /v1/messages HTTP/1.0\r\nHost: {address}\r\nUser-Agent: parrot/1.2.3\r\nX-Api-Key: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        variable("PARROT_KEY")?,
        body.len()
    )?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.contains(" 200 ") => {
            serde_json::from_str(body).map_err(std::io::Error::other)
        }
        _ => Err(std::io::Error::other(answer)),
    }
}
