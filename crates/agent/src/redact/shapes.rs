//! The shapes of well-known keys.

/// A kind of key: how it begins, and what it is made of.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) prefix: &'static str,
    /// How many characters must follow, for it to be a key and not a word.
    pub(super) at_least: usize,
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

const fn url(prefix: &'static str, at_least: usize) -> Shape {
    Shape { prefix, at_least, alphabet: Alphabet::Url }
}

const fn upper(prefix: &'static str) -> Shape {
    Shape { prefix, at_least: 16, alphabet: Alphabet::Upper }
}

const fn bearer(prefix: &'static str) -> Shape {
    Shape { prefix, at_least: 16, alphabet: Alphabet::Bearer }
}

/// Anthropic, OpenAI and others (`sk-`), GitHub, GitLab, Google, Slack, AWS, HTTP.
pub(super) static SHAPES: &[Shape] = &[
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

impl Shape {
    /// Where the key ends whose prefix ended at `at`; none if it is no key.
    pub(super) fn end_of_key(&self, text: &[u8], at: usize, previous: Option<u8>) -> Option<usize> {
        // `risk-…` and `disk-…` are words that happen to hold a prefix.
        if previous.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
            return None;
        }
        let length = text[at..].iter().take_while(|byte| self.holds(**byte)).count();
        (length >= self.at_least).then_some(at + length)
    }

    /// Whether a key of this kind may hold the byte.
    pub(super) fn holds(&self, byte: u8) -> bool {
        match self.alphabet {
            Alphabet::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Alphabet::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Alphabet::Bearer => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=')
            }
        }
    }
}
