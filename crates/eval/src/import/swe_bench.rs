//! From instances in the form of SWE-bench: a line of JSON each.

use rehearsal_core::SourceError;
use serde_json::{Map, Value, json};

use super::draft::{AssertionDraft, CaseDraft, EvalDraft, RepositoryDraft};
use super::names::Names;
use super::node::At;
use super::{Imported, NoteKind, Notes, Wanted, at_line, nowhere};

const HEAD: &str =
    "# Imported from SWE-bench style instances. `rehearsal eval oracle` tries each with its known patch.";
/// A longer line is not an instance.
const LONGEST_LINE: usize = 8 << 20;

/// Makes an eval of instances. `locate` says where the repository `owner/name` is; if it is not there, `Err` with where it should be.
pub fn swe_bench(
    text: &str,
    wanted: &Wanted<'_>,
    locate: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Imported, SourceError> {
    let (mut notes, mut names, mut cases) = (Notes::default(), Names::default(), Vec::new());
    for (line, instance) in instances(text)? {
        if wanted.most.is_some_and(|most| cases.len() >= most) {
            break;
        }
        let place = rehearsal_core::Place { line: line as u64, column: 1 };
        let at = At { place: Some(place), file: None };
        match case(&instance, &mut names, &at, &mut notes, locate) {
            Ok(case) => cases.push(case),
            Err(why) => {
                let what = instance.text("instance_id").unwrap_or_else(|| "an instance".to_owned());
                notes.add(NoteKind::Case, &at, format!("`{what}` is left out: {why}"));
            }
        }
    }
    let notes = notes.told();
    if cases.is_empty() {
        let error = nowhere("nothing can be imported: there is no whole instance");
        return Err(match notes.first() {
            Some(note) => error.hint(note.text.clone()),
            None => error,
        });
    }
    let draft = EvalDraft { name: wanted.name.to_owned(), cases, ..EvalDraft::default() };
    Ok(Imported { text: draft.write(HEAD)?, cases: draft.cases.len(), notes })
}

/// The objects of a text, each with its line: a line each, or one list of all.
fn instances(text: &str) -> Result<Vec<(usize, Instance)>, SourceError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('[') {
        let all: Vec<Map<String, Value>> = serde_json::from_str(text).map_err(|error| broken(&error, 0))?;
        return Ok(all.into_iter().map(|map| (1, Instance::of(map))).collect());
    }
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if line.len() > LONGEST_LINE {
            let message = format!("this line is longer than {} MiB", LONGEST_LINE >> 20);
            return Err(at_line(number + 1, message));
        }
        let map = serde_json::from_str(line).map_err(|error| broken(&error, number))?;
        all.push((number + 1, Instance::of(map)));
    }
    Ok(all)
}

fn broken(error: &serde_json::Error, before: usize) -> SourceError {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    at_line(before + error.line().max(1), format!("this is not an object of JSON: {message}"))
}

/// An instance: its keys are known in capital and in small letters.
struct Instance(Map<String, Value>);

impl Instance {
    fn of(map: Map<String, Value>) -> Self {
        Self(map.into_iter().map(|(key, value)| (key.to_ascii_lowercase(), value)).collect())
    }

    fn text(&self, key: &str) -> Option<String> {
        self.0.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
    }

    fn needed(&self, key: &str) -> Result<String, String> {
        self.text(key).ok_or_else(|| format!("it has no `{key}`"))
    }

    /// Names of tests: a list, or a text that is one.
    fn names(&self, key: &str) -> Result<Vec<String>, String> {
        let odd = || format!("its `{key}` is not a list of tests");
        let list = match self.0.get(key) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::String(text)) if text.trim().is_empty() => return Ok(Vec::new()),
            Some(Value::String(text)) => serde_json::from_str(text).map_err(|_| odd())?,
            Some(value) => value.clone(),
        };
        let names = list.as_array().ok_or_else(odd)?.iter().map(|name| name.as_str().map(str::to_owned));
        names.collect::<Option<_>>().ok_or_else(odd)
    }
}

fn case(
    instance: &Instance,
    names: &mut Names,
    at: &At,
    notes: &mut Notes,
    locate: &dyn Fn(&str) -> Result<String, String>,
) -> Result<CaseDraft, String> {
    let id = instance.needed("instance_id")?;
    let repository = repository_name(&instance.needed("repo")?)?;
    let commit = commit(&instance.needed("base_commit")?)?;
    let prompt = instance.needed("problem_statement")?;
    let fail_to_pass = instance.names("fail_to_pass")?;
    let pass_to_pass = instance.names("pass_to_pass")?;
    if fail_to_pass.is_empty() {
        return Err("its `fail_to_pass` names no test, so doing nothing would pass".to_owned());
    }
    let path = locate(&repository).unwrap_or_else(|path| {
        let told = format!("`{id}`: there is no repository `{repository}` at `{path}`: clone it there");
        notes.add(NoteKind::Changed, at, told);
        path
    });
    let value = if pass_to_pass.is_empty() {
        json!({ "fail_to_pass": fail_to_pass })
    } else {
        json!({ "fail_to_pass": fail_to_pass, "pass_to_pass": pass_to_pass })
    };
    let tests =
        AssertionDraft { kind: "tests".to_owned(), value, weight: 1.0, threshold: None, metric: None };
    tests.check()?;
    Ok(CaseDraft {
        name: names.give(&id, "instance"),
        group: Some(repository),
        prompt,
        repository: Some(RepositoryDraft { path, at: commit, patch: patch(instance.text("test_patch")) }),
        assertions: vec![tests],
        known_patch: patch(instance.text("patch")),
        ..CaseDraft::default()
    })
}

/// A patch ends with a line's end; without it, git does not take it, and one line would be taken for the name of a file.
fn patch(text: Option<String>) -> Option<String> {
    text.map(|text| if text.ends_with('\n') { text } else { format!("{text}\n") })
}

/// `owner/name`: it becomes part of a path.
fn repository_name(name: &str) -> Result<String, String> {
    let is_plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() > 2 || !parts.iter().all(|part| is_plain(part)) {
        return Err(format!("its `repo` is not owner/name but `{}`", name.escape_debug()));
    }
    Ok(name.to_owned())
}

/// It is given to git: a name of a branch or an option is none.
fn commit(text: &str) -> Result<String, String> {
    let is_hash = (7..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit());
    if is_hash {
        Ok(text.to_owned())
    } else {
        Err(format!("its `base_commit` is not a commit but `{}`", text.escape_debug()))
    }
}

#[cfg(test)]
mod tests;
