//! A worker dies at any moment, and its machine with it: another one takes over, wherever the work was, and the first one comes
//! back. Whatever was done where, the work lands once, and it is the work that was tested.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::flow::{Flow, State};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{NewTask, Oid, Outcome, Run, Standing, TaskId};
use rehearsal_engine::{Moment, Moments, Reaction, Undisturbed, WorkError};
use rehearsal_store::{Change, RunQuery};

use crate::studio::{Studio, commit_all, git, play};

/// A moment, of a step or of a run in a state.
#[derive(Debug, Clone)]
struct Place {
    moment: Moment,
    step: Option<&'static str>,
}

/// All moments of a run, and all moments of each step.
fn places_of(flow: &Flow) -> Vec<Place> {
    let mut places = Vec::new();
    let steps = flow.states.values().flat_map(|state| match state {
        State::Work { steps, .. } => steps.iter().map(|step| Some(step.name())).collect(),
        State::Wait { .. } | State::End(_) => Vec::new(),
    });
    let steps: Vec<Option<&'static str>> = steps.collect();
    for moment in Moment::ALL {
        match moment {
            Moment::StepBegun | Moment::StepActed | Moment::StepDone => {
                places.extend(steps.iter().map(|step| Place { moment, step: *step }));
            }
            Moment::Ended => {}
            _ => places.push(Place { moment, step: None }),
        }
    }
    places
}

/// Dies the first time that a place is reached.
struct DiesAt {
    place: Place,
    is_dead: AtomicBool,
}

#[async_trait]
impl Moments for DiesAt {
    async fn reached(&self, moment: Moment, _task: &TaskId, step: Option<&str>) -> Reaction {
        let is_here = moment == self.place.moment && step == self.place.step;
        if is_here && !self.is_dead.swap(true, Ordering::SeqCst) { Reaction::Die } else { Reaction::GoOn }
    }
}

/// Works on a machine, which is lost at a place, if it comes to it.
async fn work_on(machine: &'static str, place: &Place, studio: &mut Studio) {
    studio.machine = machine;
    studio.moments = Arc::new(DiesAt { place: place.clone(), is_dead: AtomicBool::new(false) });
    match studio.try_work().await {
        Ok(_) => return,
        Err(error) => assert!(matches!(error, WorkError::Died), "{place:?}: {error}"),
    }
    let task = studio.task("t1").await;
    if let Standing::Claimed(claim) = &task.standing {
        let lose = TaskInput::Lose { stale: task.fence, of: claim.worker.clone() };
        studio.commit(vec![Change::ChangeTask { id: task.id, input: lose }]).await;
    }
}

/// The work of each run can be told from that of the others.
fn agents(studio: &mut Studio) {
    for role in ["implementer", "code"] {
        let agent = ScriptedAgent::new().with_handler(|request| {
            let run = request.run.to_string();
            ScriptedRun::of(Outcome::Done).effect(move |request| {
                fs_err::write(request.working_dir.join("b.txt"), format!("{run}\n")).unwrap();
                commit_all(&request.working_dir, "write b.txt");
            })
        });
        studio.agent(role, agent);
    }
    for role in ["gatekeeper", "review", "qa"] {
        let agent = ScriptedAgent::new().with_handler(|_| {
            ScriptedRun::of(Outcome::Approved).effect(|request| {
                assert!(request.working_dir.join("b.txt").exists(), "the reviewer sees the work");
            })
        });
        studio.agent(role, agent);
    }
}

fn die_everywhere(flow: &'static str, machines: &'static [&'static str]) {
    let places = places_of(&Flow::shipped(flow).unwrap());
    assert!(places.len() > 20, "{places:?}");
    for place in places {
        play(async |studio| {
            agents(studio);
            studio.add("t1", flow, NewTask { touches: vec!["b.txt".into()], ..NewTask::default() }).await;
            for machine in machines {
                work_on(machine, &place, studio).await;
            }
            // The other one goes on, and then the lost one is there again.
            studio.moments = Arc::new(Undisturbed);
            let lost = studio.machine;
            for machine in [if lost == "here" { "there" } else { "here" }, lost] {
                studio.machine = machine;
                studio.work().await;
            }
            let task = studio.task("t1").await;
            let told = format!("{place:?}: {:?} {:?} {:#?}", task.standing, task.feedback, studio.warnings());
            assert_eq!(task.status(), "done", "{told}");
            let merged = task.delivery.merged.unwrap();
            let remote = studio.remote();
            let tree = git(&remote, &["rev-parse", &format!("{merged}^{{tree}}")]);
            assert_eq!(Some(tree.trim()), task.delivery.tested_tree.as_ref().map(Oid::as_str), "{told}");
            assert_eq!(git(&remote, &["rev-parse", "main"]).trim(), merged.as_str(), "{told}");
            assert_eq!(studio.on_main("b.txt").trim(), newest_work(studio).await, "{told}");
            let requests = git(&remote, &["for-each-ref", "--format=%(refname)", "refs/rehearsal/pr"]);
            assert_eq!(requests.lines().count(), 1, "{told}");
        });
    }
}

/// What the last run wrote of which the store knows that it was done.
async fn newest_work(studio: &Studio) -> String {
    let runs = studio.store.runs(&RunQuery::default()).await.unwrap();
    let is_done = |run: &&Run| run.end.as_ref().is_some_and(|end| end.verdict.outcome == Outcome::Done);
    let newest = runs.iter().filter(is_done).max_by_key(|run| run.start.fence).unwrap();
    newest.start.id.to_string()
}

#[test]
fn another_machine_takes_over_at_any_moment() {
    die_everywhere("pull-request", &["here"]);
}

#[test]
fn and_is_lost_at_the_same_moment() {
    die_everywhere("pull-request", &["here", "there"]);
}

#[test]
fn the_same_with_a_plan() {
    die_everywhere("plan", &["here"]);
}

#[test]
fn the_same_with_a_plan_that_is_handed_back() {
    die_everywhere("plan", &["here", "there"]);
}
