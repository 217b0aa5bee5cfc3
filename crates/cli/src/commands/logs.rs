//! `logs RUN|TASK [--follow]`.

use clap::Args;
use rehearsal_app::logs::{self, LOOK_EVERY, LogKind, LogLine};
use rehearsal_core::Activity;

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BOLD, DIM, ODD, Ui, harmless, one_line, styled};
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal logs 7qm
  rehearsal logs k3f            # the newest run of task k3f
  rehearsal logs 7qm --follow
  rehearsal logs 7qm --raw | less")]
pub(crate) struct LogsArgs {
    /// A run, or a task for its newest run; a unique prefix of the id is enough
    #[arg(value_name = "RUN|TASK")]
    id: String,
    /// Go on until the run is over
    #[arg(long, short)]
    follow: bool,
    /// The agent's standard output as it came
    #[arg(long, conflicts_with = "stderr")]
    raw: bool,
    /// The agent's standard error as it came
    #[arg(long)]
    stderr: bool,
}

pub(crate) async fn run(args: LogsArgs, context: &Context) -> Done {
    let kind = match (args.raw, args.stderr) {
        (true, _) => LogKind::Stdout,
        (_, true) => LogKind::Stderr,
        _ => LogKind::Activity,
    };
    let mut log = logs::open(&context.project()?, &args.id, kind, args.follow).await?;
    loop {
        let over = !args.follow || log.is_over().await?;
        match kind {
            LogKind::Activity => log.activities(|line| show(line, context.ui))?,
            LogKind::Stdout | LogKind::Stderr => log.copy(&mut std::io::stdout().lock())?,
        }
        if over {
            return Ok(Exit::Ok);
        }
        tokio::select! {
            result = tokio::signal::ctrl_c() => {
                result?;
                return Ok(Exit::Interrupted);
            }
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

fn show(line: LogLine, ui: Ui) {
    let text = in_words(&line.activity);
    match line.at {
        Some(at) => ui.say(format!("{} {text}", styled(DIM, words::clock(at)))),
        None => ui.say(text),
    }
    ui.document(line);
}

/// An activity in a line.
pub(crate) fn in_words(activity: &Activity) -> String {
    match activity {
        Activity::Started { model, .. } => styled(
            DIM,
            format!(
                "started{}",
                model.as_ref().map_or_else(String::new, |model| format!(" with {}", harmless(model)))
            ),
        ),
        Activity::Turn { number } => styled(DIM, format!("turn {number}")),
        Activity::Text { text } => harmless(text.trim_end()),
        Activity::ToolCalled { tool, detail, .. } => {
            format!("{} {}", styled(BOLD, harmless(tool)), one_line(detail, 120))
        }
        Activity::ToolReturned { tool, is_error: true } => styled(ODD, format!("{} failed", harmless(tool))),
        Activity::ToolReturned { tool, is_error: false } => styled(DIM, format!("{} ok", harmless(tool))),
        Activity::Retrying { message } => styled(ODD, format!("retrying: {}", one_line(message, 120))),
        Activity::Usage { tokens, cost_usd } => styled(
            DIM,
            format!("tokens {}, cost {}", crate::words::tokens(Some(*tokens)), crate::words::cost(*cost_usd)),
        ),
        Activity::Unreadable { reason } => styled(ODD, format!("unreadable: {}", one_line(reason, 120))),
    }
}
