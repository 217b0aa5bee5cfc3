//! The store on a PostgreSQL server: `store: postgres://…` in the configuration is all it takes.

use rehearsal_store::scratch::{Durability, Scratch, ScratchError};

use crate::work::a_team;

/// A server of this test's own; none where PostgreSQL is not installed, which is said aloud.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn server() -> Option<Scratch> {
    match Scratch::start(Durability::UntilPowerFails) {
        Ok(server) => Some(server),
        Err(error @ ScratchError::NotInstalled) => {
            eprintln!("left out: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn tasks_live_on_a_server_if_the_configuration_says_so() {
    let Some(server) = server() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = runtime.block_on(server.database()).unwrap();
    let env = a_team().config(&format!("store: {url}")).task_of("pull-request", "Say hello", &[]);
    let (one, two) = (env.start(&["work", "--until-idle"]), env.start(&["work", "--until-idle"]));
    one.finish().ends_with(0);
    two.finish().ends_with(0);
    assert_eq!(env.task_now(1)["status"], "done");
    assert_eq!(env.outcomes(), ["done", "approved"]);
    env.run(&["why", &env.task_id(1)]).ends_with(0).says("it is done");
    env.run(&["doctor", "--store"]).ends_with(0).says("every task is what its events say");
    assert_eq!(env.git(&["status", "--short"]), "");
    let state: Vec<String> = std::fs::read_dir(env.repo.join(".rehearsal/state"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("db"))
        .collect();
    assert_eq!(state, Vec::<String>::new(), "there is no second store");
}
