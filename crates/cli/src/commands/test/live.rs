//! Running the tests while someone watches.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rehearsal_app::testing;
use rehearsal_engine::{ChangedSince, Tester, Wanted};
use rehearsal_testing::{Problem, Progress, RunEvent, RunWatcher, TestCase, WorkingTree};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::TestArgs;
use super::answer::answer;
use super::counts::Counts;
use super::stop::Stop;
use crate::commands::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Document, emit};

/// A line of `test --follow`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    args.form.check_files(context)?;
    let tester = testing::tester(&context.project()?, args.choices()).await?;
    let stop = Stop::listen()?;
    loop {
        // What changes while the tests run is for the next run.
        let before = if args.watch { Some(WorkingTree::read(&tester.root).await) } else { None };
        let before = before.transpose().map_err(|error| CliError::of(Exit::Git, &error))?;
        let exit = once(&tester, args, &stop.now, context).await?;
        if let Some(exit) = stop.exit() {
            return Ok(exit);
        }
        let Some(before) = before else { return Ok(exit) };
        if !changed(&tester, &before, &stop.now).await {
            return Ok(exit);
        }
    }
}

async fn once(tester: &Tester, args: &TestArgs, stop: &CancellationToken, context: &Context) -> Done {
    let watcher = if args.follow { following() } else { showing(context) };
    let tested = testing::test(tester, &wanted(args), &watcher, stop).await?;
    // Who reads events reads the report as the last of them.
    let ui = crate::ui::Ui { json: context.ui.json || args.follow };
    let context = &Context { ui, ..context.clone() };
    answer(tested.projects, &tested.notes, &args.form, context)
}

/// Waits until a file is another one; not if the command is stopped first.
async fn changed(tester: &Tester, before: &WorkingTree, stop: &CancellationToken) -> bool {
    const LOOK_EVERY: Duration = Duration::from_millis(500);
    loop {
        if WorkingTree::read(&tester.root).await.is_ok_and(|tree| tree.hash != before.hash) {
            return true;
        }
        tokio::select! {
            () = stop.cancelled() => return false,
            () = tokio::time::sleep(LOOK_EVERY) => {}
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
    RunWatcher::new(move |event| {
        match event {
            RunEvent::Started(plan) => bar.set_prefix(plan.framework.to_string()),
            RunEvent::Ended(_) => bar.finish_and_clear(),
            _ => {}
        }
        if let Some(line) = counts.hear(&event) {
            bar.set_message(line);
        }
    })
}
