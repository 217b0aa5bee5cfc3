//! One module a command.

pub(crate) mod agent;
pub(crate) mod cassette;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod crew;
pub(crate) mod decide;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod flow;
pub(crate) mod gc;
pub(crate) mod init;
pub(crate) mod lane;
pub(crate) mod logs;
pub(crate) mod mcp;
pub(crate) mod mock_agent;
pub(crate) mod mock_gh;
pub(crate) mod performance;
pub(crate) mod plan;
pub(crate) mod promote;
pub(crate) mod record;
pub(crate) mod rehearse;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod session;
pub(crate) mod stage;
pub(crate) mod status;
pub(crate) mod task;
pub(crate) mod test;
pub(crate) mod why;
pub(crate) mod work;

use std::future::Future;

use crate::cli::{Cli, Command};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Ui;

/// What a command comes to.
pub(crate) type Done = Result<Exit, CliError>;

/// Finds the command's room and waits for it.
pub(crate) fn dispatch(cli: Cli) -> Done {
    let ui = Ui { json: cli.json };
    // These need no repository and no runtime; a stand-in was played before.
    match &cli.command {
        Command::Schema(args) => return schema::run(args, ui),
        Command::Completions(args) => return Ok(completions::run(args, ui)),
        _ => {}
    }
    let context = Context::new(ui, cli.repo)?;
    match cli.command {
        Command::Demo(args) => wait_for(demo::run(args, &context)),
        Command::Init(args) => wait_for(init::run(args, &context)),
        Command::Doctor(args) => wait_for(doctor::run(args, &context)),
        Command::Session(command) => wait_for(session::run(command, &context)),
        Command::Task(command) => wait_for(task::run(command, &context)),
        Command::Plan(args) => wait_for(plan::run(args, &context)),
        Command::Run(args) => wait_for(run::run(args, &context)),
        Command::Work(args) => wait_for(work::run(args, &context)),
        Command::Pause(args) => wait_for(lane::pause(args, &context)),
        Command::Resume(args) => wait_for(lane::resume(args, &context)),
        Command::Approve(args) => wait_for(decide::approve(args, &context)),
        Command::Reject(args) => wait_for(decide::reject(args, &context)),
        Command::Cancel(args) => wait_for(task::change::cancel(args, &context)),
        Command::Retry(args) => wait_for(task::change::retry(args, &context)),
        Command::Gc(args) => wait_for(gc::run(args, &context)),
        Command::Test(args) => wait_for(test::run(args, &context)),
        Command::Check(args) => wait_for(check::run(args, &context)),
        Command::Mcp(args) => mcp::run(&args, &context),
        Command::Stage(args) => wait_for(stage::run(args, &context)),
        Command::Promote(args) => wait_for(promote::run(args, &context)),
        Command::Rehearse(args) => rehearse::run(&args, &context),
        Command::Eval(command) => wait_for(eval::run(command, &context)),
        Command::Status(args) => wait_for(status::run(args, &context)),
        Command::Logs(args) => wait_for(logs::run(args, &context)),
        Command::Why(args) => wait_for(why::run(args, &context)),
        Command::Runs(command) => wait_for(runs::run(command, &context)),
        Command::Agent(command) => wait_for(agent::run(command, &context)),
        Command::Crew(command) => wait_for(crew::run(command, &context)),
        Command::Record(args) => wait_for(record::run(args, &context)),
        Command::Replay(args) => wait_for(replay::run(args, &context)),
        Command::Cassette(command) => wait_for(cassette::run(command, &context)),
        Command::Config(command) => config::run(&command, &context),
        Command::Flow(command) => flow::run(command, &context),
        Command::MockAgent(_) | Command::MockGh(_) | Command::Schema(_) | Command::Completions(_) => {
            Ok(Exit::Ok)
        }
    }
}

/// One thread is enough: the work is done by other processes.
fn wait_for(command: impl Future<Output = Done>) -> Done {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(command)
}
