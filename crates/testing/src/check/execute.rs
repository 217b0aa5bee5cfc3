//! One tool, run once.

use camino::Utf8PathBuf;
use rehearsal_core::Exit;
use tokio::time::Instant;

use super::gather::{Gather, Known};
use super::install::with_advice;
use super::{Check, CheckRequest, CheckVerdict, StageReport};
use crate::run::{
    Driven, LONGEST_TIMEOUT, Listener, Raw, Surroundings, drive, in_words, lay_out, milliseconds,
};
use crate::words::plain_line;
use crate::{DiagnosticParser, RunEvent, RunWatcher, SpawnError, Spawner, Stopped, Stream};

/// Where no diagnostic says why, so many lines of the end of the output do.
const LAST_LINES: usize = 40;
const LAST_LINE: usize = 500;

/// What the tools of one check share.
pub(super) struct Session<'a> {
    pub request: &'a CheckRequest,
    pub spawner: &'a dyn Spawner,
    pub watcher: &'a RunWatcher,
    pub cancel: &'a tokio_util::sync::CancellationToken,
}

struct Listening<'a> {
    raw: Raw,
    parser: Box<dyn DiagnosticParser>,
    gather: Gather<'a>,
    watcher: &'a RunWatcher,
}

impl Listener for Listening<'_> {
    fn printed(&mut self, stream: Stream, bytes: &[u8]) {
        self.raw.push(bytes);
        self.parser.feed(stream, bytes, &mut |diagnostic| self.gather.take(diagnostic));
        self.watcher.tell(RunEvent::Printed(stream, bytes));
    }

    fn look(&mut self) {}

    fn stopping(&mut self) {}
}

impl Session<'_> {
    /// `number` tells the outputs of several tools apart.
    pub(super) async fn execute(&self, check: &Check, number: usize, known: &mut Known) -> StageReport {
        let began = Instant::now();
        self.watcher.tell(RunEvent::Started(&check.plan));
        let mut report = StageReport::empty(check);
        if let Some(missing) = &check.plan.missing {
            report.verdict = CheckVerdict::ToolMissing;
            report.reason = Some(missing.clone());
            return report;
        }
        let prepared =
            fs_err::create_dir_all(&check.scratch).and_then(|()| lay_out(&check.plan, &check.scratch));
        if let Err(error) = prepared {
            report.verdict = CheckVerdict::Crashed;
            report.reason = Some(format!("it could not be prepared: {error}"));
            return report;
        }
        let file = self.request.keep.as_ref().map(|keep| keep.join(format!("check-{number}.log")));
        let mut listening = Listening {
            raw: Raw::new(file.as_deref()),
            parser: check.parser(),
            gather: Gather::new(&self.request.root, &report.root, known),
            watcher: self.watcher,
        };
        let driven = self.drive(check, &mut listening).await;
        let Listening { raw, mut parser, mut gather, .. } = listening;
        parser.finish(&mut |diagnostic| gather.take(diagnostic));
        let (output, output_file, notes) = raw.finish();
        report.output_file = output_file.map(Utf8PathBuf::into_string);
        report.notes.extend(notes);
        report.told_by(gather);
        report.end_of(driven, &output);
        report.duration = milliseconds(began);
        report
    }

    /// What comes before it, then the tool; the first that fails is the last.
    async fn drive(&self, check: &Check, listening: &mut Listening<'_>) -> Result<Driven, SpawnError> {
        let around = self.surroundings(check);
        for command in &check.plan.prepare {
            let driven = drive(&check.plan, command, &around, listening).await?;
            if driven.stopped.is_some() || !driven.end.exit.is_some_and(Exit::is_success) {
                return Ok(driven);
            }
        }
        drive(&check.plan, &check.plan.command, &around, listening).await
    }

    fn surroundings(&self, check: &Check) -> Surroundings<'_> {
        let plan = &check.plan;
        let mut env = self.request.machine.variables.clone();
        env.extend(self.request.environment.clone());
        env.extend(plan.env.clone());
        Surroundings {
            spawner: self.spawner,
            project: &self.request.root,
            env,
            writable: plan.writable.iter().cloned().chain([check.scratch.clone()]).collect(),
            readable: plan.readable.clone(),
            until: Instant::now() + self.request.timeout.min(LONGEST_TIMEOUT),
            cancel: self.cancel,
        }
    }
}

impl StageReport {
    fn empty(check: &Check) -> Self {
        Self {
            name: check.stage,
            tool: check.tool.clone(),
            root: check.root.clone().into_string(),
            command: Some(check.plan.command.to_string()),
            verdict: CheckVerdict::Passed,
            reason: None,
            exit_code: None,
            duration: 0,
            counts: super::DiagnosticCounts::default(),
            diagnostics: Vec::new(),
            left_out: 0,
            output: String::new(),
            output_file: None,
            sandbox_refused: None,
            notes: check.plan.notes.clone(),
        }
    }

    pub(super) fn told_by(&mut self, gather: Gather<'_>) {
        self.counts = gather.counts;
        (self.diagnostics, self.left_out) = gather.finish();
    }

    fn end_of(&mut self, driven: Result<Driven, SpawnError>, output: &str) {
        match driven {
            Ok(driven) => {
                let stopped = driven.stopped;
                self.notes.extend(driven.notes);
                self.judge(stopped, driven.end.exit, output);
                let limit = driven.end.limits.into_iter().next();
                let limit = driven.end.out_of_memory.then(|| "it ran out of memory".to_owned()).or(limit);
                if let Some(limit) = limit.filter(|_| self.verdict != CheckVerdict::Passed) {
                    self.verdict = CheckVerdict::Crashed;
                    self.reason = Some(limit);
                }
            }
            Err(error) => {
                let why = in_words(&error);
                self.verdict = match error {
                    SpawnError::Program { .. } => CheckVerdict::ToolMissing,
                    SpawnError::Sandbox(_) => CheckVerdict::Crashed,
                };
                if self.verdict == CheckVerdict::Crashed {
                    self.sandbox_refused = Some(why.clone());
                }
                self.reason = Some(why);
            }
        }
        self.explain(output);
    }

    /// The exit status decides; nothing that is printed makes a run green.
    pub(super) fn judge(&mut self, stopped: Option<Stopped>, exit: Option<Exit>, output: &str) {
        if let Some(Exit::Code(code)) = exit {
            self.exit_code = Some(code);
        }
        let missing = || not_installed(exit, output).map(|said| with_advice(&said, &self.tool));
        let (verdict, reason) = match (stopped, exit) {
            (Some(Stopped::TimeLimit), _) => {
                (CheckVerdict::TimedOut, Some("it took longer than it may".to_owned()))
            }
            (Some(Stopped::Cancelled), _) => (CheckVerdict::Cancelled, Some("it was stopped".to_owned())),
            (None, Some(Exit::Code(0))) => (CheckVerdict::Passed, None),
            (None, Some(Exit::Code(_))) => match missing() {
                Some(missing) => (CheckVerdict::ToolMissing, Some(missing)),
                None => (CheckVerdict::Failed, None),
            },
            (None, Some(Exit::Signal(signal))) => {
                (CheckVerdict::Crashed, Some(format!("it was killed by signal {signal}")))
            }
            (None, None) => (CheckVerdict::Crashed, Some("nobody saw how it ended".to_owned())),
        };
        (self.verdict, self.reason) = (verdict, reason);
    }

    /// Says what the diagnostics leave open.
    pub(super) fn explain(&mut self, output: &str) {
        match self.verdict {
            CheckVerdict::Passed if self.counts.errors > 0 => self
                .notes
                .push("it exited with 0 although it speaks of errors: the exit status counts".to_owned()),
            CheckVerdict::Failed if self.counts.errors + self.counts.warnings == 0 => {
                let code = self.exit_code.unwrap_or_default();
                self.reason
                    .get_or_insert_with(|| format!("it exited with {code}, and no diagnostic says why"));
                self.output = last_lines(output);
            }
            CheckVerdict::Crashed | CheckVerdict::TimedOut if self.counts.errors == 0 => {
                self.output = last_lines(output);
            }
            _ => {}
        }
    }
}

/// What says that the tool itself is not there.
fn not_installed(exit: Option<Exit>, output: &str) -> Option<String> {
    let plain = crate::strip_ansi(output);
    let mut lines = plain.lines().map(str::trim).filter(|line| !line.is_empty());
    if exit == Some(Exit::Code(127)) {
        return Some(format!("a command was not found: {}", plain_line(lines.next_back()?, LAST_LINE)));
    }
    // rustup's stand-in for a component, and an interpreter without the module.
    let said = lines.find(|line| {
        line.contains("is not installed for the toolchain")
            || (line.contains(": No module named ") && !line.contains("Error:"))
    })?;
    Some(plain_line(said, LAST_LINE))
}

fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    last.iter().map(|line| plain_line(line, LAST_LINE)).collect::<Vec<_>>().join("\n")
}
