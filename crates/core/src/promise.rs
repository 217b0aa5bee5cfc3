//! The signals an agent may give in its final text.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// `<promise>…</promise>` in the final text of a run. A hint, never the only evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// `<promise>DONE</promise>` or `<promise>DONE: why nothing had to change</promise>`: the task of the run is done.
    Done(String),
    /// `<promise>FAILED: why</promise>`: the task cannot be done.
    Failed(String),
    /// `<promise>APPROVE: why</promise>`: a reviewer lets the work in.
    Approve(String),
    /// `<promise>REJECT: what has to change</promise>`: a reviewer sends the work back.
    Reject(String),
    /// `<promise>COMPLETE</promise>`: all tasks are done.
    Complete,
    /// `<promise>BLOCKED: why</promise>`: it cannot go on without a human.
    Blocked(String),
    /// `<promise>CONTINUE: message</promise>`: more to do; the message goes to the next run.
    Continue(String),
}

const OPEN: &str = "<promise>";
const CLOSE: &str = "</promise>";

impl Promise {
    /// The last well-formed signal in the text, since an agent may quote its instructions before it decides.
    pub fn find(text: &str) -> Option<Self> {
        let starts: Vec<usize> = text.match_indices(OPEN).map(|(at, _)| at + OPEN.len()).collect();
        starts.iter().rev().find_map(|&start| {
            let body = &text[start..];
            Self::of_body(&body[..body.find(CLOSE)?])
        })
    }

    /// The word that the agent said.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Done(_) => "DONE",
            Self::Failed(_) => "FAILED",
            Self::Approve(_) => "APPROVE",
            Self::Reject(_) => "REJECT",
            Self::Complete => "COMPLETE",
            Self::Blocked(_) => "BLOCKED",
            Self::Continue(_) => "CONTINUE",
        }
    }

    fn of_body(body: &str) -> Option<Self> {
        let body = body.trim();
        if body == "COMPLETE" {
            return Some(Self::Complete);
        }
        let (word, rest) = body.split_once(':').unwrap_or((body, ""));
        let rest = rest.trim().to_owned();
        let reason = |rest: String| if rest.is_empty() { "no reason given".to_owned() } else { rest };
        match word.trim() {
            "DONE" => Some(Self::Done(rest)),
            "FAILED" => Some(Self::Failed(reason(rest))),
            "APPROVE" => Some(Self::Approve(rest)),
            "REJECT" => Some(Self::Reject(reason(rest))),
            "BLOCKED" => Some(Self::Blocked(reason(rest))),
            "CONTINUE" => Some(Self::Continue(rest)),
            _ => None,
        }
    }
}

/// What an agent said itself: its text without the lines that it only repeats from its prompt. A program that prints its prompt
/// has promised nothing.
pub fn without_prompt(text: &str, prompt: &str) -> String {
    if !text.contains(OPEN) {
        return text.to_owned();
    }
    let asked: BTreeSet<&str> = prompt.lines().map(str::trim).filter(|line| line.contains(OPEN)).collect();
    let own = text.split_inclusive('\n').filter(|line| !asked.contains(line.trim()));
    own.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_signal_is_read_with_its_words() {
        let find = |text| Promise::find(text);
        assert_eq!(find("Working... <promise>COMPLETE</promise>"), Some(Promise::Complete));
        assert_eq!(
            find("<promise>BLOCKED: npm not found</promise>"),
            Some(Promise::Blocked("npm not found".into()))
        );
        assert_eq!(
            find("<promise>CONTINUE: two of three done</promise>\n"),
            Some(Promise::Continue("two of three done".into()))
        );
        assert_eq!(find("<promise>BLOCKED:</promise>"), Some(Promise::Blocked("no reason given".into())));
    }

    #[test]
    fn a_cut_or_unknown_signal_is_none() {
        assert_eq!(Promise::find("Starting..."), None);
        assert_eq!(Promise::find("<promise>COMPLETE"), None);
        assert_eq!(Promise::find("<promise>MAYBE</promise>"), None);
        assert_eq!(Promise::find("<promise>INCOMPLETE</promise>"), None);
    }

    #[test]
    fn the_last_signal_counts_for_agents_quote_their_instructions() {
        let text =
            "I should say <promise>COMPLETE</promise> only when done.\n<promise>BLOCKED: no key</promise>";
        assert_eq!(Promise::find(text), Some(Promise::Blocked("no key".into())));
    }

    #[test]
    fn the_signals_of_one_task_and_of_a_review() {
        let find = |text| Promise::find(text);
        assert_eq!(find("<promise>DONE</promise>"), Some(Promise::Done(String::new())));
        assert_eq!(
            find("<promise>DONE: it was there already</promise>"),
            Some(Promise::Done("it was there already".into()))
        );
        assert_eq!(
            find("<promise>FAILED: no such API</promise>"),
            Some(Promise::Failed("no such API".into()))
        );
        assert_eq!(find("<promise>APPROVE: tested</promise>"), Some(Promise::Approve("tested".into())));
        assert_eq!(find("<promise>REJECT: rename foo</promise>"), Some(Promise::Reject("rename foo".into())));
    }

    #[test]
    fn an_agent_that_prints_its_prompt_has_promised_nothing() {
        let prompt = "End with one of:\n   - `<promise>CONTINUE: message</promise>` when there is more\n";
        let echoed = format!("401 Unauthorized\n{prompt}");
        assert_eq!(Promise::find(&without_prompt(&echoed, prompt)), None);
        let honest = format!("{prompt}\nI am done.\n<promise>CONTINUE: two left</promise>");
        assert_eq!(
            Promise::find(&without_prompt(&honest, prompt)),
            Some(Promise::Continue("two left".into()))
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(<promise>|</promise>|BLOCKED:|CONTINUE|COMPLETE|é|.){0,12}") {
            let _ = Promise::find(&text);
        }
    }
}
