//! The signals an agent may give in its final text.

use serde::{Deserialize, Serialize};

/// `<promise>…</promise>` in the final text of a run. A hint, never the only evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Promise {
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

    fn of_body(body: &str) -> Option<Self> {
        let body = body.trim();
        if body == "COMPLETE" {
            return Some(Self::Complete);
        }
        let (word, rest) = body.split_once(':').unwrap_or((body, ""));
        let rest = rest.trim().to_owned();
        match word.trim() {
            "BLOCKED" => {
                Some(Self::Blocked(if rest.is_empty() { "no reason given".to_owned() } else { rest }))
            }
            "CONTINUE" => Some(Self::Continue(rest)),
            _ => None,
        }
    }
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

    proptest! {
        #[test]
        fn no_text_panics(text in "(<promise>|</promise>|BLOCKED:|CONTINUE|COMPLETE|é|.){0,12}") {
            let _ = Promise::find(&text);
        }
    }
}
