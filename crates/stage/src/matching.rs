//! Which turn a request gets.

use rehearsal_llm::chat::texts;

use crate::client::Request;
use crate::clip::{end_of, start_of};
use crate::script::{Condition, Script, Times, Turn};

/// So many results of tools, and so many turns that do not fit, are told.
const MOST_TOLD: usize = 3;

impl Condition {
    /// Why a request does not fit; none if it does.
    pub(crate) fn misfit(&self, request: &Request) -> Option<String> {
        let chat = &request.chat;
        if let Some(model) = &self.model
            && !chat.model.contains(model.as_str())
        {
            return Some(format!("the model is `{}`, not `{model}`", start_of(&chat.model)));
        }
        if let Some(missing) =
            self.tools.iter().find(|name| !chat.tools.iter().any(|tool| tool.name == **name))
        {
            return Some(format!("tool `{missing}` is not offered"));
        }
        if let Some(wanted) = &self.result
            && !chat.last_results().any(|result| result.text().contains(wanted.as_str()))
        {
            return Some(format!("no result of the last tools contains `{wanted}`"));
        }
        if self.contains.is_none() && self.matches.is_none() {
            return None;
        }
        let said = chat.last_user_text();
        if let Some(wanted) = &self.contains
            && !said.contains(wanted.as_str())
        {
            return Some(format!("the user's last message does not contain `{wanted}`"));
        }
        if let Some(wanted) = &self.matches
            && !wanted.is_match(&said)
        {
            return Some(format!("the user's last message does not match `{wanted}`"));
        }
        None
    }

    /// Whether a lane is meant; without one the main conversation is.
    fn takes(&self, lane: &str) -> bool {
        match self.lane.as_deref() {
            None => lane == "main",
            Some("agent") => lane.starts_with("agent-"),
            Some(wanted) => lane == wanted,
        }
    }
}

impl Turn {
    fn is_used_up(&self, played: u64) -> bool {
        match self.times {
            Times::Exactly(times) => played >= times,
            Times::Any => false,
        }
    }

    /// How it is called in messages.
    pub(crate) fn title(&self, index: usize) -> String {
        let place = self.place.map(|place| format!(" (line {})", place.line)).unwrap_or_default();
        match &self.name {
            Some(name) => format!("turn `{name}`{place}"),
            None => format!("turn {}{place}", index + 1),
        }
    }
}

/// The first turn that is not used up and that fits.
pub(crate) fn choose(script: &Script, played: &[u64], request: &Request) -> Option<usize> {
    let mut turns = script.turns.iter().zip(played).enumerate();
    turns
        .find(|(_, (turn, played))| {
            !turn.is_used_up(**played)
                && turn.when.takes(&request.lane)
                && turn.when.misfit(request).is_none()
        })
        .map(|(index, _)| index)
}

/// What was asked, and what would have been expected: for whoever wrote the script.
pub(crate) fn explain_miss(script: &Script, played: &[u64], request: &Request) -> String {
    let open: Vec<(usize, &Turn)> = script
        .turns
        .iter()
        .enumerate()
        .filter(|(index, turn)| !turn.is_used_up(played.get(*index).copied().unwrap_or(0)))
        .collect();
    let expected = match open.first() {
        None => format!("all {} turns of the script were played", script.turns.len()),
        Some(_) => {
            let reasons = open.iter().take(MOST_TOLD).map(|(index, turn)| {
                let reason = if turn.when.takes(&request.lane) {
                    turn.when.misfit(request).unwrap_or_default()
                } else {
                    format!("it is for lane `{}`", turn.when.lane.as_deref().unwrap_or("main"))
                };
                format!("{} does not fit: {reason}", turn.title(*index))
            });
            reasons.collect::<Vec<_>>().join("; ")
        }
    };
    format!("no turn for this request: {expected}. Asked: {}", asked(request))
}

/// What was asked, in a line.
pub(crate) fn asked(request: &Request) -> String {
    let chat = &request.chat;
    let said = end_of(&chat.last_user_text());
    let results: Vec<String> =
        chat.last_results().take(MOST_TOLD).map(|result| end_of(&texts(&result.parts))).collect();
    let results =
        if results.is_empty() { String::new() } else { format!(", tools answered {}", results.join(" | ")) };
    format!(
        "model `{}`, lane `{}`, {} messages, {} tools, the user said \"{said}\"{results}",
        start_of(&chat.model),
        request.lane,
        chat.messages.len(),
        chat.tools.len(),
    )
}
