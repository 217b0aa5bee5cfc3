//! From what people write to what is checked.

use globset::{Glob, GlobSetBuilder};
use rehearsal_core::nearest;
use rehearsal_llm::json_schema::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::value::{map, number, patterns, range, regex, text, texts, whole};
use super::{Assertion, AssertionFile, Check, Patterns, Range};
use crate::trial::Doing;

/// Every name, and what its `value` is.
pub const NAMES: &[(&str, &str)] = &[
    ("contains", "the final text contains this"),
    ("icontains", "the same, whatever the case of letters"),
    ("contains-all", "the final text contains all of these"),
    ("contains-any", "the final text contains one of these"),
    ("equals", "the final text is this"),
    ("starts-with", "the final text begins with this"),
    ("regex", "the final text matches this"),
    ("is-json", "the final text is JSON; with a JSON Schema: and conforms to it"),
    ("output-matches", "the final text contains this, or one of these"),
    ("no-errors", "no error in the final text, and the run ended well"),
    ("trajectory-contains", "these agents worked"),
    ("trajectory:tool-used", "a tool was used: its name or pattern, or { name, min, max }"),
    ("trajectory:tool-args-match", "{ name, args }: a tool was called with these arguments, others allowed"),
    (
        "trajectory:tool-sequence",
        "tools in this order, others in between; { steps, mode: exact } for nothing else",
    ),
    ("trajectory:step-count", "how many steps: a number, or { min, max }"),
    ("files-modified", "how many files are another now: a number, or { min, max }"),
    ("files-created", "patterns of paths, each with a new file"),
    ("files-untouched", "patterns of paths in which nothing is another"),
    ("diff-contains", "the difference matches this"),
    ("diff-scope", "patterns of paths outside of which nothing is another"),
    ("command", "a shell command that must end with 0 in what the agent left; or { run, exit }"),
    ("tests", "{ fail_to_pass, pass_to_pass }: names of tests, or `pass_to_pass: all`"),
    ("git", "{ commits, clean, subject }"),
    ("pull-request", "{ merged, title }"),
    ("gh-called", "a call of `gh` matches this"),
    (
        "step-order",
        "{ after, comes }: the last step of the one kind is followed by one of the other (read, edit, test, run)",
    ),
    ("no-loops", "the same call at most so often in a row"),
    ("max-tokens", "at most so many tokens"),
    ("max-turns", "at most so many turns"),
    ("latency", "at most so many milliseconds"),
    ("cost", "at most so many dollars"),
    ("replay-exact", "everything was asked as it was recorded"),
    ("llm-rubric", "a judge finds that this holds; or { rubric, votes }"),
];

/// Understands an assertion, or says what is wrong with it.
pub fn check_of(file: &AssertionFile) -> Result<Assertion, String> {
    let written = file.kind.replace('_', "-");
    let (negated, name) = match written.strip_prefix("not-") {
        Some(name) => (true, name),
        None => (false, written.as_str()),
    };
    if !NAMES.iter().any(|(known, _)| *known == name) {
        let near = nearest(name, NAMES.iter().map(|(known, _)| *known));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(format!("unknown assertion `{}`{hint}", file.kind));
    }
    if !(file.weight.is_finite() && file.weight >= 0.0) {
        return Err("`weight` must be a number, 0 or more".to_owned());
    }
    // A limit is written as promptfoo does, with `threshold`, or as a value like everything else.
    let value = match (&file.value, file.threshold) {
        (Value::Null, Some(threshold)) => &Value::from(threshold),
        (value, _) => value,
    };
    let check = check(name, value).map_err(|error| format!("`{}`: {error}", file.kind))?;
    let name = file.metric.clone().unwrap_or_else(|| title(&file.kind, value));
    Ok(Assertion { name, negated, weight: file.weight, check })
}

fn check(name: &str, value: &Value) -> Result<Check, String> {
    let contains = |texts, any, ignore_case| Check::Contains { texts, any, ignore_case };
    Ok(match name {
        "contains" => contains(vec![text(value)?], false, false),
        "icontains" => contains(vec![text(value)?], false, true),
        "contains-all" => contains(texts(value)?, false, false),
        "contains-any" | "output-matches" => contains(texts(value)?, true, false),
        "equals" => Check::Equals(text(value)?),
        "starts-with" => Check::StartsWith(text(value)?),
        "regex" => Check::Matches(regex(&text(value)?)?),
        "is-json" => is_json(value)?,
        "no-errors" => Check::NoErrors,
        "trajectory-contains" => Check::AgentsWorked(texts(value)?),
        "trajectory:tool-used" => tool_used(value)?,
        "trajectory:tool-args-match" => tool_arguments(value)?,
        "trajectory:tool-sequence" => tool_sequence(value)?,
        "trajectory:step-count" => Check::Steps(range(value)?),
        "files-modified" => Check::FilesModified(range(value)?),
        "files-created" => Check::FilesCreated(patterns(value)?),
        "files-untouched" => Check::Untouched(Patterns(patterns(value)?)),
        "diff-contains" => Check::DiffMatches(regex(&text(value)?)?),
        "diff-scope" => Check::DiffScope(Patterns(patterns(value)?)),
        "command" => command(value)?,
        "tests" => tests(value)?,
        "git" => git(value)?,
        "pull-request" => pull_request(value)?,
        "gh-called" => Check::GhCalled(regex(&text(value)?)?),
        "step-order" => step_order(value)?,
        "no-loops" => Check::NoLoops(if value.is_null() { 3 } else { whole(value, "value")?.max(1) }),
        "max-tokens" => Check::Tokens(whole(value, "value")?),
        "max-turns" => Check::Turns(whole(value, "value")?),
        "latency" => Check::LatencyMs(milliseconds(value)?),
        "cost" => Check::CostUsd(number(value, "value")?),
        "replay-exact" => Check::ReplayExact,
        _ => rubric(value)?,
    })
}

fn is_json(value: &Value) -> Result<Check, String> {
    if value.is_null() {
        return Ok(Check::IsJson(None));
    }
    JsonSchema::compile(value).map_err(|error| format!("`value` is not a JSON Schema: {error}"))?;
    Ok(Check::IsJson(Some(value.clone())))
}

fn tool_used(value: &Value) -> Result<Check, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Used {
        name: String,
        min: Option<u64>,
        max: Option<u64>,
    }
    let used = match value {
        Value::Object(_) => map(value)?,
        _ => Used { name: text(value)?, min: None, max: None },
    };
    let times = Range { min: used.min.unwrap_or(1), max: used.max.unwrap_or(u64::MAX) };
    let glob = Glob::new(&used.name).map_err(|error| format!("`{}`: {}", used.name, error.kind()))?;
    let tools = GlobSetBuilder::new().add(glob).build().map_err(|error| error.to_string())?;
    Ok(Check::ToolUsed { tools, written: used.name, times })
}

fn tool_arguments(value: &Value) -> Result<Check, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        name: String,
        args: Value,
    }
    let arguments: Arguments = map(value)?;
    Ok(Check::ToolArguments { tool: arguments.name, contain: arguments.args })
}

fn tool_sequence(value: &Value) -> Result<Check, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sequence {
        steps: Vec<String>,
        mode: Option<String>,
    }
    let sequence = match value {
        Value::Object(_) => map(value)?,
        _ => Sequence { steps: texts(value)?, mode: None },
    };
    let exact = match sequence.mode.as_deref() {
        None | Some("in_order" | "in-order") => false,
        Some("exact") => true,
        Some(other) => return Err(format!("`mode` is `exact` or `in_order`, not `{other}`")),
    };
    Ok(Check::ToolSequence { tools: sequence.steps, exact })
}

fn command(value: &Value) -> Result<Check, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Command {
        run: String,
        #[serde(default)]
        exit: i32,
    }
    let command = match value {
        Value::Object(_) => map(value)?,
        _ => Command { run: text(value)?, exit: 0 },
    };
    Ok(Check::Command { command: command.run, code: command.exit })
}

fn tests(value: &Value) -> Result<Check, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Tests {
        #[serde(default)]
        fail_to_pass: Vec<String>,
        #[serde(default)]
        pass_to_pass: Value,
    }
    let tests: Tests = map(value)?;
    let keep_all = tests.pass_to_pass == "all";
    let pass_to_pass = match &tests.pass_to_pass {
        Value::Null => Vec::new(),
        _ if keep_all => Vec::new(),
        names => texts(names).map_err(|_| "`pass_to_pass` is a list of tests, or `all`".to_owned())?,
    };
    if tests.fail_to_pass.is_empty() && pass_to_pass.is_empty() && !keep_all {
        return Err("it names no test, so it could not fail".to_owned());
    }
    Ok(Check::Tests { fail_to_pass: tests.fail_to_pass, pass_to_pass, keep_all })
}

fn git(value: &Value) -> Result<Check, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Git {
        #[serde(default)]
        commits: Value,
        #[serde(default)]
        clean: bool,
        subject: Option<String>,
    }
    let git: Git = map(value)?;
    let commits = (!git.commits.is_null()).then(|| range(&git.commits)).transpose();
    let commits = commits.map_err(|error| error.replace("`value`", "`commits`"))?;
    let subject = git.subject.as_deref().map(regex).transpose()?;
    if commits.is_none() && !git.clean && subject.is_none() {
        return Err("it says nothing, so it could not fail".to_owned());
    }
    Ok(Check::Git { commits, clean: git.clean, subject })
}

fn pull_request(value: &Value) -> Result<Check, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        merged: Option<bool>,
        title: Option<String>,
    }
    let wanted = if value.is_null() { Wanted { merged: None, title: None } } else { map(value)? };
    let title = wanted.title.as_deref().map(regex).transpose()?;
    Ok(Check::PullRequest { merged: wanted.merged, title })
}

fn step_order(value: &Value) -> Result<Check, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Order {
        after: Doing,
        comes: Doing,
    }
    let order: Order = map(value)?;
    Ok(Check::StepOrder { after: order.after, comes: order.comes })
}

fn milliseconds(value: &Value) -> Result<u64, String> {
    let number = number(value, "value")?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 or more; a cast saturates"
    )]
    Ok(number.round() as u64)
}

fn rubric(value: &Value) -> Result<Check, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rubric {
        rubric: String,
        votes: Option<u32>,
    }
    let rubric = match value {
        Value::Object(_) => map(value)?,
        _ => Rubric { rubric: text(value)?, votes: None },
    };
    match rubric.votes {
        Some(votes) if votes % 2 == 0 => {
            Err(format!("`votes` must be odd, so that there is a majority, not {votes}"))
        }
        votes => Ok(Check::Rubric { rubric: rubric.rubric, votes: votes.unwrap_or(1) }),
    }
}

/// Longer values are cut in a title.
const TITLE: usize = 60;

fn title(kind: &str, value: &Value) -> String {
    let value = match value {
        Value::Null => return kind.to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let short: String = value.chars().take(TITLE).collect();
    let mark = if short.len() < value.len() { "…" } else { "" };
    format!("{kind}: {}{mark}", short.replace('\n', " "))
}
