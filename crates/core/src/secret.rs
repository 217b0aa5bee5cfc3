//! What a secret looks like: the shapes of well-known keys, and variables whose names speak of secrets.
//!
//! What is neither cannot be recognised by anyone.

/// Shorter values are not treated as secrets: replacing every `true` or `8080` would ruin a log and hide nothing.
pub const MIN_SECRET: usize = 8;

/// Words that mark a variable as secret, at the end of any part of its name.
const SECRET_WORDS: &[&str] = &[
    "KEY",
    "KEYS",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// A kind of key: how it begins, and what it is made of.
#[derive(Debug)]
pub struct KeyShape {
    /// How it begins.
    pub prefix: &'static str,
    /// How many characters must follow, for it to be a key and not a word.
    pub at_least: usize,
    alphabet: Alphabet,
}

#[derive(Debug, Clone, Copy)]
enum Alphabet {
    /// Letters, digits, `_`, `-`.
    Url,
    /// Capital letters and digits.
    Upper,
    /// What may stand behind `Bearer`.
    Bearer,
}

const fn url(prefix: &'static str, at_least: usize) -> KeyShape {
    KeyShape { prefix, at_least, alphabet: Alphabet::Url }
}

const fn upper(prefix: &'static str) -> KeyShape {
    KeyShape { prefix, at_least: 16, alphabet: Alphabet::Upper }
}

const fn bearer(prefix: &'static str) -> KeyShape {
    KeyShape { prefix, at_least: 16, alphabet: Alphabet::Bearer }
}

/// Anthropic, OpenAI and others (`sk-`), GitHub, GitLab, Google, Slack, AWS, HTTP.
pub static KEY_SHAPES: &[KeyShape] = &[
    url("sk-ant-", 8),
    url("sk-", 20),
    url("ghp_", 20),
    url("gho_", 20),
    url("ghu_", 20),
    url("ghs_", 20),
    url("ghr_", 20),
    url("github_pat_", 20),
    url("glpat-", 16),
    url("AIza", 30),
    url("xoxb-", 10),
    url("xoxp-", 10),
    url("xoxa-", 10),
    url("xoxs-", 10),
    upper("AKIA"),
    upper("ASIA"),
    bearer("Bearer "),
    bearer("bearer "),
];

impl KeyShape {
    /// Where the key ends whose prefix ended at `at`; none if it is no key.
    pub fn end_of_key(&self, text: &[u8], at: usize, previous: Option<u8>) -> Option<usize> {
        // `risk-…` and `disk-…` are words that happen to hold a prefix.
        if previous.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
            return None;
        }
        let length = text[at..].iter().take_while(|byte| self.holds(**byte)).count();
        (length >= self.at_least).then_some(at + length)
    }

    /// What may follow the prefix, as a class of a regular expression.
    pub fn class(&self) -> &'static str {
        match self.alphabet {
            Alphabet::Url => "[A-Za-z0-9_-]",
            Alphabet::Upper => "[A-Z0-9]",
            Alphabet::Bearer => "[A-Za-z0-9_.~+/=-]",
        }
    }

    /// Whether a key of this kind may hold the byte.
    pub fn holds(&self, byte: u8) -> bool {
        match self.alphabet {
            Alphabet::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Alphabet::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Alphabet::Bearer => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=')
            }
        }
    }
}

/// Whether a variable looks like one that holds a secret.
pub fn is_secret_variable(name: &str, value: &str) -> bool {
    let is_count = name.ends_with("TOKENS") && value.bytes().all(|byte| byte.is_ascii_digit());
    let name = name.to_ascii_uppercase();
    let speaks = name.split('_').any(|part| SECRET_WORDS.iter().any(|word| part.ends_with(word)));
    value.len() >= MIN_SECRET && speaks && !is_count
}

/// The texts by which a secret value is recognised: each of its lines, as it is and as JSON writes it. None holds
/// a line break, so a finished line can always be written out.
pub fn secret_texts(value: &str) -> impl Iterator<Item = String> {
    value.lines().map(str::trim).filter(|line| line.len() >= MIN_SECRET).flat_map(|line| {
        let json = serde_json::to_string(line).unwrap_or_default();
        let escaped = json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned();
        [
            Some(line.to_owned()),
            Some(escaped).filter(|escaped| escaped != line && escaped.len() >= MIN_SECRET),
        ]
        .into_iter()
        .flatten()
    })
}
