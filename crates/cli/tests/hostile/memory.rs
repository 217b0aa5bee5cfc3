//! A line of a gigabyte.

use crate::scene::{MOST_MEMORY, SESSION, Scene};

#[test]
fn a_recorded_line_of_a_gigabyte_is_explained_in_little_memory() {
    let scene = Scene::new();
    for driver in ["claude", "command"] {
        let explain = ["agent", "explain", driver, "--stdout", "-", "--exit", "0"];
        let said = scene.rehearsal_reading(&explain, &vec![b'x'; 1 << 20], 1_000);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.peak_memory < MOST_MEMORY, "{driver}: {} kB", said.peak_memory);
    }
}

#[test]
fn an_agent_that_prints_a_gigabyte_without_a_newline_ends_with_an_outcome() {
    let scene = Scene::playing("run:\n  - flood: { megabytes: 1000, newline: false }\n  - say: Done.\n");
    let said = scene.rehearsal(&["run", SESSION, "--iterations", "1"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.peak_memory < MOST_MEMORY, "{} kB", said.peak_memory);
    assert!(said.err.contains("/stdout.log` was cut at 256 MiB: the agent wrote more"), "{}", said.err);
    assert!(said.err.contains("    no_changes in "), "{}", said.err);
}
