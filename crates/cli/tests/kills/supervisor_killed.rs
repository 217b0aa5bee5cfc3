//! The agent's supervisor is killed or stopped, by others and by the agent itself.

use rustix::process::Signal;

use crate::ledger::Ledger;
use crate::processes::is_dead;
use crate::stage::{DILIGENT, SESSION, Stage, told};

/// Leaves a runaway, and hangs.
const HANGING: &str = "\
run:
  - spawn_child: { detach: true, ignore_sigterm: true, for: 10m, pid_file: child.pid }
  - hang
";

/// A stage where an agent hangs, and its loop.
fn hanging(args: &[&str]) -> (Stage, std::process::Child) {
    let stage = Stage::new(HANGING);
    stage.add_tasks(&["do it".to_owned()]);
    let child = stage.start_loop(args);
    stage.until_written("child.pid");
    (stage, child)
}

/// A good agent gets the task done that others were kept from.
fn goes_on(stage: &Stage) -> String {
    stage.play(DILIGENT);
    let output = stage.rehearsal(&["run", SESSION]);
    assert!(output.status.success(), "{}", told(&output.stderr));
    stage.until_nothing_lives();
    let ledger = Ledger::read(&stage.state_dir());
    ledger.assert_each_thing_happened_once();
    told(&output.stderr)
}

#[test]
fn when_the_supervisor_is_killed_the_agent_and_its_runaways_go_with_it() {
    let (stage, child) = hanging(&["--iterations", "1"]);
    stage.shim().signal(Signal::KILL);
    let output = child.wait_with_output().unwrap();
    let said = told(&output.stderr);
    assert!(
        said.contains("note: the run's supervisor was killed from outside; the agent died with it"),
        "{said}"
    );
    assert!(said.contains("note: ended processes that had outlived the agent: "), "{said}");
    assert!(said.contains("crashed: signal 9 (SIGKILL)"), "{said}");
    stage.until_nothing_lives();
    goes_on(&stage);
}

#[test]
fn a_runaway_without_any_mark_comes_to_the_loop_when_its_supervisor_is_killed() {
    let stage = Stage::new(
        "run:\n  - run: { command: 'setsid env -i /bin/sleep 600 >/dev/null 2>&1 </dev/null & echo $! > new.pid; mv new.pid child.pid' }\n  - hang\n",
    );
    stage.add_tasks(&["do it".to_owned()]);
    let child = stage.start_loop(&["--iterations", "1"]);
    stage.until_written("child.pid");
    let runaway: i32 = std::fs::read_to_string(stage.repo.join("child.pid")).unwrap().trim().parse().unwrap();
    assert!(!is_dead(runaway));
    stage.shim().signal(Signal::KILL);
    let output = child.wait_with_output().unwrap();
    assert!(is_dead(runaway), "{}", told(&output.stderr));
    goes_on(&stage);
}

#[test]
fn a_stopped_supervisor_wakes_up_when_the_loop_is_killed_and_ends_all() {
    let (stage, mut child) = hanging(&[]);
    stage.shim().signal(Signal::STOP);
    child.kill().unwrap();
    child.wait().unwrap();
    stage.until_nothing_lives();
    goes_on(&stage);
}

#[test]
fn what_survives_both_the_loop_and_the_supervisor_is_ended_by_the_next_run() {
    let (stage, mut child) = hanging(&[]);
    let cli = stage.processes().into_iter().find(|process| process.pid == i32::try_from(child.id()).unwrap());
    cli.unwrap().signal(Signal::STOP);
    stage.shim().signal(Signal::KILL);
    child.kill().unwrap();
    child.wait().unwrap();
    let said = goes_on(&stage);
    assert!(said.contains("were still alive and were ended: 1 (`rehearsal`)"), "{said}");
}

#[test]
fn an_agent_that_kills_its_supervisor_dies_with_it() {
    let stage = Stage::new(
        "run:\n  - spawn_child: { detach: true, ignore_sigterm: true, for: 10m }\n  \
         - run: { command: \"kill -KILL $(cut -d' ' -f4 /proc/$PPID/stat)\" }\n  - hang\n",
    );
    stage.add_tasks(&["do it".to_owned()]);
    let output = stage.rehearsal(&["run", SESSION, "--iterations", "1"]);
    let said = told(&output.stderr);
    assert!(said.contains("the run's supervisor was killed from outside"), "{said}");
    stage.until_nothing_lives();
    goes_on(&stage);
}

#[test]
fn a_supervisor_that_does_not_answer_is_replaced_when_the_time_is_up() {
    let (stage, child) = hanging(&["--iterations", "1", "--timeout", "2s"]);
    stage.shim().signal(Signal::STOP);
    let output = child.wait_with_output().unwrap();
    let said = told(&output.stderr);
    assert!(said.contains("timed_out: running for 2 s"), "{said}");
    stage.until_nothing_lives();
    goes_on(&stage);
}
