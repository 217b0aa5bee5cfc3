//! `pause` and `resume`.

use insta::assert_snapshot;

use crate::work::a_team;

#[test]
fn what_is_paused_is_not_claimed_until_it_is_resumed() {
    let env = a_team().session("greet").task_of("pull-request", "Say hello", &[]);
    assert_snapshot!(env.run(&["pause", "--reason", "a release"]), @"
    all work is paused
    next: rehearsal resume
    ");
    assert_snapshot!(env.run(&["pause", "agent:gatekeeper"]), @"
    agent `gatekeeper` is paused
    next: rehearsal resume agent:gatekeeper
    ");
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"

    0 done; nothing more can be done now: 1 open
    all is held: a release
    agent:gatekeeper is held: paused by hand
    next: rehearsal resume all
    next: rehearsal resume agent:gatekeeper
    [stderr]
    work at most 2 tasks at once
    [exit 7]
    ");
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @"
    [TASK-1]  Say hello is incoming
    - all work is held: a release
    next: rehearsal resume all
    ");
    assert_snapshot!(env.run(&["status"]), @"
    nothing is in work
    all is held until `rehearsal resume all`: a release
    agent:gatekeeper is held until `rehearsal resume agent:gatekeeper`: paused by hand

    SESSION  OPEN  DONE  TASKS
    greet    1     0     1 incoming
    ");
    assert_snapshot!(env.run(&["session", "show", "greet"]), @"
    greet 
    1 task open, 0 done, made [TIME] ago
    1 incoming
    all is held: a release
    ");
    assert_snapshot!(env.run(&["resume"]), @"
    all work goes on; it was held: a release
    agent:gatekeeper is still held: paused by hand
    ");
    env.run(&["work", "--until-idle"]).ends_with(7);
    assert_eq!(env.task_now(1)["task"]["state"], "provisional");
    env.must(&["resume", "agent:gatekeeper"]);
    env.run(&["work", "--until-idle"]).ends_with(0);
    assert_snapshot!(env.run(&["resume"]), @"all work was not held");
}

#[test]
fn a_pause_for_a_time_is_over_by_itself() {
    let env = a_team().session("greet").task_of("pull-request", "Say hello", &[]);
    env.run(&["pause", "session:greet", "--until", "2h"])
        .ends_with(0)
        .says("session `greet` is paused until");
    env.run(&["pause", "session:greet", "--until", "0s"]).ends_with(0);
    env.run(&["work", "--until-idle"]).ends_with(0);
}

#[test]
fn a_lane_that_nobody_is_in_is_a_mistake() {
    let env = a_team().session("greet");
    assert_snapshot!(env.run(&["pause", "gatekeeper"]), @"
    [stderr]
    error: invalid value 'gatekeeper' for '[LANE]': `gatekeeper` is no lane: write `all`, `agent:NAME` or `session:NAME`

    For more information, try '--help'.
    [exit 2]
    ");
    assert_snapshot!(env.run(&["pause", "agent:gatekeper"]), @"
    [stderr]
    error: unknown agent `gatekeper`
    hint: did you mean `gatekeeper`?
    [exit 2]
    ");
    assert_snapshot!(env.run(&["pause", "session:gret"]), @"
    [stderr]
    error: there is no session `gret`
    hint: did you mean `greet`?
    [exit 2]
    ");
    assert_snapshot!(env.run(&["pause", "--until", "soon"]), @"
    [stderr]
    error: `soon` is no moment
    hint: write how long from now, like `90m` or `2h`, or when, like `2027-01-04T08:00`
    [exit 2]
    ");
    assert_snapshot!(env.run(&["pause", "--until", "2001-01-01T00:00"]), @"
    [stderr]
    error: `2001-01-01T00:00` is over already
    [exit 2]
    ");
}
