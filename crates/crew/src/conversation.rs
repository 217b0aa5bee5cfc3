//! A conversation that stays as short as its model can read.
//!
//! Old results of tools are shortened first; then whole exchanges go, the oldest first. A call and its result go together.

use std::ops::Range;

use rehearsal_llm::chat::{ChatRequest, Message, Part, Role, ToolDefinition, ToolResult};

use crate::tokens;

/// A conversation, as it is sent.
#[derive(Debug)]
pub(crate) struct Conversation {
    request: ChatRequest,
    /// The tokens of each message.
    sizes: Vec<usize>,
    total: usize,
    limit: usize,
    is_truncated: bool,
    /// Results before this message are as short as old ones are.
    shortened: usize,
}

/// What the system says, and the task. They always stay.
const HEAD: usize = 2;

/// Stands where the oldest exchanges were.
pub const TRUNCATED: &str = "[Previous conversation truncated]";

/// Messages at the end that are left as they are, as long as something else can be shortened: the model is working with them.
const RECENT: usize = 6;

/// The tokens that an old result keeps: enough to remember what was asked, and how it began and ended.
const OLD_RESULT: usize = 200;

/// Each message costs some for who speaks.
const MESSAGE: usize = 4;

impl Conversation {
    /// A conversation that begins with a task, and whose messages have at most so many tokens.
    pub(crate) fn new(
        model: &str,
        system: String,
        task: String,
        tools: Vec<ToolDefinition>,
        limit: usize,
    ) -> Self {
        let mut request = ChatRequest::new(model, Vec::new());
        request.tools = tools;
        let mut conversation =
            Self { request, sizes: Vec::new(), total: 0, limit, is_truncated: false, shortened: HEAD };
        conversation.push(Message::system(system));
        conversation.push(Message::user(task));
        conversation
    }

    /// As it is sent.
    pub(crate) fn request(&self) -> &ChatRequest {
        &self.request
    }

    pub(crate) fn push(&mut self, message: Message) {
        let size = size_of_message(&message);
        self.request.messages.push(message);
        self.sizes.push(size);
        self.total += size;
    }

    /// Makes it short enough, if it is not. Room is made for a while, so that a vendor's cache is not lost at each turn.
    pub(crate) fn make_room(&mut self) {
        if self.total > self.limit {
            self.shorten_to(self.limit / 4 * 3);
        }
    }

    /// The vendor says that it is too long, and knows better than our estimate: from now on it is kept shorter. False if there is
    /// nothing to leave out.
    pub(crate) fn shrink(&mut self) -> bool {
        let before = self.total;
        self.limit = self.total.min(self.limit) / 2;
        self.shorten_to(self.limit);
        self.total < before
    }

    fn shorten_to(&mut self, target: usize) {
        let recent = self.request.messages.len().saturating_sub(RECENT);
        self.shortened = self.shorten_results(self.shortened..recent, OLD_RESULT, target);
        self.drop_oldest(target);
        let last = self.last_exchange();
        let results = self.request.messages[last..].iter().map(results_in).sum::<usize>();
        let share = target.saturating_sub(self.sizes[..HEAD].iter().sum()) / (2 * results.max(1));
        self.shorten_results(last..self.request.messages.len(), share.max(OLD_RESULT), target);
    }

    /// Shortens results of tools, the oldest first, until the whole fits. Returns the first that was left as it is.
    fn shorten_results(&mut self, among: Range<usize>, keep: usize, target: usize) -> usize {
        for at in among.clone() {
            if self.total <= target {
                return at;
            }
            let message = &mut self.request.messages[at];
            for part in &mut message.parts {
                if let Part::ToolResult(result) = part {
                    shorten(result, keep);
                }
            }
            let size = size_of_message(message);
            self.total = self.total - self.sizes[at] + size;
            self.sizes[at] = size;
        }
        among.start.max(among.end)
    }

    /// Drops whole exchanges, the oldest first, and never the last one.
    fn drop_oldest(&mut self, target: usize) {
        let last = self.last_exchange();
        let mut end = HEAD;
        let mut left = self.total;
        while left > target && end < last {
            let next = next_exchange(&self.request.messages, end);
            left -= self.sizes[end..next].iter().sum::<usize>();
            end = next;
        }
        if end == HEAD {
            return;
        }
        self.request.messages.drain(HEAD..end);
        self.sizes.drain(HEAD..end);
        self.shortened = self.shortened.saturating_sub(end - HEAD).max(HEAD);
        self.total = left;
        self.mark_truncated();
    }

    fn mark_truncated(&mut self) {
        if std::mem::replace(&mut self.is_truncated, true) {
            return;
        }
        let task = &mut self.request.messages[HEAD - 1];
        task.parts.push(Part::text(TRUNCATED));
        let size = size_of_message(task);
        self.total = self.total - self.sizes[HEAD - 1] + size;
        self.sizes[HEAD - 1] = size;
    }

    /// Where the last exchange begins: an answer, and what was said to it.
    fn last_exchange(&self) -> usize {
        let messages = &self.request.messages;
        let last = messages.iter().rposition(|message| message.role == Role::Assistant);
        last.unwrap_or(messages.len()).max(HEAD).min(messages.len())
    }
}

/// The end of the exchange that begins here: up to the next answer, for results come after their calls.
fn next_exchange(messages: &[Message], from: usize) -> usize {
    let later = messages.get(from + 1..).unwrap_or_default();
    let answer = later.iter().position(|message| message.role == Role::Assistant);
    answer.map_or(messages.len(), |at| from + 1 + at)
}

fn results_in(message: &Message) -> usize {
    message.parts.iter().filter(|part| matches!(part, Part::ToolResult(_))).count()
}

fn shorten(result: &mut ToolResult, keep: usize) {
    let text = result.text();
    if tokens::estimate(&text) <= keep {
        return;
    }
    let half = keep / 2 * 4;
    let head = tokens::first(&text, keep / 2);
    let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(half)).max(head.len())..];
    let left_out = text.len() - head.len() - tail.len();
    result.parts = vec![Part::text(format!("{head}\n[… {left_out} bytes left out …]\n{tail}"))];
}

fn size_of_message(message: &Message) -> usize {
    MESSAGE + message.parts.iter().map(size_of_part).sum::<usize>()
}

fn size_of_part(part: &Part) -> usize {
    match part {
        Part::Text(text) => tokens::estimate(&text.text),
        Part::Thinking(thinking) => {
            tokens::estimate(&thinking.text) + thinking.signature.as_deref().map_or(0, tokens::estimate)
        }
        Part::ToolCall(call) => tokens::estimate(&call.name) + tokens::estimate(call.arguments.as_str()),
        Part::ToolResult(result) => result.parts.iter().map(size_of_part).sum(),
        Part::Opaque(json) => tokens::estimate(json.as_str()),
        // A picture is about so many, whatever its size.
        Part::Media(_) => 1000,
    }
}

#[cfg(test)]
mod tests;
