//! `workers`.

use clap::Args;
use rehearsal_app::workers::{WorkerPresence, WorkerView, workers};

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{one_line, table};
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal workers

Lists the `work` and `run` processes of this repository. Several machines can share a PostgreSQL store: a worker on another machine is \
listed while it has a task.")]
pub(crate) struct WorkersArgs {}

pub(crate) async fn run(_: WorkersArgs, context: &Context) -> Done {
    let list = workers(&context.project()?).await?;
    if list.workers.is_empty() {
        context.ui.say("no workers; start one with `rehearsal work` or `rehearsal run SESSION`");
    } else {
        let now = context.now();
        let heartbeat = |worker: &WorkerView| {
            worker.last_heartbeat.map_or_else(|| "-".to_owned(), |at| words::relative(at.min(now), now))
        };
        let row = |worker: &WorkerView| {
            let tasks = worker.tasks.iter().map(|task| format!("{} {}", task.id, one_line(&task.title, 30)));
            let tasks: Vec<String> = tasks.collect();
            let tasks = if tasks.is_empty() { "-".to_owned() } else { tasks.join(", ") };
            vec![worker.id.to_string(), state(worker.presence).to_owned(), heartbeat(worker), tasks]
        };
        let rows: Vec<Vec<String>> = list.workers.iter().map(row).collect();
        context.ui.say(table(&["WORKER", "STATE", "HEARTBEAT", "TASKS"], &rows));
    }
    context.ui.document(list);
    Ok(Exit::Ok)
}

fn state(presence: WorkerPresence) -> &'static str {
    match presence {
        WorkerPresence::Work => "working",
        WorkerPresence::Run => "running a session",
        WorkerPresence::Dead => "dead",
        WorkerPresence::Elsewhere => "on another machine",
    }
}
