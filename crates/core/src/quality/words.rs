//! The words that a line, a name or a path is made of.

/// `deleteUser`, `delete_user`, `DELETE-USER` and `delete user` are all `delete` and `user`; `tokenizer` is one word.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut end = |word: &mut String| {
        if !word.is_empty() {
            words.push(std::mem::take(word));
        }
    };
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter.is_alphanumeric() {
            let begins_lower = letters.peek().is_some_and(|next| next.is_lowercase());
            // `authToken` begins a word at `T`; `HTTPServer` at `S`.
            let hump = before.is_lowercase() || (before.is_uppercase() && begins_lower);
            if letter.is_uppercase() && hump {
                end(&mut word);
            }
            word.extend(letter.to_lowercase());
        } else {
            end(&mut word);
        }
        before = letter;
    }
    end(&mut word);
    words
}

/// Whether the words of a rule come one after the other among the words of a text. The last may be a plural.
pub(super) fn holds(text: &[String], rule: &[String]) -> bool {
    let Some((last, first)) = rule.split_last() else { return false };
    text.windows(rule.len()).any(|window| {
        let (end, begin) = (&window[rule.len() - 1], &window[..rule.len() - 1]);
        begin == first && (end == last || end.strip_suffix('s') == Some(last))
    })
}
