//! The store on a PostgreSQL server: `store: postgres://…` in the configuration is all it takes.

use rehearsal_store::Durability;
use rehearsal_store::scratch::{Scratch, ScratchError};

use crate::env::TestEnv;
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

/// An empty database on a server; its address.
fn database(server: &Scratch) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(server.database()).unwrap()
}

#[test]
fn tasks_live_on_a_server_if_the_configuration_says_so() {
    let Some(server) = server() else { return };
    let url = database(&server);
    let env = a_team().config(&format!("store: {url}")).task_of("pull-request", "Say hello", &[]);
    let (one, two) = (env.start(&["work", "--until-idle"]), env.start(&["work", "--until-idle"]));
    one.finish().ends_with(0);
    two.finish().ends_with(0);
    assert_eq!(env.task_now(1)["status"], "done");
    assert_eq!(env.outcomes(), ["done", "approved"]);
    env.run(&["why", &env.task_id(1)]).ends_with(0).says("it is done");
    env.run(&["doctor", "--store"]).ends_with(0).says("every task is what its events say");
    assert_eq!(env.git(&["status", "--short"]), "");
    let state: Vec<String> = std::fs::read_dir(env.state_dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("db"))
        .collect();
    assert_eq!(state, Vec::<String>::new(), "there is no second store");
}

#[test]
fn a_worker_that_begins_before_its_server_waits_for_it_and_says_so() {
    let Some(mut server) = server() else { return };
    let url = database(&server);
    let env = a_team().config(&format!("store: {url}")).task_of("pull-request", "Say hello", &[]);
    server.crash().unwrap();
    let working = env.start(&["work", "--until-idle"]);
    working.until_it_says("retrying until it answers");
    server.restart().unwrap();
    working.finish().ends_with(0).says("note: the database answers again").says("1 task done");
    assert_eq!(env.outcomes(), ["done", "approved"]);
    env.must(&["doctor", "--store"]);
}

/// What an agent hears that looks at the tasks and reports.
fn heard_by_an_agent(env: TestEnv) -> (TestEnv, String) {
    let there = env.scratch.join("agent");
    let looks = format!(
        "(rehearsal task show $TASK_ID; rehearsal task list --json; rehearsal task done $TASK_ID; \
         rehearsal session progress halfway) > {there}/heard 2>&1; touch hello.txt"
    );
    let script = format!(
        "run: [{{ run: {{ command: '{looks}' }} }}, {{ commit: {{ message: Say hi }} }}, {{ say: done }}]"
    );
    let env = env.agent_script(&script).session("greet").task_of(
        "pull-request",
        "Say hello",
        &["--session", "greet"],
    );
    env.run(&["work", "--until-idle"]).ends_with(0);
    let heard = std::fs::read_to_string(there.join("heard")).unwrap();
    (env, heard)
}

#[test]
fn an_agent_sees_the_tasks_of_a_server_that_the_repository_names() {
    let Some(server) = server() else { return };
    let url = database(&server);
    let (env, heard) = heard_by_an_agent(a_team().config(&format!("store: {url}")));
    assert!(heard.contains("  Say hello\nworking (run "), "{heard}");
    assert!(heard.contains("\"title\":\"Say hello\""), "{heard}");
    assert!(
        heard.contains(&format!("noted: {} is done; it counts when the run is over", env.task_id(1))),
        "{heard}"
    );
}

#[test]
fn an_agent_that_is_not_given_the_address_is_told_so_and_reports_all_the_same() {
    let Some(server) = server() else { return };
    let url = database(&server);
    let (env, heard) = heard_by_an_agent(a_team().var("REHEARSAL_STORE", &url));
    insta::assert_snapshot!(env.stable().text(&heard), @r#"
    error: agents do not see the tasks of run `[RUN-01]`
    hint: what you report is taken all the same: `rehearsal task done ID`, `rehearsal task block ID --reason …`, `rehearsal session progress TEXT`
    error: agents do not see the tasks of run `[RUN-01]`
    hint: what you report is taken all the same: `rehearsal task done ID`, `rehearsal task block ID --reason …`, `rehearsal session progress TEXT`
    {"schema_version":1,"error":{"code":2,"message":"agents do not see the tasks of run `[RUN-01]`","place":null,"causes":[],"hints":["what you report is taken all the same: `rehearsal task done ID`, `rehearsal task block ID --reason …`, `rehearsal session progress TEXT`"]}}
    noted: [TASK-1] is done; it is checked and counts when the run is over
    noted; it goes to the journal when the run is over
    "#);
    assert!(!env.state_dir().join("rehearsal.db").exists(), "there is no second store");
    assert_eq!(env.json(&["session", "progress"])["progress"][0]["text"], "halfway");
}
