//! Tools of servers of the Model Context Protocol, by the official SDK.
//!
//! A server runs in the sandbox of its role, like every command: what it does when it starts, and what its tools do whatever they say of
//! themselves, is confined as the role is. It is ended with all that it started when its toolbox goes, and when we die.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use rehearsal_core::config::HumanDuration;
use rehearsal_llm::chat::ToolDefinition;
use rehearsal_sandbox::Confined;
use rmcp::ServiceExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, PaginatedRequestParams, Tool as Told,
};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService, ServiceError};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio_util::sync::CancellationToken;

use crate::Permission;
use crate::limits::{MCP_DESCRIPTION, MCP_STARTS, MCP_TAKES, MCP_TOOLS};
use crate::shell::{Shell, ShellError};
use crate::toolbox::{Checked, Tool, ToolError};

/// A server of tools: a program that speaks the protocol on its standard streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables for it, beside the harmless ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How long it may take to start and to say what it has; 30 seconds if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_timeout: Option<HumanDuration>,
    /// Believe it when it says that a tool only reads: then the permission `read` is enough for that tool.
    #[serde(default)]
    pub trust_annotations: bool,
    /// Let it reach the network, even if its role may not.
    #[serde(default)]
    pub allow_network: bool,
}

/// Why a server has no tools for us.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("it cannot be started: {0}")]
    Start(#[from] ShellError),
    #[error("no pipe could be made: {0}")]
    Pipe(#[from] io::Error),
    #[error("it ended, or does not speak the protocol")]
    Protocol(#[from] Box<ClientInitializeError>),
    #[error("it does not say which tools it has: {0}")]
    List(#[from] ServiceError),
    #[error("it has not said for {0} what it has")]
    Silent(HumanDuration),
}

/// A server that runs. It ends when nobody has it any more.
struct Running {
    client: RunningService<RoleClient, ()>,
    _process: Confined,
}

/// The tools of all servers, each in its shell, and what is to be said of those that have none. They start side by side.
pub(crate) async fn tools_of(
    servers: &BTreeMap<String, McpServer>,
    shell_of: impl Fn(&McpServer) -> Shell,
) -> (Vec<Box<dyn Tool>>, Vec<String>) {
    let mut starting = tokio::task::JoinSet::new();
    for (name, server) in servers {
        let (name, server, shell) = (name.clone(), server.clone(), shell_of(server));
        starting.spawn(async move {
            let patience = server.start_timeout.unwrap_or(HumanDuration(MCP_STARTS));
            let started = tokio::time::timeout(patience.0, start(&server, &shell)).await;
            let tools = started.unwrap_or(Err(StartError::Silent(patience)));
            (name, server, tools)
        });
    }
    let mut started: Vec<_> = starting.join_all().await;
    started.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let (mut tools, mut notes) = (Vec::new(), Vec::new());
    for (name, server, result) in started {
        match result {
            Ok((running, told)) => offer(&name, &server, &running, told, &mut tools, &mut notes),
            Err(error) => notes.push(format!("the MCP server `{name}` is not there: {error}")),
        }
    }
    (tools, notes)
}

async fn start(server: &McpServer, shell: &Shell) -> Result<(Arc<Running>, Vec<Told>), StartError> {
    let (from_child, to_us) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
    let (from_us, to_child) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
    let command = shell.command(&server.command, &server.args, server.env.clone());
    let process = shell.start(command.stdin(from_us).stdout(to_us)).await?;
    let streams = (Receiver::from_owned_fd(from_child)?, Sender::from_owned_fd(to_child)?);
    let client = ().serve(streams).await.map_err(Box::new)?;
    let mut told = Vec::new();
    let mut cursor = None;
    // A server could go on turning pages for ever.
    while told.len() <= MCP_TOOLS {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = client.list_tools(Some(page)).await?;
        told.extend(page.tools);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    Ok((Arc::new(Running { client, _process: process }), told))
}

fn offer(
    name: &str,
    server: &McpServer,
    running: &Arc<Running>,
    told: Vec<Told>,
    tools: &mut Vec<Box<dyn Tool>>,
    notes: &mut Vec<String>,
) {
    if told.len() > MCP_TOOLS {
        notes.push(format!(
            "the MCP server `{name}` has more than {MCP_TOOLS} tools: only the first are offered"
        ));
    }
    for told in told.into_iter().take(MCP_TOOLS) {
        let shown = told.name[..told.name.floor_char_boundary(100)].to_owned();
        match McpTool::new(name, server, running, told) {
            Ok(tool) if tools.iter().all(|other| other.name() != tool.name) => tools.push(Box::new(tool)),
            Ok(_) => notes
                .push(format!("the MCP server `{name}` has two tools `{shown}`: only the first is offered")),
            Err(why) => {
                notes.push(format!("the tool `{shown}` of the MCP server `{name}` is not offered: {why}"))
            }
        }
    }
}

struct McpTool {
    /// For the model.
    name: String,
    /// For the server.
    own_name: String,
    description: String,
    schema: Checked,
    only_reads: bool,
    server: Arc<Running>,
}

/// What every vendor takes as the name of a tool.
const LONGEST_NAME: usize = 64;

impl McpTool {
    fn new(
        server: &str,
        settings: &McpServer,
        running: &Arc<Running>,
        told: Told,
    ) -> Result<Self, &'static str> {
        let name = format!("mcp__{server}__{}", told.name);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            return Err("its name is too long, or has other letters than models may use");
        }
        let schema = Checked::new(Value::Object((*told.input_schema).clone()));
        if !schema.compiles() {
            return Err("the schema of its arguments cannot be used");
        }
        let says_it_reads = told.annotations.is_some_and(|hints| hints.read_only_hint == Some(true));
        let mut description = told.description.unwrap_or_default().into_owned();
        description.truncate(description.floor_char_boundary(MCP_DESCRIPTION));
        Ok(Self {
            name,
            own_name: told.name.into_owned(),
            description,
            schema,
            only_reads: settings.trust_annotations && says_it_reads,
            server: Arc::clone(running),
        })
    }
}

#[async_trait]
impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn definition(&self) -> ToolDefinition {
        self.schema.definition(&self.name, &self.description)
    }

    fn needs(&self) -> Option<Permission> {
        Some(if self.only_reads { Permission::Read } else { Permission::Execute })
    }

    fn only_reads(&self) -> bool {
        self.only_reads
    }

    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        if !arguments.is_object() {
            return Err(ToolError::Malformed(format!("`{}` takes an object", self.name)));
        }
        self.schema.check(&self.name, arguments)
    }

    async fn call(&self, arguments: &Value, cancel: &CancellationToken) -> Result<String, ToolError> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let call = CallToolRequestParams::new(self.own_name.clone()).with_arguments(arguments);
        let calling = tokio::time::timeout(MCP_TAKES, self.server.client.call_tool(call));
        let answered = cancel.run_until_cancelled(calling).await.ok_or(ToolError::Cancelled)?;
        match answered {
            Err(_) => Err(ToolError::failed(format!("no answer for {} s", MCP_TAKES.as_secs()))),
            Ok(Err(error)) => Err(ToolError::failed(error.to_string())),
            Ok(Ok(result)) if result.is_error == Some(true) => Err(ToolError::failed(text_of(&result))),
            Ok(Ok(result)) => Ok(text_of(&result)),
        }
    }
}

/// What of an answer a model can read as text.
fn text_of(result: &CallToolResult) -> String {
    let mut text = String::new();
    for block in &result.content {
        let part = match block {
            ContentBlock::Text(words) => words.text.as_str(),
            ContentBlock::Image(_) => "[a picture]",
            ContentBlock::Audio(_) => "[a sound]",
            ContentBlock::Resource(_) | ContentBlock::ResourceLink(_) => "[a resource]",
            _ => "[something that is no text]",
        };
        text.push_str(part);
        text.push('\n');
    }
    match &result.structured_content {
        Some(document) if text.is_empty() => document.to_string(),
        _ => text,
    }
}
