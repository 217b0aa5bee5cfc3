//! Running the tests while someone watches.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rehearsal_core::config::Origin;
use rehearsal_core::config::{Overrides, SandboxLevel, Setting, TestingSettings};
use rehearsal_engine::{ChangedSince, Tester, Wanted};
use rehearsal_testing::{Problem, Progress, RunEvent, RunWatcher, TestCase, WorkingTree};
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::TestArgs;
use super::answer::answer;
use crate::commands::Done;
use crate::context::{Context, variables};
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::Project;
use crate::ui::{Document, emit, one_line};

/// A line of `test --follow`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum TestEvent {
    /// A runner begins.
    RunStarted {
        /// Which.
        framework: String,
        /// Where.
        root: String,
        /// What runs.
        command: String,
    },
    /// So many tests are expected.
    Declared {
        /// How many.
        total: u64,
    },
    /// A test began.
    TestStarted {
        /// Its package, class or file.
        package: String,
        /// Its name.
        name: String,
    },
    /// A test ended; a later line of the same test replaces this one.
    TestFinished {
        /// How.
        test: TestCase,
    },
    /// Something is wrong outside of any test.
    Problem {
        /// What.
        problem: Problem,
    },
    /// Failed tests are run again.
    Retrying {
        /// How many.
        tests: u64,
    },
}

/// The tester as the command line wants it.
pub(super) async fn tester(args: &TestArgs, context: &Context) -> Result<Tester, CliError> {
    let project = context.project()?;
    let settings = project.settings(Overrides::default())?;
    let (base_branch, mut settings) = (settings.base_branch.value, settings.testing);
    let flag = |given| Setting { value: given, origin: Origin::Flag };
    if let Some(framework) = args.framework {
        settings.framework = flag(Some(framework.0.name().to_owned()));
    }
    if args.command.is_some() {
        settings.command = Setting { value: args.command.clone(), origin: Origin::Flag };
    }
    if let Some(timeout) = args.timeout {
        settings.timeout = Setting { value: timeout, origin: Origin::Flag };
        settings.check().map_err(|error| CliError::in_file(error, "the command line"))?;
    }
    settings.environment.value.extend(args.environment.iter().cloned());
    settings.parallel.value = args.parallel.or(settings.parallel.value);
    settings.retries.value = args.retries.unwrap_or(settings.retries.value);
    if let Some(level) = args.sandbox {
        settings.sandbox.level.value = level.into();
    }
    tester_with(settings, &project, context).await
}

/// The tester of a project.
pub(crate) async fn tester_with(
    settings: TestingSettings,
    project: &Project,
    context: &Context,
) -> Result<Tester, CliError> {
    Ok(Tester {
        root: project.root.clone(),
        settings,
        base_branch,
        keep: project.state_dir().join("tests"),
        variables: variables(),
        store: project.store().await?,
        clock: Arc::clone(&context.clock),
    })
}

pub(super) fn wanted(args: &TestArgs) -> Wanted {
    Wanted {
        patterns: args.pattern.iter().cloned().collect(),
        baseline: args.baseline.clone(),
        affected: match &args.changed_since {
            Some(revision) => Some(ChangedSince::Revision(revision.clone())),
            None => args.affected.then_some(ChangedSince::BaseBranch),
        },
        coverage: args.coverage,
    }
}

pub(super) async fn run(args: &TestArgs, context: &Context) -> Done {
    let tester = tester(args, context).await?;
    let mut exit = once(&tester, args, context).await?;
    while args.watch && exit != Exit::Interrupted {
        if !changed(&tester).await? {
            return Ok(exit);
        }
        exit = once(&tester, args, context).await?;
    }
    Ok(exit)
}

async fn once(tester: &Tester, args: &TestArgs, context: &Context) -> Done {
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let interrupted = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    let watcher = if args.follow { following() } else { showing(context) };
    let tested = tester.test(&wanted(args), &watcher, &cancel).await;
    interrupted.abort();
    let tested = tested?;
    if tester.settings.sandbox.level.value == SandboxLevel::Required
        && let Some(why) = tested.projects.iter().find_map(|project| project.report.sandbox_refused.clone())
    {
        return Err(sandbox_refused(&why));
    }
    // Who reads events reads the report as the last of them.
    let ui = crate::ui::Ui { json: context.ui.json || args.follow };
    let context = &Context { ui, directory: context.directory.clone(), clock: Arc::clone(&context.clock) };
    let exit = answer(tested.projects, &tested.notes, &args.form, context)?;
    Ok(if cancel.is_cancelled() { Exit::Interrupted } else { exit })
}

/// That a sandbox is required, and cannot be had.
pub(crate) fn sandbox_refused(why: &str) -> CliError {
    CliError::new(Exit::Sandbox, format!("the sandbox is required, and cannot be had: {why}"))
        .hint("`rehearsal doctor` shows which layer is missing; `--sandbox best-effort` runs without it")
}

/// Waits until a file is another one; not if Ctrl-C comes first.
async fn changed(tester: &Tester) -> Result<bool, CliError> {
    const LOOK_EVERY: Duration = Duration::from_millis(500);
    let now = || WorkingTree::read(&tester.root).map(|tree| tree.hash);
    let before = now().map_err(|error| CliError::of(Exit::Git, &error))?;
    loop {
        tokio::select! {
            result = tokio::signal::ctrl_c() => {
                result?;
                return Ok(false);
            }
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        if now().is_ok_and(|hash| hash != before) {
            return Ok(true);
        }
    }
}

/// Each event as a line.
fn following() -> RunWatcher {
    RunWatcher::new(|event| {
        let event = match event {
            RunEvent::Started(plan) => TestEvent::RunStarted {
                framework: plan.framework.to_string(),
                root: plan.root.to_string(),
                command: plan.command.to_string(),
            },
            RunEvent::Progress(Progress::Declared(total)) => TestEvent::Declared { total },
            RunEvent::Progress(Progress::Started(test)) => {
                TestEvent::TestStarted { package: test.suite.to_owned(), name: test.name.to_owned() }
            }
            RunEvent::Progress(Progress::Finished(test)) => TestEvent::TestFinished { test: test.clone() },
            RunEvent::Progress(Progress::Problem(problem)) => TestEvent::Problem { problem: problem.clone() },
            RunEvent::Retrying(tests) => TestEvent::Retrying { tests: tests.len() as u64 },
            RunEvent::Printed(..) | RunEvent::Ended(_) => return,
        };
        emit(&Document::new(event));
    })
}

/// A line that changes, on a terminal; nothing elsewhere.
fn showing(context: &Context) -> RunWatcher {
    if context.ui.json || !std::io::stderr().is_terminal() {
        return RunWatcher::none();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    let mut counts = Counts::default();
    RunWatcher::new(move |event| match event {
        RunEvent::Started(plan) => bar.set_prefix(plan.framework.to_string()),
        RunEvent::Progress(Progress::Declared(total)) => counts.expected = total,
        RunEvent::Progress(Progress::Started(test)) => bar.set_message(counts.line(test.name)),
        RunEvent::Progress(Progress::Finished(test)) => {
            counts.add(test);
            bar.set_message(counts.line(&test.name));
        }
        RunEvent::Retrying(tests) => bar.set_message(format!("again: {} failed tests", tests.len())),
        RunEvent::Ended(_) => bar.finish_and_clear(),
        RunEvent::Progress(Progress::Problem(_)) | RunEvent::Printed(..) => {}
    })
}

#[derive(Debug, Default)]
struct Counts {
    expected: u64,
    ended: u64,
    failed: u64,
}

impl Counts {
    fn add(&mut self, test: &TestCase) {
        self.ended += 1;
        self.failed += u64::from(test.status.is_failure());
    }

    fn line(&self, name: &str) -> String {
        let of = if self.expected > 0 { format!("/{}", self.expected) } else { String::new() };
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        format!("{}{of}{failed}  {}", self.ended, one_line(name, 60))
    }
}
