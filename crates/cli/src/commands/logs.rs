//! `logs RUN [--follow]`.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use camino::Utf8Path;
use clap::Args;
use rehearsal_core::{Activity, Run};
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{BOLD, DIM, ODD, Ui, harmless, one_line, styled};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal logs 7qm
  rehearsal logs 7qm --follow
  rehearsal logs 7qm --raw | less")]
pub(crate) struct LogsArgs {
    /// The run's id, or a unique prefix of it
    run: String,
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

/// A line of `logs --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LogLine {
    /// What the agent did.
    activity: Activity,
}

/// How often `--follow` looks for more.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Lines longer than this were not written by us.
const LONGEST_LINE: u64 = 1 << 20;

pub(crate) async fn run(args: LogsArgs, context: &Context) -> Done {
    let project = context.project()?;
    let store = project.store().await?;
    let run = store.find_run(&args.run).await?;
    let directory = project.runs_dir().join(run.start.id.as_str());
    let file = match (args.raw, args.stderr) {
        (true, _) => "stdout.log",
        (_, true) => "stderr.log",
        _ => "activity.jsonl",
    };
    let path = directory.join(file);
    let mut reader = open(&path, &run, args.follow).await?;
    loop {
        // Whether it is over must be known before the rest is read, or its last lines could be missed.
        let over = !args.follow || store.find_run(run.start.id.as_str()).await?.end.is_some();
        if args.raw || args.stderr {
            copy(&mut reader)?
        } else {
            show_new(&mut reader, context.ui)?
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

async fn open(path: &Utf8Path, run: &Run, follow: bool) -> Result<BufReader<fs_err::File>, CliError> {
    loop {
        match fs_err::File::open(path) {
            Ok(file) => return Ok(BufReader::new(file)),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            Err(_) if follow && run.end.is_none() => tokio::time::sleep(LOOK_EVERY).await,
            Err(_) => {
                return Err(CliError::usage(format!("run `{}` has no log of this kind", run.start.id))
                    .hint(format!("`rehearsal runs show {}` says how it ended", run.start.id)));
            }
        }
    }
}

fn copy(reader: &mut BufReader<fs_err::File>) -> Result<(), CliError> {
    std::io::copy(reader, &mut std::io::stdout().lock())?;
    Ok(())
}

fn show_new(reader: &mut BufReader<fs_err::File>, ui: Ui) -> Result<(), CliError> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if let Ok(activity) = serde_json::from_slice::<Activity>(&line) {
            ui.say(in_words(&activity));
            ui.document(LogLine { activity });
        }
    }
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
