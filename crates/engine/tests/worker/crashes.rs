//! A worker that dies at any moment: the next one comes to the same end, and nothing happens twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::{Fence, NewTask, Outcome, Standing, TaskId};
use rehearsal_engine::{Moment, Moments, Reaction, Undisturbed, WorkError, WorkEvent, Workspace};

use crate::studio::{Studio, commit_all, git, play};

/// Dies once, at one moment.
struct DiesAt {
    moment: Moment,
    step: Option<String>,
    died: AtomicBool,
}

#[async_trait]
impl Moments for DiesAt {
    async fn reached(&self, moment: Moment, _task: &TaskId, step: Option<&str>) -> Reaction {
        let here = moment == self.moment && step == self.step.as_deref();
        if here && !self.died.swap(true, Ordering::SeqCst) { Reaction::Die } else { Reaction::GoOn }
    }
}

/// Writes down all moments that there are.
#[derive(Default)]
struct Notes(Mutex<Vec<(Moment, Option<String>)>>);

#[async_trait]
impl Moments for Notes {
    async fn reached(&self, moment: Moment, _task: &TaskId, step: Option<&str>) -> Reaction {
        let here = (moment, step.map(str::to_owned));
        let mut seen = self.0.lock().unwrap();
        if !seen.contains(&here) {
            seen.push(here);
        }
        Reaction::GoOn
    }
}

/// Agents that would do the same again: the second time there is nothing left to commit.
pub(crate) fn cast(studio: &mut Studio) {
    let implementer = ScriptedAgent::new().with_handler(|_| {
        ScriptedRun::of(Outcome::Done).effect(|request| {
            let file = request.working_dir.join("b.txt");
            if !file.exists() {
                fs_err::write(file, "two\n").unwrap();
                commit_all(&request.working_dir, "write b.txt");
            }
        })
    });
    studio.agent("implementer", implementer);
    studio.approving();
}

fn moments_of_a_whole_life() -> Vec<(Moment, Option<String>)> {
    let notes = Arc::new(Notes::default());
    play(async |studio| {
        cast(studio);
        studio.moments = Arc::clone(&notes) as _;
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!(studio.status("t1").await, "done");
    });
    notes.0.lock().unwrap().clone()
}

#[test]
fn death_at_any_moment_changes_nothing_but_the_hour() {
    let moments = moments_of_a_whole_life();
    // 5 of the run, 3 of each of the 7 steps, and the end.
    assert_eq!(moments.len(), 5 + 3 * 7 + 1, "{moments:?}");
    for (moment, step) in moments {
        let place = format!("{} {}", moment.as_str(), step.as_deref().unwrap_or(""));
        play(async |studio| {
            cast(studio);
            studio.moments = Arc::new(DiesAt { moment, step, died: AtomicBool::new(false) });
            studio.add("t1", "pull-request", NewTask::default()).await;
            let died = studio.try_work().await;
            assert!(matches!(died, Err(WorkError::Died)), "{place}: {died:?}");
            studio.leave_traces_of_death();
            studio.work().await;
            assert_eq!(studio.status("t1").await, "done", "{place}");
            assert_eq!(studio.landed(), ["write b.txt", "begin"], "{place}");
            let pull_requests =
                git(&studio.remote(), &["for-each-ref", "--format=%(refname)", "refs/rehearsal/pr"]);
            assert_eq!(pull_requests.trim(), "refs/rehearsal/pr/1", "{place}");
            let task = studio.task("t1").await;
            assert_eq!(task.rejections, 0, "{place}");
            let left = git(&studio.root(), &["worktree", "list", "--porcelain"]);
            let worktrees = left.lines().filter(|line| line.starts_with("worktree ")).count();
            assert!(worktrees <= 3, "{place}: {left}");
        });
    }
}

#[test]
fn a_task_that_kills_its_worker_again_and_again_is_given_up() {
    play(async |studio| {
        struct AlwaysDies;
        #[async_trait]
        impl Moments for AlwaysDies {
            async fn reached(&self, moment: Moment, _task: &TaskId, _step: Option<&str>) -> Reaction {
                if moment == Moment::RunStarted { Reaction::Die } else { Reaction::GoOn }
            }
        }
        cast(studio);
        studio.moments = Arc::new(AlwaysDies);
        studio.add("t1", "pull-request", NewTask::default()).await;
        for _ in 0..4 {
            assert!(matches!(studio.try_work().await, Err(WorkError::Died)));
            studio.leave_traces_of_death();
        }
        studio.work().await;
        let task = studio.task("t1").await;
        assert_eq!((task.status(), task.attempts), ("failed", 0));
        assert_eq!(task.feedback.unwrap().text, "its worker was lost 4 times");
    });
}

#[test]
fn the_checkout_of_a_gate_whose_worker_died_is_cleared_when_its_task_is_over() {
    play(async |studio| {
        cast(studio);
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        let Workspace::Worktrees { worktrees, .. } = studio.worker().await.workspace else { panic!() };
        let gate = TaskId::new("t1-gate").unwrap();
        let checkout = worktrees.prepare(&gate, Fence(1), "main").await.unwrap();
        fs_err::write(checkout.path.join("built.o"), "by the tests").unwrap();
        assert_eq!(worktrees.owners(), [gate]);
        studio.work().await;
        assert_eq!(worktrees.owners(), []);
        assert!(studio.warnings().is_empty(), "{:?}", studio.warnings());
    });
}

#[test]
fn the_next_worker_on_the_machine_goes_on_with_the_steps_that_the_dead_one_left() {
    for (moment, step) in [(Moment::ReportKept, None), (Moment::StepBegun, Some("push_branch"))] {
        play(async |studio| {
            cast(studio);
            let step = step.map(str::to_owned);
            studio.moments = Arc::new(DiesAt { moment, step, died: AtomicBool::new(false) });
            studio.add("t1", "pull-request", NewTask::default()).await;
            assert!(matches!(studio.try_work().await, Err(WorkError::Died)));
            studio.leave_traces_of_death();
            let left = studio.task("t1").await;
            studio.work().await;
            let adopted: Vec<_> = studio
                .told()
                .into_iter()
                .filter_map(|event| match event {
                    WorkEvent::Adopted { run, agent, .. } => Some((run, agent)),
                    _ => None,
                })
                .collect();
            let Standing::Claimed(claim) = left.standing else { panic!("it is not held") };
            assert_eq!(adopted, [(claim.run, None)]);
            assert_eq!(studio.status("t1").await, "done");
        });
    }
}

#[test]
fn steps_for_which_there_is_no_room_are_left_to_others() {
    play(async |studio| {
        let implementer = ScriptedAgent::new().with_handler(|_| {
            ScriptedRun::of(Outcome::Done).effect(|request| {
                fs_err::write(request.working_dir.join(format!("{}.txt", request.run)), "two\n").unwrap();
            })
        });
        studio.agent("implementer", implementer);
        studio.approving();
        studio.at_once = 2;
        studio.moments = Arc::new(DiesTogether(tokio::sync::Barrier::new(2)));
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.add("t2", "pull-request", NewTask::default()).await;
        assert!(matches!(studio.try_work().await, Err(WorkError::Died)));
        studio.leave_traces_of_death();
        (studio.at_once, studio.moments) = (1, Arc::new(Undisturbed));
        studio.work().await;
        let adopted = studio.told().into_iter().filter(|event| matches!(event, WorkEvent::Adopted { .. }));
        assert_eq!(adopted.count(), 1);
        assert_eq!([studio.status("t1").await, studio.status("t2").await], ["done", "done"]);
    });
}

/// Dies when two have come to their first step.
struct DiesTogether(tokio::sync::Barrier);

#[async_trait]
impl Moments for DiesTogether {
    async fn reached(&self, moment: Moment, _task: &TaskId, step: Option<&str>) -> Reaction {
        if (moment, step) != (Moment::StepBegun, Some("commit_leftovers")) {
            return Reaction::GoOn;
        }
        self.0.wait().await;
        Reaction::Die
    }
}
