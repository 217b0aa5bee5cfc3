//! The block of YAML below a result, as far as producers write it: keys with plain, quoted or block values, one level
//! of keys within a key, and JSON. Much of it is not proper YAML: quoted texts go on over unindented lines.

use serde::Deserialize;

/// A block longer than this keeps its beginning.
const LONGEST: usize = 64 << 10;

/// A block while it comes in, and its values afterwards.
#[derive(Debug, Default)]
pub(super) struct Yaml {
    indent: usize,
    bytes: usize,
    values: Vec<(String, String)>,
    /// The key that the next lines belong to, how far it is indented, and how its value goes on.
    open: Option<(usize, Continues)>,
    /// Keys that the present one is inside of.
    parents: Vec<(usize, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Continues {
    /// With lines that are indented further.
    Block,
    /// Up to this quote.
    Quote(char),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Took {
    Line,
    /// The line that ends the block.
    End,
    /// The block broke off: the line is none of it.
    Nothing,
}

/// What deno writes instead.
#[derive(Deserialize)]
struct Json {
    message: Option<String>,
    at: Option<JsonPlace>,
}

#[derive(Deserialize)]
struct JsonPlace {
    file: Option<String>,
    line: Option<u32>,
}

impl Yaml {
    pub(super) fn begin(indent: usize) -> Self {
        Self { indent, ..Self::default() }
    }

    /// The value of a key, of the first that has one; `error.message` is a key within a key.
    pub(super) fn get(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| {
            let value = self.values.iter().find(|(name, _)| name == key).map(|(_, value)| value.trim_end());
            value.filter(|value| !value.is_empty() && *value != "~")
        })
    }

    /// All values of keys within a key, one below the other.
    pub(super) fn within(&self, key: &str) -> Option<String> {
        let inner = self.values.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix(key)?.strip_prefix('.')?;
            Some(format!("{}\n{value}", name.trim_matches(['\'', '"'])))
        });
        let all = inner.collect::<Vec<_>>().join("\n");
        (!all.is_empty()).then_some(all)
    }

    pub(super) fn line(&mut self, line: &str) -> Took {
        let body = line.trim_start_matches(' ');
        let indent = line.len() - body.len();
        let ends = indent == self.indent && body.trim_end() == "...";
        if let Some((_, Continues::Quote(quote))) = self.open.filter(|_| !ends) {
            self.more(line, quote);
            return Took::Line;
        }
        if ends {
            return Took::End;
        }
        if body.is_empty() {
            self.add("");
            return Took::Line;
        }
        if indent < self.indent {
            return Took::Nothing;
        }
        match self.open {
            Some((key_indent, Continues::Block)) if indent > key_indent => {
                let inner = line.get(key_indent..).unwrap_or(body);
                self.add(inner.strip_prefix("  ").unwrap_or(inner.trim_start()));
            }
            _ => self.key(indent, body),
        }
        Took::Line
    }

    fn key(&mut self, indent: usize, body: &str) {
        self.open = None;
        self.parents.retain(|(parent, _)| *parent < indent);
        if body.starts_with('{') {
            self.json(body);
            return;
        }
        let Some((key, value)) = split_key(body) else { return };
        let name = self.parents.iter().map(|(_, parent)| format!("{parent}.")).collect::<String>() + key;
        let value = value.trim();
        let quote = value.chars().next().filter(|quote| matches!(quote, '\'' | '"' | '`'));
        if value.is_empty() {
            self.parents.push((indent, key.to_owned()));
            self.push(name, String::new());
            // What is no key within it is a list, or a value on lines of its own.
        } else if value.starts_with(['|', '>']) && value.len() <= 3 {
            self.push(name, String::new());
            self.open = Some((indent, Continues::Block));
        } else if let Some(quote) = quote {
            self.push(name, String::new());
            self.open = Some((indent, Continues::Quote(quote)));
            self.more(&value[1..], quote);
        } else {
            self.push(name, value.to_owned());
        }
    }

    fn json(&mut self, body: &str) {
        let Ok(json) = serde_json::from_str::<Json>(body) else { return };
        self.push("message".to_owned(), json.message.unwrap_or_default());
        let at = json.at.unwrap_or(JsonPlace { file: None, line: None });
        self.push("file".to_owned(), at.file.unwrap_or_default());
        self.push("line".to_owned(), at.line.map(|line| line.to_string()).unwrap_or_default());
    }

    /// A further line of a quoted text, which may be its last.
    fn more(&mut self, line: &str, quote: char) {
        let text = line.trim_end();
        let closed = text.strip_suffix(quote).filter(|text| !text.ends_with('\\') || text.ends_with("\\\\"));
        self.add(&unquoted(closed.unwrap_or(line), quote));
        if closed.is_some() {
            self.open = None;
        }
    }

    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        if let Some((_, value)) =
            self.values.last_mut().filter(|_| self.bytes < LONGEST && self.open.is_some())
        {
            if !value.is_empty() {
                value.push('\n');
            }
            value.push_str(text);
        }
    }

    fn push(&mut self, name: String, value: String) {
        self.bytes += name.len() + value.len();
        if self.bytes < LONGEST {
            self.values.push((name, value));
        }
    }
}

/// `key: value`; a key may be quoted and hold a colon.
fn split_key(body: &str) -> Option<(&str, &str)> {
    let body = body.strip_prefix("- ").unwrap_or(body);
    let quote = body.chars().next().filter(|quote| matches!(quote, '\'' | '"'));
    let from = match quote {
        Some(quote) => 1 + body[1..].find(quote)?,
        None => 0,
    };
    let colon = from + body[from..].find(':')?;
    let value = &body[colon + 1..];
    (value.is_empty() || value.starts_with(' ')).then(|| (&body[..colon], value))
}

fn unquoted(text: &str, quote: char) -> String {
    let escaped = format!("\\{quote}");
    let text = text.replace(&escaped, &quote.to_string());
    if quote == '\'' { text.replace("''", "'").replace("\\n", "\n") } else { text.replace("\\n", "\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> (Yaml, Option<usize>) {
        let mut yaml = Yaml::begin(2);
        for (at, line) in lines.iter().enumerate() {
            if yaml.line(line) != Took::Line {
                return (yaml, Some(at));
            }
        }
        (yaml, None)
    }

    #[test]
    fn quoted_texts_go_on_over_unindented_lines_that_look_like_results() {
        let (yaml, end) = read(&[
            "  error:",
            "      message: \"one",
            "not ok 5 - fake",
            "  ...but no end, \\\"yet\\\"\"",
            "  at: \"/w/a.ts:6:43\"",
            "  ...",
        ]);
        assert_eq!(end, Some(5));
        assert_eq!(yaml.get(&["error.message"]), Some("one\nnot ok 5 - fake\n  ...but no end, \"yet\""));
        assert_eq!(yaml.get(&["at"]), Some("/w/a.ts:6:43"));
    }

    #[test]
    fn blocks_keep_their_lines_and_their_inner_indentation() {
        let (yaml, _) =
            read(&["  error: |-", "    a", "", "      b", "  code: 'ERR'", "  exitCode: 5", "  signal: ~"]);
        assert_eq!(yaml.get(&["error"]), Some("a\n\n  b"));
        assert_eq!(
            (yaml.get(&["code"]), yaml.get(&["exitCode"]), yaml.get(&["signal"])),
            (Some("ERR"), Some("5"), None)
        );
    }

    #[test]
    fn a_block_that_breaks_off_gives_the_next_line_back() {
        assert_eq!(read(&["  message: x", "ok 2"]).1, Some(1));
    }
}
