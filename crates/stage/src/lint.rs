//! What a vendor would refuse in a request.

use std::collections::BTreeMap;
use std::fmt;

use rehearsal_llm::chat::{ChatRequest, Message, Part, Role};
use rehearsal_llm::wire::Dialect;

use crate::clip::start_of;

/// More of them say nothing new.
const MOST_FINDINGS: usize = 20;

/// Everything that is wrong, in the order of the conversation.
pub(crate) fn lint(dialect: Dialect, chat: &ChatRequest) -> Vec<String> {
    let mut findings = Vec::new();
    if chat.model.is_empty() {
        findings.push("no `model` is named".to_owned());
    }
    if dialect == Dialect::Anthropic && chat.max_tokens.is_none() {
        findings.push("`max_tokens` is missing".to_owned());
    }
    let first = chat.messages.iter().find(|message| message.role != Role::System);
    match first {
        None => findings.push("there is no message".to_owned()),
        Some(message) if message.role == Role::Assistant && dialect == Dialect::Anthropic => {
            findings.push("the first message is the model's".to_owned());
        }
        Some(_) => {}
    }
    pairs(dialect, &chat.messages, &mut findings);
    findings.truncate(MOST_FINDINGS);
    // Ids and names come from anywhere.
    findings.iter().map(|finding| start_of(finding)).collect()
}

/// Every call has one result, before the model speaks again; every result has a call.
fn pairs(dialect: Dialect, messages: &[Message], findings: &mut Vec<String>) {
    let mut open: BTreeMap<&str, (&str, Place)> = BTreeMap::new();
    let mut numbers = Numbers::of(dialect, messages);
    for message in messages {
        if message.role == Role::Assistant {
            unanswered(&mut open, findings);
        }
        for part in &message.parts {
            if !matches!(part, Part::ToolCall(_) | Part::ToolResult(_)) {
                continue;
            }
            let at = numbers.at(part);
            match part {
                Part::ToolCall(call) if message.role != Role::Assistant => {
                    findings.push(format!("{at}the {} calls `{}`", message.role.as_str(), call.name));
                }
                Part::ToolCall(call) if open.insert(&call.id, (&call.name, at)).is_some() => {
                    findings.push(format!("{at}two calls have the id `{}`", call.id));
                }
                Part::ToolResult(result) if open.remove(result.id.as_str()).is_none() => {
                    findings.push(format!("{at}result `{}` has no call before it", result.id));
                }
                _ => {}
            }
        }
        numbers.go_on();
    }
    unanswered(&mut open, findings);
}

fn unanswered(open: &mut BTreeMap<&str, (&str, Place)>, findings: &mut Vec<String>) {
    for (id, (name, at)) in std::mem::take(open) {
        findings.push(format!("{at}call `{id}` of `{name}` has no result"));
    }
}

/// The numbers of messages in the request's own list, from 1: ours has what the system says in front, and results together.
struct Numbers {
    dialect: Dialect,
    number: usize,
    results: usize,
}

impl Numbers {
    fn of(dialect: Dialect, messages: &[Message]) -> Self {
        // Where the system has a field of its own, its words are in no list.
        let is_apart = matches!(dialect, Dialect::Anthropic | Dialect::Gemini)
            && messages.first().is_some_and(|message| message.role == Role::System);
        Self { dialect, number: usize::from(!is_apart), results: 0 }
    }

    fn at(&mut self, part: &Part) -> Place {
        match (self.dialect, part) {
            // A list of items, of which several are one message for us: their ids have to do.
            (Dialect::OpenAiResponses, _) => return Place::Unnumbered,
            (Dialect::OpenAiChat, Part::ToolResult(_)) => {
                self.number += usize::from(self.results > 0);
                self.results += 1;
            }
            _ => {}
        }
        Place::Message(self.number)
    }

    fn go_on(&mut self) {
        self.number += 1;
        self.results = 0;
    }
}

/// Where a part stands, as a finding begins. Most parts have none, so it is not written before there is one.
#[derive(Clone, Copy)]
enum Place {
    Message(usize),
    Unnumbered,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(number) => write!(f, "message {number}: "),
            Self::Unnumbered => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(body: &str) -> Vec<String> {
        findings_of(Dialect::Anthropic, body)
    }

    fn findings_of(dialect: Dialect, body: &str) -> Vec<String> {
        let received = dialect.read_request(body.as_bytes()).unwrap();
        lint(dialect, &received.chat)
    }

    #[test]
    fn a_good_conversation_has_no_findings() {
        let body = r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"},
            {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}},{"type":"tool_use","id":"2","name":"b","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"2"},{"type":"tool_result","tool_use_id":"1"}]}]}"#;
        assert_eq!(findings(body), Vec::<String>::new());
    }

    #[test]
    fn what_is_missing_is_told() {
        assert_eq!(findings("{}"), ["no `model` is named", "`max_tokens` is missing", "there is no message"]);
    }

    #[test]
    fn calls_and_results_come_in_pairs() {
        let body = r#"{"model":"m","max_tokens":1,"messages":[
            {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"9"}]}]}"#;
        assert_eq!(
            findings(body),
            [
                "the first message is the model's",
                "message 2: result `9` has no call before it",
                "message 1: call `1` of `a` has no result",
            ]
        );
    }

    #[test]
    fn messages_are_counted_as_the_request_lists_them() {
        let with_a_field_for_the_system = r#"{"model":"m","max_tokens":1,"system":"be kind","messages":[
            {"role":"user","content":"hi"},
            {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"9"}]}]}"#;
        let told =
            ["message 3: result `9` has no call before it", "message 2: call `1` of `a` has no result"];
        assert_eq!(findings(with_a_field_for_the_system), told);

        let with_the_system_in_the_list = r#"{"model":"m","messages":[
            {"role":"system","content":"be kind"},
            {"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"1","content":"ok"},
            {"role":"tool","tool_call_id":"9","content":"ok"},
            {"role":"assistant","tool_calls":[{"id":"2","type":"function","function":{"name":"a","arguments":"{}"}}]}]}"#;
        let told =
            ["message 4: result `9` has no call before it", "message 5: call `2` of `a` has no result"];
        assert_eq!(findings_of(Dialect::OpenAiChat, with_the_system_in_the_list), told);

        let items = r#"{"model":"m","instructions":"be kind","input":[
            {"type":"function_call","call_id":"1","name":"a","arguments":"{}"}]}"#;
        assert_eq!(findings_of(Dialect::OpenAiResponses, items), ["call `1` of `a` has no result"]);
    }
}
