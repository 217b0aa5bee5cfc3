use super::*;
use crate::Roles;

const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "not-a-key");
const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "not-a-key");
const GATEWAY: (&str, &str) = ("OPENAI_BASE_URL", "https://gateway.example/v1");

fn choose(asked: Option<&str>, role: &str, set: &[(&str, &str)]) -> Result<(Dialect, String), String> {
    let roles = Roles::built_in().unwrap();
    let variable =
        |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let choice = ModelChoice::new(asked, roles.get(role).unwrap(), variable);
    choice.map(|choice| (choice.endpoint.dialect(), choice.model)).map_err(|error| error.to_string())
}

fn chosen(asked: Option<&str>, role: &str, set: &[(&str, &str)]) -> (Dialect, String) {
    choose(asked, role, set).unwrap()
}

#[test]
fn a_prefix_names_the_vendor_and_its_interface() {
    let all = [ANTHROPIC, OPENAI, ("GEMINI_API_KEY", "not-a-key")];
    assert_eq!(chosen(Some("anthropic:claude-x"), "code", &all), (Dialect::Anthropic, "claude-x".into()));
    assert_eq!(chosen(Some("openai:gpt-x"), "code", &all), (Dialect::OpenAiChat, "gpt-x".into()));
    assert_eq!(chosen(Some("responses:gpt-x"), "code", &all), (Dialect::OpenAiResponses, "gpt-x".into()));
    assert_eq!(chosen(Some("gemini:g-x"), "code", &all), (Dialect::Gemini, "g-x".into()));
}

#[test]
fn without_a_prefix_the_only_vendor_that_is_set_is_asked() {
    assert_eq!(chosen(Some("llama:70b"), "code", &[GATEWAY]), (Dialect::OpenAiChat, "llama:70b".into()));
    assert_eq!(chosen(None, "code", &[ANTHROPIC]).0, Dialect::Anthropic);
    assert_eq!(
        choose(Some("claude-x"), "code", &[ANTHROPIC, OPENAI]).unwrap_err(),
        "it is not clear which vendor is to be asked: ANTHROPIC_API_KEY and OPENAI_API_KEY are set"
    );
    assert_eq!(
        choose(None, "code", &[("OPENAI_API_KEY", "")]).unwrap_err(),
        "no model can be asked: no vendor's key or address is set"
    );
}

#[test]
fn a_vendor_that_cannot_be_asked_is_told_by_name() {
    assert_eq!(choose(Some("gemini:x"), "code", &[OPENAI]).unwrap_err(), "gemini cannot be asked");
    assert_eq!(choose(Some("gemini:"), "code", &[OPENAI]).unwrap_err(), "`gemini:` names no model");
}

#[test]
fn the_suffix_of_a_role_is_put_behind_a_model_that_is_named_at_a_gateway() {
    let at_gateway = [OPENAI, GATEWAY];
    assert_eq!(chosen(Some("openai:some/model"), "research", &at_gateway).1, "some/model:online");
    assert_eq!(chosen(Some("openai:some/model"), "code", &at_gateway).1, "some/model");
    assert_eq!(chosen(Some("openai:gpt-x"), "research", &[OPENAI]).1, "gpt-x", "the vendor knows no suffix");
    assert_eq!(chosen(None, "research", &at_gateway).1, "gpt-5", "nobody named a model");
    assert_eq!(chosen(Some("anthropic:claude-x"), "research", &[ANTHROPIC]).1, "claude-x");
}

#[test]
fn whether_any_vendor_can_be_asked_is_known_by_its_variables() {
    assert!(any_vendor(|name| (name == "GOOGLE_GEMINI_BASE_URL").then(|| "http://127.0.0.1:1".into())));
    assert!(!any_vendor(|_| None));
    assert!(!any_vendor(|_| Some(String::new())));
}
