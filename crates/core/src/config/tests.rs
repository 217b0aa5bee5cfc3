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
    assert_eq!(settings.profile().unwrap().driver.value, DriverKind::CLAUDE);
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

#[test]
fn a_sandbox_is_a_word_or_details() {
    let sandbox = |text: &str| {
        parse_testing(&format!("testing:\n  sandbox: {text}\n")).map(|file| file.testing.sandbox)
    };
    assert_eq!(sandbox("required").unwrap().level, Some(SandboxLevel::Required));
    assert_eq!(sandbox("off").unwrap().level, Some(SandboxLevel::Off));
    let details = sandbox("{ allow_network: false, max_memory: 1GB, project: overlay }").unwrap();
    assert_eq!(
        (details.allow_network, details.max_memory, details.project),
        (Some(false), Some(HumanSize(1 << 30)), Some(ProjectAccess::Overlay))
    );
    let wrong = sandbox("strict").unwrap_err();
    assert_eq!(wrong.message, "unknown sandbox `strict`: there are off, best_effort and required");
    assert_eq!(wrong.place.map(|place| place.line), Some(2));
    let wrong = sandbox("{ max_memory: lots }").unwrap_err();
    assert_eq!(wrong.message, "`lots` is not a size: write `512MB` or `2GB`");
    let unknown = sandbox("{ max_memry: 1GB }").unwrap_err().message;
    assert!(unknown.starts_with("unknown field `max_memry`, expected one of"), "{unknown}");
}

#[test]
fn a_testing_file_as_the_wild_has_it_is_read() {
    let text = "testing:\n  framework: go\n  command: \"go test -v ./...\"\n  timeout: 300s\n  patterns:\n    - \"Test*\"\n  exclude:\n    - \"TestIntegration*\"\n  environment:\n    GO111MODULE: \"on\"\n    CGO_ENABLED: \"0\"\n  sandbox:\n    allow_network: false\n    max_memory: 1GB\n";
    let layer = Layer { origin: Origin::Project("testing.yaml".into()), file: parse_testing(text).unwrap() };
    let testing = resolve(vec![layer], Overrides::default(), Overrides::default()).unwrap().testing;
    assert_eq!(testing.framework.value.map(|framework| framework.word).as_deref(), Some("go"));
    assert_eq!(testing.timeout.value.to_string(), "5m");
    assert_eq!(testing.environment.value["CGO_ENABLED"], "0");
    assert_eq!(testing.sandbox.max_memory.value, Some(HumanSize(1 << 30)));
    assert_eq!(testing.sandbox.max_cpus.origin, Origin::Default);
    assert!(parse_testing("agent: x\n").unwrap_err().message.starts_with("unknown field `agent`"));
}

#[test]
fn tests_may_take_a_quarter_of_an_hour_and_no_more() {
    let error = parse_testing("testing:\n  timeout: 16m\n").unwrap_err();
    assert_eq!(
        error.message,
        "16m is too long, at most 15m: run a part of the tests at a time, by a pattern"
    );
    assert_eq!(error.place.unwrap().to_string(), "2:12");
    assert_eq!(
        parse("testing: { timeout: 0s }").unwrap_err().message,
        "the tests need some time: write `90s` or `5m`"
    );
    assert!(parse("testing: { timeout: 15m }").is_ok());
}

#[test]
fn an_agent_is_confined_only_if_somebody_says_so_and_then_with_its_own_defaults() {
    let implementer = |text: &str| {
        let settings = resolve(vec![project(text)], Overrides::default(), Overrides::default()).unwrap();
        settings.profile().unwrap().sandbox.clone()
    };
    assert_eq!(implementer("agents: { implementer: {} }"), None);
    let sandbox = implementer("agents: { implementer: { sandbox: { max_cpus: 4 } } }").unwrap();
    assert_eq!(sandbox.level.value, SandboxLevel::BestEffort);
    assert_eq!(sandbox.project.value, Some(ProjectAccess::Writable));
    assert!(sandbox.allow_network.value);
    assert_eq!((sandbox.max_memory.value, sandbox.max_cpus.value), (None, Some(4.0)));
}

#[test]
fn a_user_says_which_changes_are_reviewed_and_a_pattern_that_is_none_is_told_at_its_place() {
    let settings = resolve(
        vec![project("quality: { risky_paths: [ledger] }")],
        Overrides::default(),
        Overrides::default(),
    )
    .unwrap();
    assert_eq!(settings.quality.risky_paths.value, ["ledger"]);
    assert_eq!(settings.quality.most_files.value, 2);
    assert!(settings.quality.risky_words.value.contains(&"password".to_owned()));
    let error = parse("quality:\n  risky_paths: ['a[']\n").unwrap_err();
    assert_eq!(error.message, "`a[` is not a pattern: unclosed character class; missing ']'");
    assert_eq!(error.place.unwrap().line, 2);
}

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

fn role(settings: &Settings, agent: &str) -> (DriverKind, Option<String>) {
    let profile = settings.profile_of(&name(agent)).unwrap();
    (profile.driver.value, profile.role.value.clone())
}

fn crew(role: &str) -> (DriverKind, Option<String>) {
    (DriverKind::CREW, Some(role.to_owned()))
}

#[test]
fn the_roles_of_the_crew_are_agents_that_need_no_configuration() {
    let settings = resolve(vec![], Overrides::default(), Overrides::default()).unwrap();
    for agent in ["search", "research", "code", "review", "test", "qa", "docs", "init"] {
        assert_eq!(role(&settings, agent), crew(agent));
    }
    let flags = Overrides { agent: Some(name("qa")), model: Some("openai:x".into()), ..Overrides::default() };
    let settings = resolve(vec![], Overrides::default(), flags).unwrap();
    assert_eq!(role(&settings, "qa"), crew("qa"));
    assert_eq!(settings.profile().unwrap().model.value.as_deref(), Some("openai:x"));
}

#[test]
fn an_agent_of_the_configuration_is_what_it_says() {
    let layer = project("agents: { code: { driver: codex } }");
    let settings = resolve(vec![layer], Overrides::default(), Overrides::default()).unwrap();
    assert_eq!(role(&settings, "code"), ("codex".parse().unwrap(), None));
    assert!(!settings.built_in.contains_key(&name("code")));
}

#[test]
fn reviewers_work_like_the_agent_that_is_used_and_of_the_crew_each_has_its_own_role() {
    let settings = resolve(vec![], Overrides::default(), Overrides::default()).unwrap();
    assert_eq!(role(&settings, "gatekeeper"), (DriverKind::CLAUDE, None));
    let layer = project("agents: { implementer: { driver: crew, model: 'openai:x' } }");
    let settings = resolve(vec![layer], Overrides::default(), Overrides::default()).unwrap();
    assert_eq!(role(&settings, "implementer"), crew("code"));
    assert_eq!(role(&settings, "gatekeeper"), crew("review"));
    assert_eq!(role(&settings, "reviewer"), crew("review"));
    assert_eq!(role(&settings, "qa"), crew("qa"));
    let model = |agent| settings.profile_of(&name(agent)).unwrap().model.value.clone();
    assert_eq!((model("reviewer").as_deref(), model("qa")), (Some("openai:x"), None));
}

#[test]
fn a_role_can_be_named_and_is_for_the_crew_only() {
    let layer = project("agents: { auditor: { driver: crew, role: review }, own: { driver: crew } }");
    let settings = resolve(vec![layer], Overrides::default(), Overrides::default()).unwrap();
    assert_eq!((role(&settings, "auditor"), role(&settings, "own")), (crew("review"), crew("own")));
    let layer = project("agents: { implementer: { role: code } }");
    let error = resolve(vec![layer], Overrides::default(), Overrides::default()).unwrap_err();
    assert_eq!(
        error.message,
        "agent `implementer` has the role `code`, and its driver `claude` knows no roles"
    );
    assert_eq!(error.hint.as_deref(), Some("roles are for `driver: crew`"));
}
