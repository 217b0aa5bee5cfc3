use super::*;
use crate::Place;

const ROOM: Limits = Limits { kept: 1 << 20, text: 64, problems: 10 };

fn id<'a>(suite: &'a str, name: &'a str) -> TestId<'a> {
    TestId { suite, name }
}

fn end<'a>(suite: &'a str, name: &'a str, status: TestStatus, attempt: Attempt) -> Event<'a> {
    let failure = status.is_failure().then_some(Failure { message: "boom", ..Failure::default() });
    Event::Finished(Finished { failure, attempt, ..Finished::new(id(suite, name), status, 3) })
}

fn collected(events: Vec<Event<'_>>, ending: &Ending) -> Collected {
    let mut collector = Collector::new(None, ROOM);
    for event in events {
        collector.event(event);
    }
    collector.finish(ending)
}

fn exited(code: i32) -> Ending {
    Ending { exit: Some(Exit::Code(code)), ..Ending::default() }
}

#[test]
fn a_pass_after_a_failure_is_flaky_and_keeps_what_went_wrong() {
    let run = collected(
        vec![
            end("a", "t", TestStatus::Fail, Attempt::Retry),
            end("a", "t", TestStatus::Fail, Attempt::Retry),
            end("a", "t", TestStatus::Pass, Attempt::Retry),
        ],
        &exited(0),
    );
    assert_eq!((run.summary.total, run.summary.passed, run.summary.flaky, run.summary.failed), (1, 1, 1, 0));
    let test = &run.tests[0];
    assert_eq!((test.status, test.attempts, test.error.as_str()), (TestStatus::Flaky, Some(3), "boom"));
}

#[test]
fn of_repeats_the_worst_counts() {
    let run = collected(
        vec![
            end("a", "t", TestStatus::Pass, Attempt::Repeat),
            end("a", "t", TestStatus::Fail, Attempt::Repeat),
            end("a", "t", TestStatus::Pass, Attempt::Repeat),
        ],
        &exited(1),
    );
    assert_eq!((run.summary.total, run.summary.failed), (1, 1));
    assert_eq!(run.tests[0].error, "boom");
}

#[test]
fn who_ran_when_the_process_died_crashed_and_who_ran_when_it_was_stopped_did_not() {
    let open = || {
        vec![
            Event::Started { test: id("a", "hangs"), at: Place::new("a_test.go", 7) },
            Event::Output { test: id("a", "hangs"), text: "waiting\n" },
        ]
    };
    let crashed = collected(open(), &exited(2));
    assert_eq!((crashed.tests[0].status, crashed.summary.failed), (TestStatus::Crash, 1));
    let stopped = Ending { stopped: Some(Stopped::TimeLimit), ..Ending::default() };
    let stopped = collected(open(), &stopped);
    let test = &stopped.tests[0];
    assert_eq!((test.status, stopped.summary.failed, stopped.summary.timed_out), (TestStatus::Timeout, 0, 1));
    assert_eq!(
        (test.file.as_deref(), test.line, test.output.as_str()),
        (Some("a_test.go"), Some(7), "waiting\n")
    );
}

#[test]
fn what_runs_when_its_suite_ends_crashed() {
    let run = collected(
        vec![
            Event::SuiteStarted("a"),
            Event::Started { test: id("a", "t"), at: Place::default() },
            Event::SuiteEnded("a"),
            Event::Ended { counted: None },
        ],
        &exited(1),
    );
    assert_eq!((run.summary.crashed, run.tests[0].error.as_str()), (1, "the process ended while it ran"));
}

#[test]
fn a_suite_without_a_test_is_named_when_the_run_dies() {
    let run = collected(vec![Event::SuiteStarted("slow.test.ts")], &Ending::default());
    assert_eq!((run.problems[0].name.as_str(), run.problems[0].scope), ("slow.test.ts", ProblemScope::Suite));
}

#[test]
fn memory_for_good_tests_is_bounded_and_failures_stay() {
    let mut collector = Collector::new(None, Limits { kept: 4000, ..ROOM });
    for number in 0..1000 {
        collector.event(end("a", &number.to_string(), TestStatus::Pass, Attempt::Only));
    }
    collector.event(end("a", "bad", TestStatus::Fail, Attempt::Only));
    let run = collector.finish(&exited(1));
    assert_eq!((run.summary.total, run.summary.passed), (1001, 1000));
    assert!(run.tests.len() < 50, "{}", run.tests.len());
    assert_eq!(run.tests.last().unwrap().name, "bad");
}

#[test]
fn tests_that_are_counted_without_a_name_are_in_the_summary_and_nowhere_else() {
    let events = vec![
        Event::Counted { status: TestStatus::Pass, count: 1 << 40 },
        Event::Counted { status: TestStatus::Skip, count: 2 },
        Event::Ended { counted: Some((1 << 40) + 2) },
    ];
    let run = collected(events, &exited(0));
    assert_eq!((run.summary.passed, run.summary.skipped, run.seen()), (1 << 40, 2, (1 << 40) + 2));
    assert!(run.tests.is_empty());
}
