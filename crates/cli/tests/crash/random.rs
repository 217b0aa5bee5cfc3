//! SIGKILL at random moments.

use std::time::{Duration, Instant};

use crate::checker::{check, nothing_lives};
use crate::dice::{Dice, seed};
use crate::stage::{Stage, server};

/// How many kills, for each store. The long form: `REHEARSAL_KILLS=500 cargo test -p rehearsal --test crash random`.
const KILLS_VARIABLE: &str = "REHEARSAL_KILLS";
const KILLS: usize = 24;
/// A task that loses more workers in a row is given up, as it should be: a round of kills stays below.
const KILLS_IN_A_ROUND: usize = 3;
const TASKS_IN_A_ROUND: usize = 2;

pub(crate) fn from_variable(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().map_or(otherwise, |number| number.parse().unwrap())
}

#[test]
fn a_worker_that_is_killed_at_random_moments_loses_nothing_and_doubles_nothing() {
    kill_again_and_again(&Stage::new(1, None));
}

#[test]
fn the_same_on_a_server() {
    let Some((_server, url)) = server() else { return };
    kill_again_and_again(&Stage::new(1, Some(url)));
}

fn kill_again_and_again(stage: &Stage) {
    let wanted = from_variable(KILLS_VARIABLE, KILLS);
    let mut dice = Dice::new(seed());
    let (mut kills, mut added) = (0, 0);
    let mut add_a_round = || {
        stage.add_tasks("pull-request", (0..TASKS_IN_A_ROUND).map(|n| format!("task {}", added + n)));
        added += TASKS_IN_A_ROUND;
        added
    };
    add_a_round();
    let began = Instant::now();
    stage.first().work();
    let span = began.elapsed();
    let mut tasks = TASKS_IN_A_ROUND;
    while kills < wanted {
        tasks = add_a_round();
        for _ in 0..KILLS_IN_A_ROUND.min(wanted - kills) {
            kills += usize::from(is_killed(stage, dice.up_to(span)));
        }
        // What the last one left alive is gone on with.
        stage.first().work();
        nothing_lives(stage);
        let unfinished: Vec<_> = stage.tasks().into_iter().filter(|task| task.status() != "done").collect();
        assert!(unfinished.is_empty(), "after {kills} kills: {unfinished:?}");
    }
    check(stage);
    assert_eq!(stage.tasks().len(), tasks);
    println!("{kills} kills, {tasks} tasks, each done once");
}

/// Starts a worker and kills it; whether it was still alive.
fn is_killed(stage: &Stage, after: Duration) -> bool {
    let mut worker = stage.first().start_work(&[]);
    std::thread::sleep(after);
    let lives = worker.try_wait().unwrap().is_none();
    worker.kill().unwrap();
    worker.wait().unwrap();
    lives
}
