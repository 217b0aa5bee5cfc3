//! How many tokens a text has, about: counted here, alike on every machine.
//!
//! Vendors count differently, and none of them can be asked without a request. Four letters of English or of code are about a
//! token; of other scripts nearly every character is one.

/// An estimate.
pub fn estimate(text: &str) -> usize {
    // Nearly all code is, and it is told at a glance.
    if text.is_ascii() {
        return text.len().div_ceil(4);
    }
    let bytes = text.as_bytes();
    let ascii = bytes.iter().filter(|byte| byte.is_ascii()).count();
    // The first byte of a character that has several.
    let others = bytes.iter().filter(|byte| **byte >= 0xc0).count();
    ascii.div_ceil(4) + others
}

/// The beginning of a text that has at most so many tokens.
pub(crate) fn first(text: &str, tokens: usize) -> &str {
    if estimate(text) <= tokens {
        return text;
    }
    let mut quarters = 0;
    let most = tokens.saturating_mul(4);
    for (at, character) in text.char_indices() {
        quarters += if character.is_ascii() { 1 } else { 4 };
        if quarters > most {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn four_letters_are_a_token_and_so_is_a_character_of_another_script() {
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("fn main() {}"), 3);
        assert_eq!(estimate("日本語"), 3);
        assert_eq!(estimate("日本語 ok"), 4);
    }

    proptest! {
        #[test]
        fn the_beginning_of_a_text_is_not_longer_than_it_may_be(text in ".{0,200}", tokens in 0usize..40) {
            let start = first(&text, tokens);
            prop_assert!(text.starts_with(start));
            prop_assert!(estimate(start) <= tokens);
        }

        #[test]
        fn a_longer_text_has_not_fewer_tokens(one in ".{0,50}", more in ".{0,50}") {
            let both = one.clone() + &more;
            prop_assert!(estimate(&both) >= estimate(&one));
        }
    }
}
