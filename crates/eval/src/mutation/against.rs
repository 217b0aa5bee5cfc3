//! What one assertion forbids: for what must not be there, nothing can be taken away, so it is put there.

use regex::Regex;

use super::Mutant;
use super::changed::{change, create};
use super::did::tool;
use crate::assertion::{Assertion, Check, Pattern};
use crate::trial::{ChangeKind, Doing, PullRequest, Trial};

pub(super) fn mutants(trial: &Trial, assertion: &Assertion) -> Vec<Mutant> {
    let made =
        if assertion.negated { forbidden(trial, &assertion.check) } else { broken(trial, &assertion.check) };
    made.into_iter().collect()
}

/// What breaks an assertion that says that something is not there.
fn forbidden(trial: &Trial, check: &Check) -> Option<Mutant> {
    let says = |text: String| {
        Mutant::of(trial, format!("`{}` is said", short(&text)), |mutant| {
            mutant.output = format!("{}\n{text}", mutant.output);
        })
    };
    let is = |text: &str| {
        Mutant::of(trial, format!("`{}` is the answer", short(text)), |mutant| {
            text.clone_into(&mut mutant.output)
        })
    };
    let calls = |tools: &[String], arguments: &str| {
        Mutant::of(trial, format!("`{}` is called", tools.join("`, `")), |mutant| {
            mutant.steps.extend(tools.iter().map(|name| tool(name, arguments, Doing::Other)));
        })
    };
    Some(match check {
        Check::Contains { texts, .. } => says(texts.join("\n")),
        Check::Equals(text) | Check::StartsWith(text) => is(text),
        Check::Matches(regex) => says(example(regex)?),
        Check::IsJson(None) => is("{}"),
        Check::ToolUsed { written, .. } => calls(&[filled(written)], "{}"),
        Check::ToolArguments { tool, contain } => calls(std::slice::from_ref(tool), &contain.to_string()),
        Check::ToolSequence { tools, exact: false } => calls(tools, "{}"),
        Check::FilesCreated(patterns) => Mutant::of(trial, "the files are created", |mutant| {
            for pattern in patterns {
                create(mutant, &filled(&pattern.written), "new");
            }
        }),
        Check::DiffMatches(regex) => {
            let line = example(regex)?;
            Mutant::of(trial, format!("`{}` is added", short(&line)), |mutant| {
                mutant.diff.push_str(&line);
                mutant.diff.push('\n');
            })
        }
        Check::PullRequest { merged, title } => {
            let title = title.as_ref().map_or_else(|| Some("A pull request".to_owned()), example)?;
            let opened = PullRequest { title, merged: merged.unwrap_or(true) };
            Mutant::of(trial, "a pull request is opened", |mutant| mutant.pull_request = Some(opened))
        }
        Check::GhCalled(regex) => {
            let call = example(regex)?;
            Mutant::of(trial, format!("gh is called with `{}`", short(&call)), |mutant| {
                mutant.gh_calls.push(call)
            })
        }
        Check::AgentsWorked(agents) => Mutant::of(trial, "these agents work", |mutant| {
            let works = |name: &String| crate::trial::Step::Agent { name: name.clone() };
            mutant.steps.extend(agents.iter().map(works));
        }),
        _ => return None,
    })
}

/// What breaks an assertion that only a certain file or step breaks.
fn broken(trial: &Trial, check: &Check) -> Option<Mutant> {
    match check {
        Check::Untouched(patterns) => {
            let path = patterns.0.iter().find_map(path_of)?;
            Some(Mutant::of(trial, format!("`{path}` is touched"), |mutant| {
                mutant.changes.push(change(&path, ChangeKind::Modified));
            }))
        }
        Check::StepOrder { after, .. } => {
            let last = *after;
            Some(Mutant::of(trial, format!("{last:?} comes last").to_lowercase(), |mutant| {
                mutant.steps.push(tool("last", "{}", last));
            }))
        }
        Check::ToolUsed { written, times, .. } if times.max < 1000 => {
            let name = filled(written);
            Some(Mutant::of(trial, format!("`{name}` is called a thousand times"), |mutant| {
                mutant.steps.extend(std::iter::repeat_n(tool(&name, "{}", Doing::Other), 1000));
            }))
        }
        _ => None,
    }
}

/// A path that a pattern takes.
fn path_of(pattern: &Pattern) -> Option<String> {
    [filled(&pattern.written), pattern.written.replace("**/", "").replace('*', "x")]
        .into_iter()
        .find(|path| pattern.glob.is_match(path))
}

/// A name that a pattern takes, as a rule.
fn filled(pattern: &str) -> String {
    pattern.replace("**", "x").replace(['*', '?'], "x")
}

/// A text that a regular expression matches: often its own, without what only it understands.
fn example(regex: &Regex) -> Option<String> {
    let written = regex.as_str();
    let plain = written.trim_start_matches("(?i)").trim_matches(['^', '$']).replace("\\b", "");
    let loose = plain.replace(".*", " ").replace(".+", " x ").replace("\\s+", " ").replace("\\s*", "");
    let loose = loose.replace("\\d+", "7").replace("\\d", "7").replace("\\w+", "x").replace('\\', "");
    let first = loose.split('|').next().unwrap_or_default().trim_matches(['(', ')']).to_owned();
    [written.to_owned(), plain, loose, first].into_iter().find(|text| regex.is_match(text))
}

fn short(text: &str) -> String {
    const MOST: usize = 40;
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(MOST).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}
