//! The command line.

use camino::Utf8PathBuf;
use clap::{Parser, Subcommand};

use crate::commands;
use crate::exit;

/// Runs coding agents unattended on a git repository, and rehearses all of it first.
#[derive(Debug, Parser)]
#[command(
    name = "rehearsal",
    version,
    after_help = exit::TABLE,
    after_long_help = exit::TABLE,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    /// Answer with a JSON document on standard output
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,

    /// Work on the repository in this directory
    #[arg(long, global = true, value_name = "DIR", display_order = 901)]
    pub(crate) repo: Option<Utf8PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch the whole of it on a scratch repository, with scripted agents
    Demo(commands::demo::DemoArgs),
    /// Look at the repository and write a commented configuration
    Init(commands::init::InitArgs),
    /// Check what works here, what does not, and what to do about it
    Doctor(commands::doctor::DoctorArgs),
    /// Groups of tasks with a context and a journal
    #[command(subcommand)]
    Session(commands::session::SessionCommand),
    /// Pieces of work
    #[command(subcommand)]
    Task(commands::task::TaskCommand),
    /// Make tasks of a wish, show them, and add them once they are approved
    Plan(commands::plan::PlanArgs),
    /// Work through a session's tasks, a fresh agent each time
    Run(commands::run::RunArgs),
    /// Work on tasks of any flow, several at once, each in a worktree of its own
    Work(commands::work::WorkArgs),
    /// Let nothing more be claimed: all, of one agent or of one session
    Pause(commands::lane::PauseArgs),
    /// Let a paused or held lane go on
    Resume(commands::lane::ResumeArgs),
    /// Approve a task that waits for your decision
    Approve(commands::decide::ApproveArgs),
    /// Send a task that waits for your decision back, and say why
    Reject(commands::decide::RejectArgs),
    /// Let blocked tasks continue, and answer what they asked: the same as `task unblock`
    Unblock(commands::task::change::UnblockArgs),
    /// Give a task up: the same as `task cancel`
    #[command(after_help = "Example: rehearsal cancel k3f")]
    Cancel(commands::task::change::OneTask),
    /// Begin a task anew: the same as `task retry`
    #[command(after_help = "Example: rehearsal retry k3f")]
    Retry(commands::task::change::OneTask),
    /// Run the repository's tests, and say what is behind the failures
    Test(commands::test::TestArgs),
    /// Build, lint and test, and say what is to be mended, file by file
    Check(commands::check::CheckArgs),
    /// Offer the tests to coding agents: an MCP server on standard input and output
    Mcp(commands::mcp::McpArgs),
    /// Play a model vendor over HTTP, from a script: real agents work without a token
    Stage(commands::stage::StageArgs),
    /// Rehearse flows: real git, store and processes, scripted agents, a clock of its own
    Rehearse(commands::rehearse::RehearseArgs),
    /// Measure agents on cases: what they said, did and changed, over many trials
    #[command(subcommand)]
    Eval(commands::eval::EvalCommand),
    /// Make a scenario of a run: its task, its commits, its outcome
    Promote(commands::promote::PromoteArgs),
    /// Show where everything stands
    Status(commands::status::StatusArgs),
    /// List workers: whether each is alive, and its tasks
    Workers(commands::workers::WorkersArgs),
    /// Show what an agent did in a run
    Logs(commands::logs::LogsArgs),
    /// Say why a task is not moving
    Why(commands::why::WhyArgs),
    /// Runs of agents
    #[command(subcommand)]
    Runs(commands::runs::RunsCommand),
    /// Clear away worktrees and other things that nobody needs any more
    Gc(commands::gc::GcArgs),
    /// Agents, and whether they work
    #[command(subcommand)]
    Agent(commands::agent::AgentCommand),
    /// Our own agents: roles that need nothing but a model's address
    #[command(subcommand)]
    Crew(commands::crew::CrewCommand),
    /// Run an agent, and record what it asks and is answered
    Record(commands::record::RecordArgs),
    /// Run an agent on recorded answers: no vendor, no tokens
    Replay(commands::replay::ReplayArgs),
    /// Recorded exchanges with a model
    #[command(subcommand)]
    Cassette(commands::cassette::CassetteCommand),
    /// Settings, and where each comes from
    #[command(subcommand)]
    Config(commands::config::ConfigCommand),
    /// Flows: the ways that tasks go
    #[command(subcommand)]
    Flow(commands::flow::FlowCommand),
    /// Print the JSON Schema of a file or of a `--json` document
    Schema(commands::schema::SchemaArgs),
    /// Print a completion script for a shell
    Completions(commands::completions::CompletionsArgs),
    /// Play an agent: a scripted stand-in that is a real process
    MockAgent(commands::mock_agent::MockAgentArgs),
    /// Play GitHub's program `gh`: a stand-in that remembers, logs and fails as told
    MockGh(commands::mock_gh::MockGhArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    /// Writes the man pages to the directory that `MAN_PAGES` names, for packages.
    #[test]
    fn man_pages_can_be_written() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = std::env::var_os("MAN_PAGES").map_or_else(|| scratch.path().to_owned(), Into::into);
        fs_err::create_dir_all(&directory).unwrap();
        clap_mangen::generate_to(Cli::command(), &directory).unwrap();
        assert!(directory.join("rehearsal.1").is_file());
    }
}
