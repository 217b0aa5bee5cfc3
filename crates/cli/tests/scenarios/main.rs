//! The scenarios of the scheduler, each played by the product's own runner.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]

mod face;
mod stage;

use std::collections::BTreeMap;

use stage::{Stage, data};

/// One test for each scenario of a file, and one that none of them was forgotten.
macro_rules! scenarios {
    ($file:ident { $($name:ident)* }) => {
        mod $file {
            use super::{check_names, play};

            #[test]
            fn none_is_forgotten() {
                check_names(stringify!($file), &[$(stringify!($name)),*]);
            }

            $(
                #[test]
                fn $name() {
                    play(stringify!($file), stringify!($name), &[]);
                }
            )*
        }
    };
}

fn play(file: &str, name: &str, more: &[&str]) {
    let stage = Stage::new();
    let (path, name) = (data(file), name.replace('_', "-"));
    let args = [&["rehearse", path.as_str(), "--filter", &name, "--trace"], more].concat();
    let played = stage.run(&args);
    assert_eq!(played.code, 0, "{}{}", played.stdout, played.stderr);
    assert!(played.stdout.starts_with(&format!("ok     {name}  ")), "{}", played.stdout);
}

fn check_names(file: &str, tested: &[&str]) {
    let text = std::fs::read_to_string(data(file)).unwrap();
    let written: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("name: "))
        .map(|name| name.replace('-', "_"))
        .collect();
    assert_eq!(written, tested);
}

scenarios!(matrix {
    m01_happy_path
    m02_agent_fails
    m03_agent_crashes
    m04_gatekeeper_rejects
    m05_pull_request_conflicts
    m05b_forge_says_conflicting
    m06_merge_fails
    m07_push_fails
    m08_tests_fail
    m09_no_commits
    m10_lease_timeout
    m11_needs_continuation
    m12_rejection_and_conflict
    m13_rejected_three_times
});

scenarios!(agents {
    crash_before_commits
    crash_after_commits
    crash_until_given_up
    empty_output
    broken_json
    non_zero_exit_with_a_good_result
    agent_hangs
    agent_takes_too_long
    agent_ignores_sigterm
    agent_leaves_children
    agent_writes_outside
    dirty_tree_left_behind
    floods_and_broken_text
    budget_reached
    reviewer_crashes
    reviewer_unparseable
    reviewer_writes
});

scenarios!(limits {
    rate_limit_with_a_time
    rate_limit_without_a_time
    quota_until_tomorrow
    overloaded_for_a_moment
    auth_error_stops_the_line
    line_goes_on_after_it_was_mended
    missing_binary
    interval_between_runs
});

scenarios!(git {
    remote_gone_stops_the_line
    non_fast_forward
    new_commits_after_a_rejection_are_pushed
    pull_request_exists
    pull_request_cannot_be_made
    server_fails_after_it_made_the_pull_request
    checks_pending_then_red_then_green
    checks_unreadable
    base_branch_red
    checks_where_nobody_checks
});

scenarios!(workers {
    lease_expires_with_a_dead_worker
    short_pause_loses_nothing
    laptop_sleeps
    two_workers_race
    result_handled_once
    killed_when_claimed
    killed_when_prepared
    killed_when_a_run_started
    killed_when_a_run_ended
    killed_after_every_step
    killed_before_every_step
    killed_at_the_end
    a_task_that_kills_its_workers
    a_step_that_loses_its_workers
    drain_and_go_on
});

scenarios!(people {
    dependency_chain
    dependency_cycle
    approved_by_a_person
    rejected_by_a_person
    cancelled_while_an_agent_works
    edited_before_the_next_run
    paused_and_resumed
    overlapping_touches
});

scenarios!(stores {
    store_restarts
    store_restarts_under_a_working_agent
    disk_full_for_the_store
    disk_full_for_the_agents
});

scenarios!(crew {
    the_crew_makes_a_test_green
    a_tool_that_fails_is_called_again_in_another_way
    a_model_that_answers_junk_or_is_cut_or_limited_is_asked_again
    work_that_does_not_pass_its_tests_goes_back_to_the_crew
});

scenarios!(plan {
    search_then_code
    two_searches_then_code
    many_files_are_reviewed_and_checked
    a_rejected_change_is_mended_and_reviewed_again
    after_the_second_mending_a_person_looks
    a_failed_task_stops_only_what_depends_on_it
    search_then_code_then_test
    a_single_harmless_file_needs_nobody_else
    a_user_says_what_is_risky
    work_that_changes_nothing_is_not_reviewed
});

#[test]
fn the_matrix_holds_with_three_workers() {
    let stage = Stage::new();
    let path = data("matrix");
    let played = stage.run(&["rehearse", &path, "--workers", "3", "--jobs", "2"]);
    assert_eq!(played.code, 0, "{}{}", played.stdout, played.stderr);
    assert!(played.stdout.contains("\n14 passed, none failed"), "{}", played.stdout);
}

/// The logs of the scenarios of a file, by their names.
fn logs(stage: &Stage, file: &str, place: &str, more: &[&str]) -> BTreeMap<String, String> {
    let path = data(file);
    let played = stage.run(&[&["rehearse", &path, "--keep", place, "--jobs", "2"], more].concat());
    assert_eq!(played.code, 0, "{}{}", played.stdout, played.stderr);
    let kept = std::fs::read_dir(stage.path().join(place)).unwrap();
    kept.map(|kept| {
        let kept = kept.unwrap();
        let log = std::fs::read_to_string(kept.path().join("log.jsonl")).unwrap();
        (kept.file_name().into_string().unwrap(), log)
    })
    .collect()
}

/// One test for each file: the same scenario with the same seed has the same log.
macro_rules! the_same_log_twice {
    ($($file:ident)*) => {
        mod the_same_log_twice {
            $(
                #[test]
                fn $file() {
                    super::check_logs(stringify!($file));
                }
            )*
        }
    };
}

the_same_log_twice! { agents crew git limits matrix people plan stores workers }

fn check_logs(file: &str) {
    let stage = Stage::new();
    let (first, second) = (logs(&stage, file, "first", &[]), logs(&stage, file, "second", &[]));
    assert!(!first.is_empty());
    for (name, log) in &first {
        for (first, second) in log.lines().zip(second[name].lines()) {
            assert_eq!(first, second, "{name}");
        }
        assert_eq!(*log, second[name], "{name}");
    }
}

#[test]
fn another_seed_is_another_story() {
    let stage = Stage::new();
    let log = |seed: &str| {
        let more = ["--filter", "two-workers-race", "--seed", seed];
        logs(&stage, "workers", seed, &more)["two-workers-race"].clone()
    };
    let (one, other) = (log("11"), log("12"));
    assert!(one.lines().count() > 30, "{one}");
    assert_ne!(one, other);
}

/// Whole files at a time: each needs a server of its own, and a server takes longer to start than a scenario.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn play_on_postgres(file: &str) {
    let played = Stage::new().run(&["rehearse", &data(file), "--store", "postgres"]);
    if played.stderr.contains("PostgreSQL is not installed") {
        eprintln!("left out: PostgreSQL is not installed");
        return;
    }
    assert_eq!(played.code, 0, "{}{}", played.stdout, played.stderr);
}

macro_rules! on_postgres {
    ($($file:ident)*) => {
        mod on_postgres {
            $(
                #[test]
                fn $file() {
                    super::play_on_postgres(stringify!($file));
                }
            )*
        }
    };
}

on_postgres! { agents git limits matrix people stores workers }
