//! SIGKILL at every moment of a task's life.

use std::os::unix::process::ExitStatusExt;

use rehearsal_core::flow::{Flow, State};
use rehearsal_engine::Moment;

use crate::checker::{check, nothing_lives};
use crate::stage::{Stage, server, told};

/// Honoured by the program for this test alone.
const DIE_AT: &str = "REHEARSAL_DIE_AT";

/// A place to die at, and whose run it is.
#[derive(Debug)]
struct Place {
    at: String,
    /// Whether the implementer's part is done before.
    in_review: bool,
}

/// All moments of a run, for both agents; all moments of each step; and the end.
fn places() -> Vec<Place> {
    let flow = Flow::shipped("pull-request").unwrap();
    let mut places = Vec::new();
    for moment in Moment::ALL {
        let name = moment.as_str();
        match moment {
            Moment::StepBegun | Moment::StepActed | Moment::StepDone => {
                for state in flow.states.values() {
                    let State::Work { steps, .. } = state else { continue };
                    places.extend(
                        steps
                            .iter()
                            .map(|step| Place { at: format!("{name}:{}", step.name()), in_review: false }),
                    );
                }
            }
            Moment::Ended => places.push(Place { at: name.to_owned(), in_review: false }),
            _ => places.extend([false, true].map(|in_review| Place { at: name.to_owned(), in_review })),
        }
    }
    places
}

#[test]
fn a_worker_that_is_killed_at_any_moment_of_a_task_loses_nothing_and_doubles_nothing() {
    die_everywhere(&Stage::new(1, None));
}

#[test]
fn the_same_on_a_server() {
    let Some((_server, url)) = server() else { return };
    die_everywhere(&Stage::new(1, Some(url)));
}

fn die_everywhere(stage: &Stage) {
    let places = places();
    // 5 of a run for each of 2 agents, 3 of each of 7 steps, and the end.
    assert_eq!(places.len(), 2 * 5 + 3 * 7 + 1, "{places:?}");
    for place in &places {
        stage.add_tasks("pull-request", std::iter::once(format!("die at {place:?}")));
        if place.in_review {
            stage.first().succeed(&["work", "--until-idle", "--agent", "implementer"]);
        }
        let died = stage.first().command(&["work", "--until-idle"]).env(DIE_AT, &place.at).output().unwrap();
        assert_eq!(died.status.signal(), Some(9), "{place:?}: {}", told(&died.stderr));
        nothing_lives(stage);
        stage.first().work();
        let unfinished: Vec<_> = stage.tasks().into_iter().filter(|task| task.status() != "done").collect();
        assert!(unfinished.is_empty(), "after a death at {place:?}: {unfinished:?}");
    }
    check(stage);
    assert_eq!(stage.tasks().len(), places.len());
}

#[test]
fn a_moment_that_there_is_not_is_an_error() {
    let stage = Stage::new(1, None);
    let output = stage.first().command(&["work", "--until-idle"]).env(DIE_AT, "lunch").output().unwrap();
    let said = told(&output.stderr);
    assert!(said.contains("error: REHEARSAL_DIE_AT: there is no moment `lunch`"), "{said}");
    assert_eq!(output.status.code(), Some(2));
}
