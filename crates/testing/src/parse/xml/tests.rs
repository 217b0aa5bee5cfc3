use super::*;
use proptest::prelude::*;

/// The tokens, with neighbouring pieces of text as one.
fn tokens_of(pieces: &[&[u8]]) -> Vec<String> {
    let mut tokens = Tokens::default();
    let mut seen: Vec<String> = Vec::new();
    let mut text = String::new();
    for piece in pieces {
        tokens.feed(piece, &mut |token| {
            if let Token::Text(more) = token {
                return text.push_str(&more.decoded());
            }
            if !text.is_empty() {
                seen.push(format!("'{}'", std::mem::take(&mut text)));
            }
            seen.push(match token {
                Token::Open { name, attributes, empty } => {
                    let list: Vec<String> = attributes
                        .raw()
                        .map(|(name, value)| format!(" {name}={}", unescape(value)))
                        .collect();
                    format!("<{name}{}{}>", list.concat(), if empty { "/" } else { "" })
                }
                Token::Close { name } => format!("</{name}>"),
                Token::Declares => "declares".to_owned(),
                Token::Text(_) => String::new(),
            });
        });
    }
    if !text.is_empty() {
        seen.push(format!("'{text}'"));
    }
    seen
}

#[test]
fn tags_text_and_sections_are_told_apart() {
    let text = "\u{feff}<?xml version='1.0'?><!-- a > b --><a x=\"1 > 0\" y = '&lt;&#x41;'>t&amp;u<![CDATA[<b>]]]]><c:d/></a >";
    assert_eq!(
        tokens_of(&[text.as_bytes()]),
        ["'\u{feff}'", "<a x=1 > 0 y=<A>", "'t&u<b>]]'", "<d/>", "</a>"]
    );
}

#[test]
fn entities_of_the_documents_own_are_not_expanded_but_told() {
    let bomb = "<!DOCTYPE a [<!ENTITY b \"&c;&c;\"> ]><a>&b;&unknown; & &#xFFFFFFFF;</a>";
    assert_eq!(tokens_of(&[bomb.as_bytes()]), ["declares", "<a>", "'&b;&unknown; & &#xFFFFFFFF;'", "</a>"]);
}

#[test]
fn a_tag_without_end_is_cut_and_what_follows_is_read() {
    let mut tokens = Tokens::default();
    let mut seen = Vec::new();
    let mut each = |token: Token<'_>| {
        if let Token::Open { name, attributes, .. } = token {
            seen.push((name.to_owned(), attributes.get("m").map_or(0, |value| value.len())));
        }
    };
    tokens.feed(b"<a m=\"", &mut each);
    let much = vec![b'x'; 1 << 16];
    for _ in 0..40 {
        tokens.feed(&much, &mut each);
    }
    tokens.feed(b"\"/><b m='y'/>", &mut each);
    assert!(tokens.held.capacity() <= 2 * LONGEST_TAG);
    assert_eq!(seen, [("a".to_owned(), LONGEST_TAG - 6), ("b".to_owned(), 1)]);
}

proptest! {
    #[test]
    fn pieces_do_not_matter(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("<a b='ü>'>"), Just("</a>"), Just("<![CDATA["), Just("]]>"), Just("]"), Just("]]"), Just("<!--"),
                Just("-->"), Just("--"), Just("&amp;"), Just("&#x65E5;"), Just("&nosuchentityatall;"), Just("日本"),
                Just("x"), Just("<!DOCTYPE a ["), Just("]>"), Just("<?p"), Just("?>"), Just("\""), Just("<"), Just("&"),
            ],
            0..14,
        ),
        cuts in proptest::collection::vec(0usize..120, 0..6),
    ) {
        let text = parts.concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            pieces.push(&text.as_bytes()[from..cut]);
            from = cut;
        }
        pieces.push(&text.as_bytes()[from..]);
        prop_assert_eq!(tokens_of(&pieces), tokens_of(&[text.as_bytes()]));
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        tokens_of(&[&bytes]);
        let (left, right) = bytes.split_at(bytes.len() / 2);
        prop_assert_eq!(tokens_of(&[left, right]), tokens_of(&[&bytes]));
    }
}
