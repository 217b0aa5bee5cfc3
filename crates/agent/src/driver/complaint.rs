//! What a program says about its own failure outside of its format: as plain text, on either stream.
//!
//! Nothing is searched for words here: a line counts only if it begins as an error message does, or if it is all that
//! a program that failed has said. What such a line means is decided as it is for every other error.

use rehearsal_core::{Promise, WireEnd, WireErrorKind};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::bounds::{MESSAGE, cut, one_line};
use super::fault::Fault;
use super::stream::{Close, undecorated};
use super::{Here, json};

/// What is quoted of a complaint: a line of a summary.
const QUOTED: usize = 300;

/// A failure tells itself in the last part of an output.
const LOOKED_AT: usize = 64 << 10;

/// More objects than this in one output are no error message.
const MOST_TRIED: usize = 32;

/// A program that prints no more lines than this has printed its error and nothing else.
const FEW_LINES: usize = 3;

/// What a program said that failed by itself: the line, and the end that it stands for, where its kind is known.
pub(crate) struct Complaint {
    pub(crate) line: String,
    pub(crate) end: Option<WireEnd>,
}

/// What `plain`, its text on standard output, and its standard error say about why it failed.
pub(crate) fn of_failure(close: &Close, plain: &str, here: &Here) -> Option<Complaint> {
    let (plain, stderr) = (end_of(plain), end_of(&close.stderr));
    let object = object_in(stderr, here).or_else(|| object_in(plain, here));
    if let Some((message, end)) = object {
        return Some(Complaint { line: one_line(&message, QUOTED), end: known(end) });
    }
    let message = message_in(stderr).or_else(|| message_in(plain)).or_else(|| all_of(plain, FEW_LINES));
    let message = message.or_else(|| all_of(stderr, 1).filter(|_| close.silent));
    let Some(message) = message else {
        // It may be the end of a log: worth a look, and no evidence.
        return last_line(stderr).map(|line| Complaint { line, end: None });
    };
    let end = known(fault(&message).end(here));
    Some(Complaint { line: one_line(&message, QUOTED), end })
}

/// The error with which a program ended although it reported success: nothing but a complaint, or one at its very end.
pub(crate) fn in_spite_of_success(close: &Close, plain: &str, here: &Here) -> Option<WireEnd> {
    let plain = end_of(plain);
    let message = if plain.trim().is_empty() {
        message_in(end_of(&close.stderr))
    } else if Promise::find(plain).is_some() {
        None
    } else {
        last_paragraph(plain).filter(|last| opens_error(last)).map(str::to_owned)
    };
    known(fault(&message?).end(here))
}

/// Whether a text is what CLIs print in place of an answer when a plan is used up or nobody is logged in:
/// `5-hour limit reached ∙ resets 3pm`, `Not logged in · Please run /login`, `Claude AI usage limit reached|1760000000`.
pub(crate) fn announces_refusal(text: &str) -> bool {
    let text = text.trim().to_lowercase().replace('\u{2019}', "'");
    if text.lines().count() != 1 {
        return false;
    }
    let openings = ["not logged in", "invalid api key", "you've hit your", "credit balance is too low"];
    let opens = |start: &str| openings.iter().any(|opening| start.starts_with(opening));
    let names_limit =
        |start: &str| start.strip_suffix(" limit reached").is_some_and(|name| name.split(' ').count() <= 3);
    let by_mark = text.split_once('\u{2219}').or_else(|| text.split_once('\u{b7}'));
    by_mark.is_some_and(|(start, _)| opens(start) || names_limit(start.trim()))
        || text
            .split_once('|')
            .is_some_and(|(start, _)| names_limit(start) || start.ends_with("usage limit reached"))
        || text.starts_with("you've hit your usage limit.")
        || text == "credit balance is too low"
}

/// An end whose kind makes a difference.
fn known(end: WireEnd) -> Option<WireEnd> {
    let unknown =
        matches!(&end, WireEnd::Error(error) if error.kind == WireErrorKind::Other && error.status.is_none());
    (!unknown).then_some(end)
}

fn fault(message: &str) -> Fault<'_> {
    Fault { code: exception_of(message).unwrap_or_default(), message, ..Fault::default() }
}

fn end_of(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(LOOKED_AT))..]
}

/// `{"error": {"type", "message", "code"}}`, `{"error": "…"}` or `{"type": "error", "message": "…"}` at the beginning of a
/// line, over as many lines as it takes; the last one.
fn object_in(text: &str, here: &Here) -> Option<(String, WireEnd)> {
    let starts = text.rmatch_indices('{').map(|(at, _)| at).filter(|at| {
        let before = text[..*at].rsplit('\n').next().unwrap_or_default();
        before.is_empty() || before == "[ERROR] "
    });
    starts.take(MOST_TRIED).find_map(|at| {
        let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<&RawValue>();
        error_of(stream.next()?.ok()?, here)
    })
}

/// The fields in which programs tell an error, whatever else an object has.
#[derive(Deserialize)]
struct ErrorFields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow, alias = "statusCode", alias = "status_code", alias = "httpStatus")]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
}

/// The error that an object tells: its message, and the end that it stands for.
fn error_of(object: &RawValue, here: &Here) -> Option<(String, WireEnd)> {
    let fields: ErrorFields<'_> = json::read(Some(object))?;
    match fields.error {
        Some(error) if error.get().starts_with('{') => {
            let inner: ErrorFields<'_> = json::read(Some(error))?;
            Some(inner.end(here))
        }
        Some(error) => {
            let message = json::text(Some(error))?;
            Some((cut(&message, MESSAGE), fault(&message).end(here)))
        }
        None if json::text(fields.kind).as_deref() == Some("error") => Some(fields.end(here)),
        None => None,
    }
}

impl ErrorFields<'_> {
    fn end(&self, here: &Here) -> (String, WireEnd) {
        let message = json::text(self.message).unwrap_or_default();
        let by_code = json::read(self.code).filter(|code| (400..600).contains(code));
        let status = json::read(self.status).or(by_code);
        let names = [json::text(self.code), json::text(self.kind), json::text(self.name)];
        let code = names.into_iter().flatten().next().unwrap_or_default();
        let end = Fault { status, code: &code, message: &message, until: None }.end(here);
        (cut(&message, MESSAGE), end)
    }
}

/// The last line that begins as an error message does, with what follows it if it only announces it.
fn message_in(text: &str) -> Option<String> {
    let lines: Vec<String> = text.lines().map(undecorated).collect();
    let at = lines.iter().rposition(|line| opens_error(line))?;
    let mut message = plain_words(&lines[at]).to_owned();
    // A message that is wrapped, or whose reason stands below.
    for line in lines[at + 1..].iter().take(FEW_LINES).take_while(|line| !line.is_empty()) {
        message.push(' ');
        message.push_str(line);
    }
    Some(cut(&message, MESSAGE))
}

/// A line without the word `Error:` before it.
fn plain_words(line: &str) -> &str {
    let prefixes = ["Error: ", "error: ", "ERROR: ", "fatal: ", "[ERROR] "];
    prefixes.iter().find_map(|prefix| line.strip_prefix(prefix)).unwrap_or(line).trim()
}

/// Whether a line begins as an error message does.
fn opens_error(line: &str) -> bool {
    const OPENINGS: [&str; 9] = [
        "error:",
        "fatal:",
        "fatal error:",
        "[error]",
        "api error",
        "[api error",
        "error ",
        "\u{2716} ",
        "\u{00d7} ",
    ];
    let start = line[..line.floor_char_boundary(64)].to_lowercase();
    OPENINGS.iter().any(|opening| start.starts_with(opening))
        || exception_of(line).is_some()
        || announces_refusal(line)
}

/// The name of an exception that a line begins with: `litellm.AuthenticationError: …`.
fn exception_of(line: &str) -> Option<&str> {
    let (path, _) = line.split_once(": ")?;
    let is_path = path.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'));
    let name = path.rsplit('.').next()?;
    let is_exception = name.starts_with(|c: char| c.is_ascii_uppercase())
        && (name.ends_with("Error") || name.ends_with("Exception") || name == "Timeout");
    (is_path && is_exception).then_some(name)
}

/// A text of at most this many lines, as one message; or the first line, if a program explained its usage after it.
fn all_of(text: &str, most: usize) -> Option<String> {
    let is_warning = |line: &str| line.is_empty() || line.to_lowercase().starts_with("warning:");
    let lines: Vec<String> = text.lines().map(undecorated).filter(|line| !is_warning(line)).collect();
    let explains = lines.iter().skip(1).any(|line| line.to_lowercase().starts_with("usage:"));
    if explains {
        return lines.first().map(|line| cut(line, MESSAGE));
    }
    ((1..=most).contains(&lines.len())).then(|| cut(&lines.join(" "), MESSAGE))
}

fn last_paragraph(text: &str) -> Option<&str> {
    text.trim_end().rsplit("\n\n").next().map(str::trim_start)
}

fn last_line(text: &str) -> Option<String> {
    text.lines().rev().map(undecorated).find(|line| !line.is_empty()).map(|line| one_line(&line, QUOTED))
}

#[cfg(test)]
mod tests {
    use rehearsal_core::{Exit, Timestamp};
    use rstest::rstest;

    use super::*;

    fn close(stderr: &str) -> Close {
        Close { exit: Some(Exit::Code(1)), stderr: stderr.to_owned(), silent: true }
    }

    fn kind(plain: &str, stderr: &str) -> Option<WireErrorKind> {
        let complaint = of_failure(&close(stderr), plain, &Here::at(Timestamp(0)))?;
        match complaint.end {
            Some(WireEnd::Error(error)) => Some(error.kind),
            _ => None,
        }
    }

    fn line(stderr: &str) -> String {
        of_failure(&close(stderr), "", &Here::at(Timestamp(0))).unwrap().line
    }

    #[rstest]
    #[case(
        "API Error: 401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\"}}",
        "",
        WireErrorKind::Auth
    )]
    #[case("Not logged in · Please run /login", "", WireErrorKind::Auth)]
    #[case(
        "",
        "WARNING: no PATH\nERROR: unexpected status 503 Service Unavailable: x\n",
        WireErrorKind::Overloaded
    )]
    #[case(
        "",
        "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mConnect ECONNREFUSED 127.0.0.1:9\n",
        WireErrorKind::Unreachable
    )]
    #[case("", "log\n{\n  \"error\": {\n    \"message\": \"slow\",\n    \"code\": 429\n  }\n}\n", WireErrorKind::RateLimit { until: None })]
    #[case(
        "",
        "Traceback\n  File x\nopenai.APIConnectionError: Connection error.\n",
        WireErrorKind::Unreachable
    )]
    #[case(
        "banner\n\nlitellm.AuthenticationError: AuthenticationError: x\nmore",
        "Warning: no terminal",
        WireErrorKind::Auth
    )]
    fn a_failure_in_plain_text_is_of_a_known_kind(
        #[case] plain: &str,
        #[case] stderr: &str,
        #[case] expected: WireErrorKind,
    ) {
        assert_eq!(kind(plain, stderr), Some(expected));
    }

    #[test]
    fn words_in_the_middle_of_an_output_are_no_complaint() {
        let long =
            "I fixed the 401 Unauthorized.\nThen the rate limit.\nAnd ECONNREFUSED.\nAll tests pass.\n";
        assert_eq!(kind(long, ""), None);
        assert_eq!(kind("", "debug: retried after 429 rate limit\nbye\n"), None);
    }

    #[test]
    fn a_success_is_doubted_only_where_it_ends_with_a_complaint() {
        let doubted = |plain: &str| in_spite_of_success(&close(""), plain, &Here::at(Timestamp(0))).is_some();
        assert!(doubted("banner\n\nlitellm.AuthenticationError: OpenAIException - invalid \nx-api-key\n"));
        assert!(doubted("5-hour limit reached ∙ resets 3pm"));
        assert!(!doubted("litellm.AuthenticationError: x\n\nFixed it: the key was wrong."));
        assert!(!doubted("Error: 401 is now handled\n\n<promise>DONE</promise>"));
        assert!(!doubted("The 5-hour limit reached its end; the API key is invalid, so I wrote a test."));
        assert!(!doubted(""));
    }

    #[test]
    fn the_line_that_says_why_is_quoted() {
        assert_eq!(line("error: unknown option '--x'\n"), "unknown option '--x'");
        assert_eq!(line("Unknown argument: nope\nUsage: gemini [options]\n  -h\n"), "Unknown argument: nope");
        assert_eq!(
            line("Error loading config.toml:\nfile:1:16: unclosed array\n"),
            "Error loading config.toml: file:1:16: unclosed array"
        );
        assert!(line(&format!("Error: {}", "x".repeat(9000))).len() < 400);
    }
}
