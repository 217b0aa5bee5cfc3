//! Everything through the real program, as a person or an agent calls it: one module a command or a story.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]

mod action;
mod affected;
mod agents;
mod answers;
mod browser;
mod cassettes;
mod check;
mod configuration;
mod crew;
mod crew_roles;
mod damaged_store;
mod env;
mod evals;
mod evals_asked;
mod evals_flows;
mod evals_imported;
mod evals_judged;
mod evals_mined;
mod evals_mutated;
mod evals_page;
mod evals_recorded;
mod evals_shipped;
mod evening;
mod exit_codes;
mod failures;
mod fallbacks;
mod flows_changed;
mod full_disk;
mod gc;
mod github;
mod help;
mod importing;
mod inside;
mod json;
mod lanes;
mod mcp;
mod meanwhile;
mod planned_crew;
mod planning;
mod planning_at_a_terminal;
mod prompt;
mod real_agents;
mod recorded_agents;
mod runaway;
mod running;
mod sandboxed_agents;
mod session_loop;
mod setting_up;
mod signals;
#[path = "../kills/small_disk.rs"]
mod small_disk;
mod stable;
mod stage;
mod stage_crowds;
mod stage_https;
mod staged_agents;
mod staged_faults;
mod staged_outcomes;
mod state;
mod tasks;
mod testing;
mod testing_confined;
mod testing_from;
mod testing_history;
mod testing_settings;
mod users_checkout;
mod why;
mod work;
mod work_forges;
mod work_limits;
mod work_people;
mod work_postgres;
mod work_signals;

#[test]
fn no_file_of_this_directory_is_forgotten() {
    let here = include_str!("main.rs");
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_some_and(|extension| extension == "rs") && name != "main" {
            let line = format!("mod {name};");
            assert!(here.lines().any(|known| known == line), "main.rs has no `{line}`");
        }
    }
}
