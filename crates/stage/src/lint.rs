//! What a vendor would refuse in a request.

use std::collections::BTreeMap;

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
    pairs(&chat.messages, &mut findings);
    findings.truncate(MOST_FINDINGS);
    // Ids and names come from anywhere.
    findings.iter().map(|finding| start_of(finding)).collect()
}

/// Every call has one result, before the model speaks again; every result has a call.
fn pairs(messages: &[Message], findings: &mut Vec<String>) {
    let mut open: BTreeMap<&str, &str> = BTreeMap::new();
    for (number, message) in messages.iter().enumerate() {
        let number = number + 1;
        if message.role == Role::Assistant {
            unanswered(&mut open, number, findings);
        }
        for part in &message.parts {
            match part {
                Part::ToolCall(call) if message.role != Role::Assistant => {
                    findings.push(format!(
                        "message {number}: the {} calls `{}`",
                        message.role.as_str(),
                        call.name
                    ));
                }
                Part::ToolCall(call) if open.insert(&call.id, &call.name).is_some() => {
                    findings.push(format!("message {number}: two calls have the id `{}`", call.id));
                }
                Part::ToolResult(result) if open.remove(result.id.as_str()).is_none() => {
                    findings.push(format!("message {number}: result `{}` has no call before it", result.id));
                }
                _ => {}
            }
        }
    }
    unanswered(&mut open, messages.len() + 1, findings);
}

fn unanswered(open: &mut BTreeMap<&str, &str>, number: usize, findings: &mut Vec<String>) {
    if open.is_empty() {
        return;
    }
    for (id, name) in std::mem::take(open) {
        findings.push(format!("message {number}: call `{id}` of `{name}` has no result before it"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(body: &str) -> Vec<String> {
        let received = Dialect::Anthropic.read_request(body.as_bytes()).unwrap();
        lint(Dialect::Anthropic, &received.chat)
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
                "message 3: call `1` of `a` has no result before it",
            ]
        );
    }
}
