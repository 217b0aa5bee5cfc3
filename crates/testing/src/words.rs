//! Small things that are written the same everywhere: durations, counts, one-line texts.

use crate::text::{floor_char, strip_ansi};

/// Milliseconds as people write them: `8ms`, `1.2s`, `2m 5s`.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{}m {}s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

/// A text on one line, without colours and control characters, of at most so many bytes.
pub(crate) fn one_line(text: &str, room: usize) -> String {
    // A text much longer than its room is not looked at whole.
    let text = &text[..floor_char(text, room.saturating_mul(4).saturating_add(64))];
    let plain = strip_ansi(text);
    let mut line = String::with_capacity(room.min(plain.len()));
    for word in plain.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > room {
            line.truncate(floor_char(&line, room.saturating_sub('…'.len_utf8())));
            line.push('…');
            break;
        }
    }
    line
}

/// One line as it is, spaces included, without colours and control characters, of at most so many bytes.
pub(crate) fn plain_line(line: &str, room: usize) -> String {
    let plain = strip_ansi(line);
    let mut plain: String =
        plain.trim_end().chars().take(room + 1).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if plain.len() > room {
        plain.truncate(floor_char(&plain, room.saturating_sub('…'.len_utf8())));
        plain.push('…');
    }
    plain
}

/// `1 test`, `2 tests`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_have_the_unit_of_their_size() {
        assert_eq!([8, 1_234, 125_000].map(duration), ["8ms", "1.2s", "2m 5s"]);
    }

    #[test]
    fn a_text_of_many_lines_and_colours_becomes_one_plain_line() {
        assert_eq!(one_line("\x1b[31ma\n  b\t\u{7}c\x1b[0m", 20), "a b c");
        assert_eq!(one_line("abcdefgh", 6), "abc…");
    }

    proptest! {
        #[test]
        fn no_line_is_longer_than_its_room(text in "\\PC{0,60}", room in 3usize..40) {
            prop_assert!(one_line(&text, room).len() <= room);
        }
    }
}
