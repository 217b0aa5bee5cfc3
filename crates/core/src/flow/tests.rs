use super::*;
use crate::SourceError;

const PULL_REQUEST: &str = "\
name: pull-request
start: incoming
states:
  incoming:
    agent: implementer
    steps: [rebase, run_tests, push_branch, create_pr]
    on:
      done: provisional
      tests_failed: { to: incoming, at_most: 3, then: failed }
      conflict: incoming
      needs_continuation: { to: incoming, at_most: 3, then: failed }
      crashed: { to: incoming, at_most: 3, then: failed }
      failed: failed
      blocked: blocked
  provisional:
    agent: gatekeeper
    steps: [check_conflicts, merge_pr]
    on:
      approved: done
      rejected: incoming
      conflict: incoming
      merge_failed: { to: provisional, at_most: 3, then: blocked }
      crashed: { to: provisional, at_most: 3, then: blocked }
  blocked: { wait: human }
  done: { end: success }
  failed: { end: failure }
";

/// The flow with one line changed, and what is said about it.
fn error_with(from: &str, to: &str) -> SourceError {
    assert!(PULL_REQUEST.contains(from), "`{from}` is not in the flow");
    parse(&PULL_REQUEST.replacen(from, to, 1)).unwrap_err()
}

fn told(error: &SourceError) -> String {
    let place = error.place.map_or_else(|| "-".to_owned(), |place| place.to_string());
    format!("{place} {} / {}", error.message, error.hint.as_deref().unwrap_or("-"))
}

#[test]
fn a_flow_with_a_gate_and_a_reviewer_is_read_whole() {
    let flow = parse(PULL_REQUEST).unwrap();
    assert_eq!(flow.states.len(), 5);
    assert_eq!(flow.success_state().unwrap().as_str(), "done");
    assert_eq!(flow.version.len(), 12);
    let State::Work { on, .. } = &flow.states[&StateName::new("incoming").unwrap()] else { panic!() };
    let (name, edge) = on.find(EdgeName::Outcome(OutcomeName::TimedOut)).unwrap();
    assert_eq!((name.as_str(), edge.limit.as_ref().unwrap().at_most), ("crashed", 3));
}

#[test]
fn every_shipped_flow_passes_its_own_check() {
    for (name, text) in SHIPPED {
        let flow = parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(flow.name.as_str(), name);
    }
}

#[test]
fn mistakes_are_told_with_place_and_advice() {
    let cases = [
        ("conflict: incoming\n      needs", "conflict: incomming\n      needs"),
        ("start: incoming", "start: inbox"),
        ("steps: [rebase,", "steps: [rebese,"),
        ("tests_failed:", "test_failed:"),
        ("      blocked: blocked\n", ""),
        ("      merge_failed: { to: provisional, at_most: 3, then: blocked }\n", ""),
        ("{ wait: human }", "{ wait: human, end: success }"),
        ("at_most: 3, then: failed }\n      conflict", "at_most: 3 }\n      conflict"),
        ("name: pull-request", "name: ../pr"),
        ("  done: { end: success }", "  done: { end: success }\n  lost: { end: failure }"),
        ("agent: implementer", "agnet: implementer"),
        ("      blocked: blocked\n", "      otherwise: blocked\n"),
        (PULL_REQUEST, ""),
        (PULL_REQUEST, "# Nothing yet\n---\n"),
    ];
    let told: Vec<String> = cases.iter().map(|(from, to)| told(&error_with(from, to))).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_flow_that_only_goes_round_in_circles_is_refused() {
    let text = "\
name: circle
start: a
states:
  a:
    agent: x
    on: { done: b, failed: b, blocked: b, crashed: b, needs_continuation: b }
  b:
    agent: x
    otherwise: a
";
    assert_eq!(
        told(&parse(text).unwrap_err()),
        "4:3 no way leads from state `a` to an end / add an edge to a state with `end: success` or `end: failure`"
    );
}

#[test]
fn the_graph_shows_limits_and_ends() {
    insta::assert_snapshot!(mermaid(&Flow::shipped("loop").unwrap()));
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "(name: |start: |states:\n|  a:\n|    agent: x\n|    on: |\\{|\\}|\\[|&a |\\*a|- |end: success\n|é|.){0,24}") {
        let _ = parse(&text);
    }
}

#[test]
fn an_agent_that_is_not_configured_is_told_at_its_place() {
    let flow = parse(PULL_REQUEST).unwrap();
    let known = [AgentName::new("implementer").unwrap(), AgentName::new("gatekeepr").unwrap()];
    assert_eq!(
        told(&flow.unknown_agent(&known.iter()).unwrap()),
        "16:12 unknown agent `gatekeeper` / did you mean `gatekeepr`?"
    );
    let known = [AgentName::new("implementer").unwrap(), AgentName::new("gatekeeper").unwrap()];
    assert_eq!(flow.unknown_agent(&known.iter()), None);
}

#[test]
fn a_loop_takes_only_flows_that_work_in_one_state_and_end_with_land() {
    assert_eq!(Flow::shipped("loop").unwrap().fits_a_loop(), Ok(()));
    assert_eq!(
        parse(PULL_REQUEST).unwrap().fits_a_loop().unwrap_err(),
        "it has 2 working states, and a loop works in one"
    );
    let pushes = include_str!("../flows/loop.yaml").replace(", land]", "]");
    assert_eq!(
        parse(&pushes).unwrap().fits_a_loop().unwrap_err(),
        "the steps of state `todo` do not end with `land`"
    );
}

#[test]
fn the_author_of_a_task_does_what_the_first_agent_would_and_reviewers_stay() {
    let flow = Flow::shipped("plan").unwrap();
    let (docs, state) = (AgentName::new("docs").unwrap(), |name: &str| StateName::new(name).unwrap());
    let who = |name: &str| flow.agent_for(&state(name), Some(&docs)).map(ToString::to_string);
    assert_eq!(who("incoming").unwrap(), "docs");
    assert_eq!(who("review").unwrap(), "review");
    assert_eq!(who("qa").unwrap(), "qa");
    assert_eq!(who("landing"), None);
    assert_eq!(flow.agent_for(&state("incoming"), None).unwrap().as_str(), "code");
}

#[test]
fn only_a_state_that_ends_well_without_changes_asks_for_words() {
    let looks =
        |flow: &str, state: &str| Flow::shipped(flow).unwrap().only_looks(&StateName::new(state).unwrap());
    assert!(looks("look", "looking"));
    for (flow, state) in [("plan", "incoming"), ("plan", "review"), ("loop", "todo"), ("look", "done")] {
        assert!(!looks(flow, state), "{flow}/{state}");
    }
}

#[test]
fn a_change_that_is_assessed_needs_a_way_to_its_review() {
    let text = "\
name: f
start: a
states:
  a:
    agent: x
    steps: [assess]
    on: { done: b, failed: b, blocked: b, crashed: b, needs_continuation: b }
  b: { end: success }
";
    assert_eq!(
        told(&parse(text).unwrap_err()),
        "4:3 flow `f` has no edge for outcome `needs_review` in state `a` / add `needs_review: STATE` under `on:`, or an `otherwise:`"
    );
}

#[test]
fn the_readme_names_every_step() {
    let readme = include_str!("../../../../README.md");
    for name in Step::names() {
        assert!(readme.contains(&format!("`{name}`")), "{name}");
    }
}
