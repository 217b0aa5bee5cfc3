//! What lands is what was tested, whoever else lands meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::{NewTask, Outcome};
use rehearsal_engine::WorkEvent;

use crate::studio::{Studio, commit_all, git, play, push_to_main, writes};

/// An implementer that writes one file for each task, named after it.
fn one_file_each(text: impl Fn(&str) -> String + Send + Sync + 'static) -> ScriptedAgent {
    ScriptedAgent::new().with_handler(move |request| {
        let (task, text) = (request.task.to_string(), text(request.task.as_str()));
        ScriptedRun::of(Outcome::Done).effect(move |request| {
            fs_err::write(request.working_dir.join(format!("{task}.txt")), &text).unwrap();
            commit_all(&request.working_dir, &format!("work of {task}"));
        })
    })
}

#[test]
fn a_conflict_goes_back_to_its_own_task_and_says_with_what() {
    play(async |studio| {
        let directory = studio.root().parent().unwrap().to_owned();
        let implementer = studio.agent(
            "implementer",
            ScriptedAgent::new()
                .then(writes("a.txt", "mine\n").effect(move |request| {
                    fs_err::write(request.working_dir.join("a.txt"), "mine\n").unwrap();
                    commit_all(&request.working_dir, "write a.txt");
                    push_to_main(&directory, "a.txt", "theirs\n");
                }))
                .then(ScriptedRun::of(Outcome::Done).effect(|request| {
                    // What the prompt asks for: onto the new base, both changes kept.
                    git(&request.working_dir, &["fetch", "--quiet", "origin", "main"]);
                    git(&request.working_dir, &["reset", "--quiet", "--hard", "FETCH_HEAD"]);
                    fs_err::write(request.working_dir.join("a.txt"), "theirs\nmine\n").unwrap();
                    commit_all(&request.working_dir, "write a.txt too");
                })),
        );
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!(studio.way_of("t1")[0], "incoming -> incoming");
        implementer
            .assert_prompt_contains(1, "<feedback from=\"rebase\">\nconflicts with the base in a.txt (at ");
        implementer.assert_prompt_contains(1, "The base branch `main` has moved");
        assert_eq!(studio.status("t1").await, "done");
        assert_eq!(studio.on_main("a.txt"), "theirs\nmine\n");
        assert!(!studio.task("t1").await.delivery.needs_rebase);
    });
}

#[test]
fn a_base_that_moved_is_merged_with_and_tested_as_a_whole() {
    play(async |studio| {
        studio.agent("implementer", ScriptedAgent::new().then(writes("b.txt", "two\n")));
        let directory = studio.root().parent().unwrap().to_owned();
        studio.agent(
            "gatekeeper",
            ScriptedAgent::new().then(ScriptedRun::of(Outcome::Approved).effect(move |_| {
                push_to_main(&directory, "c.txt", "meanwhile\n");
            })),
        );
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!(studio.status("t1").await, "done");
        assert_eq!(
            (studio.on_main("b.txt"), studio.on_main("c.txt")),
            ("two\n".into(), "meanwhile\n".into())
        );
    });
}

#[test]
fn what_is_green_alone_and_red_together_does_not_land() {
    play(async |studio| {
        // Both files together break the check; each alone is fine.
        let check = "! { grep -q left *.txt && grep -q right *.txt; }\n";
        studio.someone_pushes("check.sh", check);
        studio.agent("implementer", ScriptedAgent::new().with_handler(|_| writes("b.txt", "left\n")));
        let directory = studio.root().parent().unwrap().to_owned();
        studio.agent(
            "gatekeeper",
            ScriptedAgent::new().then(ScriptedRun::of(Outcome::Approved).effect(move |_| {
                push_to_main(&directory, "c.txt", "right\n");
            })),
        );
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!(studio.way_of("t1")[1], "provisional -> incoming");
        let failed = studio
            .told()
            .into_iter()
            .any(|event| matches!(event, WorkEvent::StepFailed { step, .. } if step == "merge_pr"));
        assert!(failed, "the gate on the merged tree was red");
        let names = git(&studio.remote(), &["ls-tree", "--name-only", "main"]);
        assert!(!names.contains("b.txt"), "{names}");
        assert_eq!(studio.status("t1").await, "failed", "rebased onto the other it stays red");
    });
}

async fn all_done(studio: &Studio, count: usize) {
    for number in 0..count {
        assert_eq!(studio.status(&format!("t{number}")).await, "done");
    }
}

#[test]
fn many_at_once_all_land_and_each_once() {
    play(async |studio| {
        studio.at_once = 6;
        studio.agent("implementer", one_file_each(|task| format!("{task}\n")));
        studio.approving();
        for number in 0..6 {
            studio.add(&format!("t{number}"), "pull-request", NewTask::default()).await;
        }
        studio.work().await;
        all_done(studio, 6).await;
        let mut landed = studio.landed();
        landed.sort();
        assert_eq!(
            landed,
            ["begin", "work of t0", "work of t1", "work of t2", "work of t3", "work of t4", "work of t5"]
        );
    });
}

#[test]
fn in_a_batch_only_the_guilty_one_is_sent_back() {
    play(async |studio| {
        studio.at_once = 4;
        // t2 is green where it was made, and red where the file `rule.txt` is, which lands before it.
        studio.someone_pushes("check.sh", "test ! -f rule.txt || ! grep -q t2 t2.txt\n");
        let directory = studio.root().parent().unwrap().to_owned();
        studio.agent("implementer", one_file_each(|task| format!("{task}\n")));
        let reviews = Arc::new(AtomicUsize::new(0));
        studio.agent(
            "gatekeeper",
            ScriptedAgent::new().with_handler(move |_| {
                let directory = directory.clone();
                let first = reviews.fetch_add(1, Ordering::SeqCst) == 0;
                ScriptedRun::of(Outcome::Approved).effect(move |_| {
                    if first {
                        push_to_main(&directory, "rule.txt", "no t2\n");
                    }
                })
            }),
        );
        for number in 0..4 {
            studio.add(&format!("t{number}"), "pull-request", NewTask::default()).await;
        }
        studio.work().await;
        for number in [0, 1, 3] {
            assert_eq!(studio.status(&format!("t{number}")).await, "done");
        }
        assert_eq!(studio.status("t2").await, "failed");
        let names = git(&studio.remote(), &["ls-tree", "--name-only", "main"]);
        assert!(names.contains("t0.txt") && names.contains("t3.txt") && !names.contains("t2.txt"), "{names}");
    });
}
