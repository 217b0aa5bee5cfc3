//! `pause` and `resume`.

use insta::assert_snapshot;

use crate::work::a_team;

#[test]
fn what_is_paused_is_not_claimed_until_it_is_resumed() {
    let env = a_team().session("greet").task_of("pull-request", "Say hello", &[]);
    assert_snapshot!(env.run(&["pause", "--reason", "a release"]), @"");
    assert_snapshot!(env.run(&["pause", "agent:gatekeeper"]), @"");
    assert_snapshot!(env.run(&["work", "--until-idle"]), @"");
    assert_snapshot!(env.run(&["why", &env.task_id(1)]), @"");
    assert_snapshot!(env.run(&["status"]), @"");
    assert_snapshot!(env.run(&["session", "show", "greet"]), @"");
    assert_snapshot!(env.run(&["resume"]), @"");
    env.run(&["work", "--until-idle"]).ends_with(7);
    assert_eq!(env.task_now(1)["task"]["state"], "provisional");
    env.must(&["resume", "agent:gatekeeper"]);
    env.run(&["work", "--until-idle"]).ends_with(0);
    assert_snapshot!(env.run(&["resume"]), @"");
}

#[test]
fn a_pause_for_a_time_is_over_by_itself() {
    let env = a_team().session("greet").task_of("pull-request", "Say hello", &[]);
    env.run(&["pause", "session:greet", "--until", "2h"]).ends_with(0).says("session `greet` is paused until");
    env.run(&["pause", "session:greet", "--until", "0s"]).ends_with(0);
    env.run(&["work", "--until-idle"]).ends_with(0);
}

#[test]
fn a_lane_that_nobody_is_in_is_a_mistake() {
    let env = a_team().session("greet");
    assert_snapshot!(env.run(&["pause", "gatekeeper"]), @"");
    assert_snapshot!(env.run(&["pause", "agent:gatekeper"]), @"");
    assert_snapshot!(env.run(&["pause", "session:gret"]), @"");
    assert_snapshot!(env.run(&["pause", "--until", "soon"]), @"");
    assert_snapshot!(env.run(&["pause", "--until", "2001-01-01T00:00"]), @"");
}
