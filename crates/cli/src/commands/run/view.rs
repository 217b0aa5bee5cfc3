//! The lines that a loop prints, an event each.

use std::time::Duration;

use rehearsal_core::{Blame, Timestamp};
use rehearsal_engine::{SessionStart, WorkEvent};

use crate::ui::{BAD, BOLD, GOOD, ODD, harmless, one_line, styled};
use crate::words;

const TITLE_WIDTH: usize = 50;

/// The line for an event, in a loop of at most this many iterations; none for what only a moving line shows.
pub(crate) fn in_words(event: &WorkEvent, iterations: u32, now: Timestamp) -> Option<String> {
    Some(match event {
        WorkEvent::WorkStarted { session: Some(SessionStart { session, agent, open_tasks, .. }), .. } => {
            let open = words::count(*open_tasks, "open task");
            format!("{} session {session}, {open}, agent {agent}", styled(BOLD, "loop"))
        }
        WorkEvent::Recovered { run, task, outcome } => {
            let text = format!("run {run} of task {task} was left by a dead worker: {outcome}");
            styled(ODD, harmless(&text))
        }
        WorkEvent::Claimed { iteration: Some(iteration), task, title, .. } => {
            let place = styled(BOLD, format!("{iteration}/{iterations}"));
            format!("{place} {task} {}", one_line(title, TITLE_WIDTH))
        }
        WorkEvent::RunEnded { outcome, commits, files_changed, cost_usd, duration_ms, .. } => {
            let style = if outcome.blame() == Blame::Nobody { GOOD } else { BAD };
            format!(
                "    {} in {}, {}, {}, cost {}",
                styled(style, harmless(&outcome.to_string())),
                words::duration(Duration::from_millis(*duration_ms)),
                words::count(*commits as u64, "commit"),
                words::count(*files_changed as u64, "changed file"),
                words::cost(*cost_usd),
            )
        }
        WorkEvent::TaskReported { task, title, status } => {
            format!("    {task} {} is now {}", one_line(title, TITLE_WIDTH), styled(BOLD, status))
        }
        WorkEvent::CompleteRefused { open_tasks } => {
            let open = words::count(*open_tasks, "task");
            styled(ODD, format!("    COMPLETE is refused: {open} not done"))
        }
        WorkEvent::Waiting { reason: Some(reason), until: Some(until) } => {
            let when = words::relative(*until, now);
            styled(ODD, format!("    waiting: {}, going on {when}", harmless(reason)))
        }
        WorkEvent::Warning { notice } => {
            styled(ODD, format!("    note: {}", harmless(&words::notice(notice))))
        }
        _ => return None,
    })
}
