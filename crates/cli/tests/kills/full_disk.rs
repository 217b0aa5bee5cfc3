//! No space left for the state.

use crate::ledger::Ledger;
use crate::small_disk::SmallDisk;
use crate::stage::{DILIGENT, SESSION, Stage, told};

/// A stage whose state lives on a small disk; none where one may not mount.
fn on_a_small_disk(script: &str) -> Option<(Stage, SmallDisk)> {
    let stage = Stage::new(script);
    fs_err::remove_dir_all(stage.state_dir()).unwrap();
    fs_err::create_dir(stage.state_dir()).unwrap();
    stage.forget_store();
    let disk = SmallDisk::mount(stage.state_dir(), "2m")?;
    stage.succeed(&["session", "new", SESSION]);
    stage.add_tasks(&["one".to_owned(), "two".to_owned()]);
    Some((stage, disk))
}

/// A loop that has no room says so, and ends.
fn runs_out_of_space(stage: &Stage) {
    let output = stage.rehearsal(&["run", SESSION]);
    let said = told(&output.stderr);
    assert!(said.to_lowercase().contains("no space left"), "{said}");
    assert!(said.contains("hint: free some space and run the command again; nothing is lost"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
    stage.until_nothing_lives();
}

/// With space again, everything is as it was, and the tasks get done.
fn goes_on(stage: &Stage, before: &Ledger) {
    Ledger::read(&stage.state_dir()).assert_continues(before);
    stage.succeed(&["run", SESSION]);
    let after = Ledger::read(&stage.state_dir());
    after.assert_continues(before);
    after.assert_each_thing_happened_once();
    assert!(after.tasks.iter().all(|task| task.attempts == 1), "a full disk costs no attempt");
}

#[test]
fn a_full_disk_is_told_loses_nothing_and_is_over_when_there_is_space() {
    let Some((stage, disk)) = on_a_small_disk(DILIGENT) else { return };
    stage.succeed(&["run", SESSION, "--iterations", "1"]);
    let before = Ledger::read(&stage.state_dir());
    disk.fill();
    runs_out_of_space(&stage);
    disk.free();
    goes_on(&stage, &before);
}

#[test]
fn an_agent_whose_output_fills_the_disk_is_stopped_and_costs_its_task_nothing() {
    let flooding = "run:\n  - flood: { megabytes: 8, newline: true }\n  - hang\n";
    let Some((stage, _disk)) = on_a_small_disk(flooding) else { return };
    let before = Ledger::read(&stage.state_dir());
    runs_out_of_space(&stage);
    for dir in stage.run_dirs() {
        fs_err::remove_file(dir.join("stdout.log")).unwrap();
    }
    stage.play(DILIGENT);
    goes_on(&stage, &before);
}
