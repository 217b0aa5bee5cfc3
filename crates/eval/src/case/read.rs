//! From YAML to checked evals.

mod direct;

use std::collections::BTreeSet;

use rehearsal_core::SourceError;
use rehearsal_core::yaml::{self, Spanned};

use super::{AtK, Case, CaseFile, Eval, EvalFile, Require};
use crate::assertion::{Assertion, AssertionFile, check_of};
use crate::direct::Direct;
use crate::trial::Variant;

/// More trials of one case than anyone waits for.
const MOST_REPEATS: u32 = 10_000;

/// Reads an eval. Who is measured where the file does not say so is `default_agent`.
pub fn parse(text: &str, default_agent: &str) -> Result<Eval, SourceError> {
    let file: EvalFile = yaml::from_str(text)?;
    check_name(&file.name.value).map_err(|message| SourceError::at(file.name.place, message))?;
    let at_name = |message: String| SourceError::at(file.name.place, message);
    check_repeat(file.repeat).map_err(at_name)?;
    check_require(&file.require).map_err(at_name)?;
    for (name, prompt) in &file.prompts {
        if !prompt.contains("{{ prompt }}") && !prompt.contains("{{prompt}}") {
            return Err(at_name(format!(
                "prompt `{name}` has no `{{{{ prompt }}}}` where the case's own goes"
            )));
        }
    }
    if file.cases.is_empty() {
        return Err(at_name("an eval needs at least one case".to_owned()));
    }
    let common = assertions(&file.assertions)?;
    let mut names = BTreeSet::new();
    let mut cases = Vec::new();
    for case in &file.cases {
        let at = |message: String| SourceError::at(case.place, message);
        if !names.insert(&case.value.name) {
            return Err(at(format!("case `{}` is there twice", case.value.name)));
        }
        cases.push(read_case(&file, case, &common, default_agent)?);
    }
    Ok(Eval {
        name: file.name.value,
        about: file.about,
        seed: file.seed,
        judge: file.judge,
        prompts: file.prompts,
        require: file.require,
        cases,
    })
}

fn read_case(
    file: &EvalFile,
    case: &Spanned<CaseFile>,
    common: &[Assertion],
    default_agent: &str,
) -> Result<Case, SourceError> {
    let at = |message: String| SourceError::at(case.place, message);
    let written = &case.value;
    check_name(&written.name).map_err(at)?;
    check_require(&written.require).map_err(at)?;
    let repeat = written.repeat.unwrap_or(file.repeat);
    check_repeat(repeat).map_err(at)?;
    if written.prompt.trim().is_empty() {
        return Err(at(format!("case `{}` asks nothing: its `prompt` is empty", written.name)));
    }
    if written.threshold.is_some_and(|threshold| !(0.0..=1.0).contains(&threshold)) {
        return Err(at("`threshold` must be between 0 and 1".to_owned()));
    }
    let repository = &written.repository;
    if repository.path.is_some() && !repository.files.is_empty() {
        return Err(at("a repository has `files` or a `path`, not both".to_owned()));
    }
    if repository.path.is_none() && repository.at.is_some() {
        return Err(at("`at` names a revision of a repository, so it needs a `path`".to_owned()));
    }
    let own = assertions(&written.assertions)?;
    if common.is_empty() && own.is_empty() {
        let message = format!("nothing is asserted of case `{}`, so it could not fail", written.name);
        return Err(at(message).hint("add `assert:` with at least one assertion"));
    }
    for agent in agents(file, written, default_agent) {
        if let Some(asked) = Direct::of(agent) {
            direct::check(agent, asked, file, case, (common, &own))?;
        }
    }
    if let (Some(judged), None) = (own.iter().chain(common).find(|one| one.is_judged()), &file.judge) {
        let message = format!("`{}` needs a judge", judged.name);
        return Err(at(message).hint("name its model at the top of the file: judge: vendor:model"));
    }
    Ok(Case {
        name: written.name.clone(),
        assertions: common.iter().cloned().chain(own).collect(),
        variants: variants(file, written, default_agent),
        repeat,
        file: written.clone(),
    })
}

fn assertions(files: &[Spanned<AssertionFile>]) -> Result<Vec<Assertion>, SourceError> {
    let read = |file: &Spanned<AssertionFile>| {
        check_of(&file.value).map_err(|message| SourceError::at(file.place, message))
    };
    files.iter().map(read).collect()
}

fn agents<'a>(file: &'a EvalFile, case: &'a CaseFile, default_agent: &'a str) -> Vec<&'a str> {
    let named = [&case.agents, &file.agents].into_iter().find(|agents| !agents.is_empty());
    named.map_or_else(|| vec![default_agent], |agents| agents.iter().map(String::as_str).collect())
}

/// Every point of the matrix.
fn variants(file: &EvalFile, case: &CaseFile, default_agent: &str) -> Vec<Variant> {
    let mut all = Vec::new();
    for agent in agents(file, case, default_agent) {
        for model in each(&file.models) {
            for prompt in each(&file.prompts.keys().cloned().collect::<Vec<_>>()) {
                for flow in each(&file.flows) {
                    let (agent, model, prompt) = (agent.to_owned(), model.clone(), prompt.clone());
                    all.push(Variant { agent, model, prompt, flow });
                }
            }
        }
    }
    all
}

/// Each of them, or nothing once.
fn each(values: &[String]) -> Vec<Option<String>> {
    if values.is_empty() { vec![None] } else { values.iter().cloned().map(Some).collect() }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 80 || name.starts_with('.') || !name.chars().all(is_plain) {
        return Err(format!(
            "`{name}` is not a name: up to 80 letters, digits, `-`, `_` and `.`; it names files"
        ));
    }
    Ok(())
}

fn check_repeat(repeat: u32) -> Result<(), String> {
    match repeat {
        1..=MOST_REPEATS => Ok(()),
        _ => Err(format!("`repeat` must be between 1 and {MOST_REPEATS}")),
    }
}

fn check_require(require: &Require) -> Result<(), String> {
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    let bad_k = |at: Option<AtK>| at.is_some_and(|at| at.k == 0 || !is_share(at.least));
    if require.pass_rate.is_some_and(|rate| !is_share(rate)) {
        return Err("`pass_rate` must be between 0 and 1".to_owned());
    }
    if bad_k(require.pass_at) || bad_k(require.pass_hat) {
        return Err("`k` must be 1 or more, and `least` between 0 and 1".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let error = parse(text, "claude").unwrap_err();
        let place = error.place.map(|place| format!("{place} ")).unwrap_or_default();
        let hint = error.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{place}{}{hint}", error.message)
    }

    #[test]
    fn a_case_needs_a_name_a_prompt_and_an_assertion() {
        let eval = parse(
            "name: smoke\ncases:\n  - name: search\n    prompt: Find the test files\n    assert:\n      - { type: contains, value: test }\n",
            "claude",
        )
        .unwrap();
        let case = &eval.cases[0];
        assert_eq!((case.name.as_str(), case.repeat, case.assertions.len()), ("search", 1, 1));
        assert_eq!(case.variants.iter().map(ToString::to_string).collect::<Vec<_>>(), ["claude"]);
    }

    #[test]
    fn a_matrix_measures_each_with_each() {
        let eval = parse(
            "name: matrix
agents: [claude, codex]
models: [small, large]
prompts: { terse: 'Briefly: {{ prompt }}', plain: '{{ prompt }}' }
flows: [plan]
repeat: 3
assert: [{ type: no-errors }]
cases:
  - { name: one, prompt: Do it }
  - { name: two, prompt: Do it, agents: [gemini], repeat: 5 }
",
            "claude",
        )
        .unwrap();
        assert_eq!((eval.cases[0].variants.len(), eval.cases[0].repeat), (8, 3));
        assert_eq!(eval.cases[0].variants[0].to_string(), "claude · small · plain · plan");
        assert_eq!((eval.cases[1].variants.len(), eval.cases[1].repeat), (4, 5));
    }

    #[test]
    fn a_model_that_is_asked_directly_has_no_repository() {
        let case = |agent: &str, rest: &str| {
            format!("name: a\nagents: [{agent}]\ncases:\n  - name: b\n    prompt: c\n{rest}")
        };
        let said = "    assert:\n      - { type: contains, value: x }\n";
        assert!(parse(&case("echo, 'openai:gpt-x'", said), "claude").is_ok());
        let error = |agent: &str, rest: &str| error(&case(agent, rest));
        assert_eq!(
            error("claude, echo", &format!("    repository: {{ path: . }}\n{said}")),
            "4:5 `echo` has no repository: case `b` gives it one"
        );
        assert_eq!(
            error("'openai:gpt-x'", &format!("    setup: make\n{said}")),
            "4:5 `openai:gpt-x` has no repository: case `b` sets one up"
        );
        assert_eq!(
            error("echo", &format!("{said}      - {{ type: git, value: {{ clean: true }} }}\n")),
            "8:9 `echo` has no repository: `git: {\"clean\":true}` cannot be said of it"
        );
        assert_eq!(
            error("echo", &format!("{said}assert:\n  - {{ type: files-modified, value: 1 }}\n")),
            "9:5 `echo` has no repository: `files-modified: 1` cannot be said of it"
        );
        assert_eq!(error("'gemini:'", said), "4:5 `gemini:` names no model");
        assert_eq!(
            error("echo", &format!("{said}models: [small]\n")),
            "4:5 `echo` is asked as it is: it has no `models` to choose from"
        );
        assert_eq!(
            error("echo", &format!("{said}flows: [plan]\n")),
            "4:5 `echo` is asked once: it goes through no `flows`"
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let case = |rest: &str| format!("name: a\ncases:\n  - name: b\n    prompt: c\n{rest}");
        assert_eq!(
            error(&case("    asert: []\n")),
            "5:5 unknown field `asert`, expected one of name, prompt, repository, setup, agents, cassette, assert, threshold, repeat, require, tags, group, timeout, known_patch (did you mean `assert`?)"
        );
        assert_eq!(
            error(&case("    assert:\n      - { type: contians, value: x }\n")),
            "6:9 unknown assertion `contians`; did you mean `contains`?"
        );
        assert_eq!(
            error(&case("")),
            "3:5 nothing is asserted of case `b`, so it could not fail (add `assert:` with at least one assertion)"
        );
        assert_eq!(
            error(&case("    assert: [{ type: llm-rubric, value: is it kind? }]\n")),
            "3:5 `llm-rubric: is it kind?` needs a judge (name its model at the top of the file: judge: vendor:model)"
        );
        assert_eq!(
            error("name: a/b\ncases: []\n"),
            "1:7 `a/b` is not a name: up to 80 letters, digits, `-`, `_` and `.`; it names files"
        );
        assert_eq!(error("name: a\ncases: []\n"), "1:7 an eval needs at least one case");
        assert_eq!(
            error(&case("    repository: { files: { a: b }, path: . }\n    assert: [{ type: no-errors }]\n")),
            "3:5 a repository has `files` or a `path`, not both"
        );
    }
}
