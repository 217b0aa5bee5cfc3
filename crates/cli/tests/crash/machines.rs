//! Many machines with one server: workers are killed, and the server with them.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rehearsal_core::Task;

use crate::checker::{check, nothing_lives};
use crate::dice::{Dice, seed};
use crate::processes::FOR_EVER;
use crate::random::from_variable;
use crate::stage::{Machine, Stage, server, wait_for};

/// The long form: `REHEARSAL_MACHINES=8 REHEARSAL_TASKS=2000 cargo test -p rehearsal --test crash machines`.
const MACHINES: (&str, usize) = ("REHEARSAL_MACHINES", 4);
const TASKS: (&str, usize) = ("REHEARSAL_TASKS", 60);
/// One task in so many goes out as a pull request.
const ONE_IN: usize = 6;
/// One of the machines is hit whenever so many tasks more are done, and a moment later.
const TASKS_BETWEEN_KILLS: u64 = 5;
const A_MOMENT: Duration = Duration::from_secs(1);
/// The server crashes after so many of them.
const KILLS_BETWEEN_CRASHES: u64 = 4;
/// Nothing that is done takes so long.
const WITHOUT_PROGRESS: Duration = Duration::from_mins(4);

/// The worker of a machine, which is started again whenever it is gone.
struct Post<'a> {
    machine: &'a Machine,
    worker: Child,
}

impl<'a> Post<'a> {
    fn new(machine: &'a Machine) -> Self {
        Self { machine, worker: machine.start_work(&["--workers", "2"]) }
    }

    fn kill(&mut self) {
        self.worker.kill().unwrap();
        self.worker.wait().unwrap();
        *self = Self::new(self.machine);
    }

    /// One that has nothing to do has ended well, also where a task was given up.
    fn is_at_work(&mut self) -> bool {
        let Some(status) = self.worker.try_wait().unwrap() else { return true };
        assert!(is_idle(status), "a worker gave up: {status}\n{}", self.machine.said());
        false
    }
}

impl Drop for Post<'_> {
    /// A test that fails leaves no worker behind.
    fn drop(&mut self) {
        let _ = self.worker.kill();
        let _ = self.worker.wait();
    }
}

#[test]
fn many_machines_do_each_task_once_while_workers_and_their_server_are_killed() {
    let Some((mut server, url)) = server() else { return };
    let (machines, tasks) = (from_variable(MACHINES.0, MACHINES.1), from_variable(TASKS.0, TASKS.1));
    let mut dice = Dice::new(seed());
    let stage = Stage::new(machines, Some(url));
    stage.add_tasks("pull-request", (0..tasks / ONE_IN).map(|number| format!("change {number}")));
    stage.add_tasks("note", (tasks / ONE_IN..tasks).map(|number| format!("note {number}")));
    let mut posts: Vec<Post<'_>> = stage.machines.iter().map(Post::new).collect();
    let (mut kills, mut crashes) = (0, 0);
    while is_more_done(&stage, &mut posts, (kills + 1) * TASKS_BETWEEN_KILLS) {
        std::thread::sleep(dice.up_to(A_MOMENT));
        let hit = usize::try_from(dice.below(machines as u64)).unwrap();
        posts[hit].kill();
        kills += 1;
        if kills % KILLS_BETWEEN_CRASHES == 0 {
            server.crash_and_restart().unwrap();
            crashes += 1;
        }
    }
    let deadline = Instant::now() + FOR_EVER * 3;
    while posts.iter_mut().any(Post::is_at_work) {
        assert!(Instant::now() < deadline, "a worker does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    nothing_lives(&stage);
    // What the last dead left behind on each machine.
    for machine in &stage.machines {
        let ended = machine.run(&["work", "--until-idle"]);
        assert!(is_idle(ended.status), "{ended:?}");
    }
    let given_up = begin_the_given_up_anew(&stage);
    check(&stage);
    assert_eq!(stage.tasks().len(), tasks);
    println!(
        "{machines} machines, {tasks} tasks, {kills} workers killed, {crashes} crashes of the server, \
         {given_up} tasks given up and begun anew"
    );
}

/// Whether a worker ended because there was nothing more to do: nothing at all, or nothing without a person.
fn is_idle(status: ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 7))
}

/// A task that loses more workers in a row than one should is given up, as if it had killed them: by chance that happens
/// here to one in a thousand. How many.
fn begin_the_given_up_anew(stage: &Stage) -> usize {
    let is_given_up = |task: &Task| {
        let last = task.feedback.as_ref();
        let is_stuck = matches!(task.status(), "failed" | "blocked");
        is_stuck && last.is_some_and(|last| last.text.starts_with("its worker was lost "))
    };
    let given_up: Vec<Task> = stage.tasks().into_iter().filter(is_given_up).collect();
    let is_stuck = |task: &&Task| task.status() != "done" && !is_given_up(task);
    let stuck: Vec<Task> = stage.tasks().iter().filter(is_stuck).cloned().collect();
    assert!(stuck.is_empty(), "neither done nor given up: {stuck:#?}");
    for task in &given_up {
        // Steps that may have done their work go on; an agent's work begins anew.
        let how = if task.status() == "blocked" { "unblock" } else { "retry" };
        stage.first().succeed(&["task", how, task.id.as_str()]);
    }
    // On each machine: where it was given up there is still a place for it.
    if !given_up.is_empty() {
        stage.machines.iter().for_each(Machine::work);
    }
    given_up.len()
}

/// Waits until so many tasks are done. False: a worker finds nothing more to do.
fn is_more_done(stage: &Stage, posts: &mut [Post<'_>], wanted: u64) -> bool {
    let deadline = Instant::now() + WITHOUT_PROGRESS;
    while posts.iter_mut().all(Post::is_at_work) {
        if wait_for(async { stage.store().await.count_tasks(None).await.unwrap().done }) >= wanted {
            return true;
        }
        assert!(Instant::now() < deadline, "nothing happens:\n{}", stage.first().said());
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}
