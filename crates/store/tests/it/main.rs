//! The store from outside: the same stories for every engine, then what only files and processes can show.

#![expect(clippy::unwrap_used, reason = "what fails in a test shall fail loudly")]

mod bench;
mod files;
mod hammer;
mod many;
mod oracle;
mod stories;

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
