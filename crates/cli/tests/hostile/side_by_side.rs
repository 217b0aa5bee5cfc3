//! Many processes write at once.

use crate::scene::{SESSION, Scene, watch};

const PROCESSES: usize = 10;
const TASKS_EACH: usize = 3;

#[test]
fn tasks_added_by_ten_processes_while_a_loop_runs_are_all_there() {
    let scene = Scene::playing("run:\n  - task_done: current\n  - say: Done.\n");
    let looping = scene.command(&["run", SESSION, "--iterations", "1000"]).spawn().unwrap();
    std::thread::scope(|scope| {
        for process in 0..PROCESSES {
            let scene = &scene;
            scope.spawn(move || {
                for task in 0..TASKS_EACH {
                    scene.succeed(&["task", "add", &format!("task {process}/{task}")]);
                }
            });
        }
    });
    let said = watch(looping);
    assert_eq!(said.code, Some(0), "{}", said.err);
    // The loop may have been through before the last ones came.
    scene.succeed(&["run", SESSION, "--iterations", "1000"]);
    let list = scene.succeed(&["task", "list", "--all", "--json"]);
    for process in 0..PROCESSES {
        for task in 0..TASKS_EACH {
            let title = format!("\"title\":\"task {process}/{task}\"");
            assert_eq!(list.matches(&title).count(), 1, "{title}");
        }
    }
    assert_eq!(list.matches("\"state\":\"done\"").count(), PROCESSES * TASKS_EACH + 1, "{list}");
    assert!(scene.succeed(&["doctor"]).contains("every task is what its events say"));
}
