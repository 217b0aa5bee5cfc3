//! One process from its start to its end: feeds it, reads it, watches the time and the budget.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::{Activity, Budget, Clock, Notice, Stop, TimeLimit, WireReport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Graces;
use super::calls::Calls;
use super::files::{Heard, LogTrouble, RunFiles};
use super::spool::Spool;
use crate::policy::{DRAIN_GRACE, NEVER, READ_CHUNK, SHIM_REPORT_MARGIN, STDERR_TAIL};
use crate::redact::Redactor;
use crate::{Lease, RunRequest, Watch, WireParser};
use rehearsal_process::{Ended, SWEEP_LIMIT, Supervised, TimeLeft};

/// How a process went.
pub(super) struct Driven {
    pub(super) ended: Ended,
    pub(super) stop: Option<Stop>,
    pub(super) wire: WireReport,
    pub(super) warnings: Vec<Notice>,
    /// Its supervisor, which stays until all that the run left is gathered.
    pub(super) process: Supervised,
}

/// One process under way.
pub(super) struct Drive {
    ears: Ears,
    lease: Option<Lease>,
    timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    graces: Graces,
    started: Instant,
    /// When it last wrote anything.
    heard: Instant,
    /// When its final event came.
    result: Option<Instant>,
    stop: Option<Stop>,
    /// When we told it to end.
    told: Option<Instant>,
    /// How it ended, and when.
    ended: Option<(Ended, Instant)>,
}

/// What woke the drive.
enum Woken {
    Fed(Option<pipe::Sender>),
    Stdout(usize),
    Stderr(usize),
    Ended(Ended),
    Cancelled,
    Lease(TimeLeft),
    Time,
}

impl Drive {
    pub(super) fn new(
        request: &RunRequest,
        parser: Box<dyn WireParser>,
        files: RunFiles,
        redactor: Redactor,
        watch: Watch,
        clock: Arc<dyn Clock>,
        graces: Graces,
    ) -> Self {
        let now = Instant::now();
        let ears = Ears {
            parser,
            files,
            redactor,
            watch,
            clock,
            budget: request.budget,
            over_budget: None,
            calls: Calls::within(request.calls),
            runaway: None,
            disk_full: None,
            stderr_tail: Vec::new(),
            warnings: Vec::new(),
            activities: Vec::new(),
            told_before: 0,
        };
        Self {
            ears,
            lease: request.lease.clone(),
            timeout: request.timeout,
            idle_timeout: request.idle_timeout,
            graces,
            started: now,
            heard: now,
            result: None,
            stop: None,
            told: None,
            ended: None,
        }
    }

    /// The same for a process that has run for some time, of which this was heard.
    pub(super) async fn going_on(mut self, for_so_long: Duration, mut heard: Heard) -> Self {
        self.started = Instant::now().checked_sub(for_so_long).unwrap_or(self.started);
        self.ears.told_before = heard.activities;
        let mut chunk = vec![0; READ_CHUNK];
        while let Some(bytes) = heard.stdout.next(&mut chunk) {
            self.ears.hear_again(bytes);
            // It may be much, and others wait.
            tokio::task::yield_now().await;
        }
        while let Some(bytes) = heard.stderr.next(&mut chunk) {
            keep_tail(&mut self.ears.stderr_tail, bytes);
            self.ears.parser.push_stderr(bytes, &mut self.ears.activities);
            self.ears.pass_on();
        }
        while let Some(count) = self.ears.spooled(&mut chunk) {
            self.hear(Ear::Stdout, &chunk[..count]);
        }
        self.consider();
        self
    }

    /// Stays with the process until it and everything it started are gone, and its pipes are empty.
    pub(super) async fn until_over(
        mut self,
        mut process: Supervised,
        stdin: String,
        cancel: &CancellationToken,
    ) -> Driven {
        let mut is_fed = process.stdin.is_none();
        let mut feeding = pin!(feed(process.stdin.take(), stdin));
        let (mut stdout, mut stderr) = (process.stdout.take(), process.stderr.take());
        let (mut stdout_chunk, mut stderr_chunk) = (vec![0; READ_CHUNK], vec![0; READ_CHUNK]);
        let mut lease = self.lease.take();
        if let Some(lease) = &mut lease {
            process.go_on(lease.left()).await;
        }
        while let Some(wake_at) = self.next_moment(stdout.is_some() || stderr.is_some()) {
            let (is_running, is_free) = (self.ended.is_none(), self.stop.is_none());
            let spool = &mut self.ears.files.stdout.spool;
            let woken = tokio::select! {
                stdin = &mut feeding, if !is_fed => Woken::Fed(stdin),
                read = read_output(&mut stdout, spool, &mut stdout_chunk), if stdout.is_some() => Woken::Stdout(read),
                read = read(&mut stderr, &mut stderr_chunk), if stderr.is_some() => Woken::Stderr(read),
                ended = process.wait(), if is_running => Woken::Ended(ended),
                () = cancel.cancelled(), if is_running && is_free => Woken::Cancelled,
                left = next(&mut lease), if is_running => Woken::Lease(left),
                () = tokio::time::sleep_until(wake_at) => Woken::Time,
            };
            match woken {
                Woken::Fed(stdin) => {
                    is_fed = true;
                    process.is_fed().await;
                    // Closed only now: an agent that has seen the end of its input outlives us.
                    drop(stdin);
                }
                Woken::Stdout(0) => stdout = None,
                Woken::Stderr(0) => stderr = None,
                Woken::Stdout(count) => self.hear(Ear::Stdout, &stdout_chunk[..count]),
                Woken::Stderr(count) => self.hear(Ear::Stderr, &stderr_chunk[..count]),
                Woken::Ended(ended) => self.ended = Some((ended, Instant::now())),
                Woken::Cancelled => self.stop = Some(Stop::Cancelled),
                Woken::Lease(left) => process.go_on(left).await,
                Woken::Time => self.look_at_the_clock(),
            }
            self.enforce(&mut process).await;
        }
        self.finish(process).await
    }

    fn hear(&mut self, ear: Ear, bytes: &[u8]) {
        self.heard = Instant::now();
        self.ears.hear(ear, bytes);
        self.consider();
    }

    /// What was heard may be the result, or too much.
    fn consider(&mut self) {
        if self.result.is_none() && self.ears.parser.has_ended() {
            self.result = Some(self.heard);
        }
        if self.stop.is_none() {
            let disk_full = self.ears.disk_full.take().map(Stop::Hindered);
            let over_budget = self.ears.over_budget.take().map(|reason| Stop::OverBudget { reason });
            let runaway = self.ears.runaway.take().map(|reason| Stop::Runaway { reason });
            self.stop = disk_full.or(over_budget.or(runaway).filter(|_| self.result.is_none()));
        }
    }

    /// The next moment at which something may have to be done; none when all is over.
    fn next_moment(&self, pipes_open: bool) -> Option<Instant> {
        if let Some((_, at)) = self.ended {
            let until = at + DRAIN_GRACE;
            return (pipes_open && Instant::now() < until).then_some(until);
        }
        let far = self.started + NEVER;
        let limits = self.limits().map(|(at, _)| at);
        Some(limits.chain(self.give_up_at()).fold(far, Instant::min))
    }

    /// The limits that hold now, as moments.
    fn limits(&self) -> impl Iterator<Item = (Instant, Limit)> {
        let is_free = self.stop.is_none();
        let waits = is_free && self.result.is_none();
        let total = self
            .timeout
            .filter(|_| waits)
            .and_then(|limit| Some((self.started.checked_add(limit)?, Limit::Total)));
        let idle = self
            .idle_timeout
            .filter(|_| waits)
            .and_then(|limit| Some((self.heard.checked_add(limit)?, Limit::Idle)));
        let linger = self.result.filter(|_| is_free).map(|at| (at + self.graces.linger, Limit::Linger));
        [total, idle, linger].into_iter().flatten()
    }

    /// When a shim that was told to end the run has failed to.
    fn give_up_at(&self) -> Option<Instant> {
        self.told.map(|at| at + self.graces.terminate + SWEEP_LIMIT + SHIM_REPORT_MARGIN)
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        let reached = self.limits().filter(|(at, _)| *at <= now).min_by_key(|(at, _)| *at);
        if let Some((_, limit)) = reached {
            self.stop = Some(match limit {
                Limit::Total => timed_out(TimeLimit::Total, now - self.started),
                Limit::Idle => timed_out(TimeLimit::Idle, now - self.heard),
                Limit::Linger => Stop::LingeredAfterResult,
            });
        }
    }

    async fn enforce(&mut self, process: &mut Supervised) {
        if self.ended.is_some() {
            return;
        }
        if self.stop.is_some() && self.told.is_none() {
            self.told = Some(Instant::now());
            process.terminate(self.graces.terminate).await;
        }
        if self.give_up_at().is_some_and(|at| at <= Instant::now()) {
            self.ended = Some((process.take_over().await, Instant::now()));
        }
    }

    async fn finish(self, mut process: Supervised) -> Driven {
        let ended = match self.ended {
            Some((ended, _)) => ended,
            None => process.take_over().await,
        };
        let (wire, warnings) = self.ears.finish(&ended);
        Driven { ended, stop: self.stop, wire, warnings, process }
    }
}

/// Which limit a moment belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Total,
    Idle,
    Linger,
}

fn timed_out(limit: TimeLimit, after: Duration) -> Stop {
    Stop::TimedOut { limit, after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX) }
}

/// The next time that the lease is prolonged by.
async fn next(lease: &mut Option<Lease>) -> TimeLeft {
    match lease {
        Some(lease) => lease.next().await,
        None => std::future::pending().await,
    }
}

/// Writes the prompt; the pipe is to be closed then. A child that does not read it is no error: it may not need it.
async fn feed(stdin: Option<pipe::Sender>, prompt: String) -> Option<pipe::Sender> {
    let mut stdin = stdin?;
    let _ = stdin.write_all(prompt.as_bytes()).await;
    Some(stdin)
}

/// The next bytes of a pipe; zero when it is closed or broken.
async fn read(pipe: &mut Option<pipe::Receiver>, chunk: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(chunk).await.unwrap_or(0),
        None => 0,
    }
}

/// The same for standard output, which goes through a spool if it is to survive us.
async fn read_output(
    pipe: &mut Option<pipe::Receiver>,
    spool: &mut Option<Spool>,
    chunk: &mut [u8],
) -> usize {
    let (Some(spool), Some(out)) = (spool, pipe.as_ref()) else {
        return read(pipe, chunk).await;
    };
    loop {
        if out.readable().await.is_err() {
            return 0;
        }
        match out.try_io(|| spool.fill_from(out, chunk)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read.unwrap_or(0),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ear {
    Stdout,
    Stderr,
}

/// Takes in what the process writes. Everything is cleared of secrets before anyone sees it.
struct Ears {
    parser: Box<dyn WireParser>,
    files: RunFiles,
    redactor: Redactor,
    watch: Watch,
    clock: Arc<dyn Clock>,
    budget: Budget,
    over_budget: Option<String>,
    calls: Calls,
    runaway: Option<String>,
    disk_full: Option<rehearsal_core::Outcome>,
    stderr_tail: Vec<u8>,
    warnings: Vec<Notice>,
    activities: Vec<Activity>,
    /// So many of the next activities were written down and told by a worker before us.
    told_before: u64,
}

impl Ears {
    /// Takes in what stands in the log already.
    fn hear_again(&mut self, clean: &[u8]) {
        self.parser.push(clean, &mut self.activities);
        self.pass_on();
    }

    /// The next bytes of what a worker before us took from the pipe, and did not write down; none at the end.
    fn spooled(&mut self, chunk: &mut [u8]) -> Option<usize> {
        let spool = self.files.stdout.spool.as_mut()?;
        spool.next(chunk).ok().filter(|count| *count > 0)
    }

    fn hear(&mut self, ear: Ear, bytes: &[u8]) {
        let written = match ear {
            Ear::Stdout => {
                let (clean, written) = self.files.stdout.write(bytes);
                self.parser.push(clean, &mut self.activities);
                written
            }
            Ear::Stderr => {
                let (clean, written) = self.files.stderr.write(bytes);
                keep_tail(&mut self.stderr_tail, clean);
                self.parser.push_stderr(clean, &mut self.activities);
                written
            }
        };
        self.note(written);
        self.pass_on();
    }

    fn pass_on(&mut self) {
        for activity in std::mem::take(&mut self.activities) {
            let activity = self.redactor.redact_activity(activity);
            if let Activity::Usage { tokens, cost_usd } = &activity {
                self.over_budget = over_budget(self.budget, tokens.total(), *cost_usd);
            }
            if let Activity::ToolCalled { tool, detail, arguments } = &activity {
                let runaway = self.calls.count(tool, detail, arguments.as_deref());
                self.runaway = self.runaway.take().or(runaway);
            }
            if self.told_before > 0 {
                self.told_before -= 1;
                continue;
            }
            let written = self.files.activity.activity(&activity, self.clock.now());
            self.note(written);
            (self.watch)(activity);
        }
    }

    fn note(&mut self, written: Result<(), LogTrouble>) {
        match written {
            Ok(()) => {}
            Err(LogTrouble::Incomplete(notice)) => self.warnings.push(notice),
            Err(LogTrouble::DiskFull(hindrance)) => {
                self.warnings.push(*hindrance.notice);
                self.disk_full = Some(hindrance.outcome);
            }
        }
    }

    fn finish(mut self, ended: &Ended) -> (WireReport, Vec<Notice>) {
        let (clean, written) = self.files.stdout.finish();
        self.parser.push(clean, &mut self.activities);
        self.note(written);
        let (clean, written) = self.files.stderr.finish();
        keep_tail(&mut self.stderr_tail, clean);
        self.note(written);
        self.pass_on();
        (self.parser.finish(Some(ended.exit), &self.stderr_tail), self.warnings)
    }
}

fn keep_tail(tail: &mut Vec<u8>, bytes: &[u8]) {
    tail.extend_from_slice(bytes);
    if tail.len() > STDERR_TAIL {
        tail.drain(..tail.len() - STDERR_TAIL);
    }
}

/// Why the budget is used up, if it is. For agents that have no such limit of their own.
fn over_budget(budget: Budget, tokens: u64, cost_usd: Option<f64>) -> Option<String> {
    if let Some(limit) = budget.tokens.filter(|limit| tokens > *limit) {
        return Some(format!("it used {tokens} tokens, and may use {limit}"));
    }
    let (limit, cost) = budget.usd.zip(cost_usd)?;
    (cost > limit).then(|| format!("it cost ${cost:.2}, and may cost ${limit:.2}"))
}

#[cfg(test)]
mod tests {
    use rehearsal_core::{Exit, Outcome, Timestamp, VirtualClock};

    use super::*;
    use crate::process_agent::files::OutputLog;

    #[test]
    fn a_budget_is_reached_only_when_it_is_passed() {
        let budget = Budget { usd: Some(1.0), tokens: Some(100), turns: None };
        assert_eq!(over_budget(budget, 100, Some(1.0)), None);
        assert_eq!(over_budget(budget, 101, None).unwrap(), "it used 101 tokens, and may use 100");
        assert_eq!(over_budget(budget, 0, Some(1.5)).unwrap(), "it cost $1.50, and may cost $1.00");
        assert_eq!(over_budget(Budget::default(), u64::MAX, Some(1e9)), None);
    }

    /// Says nothing.
    struct Silent;

    impl WireParser for Silent {
        fn push(&mut self, _bytes: &[u8], _out: &mut Vec<Activity>) {}
        fn has_ended(&self) -> bool {
            false
        }
        fn finish(self: Box<Self>, _exit: Option<Exit>, _stderr: &[u8]) -> WireReport {
            WireReport::default()
        }
    }

    #[tokio::test]
    async fn a_full_disk_ends_the_run_and_is_the_outcome() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = camino::Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let redactor = Redactor::new([]);
        let mut files = RunFiles::create(&run_dir, "", &redactor).unwrap();
        files.stdout = OutputLog::on_full_disk(&redactor);
        let (request, graces) = (crate::request::tests::request(), Graces::default());
        let watch: Watch = Arc::new(|_| {});
        let clock = Arc::new(VirtualClock::starting_at(Timestamp(0)));
        let mut drive = Drive::new(&request, Box::new(Silent), files, redactor, watch, clock, graces);
        drive.hear(Ear::Stdout, b"hello\n");
        let path = "/dev/full".to_owned();
        assert_eq!(drive.stop, Some(Stop::Hindered(Outcome::DiskFull { path: path.clone() })));
        assert_eq!(drive.ears.warnings, [Notice::DiskFull { path }]);
    }

    #[test]
    fn only_the_end_of_standard_error_is_kept() {
        let mut tail = Vec::new();
        keep_tail(&mut tail, &vec![b'a'; STDERR_TAIL]);
        keep_tail(&mut tail, b"end");
        assert_eq!(tail.len(), STDERR_TAIL);
        assert!(tail.ends_with(b"aend"));
    }
}
