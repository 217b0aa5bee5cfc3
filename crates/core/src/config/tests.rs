use std::time::Duration;

use super::*;
use crate::{AgentName, SourceError};

fn parse(text: &str) -> Result<Layer, SourceError> {
    Layer::parse(text, Origin::file(".rehearsal/config.yaml"))
}

fn parse_testing(text: &str) -> Result<Layer, SourceError> {
    Layer::parse_testing(text, Origin::file("testing.yaml"))
}

fn resolved(text: &str) -> Settings {
    resolve(&[parse(text).unwrap()], Overrides::default(), Overrides::default()).unwrap()
}

#[test]
fn without_any_configuration_there_is_a_claude_implementer() {
    let settings = resolved("");
    assert_eq!(settings.agent.as_str(), "implementer");
    assert_eq!(settings.profile().unwrap().driver, DriverKind::CLAUDE);
    assert_eq!(settings.loop_.iterations, 10);
}

#[test]
fn flag_beats_environment_beats_project_beats_user_and_each_remembers_who_won() {
    let user = Layer::parse(
        "loop: { iterations: 1, max_failures: 1, max_cost: 1.0 }",
        Origin::file("~/config.yaml"),
    )
    .unwrap();
    let project =
        parse("loop:\n  iterations: 2\n  max_failures: 2\nagents: { implementer: { model: opus } }").unwrap();
    let environment = Overrides::default().set("loop.iterations", Some(3));
    let flags = Overrides::default().set("agents.*.model", Some("haiku"));
    let settings = resolve(&[user, project], environment, flags).unwrap();
    let origin = |key| settings.origins.get(key).to_string();
    assert_eq!(
        (settings.loop_.iterations, settings.origins.get("loop.iterations")),
        (3, &Origin::Environment)
    );
    assert_eq!(
        (settings.loop_.max_failures, origin("loop.max_failures").as_str()),
        (2, ".rehearsal/config.yaml")
    );
    assert_eq!(
        settings.origins.get("loop.max_failures").place().as_deref(),
        Some(".rehearsal/config.yaml:3:17")
    );
    assert_eq!(origin("loop.max_cost"), "~/config.yaml");
    assert_eq!(origin("loop.max_wait"), "default");
    let profile = &settings.agents[&name("implementer")];
    assert_eq!((profile.model.as_deref(), profile.origins.get("model")), (Some("haiku"), &Origin::Flag));
}

#[test]
fn a_section_is_merged_and_a_value_is_replaced() {
    let layers = [
        "agents: { a: { args: [x], env: { A: '1' }, budget: { usd: 1 }, sandbox: { max_cpus: 4 } }, b: {} }",
        "agents: { a: { model: m, env: { B: '2' }, budget: { turns: 9 }, sandbox: required } }",
    ]
    .map(|text| parse(text).unwrap());
    let flags = Overrides::default().set("agent", Some("a"));
    let settings = resolve(&layers, Overrides::default(), flags).unwrap();
    let profile = settings.profile().unwrap();
    assert_eq!((profile.args.as_slice(), profile.model.as_deref()), (&["x".to_owned()][..], Some("m")));
    assert_eq!(profile.env, [("B".to_owned(), "2".to_owned())].into());
    assert_eq!((profile.budget.usd, profile.budget.turns), (None, Some(9)));
    let sandbox = &profile.sandbox;
    assert_eq!((sandbox.level, sandbox.max_cpus), (SandboxLevel::Required, Some(4.0)));
    assert!(settings.agents.contains_key(&name("b")));
}

#[test]
fn a_setting_without_a_value_is_not_set_and_an_unknown_one_is_a_mistake() {
    let user = parse("loop: { iterations: 7 }\nagent: writer\nagents: { writer: }").unwrap();
    let project =
        parse("loop: { iterations: , max_cost: ~ }\nagent:\nwork:\ntesting: { sandbox: , patterns: }\n")
            .unwrap();
    let settings = resolve(&[user, project], Overrides::default(), Overrides::default()).unwrap();
    assert_eq!((settings.loop_.iterations, settings.agent.as_str()), (7, "writer"));
    assert_eq!(settings.testing, TestingSettings::default());
    let message = |text: &str| parse(text).unwrap_err().message;
    assert!(message("loop: { itertions: }").starts_with("unknown field `itertions`"));
    assert_eq!(message("testing: { environment: { A: } }"), "expected a text, and there is nothing");
}

#[test]
fn a_mistake_is_reported_also_if_another_layer_sets_the_same() {
    let error = parse("loop: { iterations: many }").unwrap_err();
    assert_eq!((error.message.as_str(), error.place.unwrap().column), ("expected a whole number", 21));
}

#[test]
fn every_variable_sets_a_setting_that_exists() {
    let value = |name: &str| match name {
        "REHEARSAL_ITERATIONS" | "REHEARSAL_MAX_FAILURES" | "REHEARSAL_WORKERS" => "7",
        "REHEARSAL_MAX_COST" => "2.5",
        "REHEARSAL_AGENT" => "qa",
        name if name.contains("TIMEOUT") || name.contains("WAIT") => "7m",
        _ => "some",
    };
    let environment = Overrides::from_environment(|name| Some(value(name).to_owned())).unwrap();
    let settings = resolve(&[], environment, Overrides::default()).unwrap();
    let lines = settings.lines();
    for (name, key) in super::overrides::VARIABLES {
        let key = key.replace('*', "qa");
        let line = lines.iter().find(|line| line.0 == key).unwrap();
        assert_eq!((line.1.as_str(), &line.2), (value(name), &Origin::Environment), "{name}");
    }
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
    let flags = Overrides::default().set("agent", Some("implementor"));
    let layer = parse("agents: { implementer: {} }").unwrap();
    let error = resolve(&[layer], Overrides::default(), flags).unwrap_err();
    assert_eq!(error.message, "unknown agent `implementor`");
    assert_eq!(error.hint.as_deref(), Some("did you mean `implementer`?"));
}

#[test]
fn an_empty_file_changes_nothing() {
    let nothing = resolve(&[], Overrides::default(), Overrides::default()).unwrap();
    for text in ["", "# nothing\n\n  # here\n", "~", "{}"] {
        assert_eq!(resolved(text), nothing, "{text:?}");
    }
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
        let layer = parse_testing(&format!("testing:\n  sandbox: {text}\n"))?;
        resolve(&[layer], Overrides::default(), Overrides::default()).map(|all| all.testing.sandbox)
    };
    for (word, level) in [
        ("required", SandboxLevel::Required),
        ("off", SandboxLevel::Off),
        ("false", SandboxLevel::Off),
        ("{ level: off }", SandboxLevel::Off),
    ] {
        assert_eq!(sandbox(word).unwrap().level, level, "{word}");
    }
    let details = sandbox("{ allow_network: true, max_memory: 1GB, project: overlay }").unwrap();
    assert_eq!(
        (details.allow_network, details.max_memory, details.project),
        (true, Some(HumanSize(1 << 30)), Some(ProjectAccess::Overlay))
    );
    let wrong = sandbox("strict").unwrap_err();
    assert_eq!(wrong.message, "unknown variant `strict`, expected one of auto, off, best_effort, required");
    assert_eq!(wrong.place.map(|place| place.line), Some(2));
    let wrong = sandbox("{ max_memory: lots }").unwrap_err();
    assert_eq!(wrong.message, "`lots` is not a size: write `512MB` or `2GB`");
    let unknown = sandbox("{ max_memry: 1GB }").unwrap_err().message;
    assert!(unknown.starts_with("unknown field `max_memry`, expected one of"), "{unknown}");
}

#[test]
fn a_testing_file_as_the_wild_has_it_is_read() {
    let text = "testing:\n  framework: go\n  command: \"go test -v ./...\"\n  timeout: 300s\n  patterns:\n    - \"Test*\"\n  exclude:\n    - \"TestIntegration*\"\n  environment:\n    GO111MODULE: \"on\"\n    CGO_ENABLED: \"0\"\n  sandbox:\n    allow_network: false\n    max_memory: 1GB\n";
    let layers = [parse_testing(text).unwrap()];
    let testing = resolve(&layers, Overrides::default(), Overrides::default()).unwrap().testing;
    assert_eq!(testing.framework.as_deref(), Some("go"));
    assert_eq!(testing.origins.get("framework").place().as_deref(), Some("testing.yaml:2:14"));
    assert_eq!(testing.timeout.to_string(), "5m");
    assert_eq!(testing.environment["CGO_ENABLED"], "0");
    assert_eq!(testing.sandbox.max_memory, Some(HumanSize(1 << 30)));
    assert_eq!(testing.origins.get("sandbox.max_cpus"), &Origin::Default);
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
fn an_agent_is_confined_where_the_system_can_and_with_its_own_defaults() {
    let implementer = |text: &str| resolved(text).profile().unwrap().sandbox.clone();
    assert_eq!(implementer("agents: { implementer: {} }"), implementer(""));
    let sandbox = implementer("agents: { implementer: { sandbox: { max_cpus: 4 } } }");
    assert_eq!(sandbox.level, SandboxLevel::Auto);
    assert_eq!(sandbox.project, Some(ProjectAccess::Writable));
    assert!(sandbox.allow_network);
    assert_eq!((sandbox.max_memory, sandbox.max_cpus), (None, Some(4.0)));
}

#[test]
fn a_user_says_which_changes_are_reviewed_and_a_pattern_that_is_none_is_told_at_its_place() {
    let settings = resolved("quality: { risky_paths: [ledger] }");
    assert_eq!(settings.quality.risky_paths, ["ledger"]);
    assert_eq!(settings.quality.most_files, 2);
    assert!(settings.quality.risky_words.contains(&"password".to_owned()));
    let error = parse("quality:\n  risky_paths: ['a[']\n").unwrap_err();
    assert_eq!(error.message, "`a[` is not a pattern: unclosed character class; missing ']'");
    assert_eq!(error.place.unwrap().line, 2);
}

fn name(text: &str) -> AgentName {
    AgentName::new(text).unwrap()
}

fn role(settings: &Settings, agent: &str) -> (DriverKind, Option<String>) {
    let profile = settings.profile_of(&name(agent)).unwrap();
    (profile.driver, profile.role.clone())
}

fn crew(role: &str) -> (DriverKind, Option<String>) {
    (DriverKind::CREW, Some(role.to_owned()))
}

#[test]
fn the_roles_of_the_crew_are_agents_that_need_no_configuration() {
    let settings = resolved("");
    for agent in ["search", "research", "code", "review", "test", "qa", "docs", "init"] {
        assert_eq!(role(&settings, agent), crew(agent));
    }
    let flags = Overrides::default().set("agent", Some("qa")).set("agents.*.model", Some("openai:x"));
    let settings = resolve(&[], Overrides::default(), flags).unwrap();
    assert_eq!(role(&settings, "qa"), crew("qa"));
    assert_eq!(settings.profile().unwrap().model.as_deref(), Some("openai:x"));
}

#[test]
fn an_agent_of_the_configuration_is_what_it_says() {
    let settings = resolved("agents: { code: { driver: codex } }");
    assert_eq!(role(&settings, "code"), ("codex".parse().unwrap(), None));
    assert!(!settings.built_in.contains_key(&name("code")));
}

#[test]
fn reviewers_work_like_the_agent_that_is_used_and_of_the_crew_each_has_its_own_role() {
    let settings = resolved("");
    assert_eq!(role(&settings, "gatekeeper"), (DriverKind::CLAUDE, None));
    let settings = resolved("agents: { implementer: { driver: crew, model: 'openai:x' } }");
    assert_eq!(role(&settings, "implementer"), crew("code"));
    assert_eq!(role(&settings, "gatekeeper"), crew("review"));
    assert_eq!(role(&settings, "reviewer"), crew("review"));
    assert_eq!(role(&settings, "qa"), crew("qa"));
    let model = |agent| settings.profile_of(&name(agent)).unwrap().model.clone();
    assert_eq!((model("reviewer").as_deref(), model("qa")), (Some("openai:x"), None));
}

#[test]
fn a_role_can_be_named_and_is_for_the_crew_only() {
    let settings = resolved("agents: { auditor: { driver: crew, role: review }, own: { driver: crew } }");
    assert_eq!((role(&settings, "auditor"), role(&settings, "own")), (crew("review"), crew("own")));
    let layer = parse("agents: { implementer: { role: code } }").unwrap();
    let error = resolve(&[layer], Overrides::default(), Overrides::default()).unwrap_err();
    assert_eq!(
        error.message,
        "agent `implementer` has the role `code`, and its driver `claude` knows no roles"
    );
    assert_eq!(error.hint.as_deref(), Some("roles are for `driver: crew`"));
}
