//! An agent whose lease runs out stands still, and goes on when it is prolonged.

use std::time::Duration;

use rehearsal_agent::{BootInstant, Lease};
use rehearsal_core::{Exit, Outcome};
use rehearsal_process::{Supervised, processes_of_run};

use crate::support::{Bench, FOR_EVER, eventually, launcher};

/// An agent, a child of it in a group of its own, and a grandchild: all of them have to stand still.
const FAMILY: &str = "setsid sh -c 'sleep 1000 & wait' & while test ! -f end; do sleep 0.01; done; exit 7";

/// The letters of the states of all processes of a run.
fn states(bench: &Bench) -> Vec<char> {
    let state = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    processes_of_run(&bench.run).iter().filter_map(|process| state(process.pid)).collect()
}

fn all_stopped(bench: &Bench) -> bool {
    let states = states(bench);
    // A shell whose child was stopped between its vfork and its exec waits for it, and cannot be stopped itself.
    states.len() >= 3 && states.contains(&'T') && states.iter().all(|state| matches!(state, 'T' | 'D'))
}

#[tokio::test]
async fn a_family_is_frozen_when_its_time_is_over_and_thawed_when_it_gets_more() {
    let bench = Bench::new();
    let mut process = Supervised::spawn(&launcher(), bench.spec(FAMILY)).await.unwrap();
    eventually("all are there", || states(&bench).len() >= 3);
    process.go_on_for(Duration::ZERO).await;
    eventually("all stand still", || all_stopped(&bench));
    process.go_on_for(FOR_EVER).await;
    eventually("all go on", || !states(&bench).contains(&'T'));
    std::fs::write(bench.work().join("end"), "").unwrap();
    assert_eq!(process.wait().await.exit, Exit::Code(7));
    assert_eq!(states(&bench), [], "and nothing is left of them");
}

#[tokio::test]
async fn a_frozen_agent_ends_when_it_is_told_to_and_with_its_worker() {
    let bench = Bench::new();
    let mut process = Supervised::spawn(&launcher(), bench.spec(FAMILY)).await.unwrap();
    eventually("all are there", || states(&bench).len() >= 3);
    process.go_on_for(Duration::ZERO).await;
    eventually("all stand still", || all_stopped(&bench));
    process.terminate(FOR_EVER).await;
    assert_eq!(process.wait().await.exit, Exit::Signal(15), "it was thawed, to end in peace");

    let mut process = Supervised::spawn(&launcher(), bench.spec(FAMILY)).await.unwrap();
    eventually("all are there", || states(&bench).len() >= 3);
    process.go_on_for(Duration::ZERO).await;
    eventually("all stand still", || all_stopped(&bench));
    drop(process);
    eventually("all are gone", || states(&bench).is_empty());
}

#[tokio::test]
async fn a_run_under_a_lease_is_frozen_by_itself_and_goes_on_when_the_lease_does() {
    let mut bench = Bench::new();
    let (keeper, lease) = Lease::new(BootInstant::now(), Duration::ZERO);
    bench.request.lease = Some(lease);
    let end = bench.work().join("end");
    let run = bench.run.clone();
    let watching = std::thread::spawn(move || {
        let stopped = || {
            let processes = processes_of_run(&run);
            let is = |pid: i32, state: &str| {
                std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default().contains(state)
            };
            // A shell whose child was stopped between its vfork and its exec waits for it, and cannot be stopped itself.
            let waits_or_stands = |pid| is(pid, ") T ") || is(pid, ") D ");
            processes.iter().any(|process| is(process.pid, ") T "))
                && processes.iter().all(|process| waits_or_stands(process.pid))
        };
        eventually("it stands still", stopped);
        std::fs::write(end, "").unwrap();
        keeper.prolonged(BootInstant::now(), FOR_EVER);
    });
    let report = bench.sh("while test ! -f end; do sleep 0.01; done; exit 3").await;
    watching.join().unwrap();
    assert_eq!(report.verdict.outcome, Outcome::crashed(Exit::Code(3)));
}
