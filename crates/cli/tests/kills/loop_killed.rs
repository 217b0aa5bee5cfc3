//! SIGKILL at random moments of a loop.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::dice::{Dice, seed};
use crate::ledger::Ledger;
use crate::stage::{DILIGENT, SESSION, Stage, told};

const KILLS: usize = 200;
/// Repositories side by side.
const STAGES: usize = 2;
/// So many tasks are open before a kill: more than a loop gets done before it.
const OPEN_TASKS: usize = 8;
/// Iterations that a loop may come to before it is killed.
const ITERATIONS_SPANNED: u32 = 3;
/// After a file appeared, the next step is that near.
const NEAR: Duration = Duration::from_millis(4);

/// The files of a run, in the order in which they appear: before the agent starts, when it reports, when the loop
/// keeps what came of it until the store has it.
const MILESTONES: [&str; 3] = ["prompt.md", "report.jsonl", "outcome.json"];

/// When a loop is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// So long after its start.
    After(Duration),
    /// So long after a file of a new run appeared.
    At(&'static str, Duration),
}

impl Moment {
    fn throw(dice: &mut Dice, span: Duration) -> Self {
        if dice.below(2) == 0 {
            Self::After(dice.up_to(span))
        } else {
            Self::At(dice.pick::<&str>(&MILESTONES), dice.up_to(NEAR))
        }
    }
}

#[test]
fn a_loop_that_is_killed_200_times_loses_nothing_doubles_nothing_and_goes_on() {
    let seed = seed();
    std::thread::scope(|scope| {
        for number in 0..STAGES {
            scope.spawn(move || kill_again_and_again(seed.wrapping_add(number as u64), KILLS / STAGES));
        }
    });
}

fn kill_again_and_again(seed: u64, kills: usize) {
    let mut dice = Dice::new(seed);
    let stage = Stage::new(DILIGENT);
    let mut titles = BTreeSet::new();
    let span = span_of_a_few_iterations(&stage, &mut titles);
    let mut found = BTreeMap::new();
    let mut ledger = Ledger::read(&stage.state_dir());
    for _ in 0..kills {
        fill_up(&stage, &mut titles, &ledger);
        let moment = Moment::throw(&mut dice, span);
        kill_a_loop(&stage, moment);
        stage.until_nothing_lives();
        let after = Ledger::read(&stage.state_dir());
        after.assert_continues(&ledger);
        *found.entry(what_was_left(&stage)).or_insert(0) += 1;
        // On a machine whose load comes and goes, the loop may have been through with all of them.
        fill_up(&stage, &mut titles, &after);
        stage.succeed(&["run", SESSION, "--iterations", "1"]);
        let later = Ledger::read(&stage.state_dir());
        later.assert_continues(&after);
        assert!(later.done > after.done, "after a kill {moment:?} the next run got nothing done");
        ledger = later;
    }
    println!("the kills left: {found:?}");
    finish(&stage, &titles);
}

/// How long a start and a few iterations take here and now.
fn span_of_a_few_iterations(stage: &Stage, titles: &mut BTreeSet<String>) -> Duration {
    fill_up(stage, titles, &Ledger::read(&stage.state_dir()));
    let started = Instant::now();
    stage.succeed(&["run", SESSION, "--iterations", &ITERATIONS_SPANNED.to_string()]);
    started.elapsed()
}

fn fill_up(stage: &Stage, titles: &mut BTreeSet<String>, ledger: &Ledger) {
    let open = usize::try_from(ledger.open).unwrap();
    if open >= OPEN_TASKS {
        return;
    }
    let first = titles.len();
    let new: Vec<String> = (first..first + OPEN_TASKS).map(|number| format!("task {number}")).collect();
    stage.add_tasks(&new);
    titles.extend(new);
}

fn kill_a_loop(stage: &Stage, moment: Moment) {
    let known: BTreeSet<_> = stage.run_dirs().into_iter().collect();
    let mut child = stage.start_loop(&["--iterations", "1000"]);
    match moment {
        Moment::After(delay) => std::thread::sleep(delay),
        Moment::At(file, delay) => {
            let is_new =
                || stage.run_dirs().iter().any(|dir| !known.contains(dir) && dir.join(file).exists());
            while !is_new() && is_running(&mut child) {}
            std::thread::sleep(delay);
        }
    }
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = told(&output.stderr);
    assert!(!said.contains("error:") && !said.contains("crashed"), "{said}");
}

fn is_running(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_none()
}

/// In which part of its work the loop was hit.
fn what_was_left(stage: &Stage) -> &'static str {
    let ledger = Ledger::read(&stage.state_dir());
    let count = |name| ledger.events.iter().filter(|event| event.kind.name() == name).count();
    if count("run_started") == count("run_ended") {
        return "no run";
    }
    let last = ledger.events.iter().rev().find_map(|event| match &event.kind {
        rehearsal_core::EventKind::RunStarted { run } => Some(run.id.to_string()),
        _ => None,
    });
    let dir = stage.state_dir().join("runs").join(last.unwrap());
    if dir.join("outcome.json").exists() {
        "a run whose end was not yet written down"
    } else if dir.join("prompt.md").exists() {
        "a run at work"
    } else {
        "a run that was just claimed"
    }
}

/// Does what is left to do, and looks at everything.
fn finish(stage: &Stage, titles: &BTreeSet<String>) {
    let said = stage.succeed(&["run", SESSION, "--iterations", "1000"]);
    assert!(said.contains("all tasks are done") || said.contains("has no open tasks"), "{said}");
    stage.until_nothing_lives();
    let ledger = Ledger::read(&stage.state_dir());
    ledger.assert_each_thing_happened_once();
    ledger.assert_the_journal_has_each_good_run_once();
    let found: BTreeSet<String> = ledger.tasks.iter().map(|task| task.title.clone()).collect();
    assert_eq!(found, *titles);
    assert_eq!(ledger.tasks.len(), titles.len());
    for task in &ledger.tasks {
        assert_eq!(
            (task.status(), task.attempts),
            ("done", 1),
            "a kill costs a task nothing: {}",
            task.title
        );
    }
    let doctor = stage.succeed(&["doctor"]);
    assert!(doctor.contains("every task is what its events say"), "{doctor}");
    assert!(!doctor.contains("dead worker"), "{doctor}");
    assert_eq!(rehearsal_engine::LoopLock::holder(&stage.state_dir()), None);
    look_at_git(stage, &ledger);
}

fn look_at_git(stage: &Stage, ledger: &Ledger) {
    stage.git(&["fsck", "--strict", "--no-progress"]);
    let log = stage.git(&["log", "--format=%H %s"]);
    for task in &ledger.tasks {
        assert!(log.contains(&format!("Work on {}\n", task.id)), "no commit for {}", task.id);
    }
    let known: BTreeSet<&str> = log.lines().filter_map(|line| line.split(' ').next()).collect();
    let lost: Vec<String> = ledger.commits().into_iter().filter(|id| !known.contains(id.as_str())).collect();
    assert_eq!(lost, Vec::<String>::new(), "the store knows commits that git does not");
}
