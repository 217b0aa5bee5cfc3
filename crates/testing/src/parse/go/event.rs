//! One line of `go test -json`, cut without building a document: a million of them are read in a fraction of a
//! second.

use memchr::memchr2;

/// What a line says. Keys that we do not know are passed over.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct GoEvent<'a> {
    pub action: &'a str,
    pub package: Quoted<'a>,
    pub import_path: Quoted<'a>,
    pub failed_build: Quoted<'a>,
    pub test: Quoted<'a>,
    pub output: Quoted<'a>,
    /// Since Go 1.27: `frame`, `error` or `error-continue`.
    pub output_type: &'a str,
    /// In seconds.
    pub elapsed: f64,
}

/// A string as it stands in its document.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Quoted<'a> {
    raw: &'a str,
    escaped: bool,
}

impl<'a> Quoted<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// The text that it stands for; `scratch` is room for it.
    pub(super) fn text<'b>(self, scratch: &'b mut String) -> &'b str
    where
        'a: 'b,
    {
        if !self.escaped {
            return self.raw;
        }
        scratch.clear();
        unescape(self.raw, scratch);
        scratch
    }
}

impl<'a> GoEvent<'a> {
    /// Reads a line; none if it is not an object.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let mut event = Self::default();
        let mut rest = line.trim_start().strip_prefix('{')?;
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if let Some(after) = rest.strip_prefix('}') {
                return after.trim().is_empty().then_some(event);
            }
            let (key, after) = string(rest)?;
            let value = after.trim_start().strip_prefix(':')?.trim_start();
            rest = if value.starts_with('"') {
                let (text, after) = string(value)?;
                event.take(key.raw, text);
                after
            } else {
                let after = skipped(value)?;
                if key.raw == "Elapsed" {
                    event.elapsed = value[..value.len() - after.len()].trim_end().parse().unwrap_or(0.0);
                }
                after
            };
        }
    }

    fn take(&mut self, key: &str, value: Quoted<'a>) {
        match key {
            "Action" => self.action = value.raw,
            "Package" => self.package = value,
            "Test" => self.test = value,
            "Output" => self.output = value,
            "OutputType" => self.output_type = value.raw,
            "ImportPath" => self.import_path = value,
            "FailedBuild" => self.failed_build = value,
            _ => {}
        }
    }

    pub(super) fn ms(&self) -> u64 {
        crate::parse::milliseconds::of_seconds(self.elapsed)
    }
}

/// A string at the beginning of a text, and what follows it.
fn string(text: &str) -> Option<(Quoted<'_>, &str)> {
    let body = text.strip_prefix('"')?;
    let bytes = body.as_bytes();
    let (mut at, mut escaped) = (0, false);
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some((Quoted { raw: &body[..at], escaped }, &body[at + 1..]));
        }
        escaped = true;
        at += 2;
    }
}

/// What follows a value that is no string.
fn skipped(text: &str) -> Option<&str> {
    if !text.starts_with(['{', '[']) {
        let end = text.find([',', '}'])?;
        return Some(&text[end..]);
    }
    let (mut rest, mut depth) = (text, 0_usize);
    loop {
        let at = rest.find(['{', '[', '}', ']', '"'])?;
        match rest.as_bytes()[at] {
            b'"' => {
                rest = string(&rest[at..])?.1;
                continue;
            }
            b'{' | b'[' => depth += 1,
            _ => depth -= 1,
        }
        rest = &rest[at + 1..];
        if depth == 0 {
            return Some(rest);
        }
    }
}

fn unescape(raw: &str, into: &mut String) {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        into.push_str(&rest[..at]);
        let kind = rest.as_bytes().get(at + 1).copied().unwrap_or(b'\\');
        let mut after = rest.get(at + 2..).unwrap_or_default();
        match kind {
            b'n' => into.push('\n'),
            b't' => into.push('\t'),
            b'r' => into.push('\r'),
            b'b' => into.push('\u{8}'),
            b'f' => into.push('\u{c}'),
            b'u' => into.push(code_point(&mut after)),
            other => into.push(char::from(other)),
        }
        rest = after;
    }
    into.push_str(rest);
}

/// The character of `XXXX`, or of a pair of surrogates; what is neither becomes the replacement character.
fn code_point(rest: &mut &str) -> char {
    let Some(first) = hex(rest) else { return char::REPLACEMENT_CHARACTER };
    *rest = &rest[4..];
    if !(0xD800..0xDC00).contains(&first) {
        return char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER);
    }
    let second = rest.strip_prefix("\\u").and_then(hex).filter(|second| (0xDC00..0xE000).contains(second));
    let Some(second) = second else { return char::REPLACEMENT_CHARACTER };
    *rest = &rest[6..];
    char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn hex(text: &str) -> Option<u32> {
    let digits = text.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_event_is_read_in_any_order_with_spaces_and_with_keys_of_the_future() {
        let line = r#" { "Future" : {"a":["}",1]} , "Test":"TestA/\"q\"","Elapsed":0.25, "New":null,"Action":"pass"} "#;
        let event = GoEvent::read(line).unwrap();
        let mut scratch = String::new();
        assert_eq!(event.test.text(&mut scratch), "TestA/\"q\"");
        assert_eq!((event.action, event.ms()), ("pass", 250));
    }

    #[test]
    fn what_is_cut_off_is_no_event() {
        let line = r#"{"Action":"output","Output":"a\n","Elapsed":1.5}"#;
        for end in 0..line.len() {
            assert!(GoEvent::read(&line[..end]).is_none(), "{}", &line[..end]);
        }
    }

    proptest! {
        #[test]
        fn strings_are_what_they_are_in_json(text in any::<String>(), html in "[<>&\u{2028}a😀]{0,9}") {
            let text = text + &html;
            let go = serde_json::to_string(&text).unwrap().replace('<', "\\u003c").replace('😀', "\\ud83d\\ude00");
            let line = format!("{{\"Output\":{go}}}");
            let event = GoEvent::read(&line).unwrap();
            let mut scratch = String::new();
            prop_assert_eq!(event.output.text(&mut scratch), text);
        }

        #[test]
        fn any_text_is_survived(text in "[{}\\[\\]\",:\\\\ua1 ]{0,40}") {
            let _ = GoEvent::read(&text).map(|event| event.output.text(&mut String::new()).len());
        }
    }
}
