//! Texts cut to what can be shown and kept: what comes may be megabytes.

/// How much of a text is shown.
const SHOWN: usize = 200;

/// The end of a text, in one line: what a user wants stands last, after all that an agent adds.
pub(crate) fn end_of(text: &str) -> String {
    let text = text.trim();
    let mut start = text.len().saturating_sub(SHOWN);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let mark = if start > 0 { "…" } else { "" };
    in_a_line(&[mark, &text[start..]])
}

/// The beginning of a text, in one line.
pub(crate) fn start_of(text: &str) -> String {
    let mut end = text.len().min(SHOWN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mark = if end < text.len() { "…" } else { "" };
    in_a_line(&[&text[..end], mark])
}

fn in_a_line(pieces: &[&str]) -> String {
    let whole = pieces.concat();
    if whole.contains(char::is_control) { whole.replace(char::is_control, " ") } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut_between_characters() {
        let long = format!("a{}b", "é".repeat(SHOWN));
        assert_eq!(end_of(&long).chars().count(), 1 + SHOWN / 2 + 1 - 1);
        assert!(end_of(&long).starts_with("…é") && end_of(&long).ends_with('b'));
        assert!(start_of(&long).starts_with('a') && start_of(&long).ends_with("é…"));
        assert_eq!((end_of(" a\nb "), start_of("a\nb")), ("a b".to_owned(), "a b".to_owned()));
    }
}
