//! From YAML to a checked [`Script`].

use std::collections::BTreeSet;

use regex::{Regex, RegexBuilder};
use rehearsal_core::config::HumanDuration;
use rehearsal_core::yaml::{self, Spanned};
use rehearsal_core::{Place, SourceError, nearest};
use rehearsal_llm::chat::{FinishReason, Usage};

use super::file::{
    ActionFile, ConditionFile, FaultFile, FinishFile, SpeedFile, StageScriptFile, StatusFile, TurnFile,
};
use super::{Condition, Fault, Pace, Script, Times, Turn};
use crate::template::{BUILT_IN, Template, strings_of};

/// Enough for any expression that a person writes.
const MOST_REGEX: usize = 1024 * 1024;

pub(super) fn parse(text: &str) -> Result<Script, SourceError> {
    let file: StageScriptFile = yaml::from_str(text).map_err(|error| with_form(error, text))?;
    let mut known: BTreeSet<String> = file.vars.keys().cloned().collect();
    known.extend(BUILT_IN.iter().map(|name| (*name).to_owned()));
    let mut turns = Vec::with_capacity(file.turns.len());
    for turn in file.turns {
        turns.push(read_turn(turn, &mut known)?);
    }
    Ok(Script {
        seed: file.seed,
        pace: match file.speed {
            SpeedFile::Instant => Pace::Instant,
            SpeedFile::Profile(profile) => Pace::Profile {
                first: profile.first_token.0,
                per_second: profile.frames_per_second.clamp(0.1, 1_000_000.0),
                jitter: profile.jitter.clamp(0.0, 1.0),
            },
        },
        lint: file.lint,
        models: file.models,
        vars: file.vars,
        turns,
    })
}

/// A list that was not written as one: the right form of its key.
fn with_form(error: SourceError, text: &str) -> SourceError {
    if error.message != "expected a list" {
        return error;
    }
    // The value stands after its key, or below it.
    let upto = error.place.map_or(0, |place| usize::try_from(place.line).unwrap_or(usize::MAX));
    let mut lines = text.lines().take(upto).collect::<Vec<_>>().into_iter().rev();
    let words_of = |line: &str| line.split([' ', '{', ',']).map(str::to_owned).collect::<Vec<_>>();
    let key_in = |line: &str| {
        let words = words_of(line);
        LISTS.into_iter().find(|(key, _)| words.iter().any(|word| word.strip_suffix(':') == Some(*key)))
    };
    let form = lines.find_map(key_in).map_or("- …", |(_, form)| form);
    error.hint(format!("write `{form}`"))
}

/// The keys that take a list, and how that is written.
const LISTS: [(&str, &str); 4] = [
    ("do", "do: [{ run: make test }]"),
    ("tools", "tools: [Bash]"),
    ("models", "models: [gpt-6]"),
    ("turns", "turns: [{ say: Done. }]"),
];

fn read_turn(turn: Spanned<TurnFile>, known: &mut BTreeSet<String>) -> Result<Turn, SourceError> {
    let place = turn.place;
    let file = turn.value;
    let mut captures = Vec::new();
    for (name, expression) in file.capture {
        captures.push((name.clone(), read_regex(&expression)?));
        known.insert(name);
    }
    let silent = file.think.is_none() && file.say.is_none() && file.actions.is_empty();
    if silent && file.fault.is_none() {
        return Err(SourceError::at(place, "a turn needs one of `say`, `think`, `do` and `fault`")
            .hint("write `- say: Done.`, or `- fault: { status: { code: 529 } }`"));
    }
    let check = |text: &str, place| check_names(text, place, known);
    for action in &file.actions {
        for text in action_texts(&action.value) {
            check(text, action.place)?;
        }
        check_tool(action)?;
    }
    let template = |text: Option<Spanned<String>>| match text {
        None => Ok(None),
        Some(text) => check(&text.value, text.place).map(|()| Some(Template::new(text.value))),
    };
    Ok(Turn {
        place,
        name: file.name,
        think: template(file.think)?,
        say: template(file.say)?,
        when: read_condition(file.when)?,
        expect: read_condition(file.expect)?,
        captures,
        actions: file.actions.into_iter().map(|action| action.value).collect(),
        finish: file.finish.map(|finish| match finish {
            FinishFile::Stop => FinishReason::Stop,
            FinishFile::Length => FinishReason::Length,
            FinishFile::Refused => FinishReason::Refused,
        }),
        usage: file.usage.map(|usage| Usage {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            thinking: 0,
        }),
        fault: file.fault.map(read_fault).transpose()?,
        times: file.times.unwrap_or(Times::Exactly(1)),
    })
}

fn read_condition(file: Option<ConditionFile>) -> Result<Condition, SourceError> {
    let file = file.unwrap_or_default();
    Ok(Condition {
        contains: file.contains,
        matches: file.matches.as_ref().map(read_regex).transpose()?,
        result: file.result,
        model: file.model,
        lane: file.lane.map(read_lane).transpose()?,
        tools: file.tools,
    })
}

fn read_lane(lane: Spanned<String>) -> Result<String, SourceError> {
    let numbered = lane.value.strip_prefix("agent-").is_some_and(|number| number.parse::<u64>().is_ok());
    let known = ["main", "side", "agent"];
    if numbered || known.contains(&lane.value.as_str()) {
        return Ok(lane.value);
    }
    let error = SourceError::at(lane.place, format!("unknown lane `{}`", lane.value));
    Err(error.hint("lanes: main, side, agent (any sub-agent), agent-1, agent-2, …"))
}

fn read_regex(expression: &Spanned<String>) -> Result<Regex, SourceError> {
    RegexBuilder::new(&expression.value).size_limit(MOST_REGEX).build().map_err(|error| {
        // The library draws the expression with an arrow below it; the last line says what is wrong.
        let text = error.to_string();
        let told = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        SourceError::at(expression.place, format!("`{}` is no regular expression: {told}", expression.value))
    })
}

fn read_fault(fault: FaultFile) -> Result<Fault, SourceError> {
    Ok(match fault {
        FaultFile::Status(StatusFile { code, retry_after, retry, message }) => {
            if !(400..=599).contains(&code.value) {
                let message = format!("{} is no error: a status from 400 to 599 is", code.value);
                return Err(SourceError::at(code.place, message));
            }
            let retry_after = retry_after.map(|HumanDuration(time)| time);
            Fault::Status { code: code.value, retry_after, retry, message }
        }
        FaultFile::Cut(after) => Fault::Cut(after),
        FaultFile::HangAfter(after) => Fault::HangAfter(after),
        FaultFile::Hang => Fault::Hang,
        FaultFile::Stall(stall) => Fault::Stall { after: stall.after, time: stall.time.0 },
        FaultFile::Malformed(after) => Fault::Malformed(after),
        FaultFile::FirstToken(HumanDuration(time)) => Fault::FirstToken(time),
    })
}

fn check_tool(action: &Spanned<ActionFile>) -> Result<(), SourceError> {
    match &action.value {
        ActionFile::Tool(tool) if tool.arguments.is_some() && tool.text.is_some() => Err(SourceError::at(
            action.place,
            format!("tool `{}` has both `arguments` and `text`", tool.name),
        )
        .hint("`text` is for a tool that takes free text, `arguments` for all others")),
        _ => Ok(()),
    }
}

fn action_texts(action: &ActionFile) -> Vec<&str> {
    match action {
        ActionFile::WriteFile(file) => vec![&file.path, &file.content],
        ActionFile::EditFile(file) => vec![&file.path, &file.find, &file.replace],
        ActionFile::ReadFile(text) | ActionFile::Run(text) => vec![text],
        ActionFile::Tool(tool) => {
            let mut texts: Vec<&str> = tool.text.iter().map(String::as_str).collect();
            for value in tool.arguments.iter().flat_map(|arguments| arguments.values()) {
                strings_of(value, &mut |text| texts.push(text));
            }
            texts
        }
    }
}

fn check_names(text: &str, place: Option<Place>, known: &BTreeSet<String>) -> Result<(), SourceError> {
    for name in Template::names(text) {
        if known.contains(name) {
            continue;
        }
        let error = SourceError::at(place, format!("unknown variable `{name}`"));
        return Err(match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                error.hint(format!("known here: {}; `capture` and `vars` make more", known.join(", ")))
            }
        });
    }
    Ok(())
}
