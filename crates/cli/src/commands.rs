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
pub(crate) mod workers;

use std::pin::Pin;

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
        Command::Demo(args) => wait_for(Box::pin(demo::run(args, &context))),
        Command::Init(args) => wait_for(Box::pin(init::run(args, &context))),
        Command::Doctor(args) => wait_for(Box::pin(doctor::run(args, &context))),
        Command::Session(command) => wait_for(Box::pin(session::run(command, &context))),
        Command::Task(command) => wait_for(Box::pin(task::run(command, &context))),
        Command::Plan(args) => wait_for(Box::pin(plan::run(args, &context))),
        Command::Run(args) => wait_for(Box::pin(run::run(args, &context))),
        Command::Work(args) => wait_for(Box::pin(work::run(args, &context))),
        Command::Pause(args) => wait_for(Box::pin(lane::pause(args, &context))),
        Command::Resume(args) => wait_for(Box::pin(lane::resume(args, &context))),
        Command::Approve(args) => wait_for(Box::pin(decide::approve(args, &context))),
        Command::Reject(args) => wait_for(Box::pin(decide::reject(args, &context))),
        Command::Unblock(args) => wait_for(Box::pin(task::change::unblock(args, &context))),
        Command::Cancel(args) => wait_for(Box::pin(task::change::cancel(args, &context))),
        Command::Retry(args) => wait_for(Box::pin(task::change::retry(args, &context))),
        Command::Gc(args) => wait_for(Box::pin(gc::run(args, &context))),
        Command::Test(args) => wait_for(Box::pin(test::run(args, &context))),
        Command::Check(args) => wait_for(Box::pin(check::run(args, &context))),
        Command::Mcp(args) => mcp::run(&args, &context),
        Command::Stage(args) => wait_for(Box::pin(stage::run(args, &context))),
        Command::Promote(args) => wait_for(Box::pin(promote::run(args, &context))),
        Command::Rehearse(args) => rehearse::run(&args, &context),
        Command::Eval(command) => wait_for(Box::pin(eval::run(command, &context))),
        Command::Workers(args) => wait_for(Box::pin(workers::run(args, &context))),
        Command::Status(args) => wait_for(Box::pin(status::run(args, &context))),
        Command::Logs(args) => wait_for(Box::pin(logs::run(args, &context))),
        Command::Why(args) => wait_for(Box::pin(why::run(args, &context))),
        Command::Runs(command) => wait_for(Box::pin(runs::run(command, &context))),
        Command::Agent(command) => wait_for(Box::pin(agent::run(command, &context))),
        Command::Crew(command) => wait_for(Box::pin(crew::run(command, &context))),
        Command::Record(args) => wait_for(Box::pin(record::run(args, &context))),
        Command::Replay(args) => wait_for(Box::pin(replay::run(args, &context))),
        Command::Cassette(command) => wait_for(Box::pin(cassette::run(command, &context))),
        Command::Config(command) => config::run(&command, &context),
        Command::Flow(command) => flow::run(command, &context),
        Command::MockAgent(_) | Command::MockGh(_) | Command::Schema(_) | Command::Completions(_) => {
            Ok(Exit::Ok)
        }
    }
}

/// One thread is enough: other processes do the work. Boxed, so that the runtime is compiled once and not for each command.
fn wait_for(command: Pin<Box<dyn Future<Output = Done> + '_>>) -> Done {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(command)
}
