//! `doctor`: what works, what does not, what to do.

use clap::Args;
use rehearsal_app::doctor::{Health, diagnose, verify_store};
use rehearsal_sandbox::SandboxReport;
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BAD, GOOD, ODD, harmless, styled};
use crate::words;
use crate::words::doctor::Check;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rehearsal doctor\n  rehearsal doctor --store\n\nEnds with 3 if something does not work."
)]
pub(crate) struct DoctorArgs {
    /// Only check the store: every task against its events, every column against its document; all findings, one a line
    #[arg(long)]
    store: bool,
}

/// `doctor --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DoctorDocument {
    /// Whether all that is needed works.
    healthy: bool,
    checks: Vec<Check>,
    /// What confines tests and agents here, layer by layer; none if it could not be tried.
    sandbox: Option<SandboxReport>,
}

pub(crate) async fn run(args: DoctorArgs, context: &Context) -> Done {
    if args.store {
        return check_store(context).await;
    }
    let diagnosis = diagnose(context).await;
    let healthy = diagnosis.is_healthy();
    let now = context.now();
    let checks = diagnosis.findings.into_iter().map(|finding| words::doctor::check(finding, now));
    let checks: Vec<Check> = checks.collect();
    let width = checks.iter().map(|check| check.what.chars().count()).max().unwrap_or(0);
    for check in &checks {
        let mark = match check.health {
            Health::Ok => styled(GOOD, "ok  "),
            Health::Note => styled(ODD, "note"),
            Health::Bad => styled(BAD, "bad "),
        };
        context.ui.say(format!("{mark}  {:<width$}  {}", check.what, harmless(&check.found)));
        if let Some(hint) = &check.hint {
            context.ui.say(format!("      hint: {}", harmless(hint)));
        }
    }
    context.ui.document(DoctorDocument { healthy, checks, sandbox: diagnosis.sandbox });
    Ok(if healthy { Exit::Ok } else { Exit::Red })
}

/// All that is wrong with the store, one finding a line.
async fn check_store(context: &Context) -> Done {
    let document = verify_store(&context.project()?).await?;
    for finding in &document.findings {
        context.ui.say(format!("{}  {}", styled(BAD, "bad "), harmless(finding)));
    }
    if document.healthy {
        let events = words::count(document.events.cast_unsigned(), "event");
        context.ui.say(format!("{}  every task is what its events say ({events})", styled(GOOD, "ok  ")));
    } else {
        let count = words::count(document.findings.len() as u64, "finding");
        context.ui.say(format!("{count}; keep a copy of the store and report it"));
    }
    let exit = if document.healthy { Exit::Ok } else { Exit::Red };
    context.ui.document(document);
    Ok(exit)
}
