use std::time::Duration;

use super::*;
use crate::AgentName;

fn project(text: &str) -> Layer {
    Layer { origin: Origin::Project(".rehearsal/config.yaml".into()), file: parse(text).unwrap() }
}

#[test]
fn without_any_configuration_there_is_a_claude_implementer() {
    let settings = resolve(vec![], Overrides::default(), Overrides::default()).unwrap();
    assert_eq!(settings.agent.value.as_str(), "implementer");
    assert_eq!(settings.profile().unwrap().driver.value, DriverKind::Claude);
    assert_eq!(settings.iterations.value, 10);
}

#[test]
fn flag_beats_environment_beats_project_beats_user_and_each_remembers_who_won() {
    let user = Layer {
        origin: Origin::User("~/config.yaml".into()),
        file: parse("loop: { iterations: 1, max_failures: 1, max_cost: 1.0 }").unwrap(),
    };
    let project =
        project("loop: { iterations: 2, max_failures: 2 }\nagents: { implementer: { model: opus } }");
    let environment = Overrides { iterations: Some(3), ..Overrides::default() };
    let flags = Overrides { model: Some("haiku".into()), ..Overrides::default() };
    let settings = resolve(vec![user, project], environment, flags).unwrap();
    assert_eq!((settings.iterations.value, settings.iterations.origin), (3, Origin::Environment));
    assert_eq!(settings.max_failures.value, 2);
    assert_eq!(settings.max_failures.origin.to_string(), ".rehearsal/config.yaml");
    assert_eq!(settings.max_cost.origin.to_string(), "~/config.yaml");
    let profile = &settings.agents[&AgentName::new("implementer").unwrap()];
    assert_eq!(profile.model.value.as_deref(), Some("haiku"));
    assert_eq!(profile.model.origin, Origin::Flag);
}

#[test]
fn an_unknown_key_is_an_error_with_place_and_suggestion() {
    let error = parse("loop:\n  iteration: 3\n").unwrap_err();
    assert_eq!(error.place.unwrap().to_string(), "2:3");
    assert!(error.message.starts_with("unknown field `iteration`"), "{error}");
    assert_eq!(error.hint.as_deref(), Some("did you mean `iterations`?"));
}

#[test]
fn an_unknown_agent_is_an_error_with_a_suggestion() {
    let flags = Overrides { agent: Some(AgentName::new("implementor").unwrap()), ..Overrides::default() };
    let error =
        resolve(vec![project("agents: { implementer: {} }")], Overrides::default(), flags).unwrap_err();
    assert_eq!(error.message, "unknown agent `implementor`");
    assert_eq!(error.hint.as_deref(), Some("did you mean `implementer`?"));
}

#[test]
fn an_empty_file_changes_nothing() {
    assert_eq!(parse("").unwrap(), ConfigFile::default());
    assert_eq!(parse("# nothing\n\n  # here\n").unwrap(), ConfigFile::default());
}

#[test]
fn a_variable_that_cannot_be_read_is_named() {
    let lookup = |name: &str| (name == "REHEARSAL_TIMEOUT").then(|| "soon".to_owned());
    let error = Overrides::from_environment(lookup).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the variable `REHEARSAL_TIMEOUT` cannot be used: `soon` is not a duration: write `90s`, `30m`, `1h30m` or `2d`"
    );
}

#[test]
fn durations_are_written_as_people_do() {
    let read = |text: &str| text.parse::<HumanDuration>();
    assert_eq!(read("1h30m").unwrap().0, Duration::from_secs(5400));
    assert_eq!(read("250ms").unwrap().0, Duration::from_millis(250));
    assert_eq!(read("1h30m").unwrap().to_string(), "1h30m");
    for wrong in ["", "5", "5 parsecs", "-3s", "99999999999999999999d"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
