//! What a script wants done, as a call of a tool that the agent offers.

use rehearsal_core::ToolName;
use rehearsal_llm::chat::{Arguments, ChatRequest, Json, ToolDefinition, ToolInput};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::client::{Clients, offers_code};
use crate::clip::start_of;
use crate::schema::smallest;
use crate::script::{ActionFile, ToolFile};
use crate::template::Values;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) arguments: Arguments,
}

/// So many tools are told when none fits.
const MOST_TOLD: usize = 30;

/// What the agents that we know call their tools and the parameters of these.
fn usual_names(of: ToolName) -> &'static [&'static str] {
    match of {
        ToolName::Write => &["Write", "write_file", "write", "create", "editor"],
        ToolName::Edit => &["Edit", "replace", "edit", "edit_file"],
        ToolName::Read => &["Read", "read_file", "read", "view"],
        ToolName::Run => {
            &["Bash", "run_shell_command", "bash", "exec_command", "shell_command", "shell", "run_commands"]
        }
        ToolName::Path => &["file_path", "filePath", "absolute_path", "path"],
        ToolName::Content => &["content", "file_text", "new_text"],
        ToolName::Old => &["old_string", "oldString", "old_text"],
        ToolName::New => &["new_string", "newString", "new_text"],
        ToolName::Command => &["command", "cmd", "commands"],
    }
}

/// A request, and who may have sent it.
#[derive(Clone, Copy)]
pub(crate) struct Offered<'a> {
    pub(crate) chat: &'a ChatRequest,
    pub(crate) clients: &'a Clients,
}

impl Offered<'_> {
    fn names(self, of: ToolName) -> impl Iterator<Item = &'static str> {
        self.clients.tool_names(of).chain(usual_names(of).iter().copied())
    }
}

/// What to call for an action, or why nothing can be.
pub(crate) fn call_for(
    action: &ActionFile,
    offered: Offered<'_>,
    values: &Values<'_>,
) -> Result<Call, String> {
    let at = |path: &str| absolute(&values.fill(path), values);
    match action {
        ActionFile::Tool(tool) => Ok(exact(tool, values)),
        ActionFile::Run(command) => {
            run(&values.fill(command), offered).ok_or_else(|| nothing_for("run", offered))
        }
        ActionFile::WriteFile(file) => {
            let content = values.fill(&file.content);
            let given = [(ToolName::Path, at(&file.path)), (ToolName::Content, content.clone())];
            by_name(ToolName::Write, &given, offered)
                .or_else(|| run(&write_command(&values.fill(&file.path), &content), offered))
                .ok_or_else(|| nothing_for("write_file", offered))
        }
        ActionFile::EditFile(file) => {
            let (find, replace) = (values.fill(&file.find), values.fill(&file.replace));
            let given = [(ToolName::Path, at(&file.path)), (ToolName::Old, find), (ToolName::New, replace)];
            by_name(ToolName::Edit, &given, offered).ok_or_else(|| nothing_for("edit_file", offered))
        }
        ActionFile::ReadFile(path) => by_name(ToolName::Read, &[(ToolName::Path, at(path))], offered)
            .or_else(|| run(&format!("cat {}", quoted(&values.fill(path))), offered))
            .ok_or_else(|| nothing_for("read_file", offered)),
    }
}

fn nothing_for(action: &str, offered: Offered<'_>) -> String {
    let offered: Vec<String> =
        offered.chat.tools.iter().take(MOST_TOLD).map(|tool| start_of(&tool.name)).collect();
    let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
    format!("no tool that is offered can `{action}` (offered: {offered}); name one with `tool`")
}

fn exact(tool: &ToolFile, values: &Values<'_>) -> Call {
    let arguments = match (&tool.text, &tool.arguments) {
        (Some(text), _) => Arguments::Text(values.fill(text)),
        (None, Some(fields)) => {
            let filled = fields.iter().map(|(name, value)| (name.clone(), values.fill_value(value)));
            to_arguments(&filled.collect::<Map<_, _>>())
        }
        (None, None) => Arguments::Json(Json::empty_object()),
    };
    Call { name: tool.name.clone(), namespace: tool.namespace.clone(), arguments }
}

fn to_arguments(value: &impl Serialize) -> Arguments {
    // Documents that were read from YAML or made here can be written.
    Arguments::Json(Json::of(value).unwrap_or_else(|_| Json::empty_object()))
}

/// A call of the first tool of these that is offered, its arguments named as its schema does.
fn by_name(of: ToolName, given: &[(ToolName, String)], offered: Offered<'_>) -> Option<Call> {
    let tool = offered.names(of).find_map(|name| offered.chat.tools.iter().find(|tool| tool.name == name))?;
    let schema = schema_of(tool)?;
    // What else the schema insists on is there too.
    let Value::Object(mut arguments) = smallest(&schema) else { return None };
    let properties = schema.get("properties")?;
    for (of, value) in given {
        let name = offered.names(*of).find(|name| properties.get(*name).is_some())?;
        arguments.insert(name.to_owned(), fitting(&properties[name], &tool.name, value));
    }
    Some(Call { name: tool.name.clone(), namespace: None, arguments: to_arguments(&arguments) })
}

fn schema_of(tool: &ToolDefinition) -> Option<Value> {
    match &tool.input {
        ToolInput::Schema(schema) => schema.read().ok(),
        ToolInput::Text | ToolInput::Vendor(_) => None,
    }
}

/// Some take a command as a list: of words, or of commands.
fn fitting(property: &Value, tool: &str, value: &str) -> Value {
    let is_list =
        property.get("type").and_then(Value::as_str).is_some_and(|kind| kind.eq_ignore_ascii_case("array"));
    match (is_list, tool) {
        (false, _) => value.into(),
        (true, "run_commands") => vec![value].into(),
        (true, _) => vec!["bash", "-lc", value].into(),
    }
}

fn run(command: &str, offered: Offered<'_>) -> Option<Call> {
    if offers_code(offered.chat) {
        return Some(in_code(command));
    }
    by_name(ToolName::Run, &[(ToolName::Command, command.to_owned())], offered)
}

/// Codex in its code mode has one tool, which takes a program; what were tools are functions there.
fn in_code(command: &str) -> Call {
    let command = Value::from(command);
    let program =
        format!("const ran = await tools.exec_command({{cmd: {command}}});\ntext(ran.output ?? ran);\n");
    Call { name: "exec".to_owned(), namespace: None, arguments: Arguments::Text(program) }
}

/// Some agents refuse a path that is not absolute.
fn absolute(path: &str, values: &Values<'_>) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    (values.built_in)("cwd").map_or_else(|| path.to_owned(), |directory| format!("{directory}/{path}"))
}

/// For an agent that has nothing but a shell.
fn write_command(path: &str, content: &str) -> String {
    let make = match path.rsplit_once('/') {
        Some((directory, _)) if !directory.is_empty() => format!("mkdir -p {} && ", quoted(directory)),
        _ => String::new(),
    };
    format!("{make}printf %s {} > {}", quoted(content), quoted(path))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rehearsal_llm::chat::Message;

    use super::*;
    use crate::script::Script;

    /// The tools of an agent: a name, and its schema's properties and requirements.
    fn offering(tools: &[(&str, &str)]) -> ChatRequest {
        let mut chat = ChatRequest::new("m", vec![Message::user("hi")]);
        chat.tools = tools
            .iter()
            .map(|(name, properties)| {
                let properties: Value = serde_json::from_str(properties).unwrap();
                let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
                let schema =
                    serde_json::json!({ "type": "object", "properties": properties, "required": required });
                let input = ToolInput::Schema(Json::of(&schema).unwrap());
                ToolDefinition { name: (*name).to_owned(), description: String::new(), input }
            })
            .collect();
        chat
    }

    fn calls(chat: &ChatRequest) -> String {
        let script = Script::parse(
            "turns:\n  - do:\n    - write_file: { path: src/a.txt, content: \"it's\\n\" }\n    - run: ls -l\n",
        )
        .unwrap();
        let (vars, captured) = (BTreeMap::new(), BTreeMap::new());
        let values = Values {
            vars: &vars,
            captured: &captured,
            built_in: &|name| (name == "cwd").then(|| "/repo".to_owned()),
        };
        let told = script.turns[0].actions.iter().map(|action| {
            match call_for(action, Offered { chat, clients: &Clients::new(&[]) }, &values) {
                Ok(call) => format!("{} {}", call.name, call.arguments.as_str()),
                Err(message) => message,
            }
        });
        told.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn one_script_fits_the_tools_of_every_agent() {
        let text = r#"{"type":"string"}"#;
        let claude = offering(&[
            ("Bash", &format!(r#"{{"command":{text},"description":{text}}}"#)),
            ("Write", &format!(r#"{{"file_path":{text},"content":{text}}}"#)),
        ]);
        insta::assert_snapshot!(calls(&claude), @r#"
        Write {"content":"it's\n","file_path":"/repo/src/a.txt"}
        Bash {"command":"ls -l","description":"stage"}
        "#);
        let opencode = offering(&[
            ("bash", &format!(r#"{{"command":{text}}}"#)),
            ("write", &format!(r#"{{"filePath":{text},"content":{text}}}"#)),
        ]);
        insta::assert_snapshot!(calls(&opencode), @r#"
        write {"content":"it's\n","filePath":"/repo/src/a.txt"}
        bash {"command":"ls -l"}
        "#);
        let codex = offering(&[("exec_command", &format!(r#"{{"cmd":{text}}}"#))]);
        insta::assert_snapshot!(calls(&codex), @r#"
        exec_command {"cmd":"mkdir -p 'src' && printf %s 'it'\\''s\n' > 'src/a.txt'"}
        exec_command {"cmd":"ls -l"}
        "#);
        let cline = offering(&[
            ("run_commands", r#"{"commands":{"type":"array"}}"#),
            ("editor", &format!(r#"{{"path":{text},"new_text":{text}}}"#)),
        ]);
        insta::assert_snapshot!(calls(&cline), @r#"
        editor {"new_text":"it's\n","path":"/repo/src/a.txt"}
        run_commands {"commands":["ls -l"]}
        "#);
        insta::assert_snapshot!(calls(&offering(&[("search", "{}")])), @"
        no tool that is offered can `write_file` (offered: search); name one with `tool`
        no tool that is offered can `run` (offered: search); name one with `tool`
        ");
    }
}
