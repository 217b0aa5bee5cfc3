//! The store from outside: the same stories for every engine, then what only files and processes can show.
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]
#![expect(clippy::unwrap_used, reason = "what fails in a test shall fail loudly")]

mod bench;
mod crowd;
mod elsewhere;
mod files;
mod hammer;
mod many;
mod oracle;
mod scratch;
mod server;
mod stories;
mod wire;

/// Makes a test of each story. A story that is not listed is never used, and the compiler says so.
macro_rules! tests_of {
    ($engine:ident: $($module:ident { $($story:ident)* })*) => {
        mod $engine {
            $(mod $module {
                $(#[test]
                fn $story() {
                    crate::bench::play(crate::bench::$engine, crate::stories::$module::$story);
                })*
            })*
            #[test]
            fn random_changes_end_as_the_oracle_says() {
                crate::oracle::compare_with(crate::bench::$engine);
            }
            #[test]
            fn a_hundred_thousand_tasks_are_no_trouble() {
                crate::bench::play(crate::bench::$engine, crate::many::a_hundred_thousand_tasks);
            }
        }
    };
}

/// All stories, for an engine.
macro_rules! suite {
    ($engine:ident) => {
        tests_of! { $engine:
            commits {
                all_changes_are_made_or_none
                a_later_change_sees_the_earlier_ones
                no_word_is_taken_for_a_command
                every_change_leaves_one_event
                the_log_can_be_read_by_whom_it_is_about
                many_writers_queue_up
            }
            sessions {
                a_name_is_used_once
                a_slip_in_a_name_is_answered_with_the_name
                an_edit_changes_only_what_it_names
                sessions_come_oldest_first_with_their_tasks_counted
                a_journal_is_read_from_its_end
            }
            tasks {
                a_task_begins_where_its_flow_begins
                a_task_stays_with_the_version_of_its_flow
                an_id_is_given_once
                a_prefix_is_enough_if_it_is_unique
                a_whole_id_wins_over_longer_ones
                an_id_with_a_slip_is_answered_with_the_id
                lists_can_be_narrowed_down
                a_list_can_be_read_in_pages
                counts_use_the_words_of_listings
            }
            claims {
                the_most_urgent_comes_first_then_the_oldest
                a_session_has_its_own_queue
                a_task_is_claimed_once
                a_zombie_changes_nothing
                a_wait_that_is_over_can_be_claimed
                a_run_starts_only_under_its_own_claim
            }
            leases {
                the_next_task_is_claimed_under_a_lease
                a_renewed_lease_holds_and_one_that_nobody_took_can_still_be_renewed
                what_ran_out_is_taken_over_and_the_zombie_is_refused
                of_a_thousand_zombies_none_is_believed
                a_lease_ends_with_its_claim
                a_claim_is_adopted_by_one_process_under_its_fence_and_its_lease
                a_task_that_loses_worker_after_worker_is_given_up
                a_claim_without_a_lease_is_never_taken_over
                sessions_take_turns
                a_session_with_less_in_work_comes_first
                a_worker_can_ask_for_some_agents_or_one_session_only
                a_held_lane_rests_until_it_is_freed_or_its_time_is_over
                limits_hold_back_what_is_too_much
                tasks_that_touch_the_same_are_not_claimed_together
                the_next_wake_is_the_earliest_of_all
                a_watcher_hears_of_every_commit
                lanes_of_all_names_are_told_apart
            }
            dependencies {
                a_task_waits_for_all_it_depends_on
                a_cancelled_task_is_not_done
                a_task_that_begins_anew_is_waited_for_again
                an_unknown_dependency_is_refused
                tasks_that_would_wait_for_each_other_are_refused
                a_batch_may_depend_on_itself_in_any_order
            }
            tested {
                runs_of_tests_come_newest_first_and_of_one_project
                a_run_of_tests_is_in_the_log_without_its_tests
                history_forgets_what_is_old_and_what_is_too_large
            }
            runs {
                runs_come_newest_first
                a_run_ends_once
                a_run_without_an_end_is_found
                what_is_unknown_is_not_zero
            }
        }
    };
}

suite!(sqlite);
suite!(postgres);
