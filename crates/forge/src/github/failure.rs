//! What a failed `gh` means. It says it in words; the number of the HTTP answer is among them, where there was one.

use std::time::Duration;

use camino::Utf8PathBuf;

use crate::forge::ForgeError;

/// How a call failed.
#[derive(Debug)]
pub(super) enum Failure {
    Missing {
        program: Utf8PathBuf,
    },
    NotStarted {
        reason: String,
    },
    /// It was killed, or said what cannot be read: the forge may have done it.
    NoAnswer {
        reason: String,
    },
    Said {
        code: Option<i32>,
        said: String,
    },
}

/// `gh` ends with this if nobody is logged in.
const NOT_LOGGED_IN: i32 = 4;

const NO_CONNECTION: &[&str] = &[
    "error connecting to",
    "no such host",
    "connection refused",
    "connection reset",
    "i/o timeout",
    "TLS handshake timeout",
    "unexpected EOF",
    "context deadline exceeded",
];

impl Failure {
    /// Whether there is one for the branch already.
    pub(super) fn already_exists(&self) -> bool {
        self.says(&["already exists"])
    }

    /// Whether the forge may have done it although we heard otherwise.
    pub(super) fn may_have_worked(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::NotStarted { .. } => false,
            Self::NoAnswer { .. } => true,
            Self::Said { .. } => {
                self.status().is_some_and(|status| status >= 500) || self.says(NO_CONNECTION)
            }
        }
    }

    /// Whether a merge was refused because of another head.
    pub(super) fn head_moved(&self) -> bool {
        self.status() == Some(409) || self.says(&["Head branch was modified", "head sha", "Head sha"])
    }

    pub(super) fn unclear(self, action: &str) -> ForgeError {
        ForgeError::Unclear { action: action.to_owned(), said: self.text() }
    }

    /// The meaning for a question: asked again, it does no harm.
    pub(super) fn of_reading(self, action: &str) -> ForgeError {
        self.meaning(action).unwrap_or_else(|failure| ForgeError::Unavailable { said: failure.text() })
    }

    /// The meaning for a change, where we looked whether it was done, and it was not.
    pub(super) fn of_writing(self, action: &str) -> ForgeError {
        self.meaning(action).unwrap_or_else(|failure| failure.unclear(action))
    }

    /// The meaning for a merge that was not done.
    pub(super) fn of_merging(self, number: u64) -> ForgeError {
        let words = [
            "not mergeable",
            "merge conflict",
            "merge failed",
            "cannot be merged",
            "protected branch",
            "is not clean",
        ];
        if matches!(self.status(), Some(405 | 422)) || self.says(&words) {
            return ForgeError::NotMergeable { number, reason: self.text() };
        }
        self.of_writing("merge")
    }

    /// What is certain; else the failure again.
    fn meaning(self, action: &str) -> Result<ForgeError, Self> {
        let said = self.text();
        let limited = self.says(&["rate limit", "abuse detection", "submitted too quickly"]);
        Ok(match (self.status(), &self) {
            (_, Self::Missing { program }) => ForgeError::Missing { program: program.clone() },
            (_, Self::NotStarted { .. } | Self::NoAnswer { .. }) => ForgeError::Unavailable { said },
            (Some(429), _) => ForgeError::RateLimited { retry_after: retry_after(&said), said },
            _ if limited => ForgeError::RateLimited { retry_after: retry_after(&said), said },
            (Some(401 | 403), _) | (_, Self::Said { code: Some(NOT_LOGGED_IN), .. }) => {
                ForgeError::Unauthorized { said }
            }
            _ if self.says(&["gh auth login", "Bad credentials"]) => ForgeError::Unauthorized { said },
            (Some(404), _) => ForgeError::NotFound { what: format!("answer to {action}: {said}") },
            _ if self.says(&["Could not resolve to a", "no pull requests found"]) => {
                ForgeError::NotFound { what: format!("answer to {action}: {said}") }
            }
            (Some(500..), _) => ForgeError::Unavailable { said },
            _ if self.says(NO_CONNECTION) => ForgeError::Unavailable { said },
            (Some(400..), _) => ForgeError::Refused { action: action.to_owned(), said },
            _ if self.says(&["GraphQL: ", "No commits between", "create failed"]) => {
                ForgeError::Refused { action: action.to_owned(), said }
            }
            _ => return Err(self),
        })
    }

    fn text(&self) -> String {
        match self {
            Self::Missing { program } => format!("`{program}` was not found"),
            Self::NotStarted { reason } | Self::NoAnswer { reason } => reason.clone(),
            Self::Said { said, .. } => said.clone(),
        }
    }

    fn says(&self, words: &[&str]) -> bool {
        matches!(self, Self::Said { said, .. } if words.iter().any(|word| said.contains(word)))
    }

    /// `HTTP 404: Not Found (https://…)` or `gh: Not Found (HTTP 404)`.
    fn status(&self) -> Option<u16> {
        let Self::Said { said, .. } = self else { return None };
        let (_, rest) = said.split_once("HTTP ")?;
        rest.get(..3)?.parse().ok()
    }
}

/// `retry after 30` with or without a unit, in any case.
fn retry_after(said: &str) -> Option<Duration> {
    let said = said.to_lowercase().replace('-', " ");
    let (_, rest) = said.split_once("retry after")?;
    let digits: String =
        rest.trim_start_matches([':', ' ']).chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::ErrorClass;

    fn said(said: &str) -> Failure {
        Failure::Said { code: Some(1), said: said.to_owned() }
    }

    #[test]
    fn each_failure_belongs_to_someone() {
        let transient = ErrorClass::Transient { retry_after: None };
        for (words, class) in [
            ("HTTP 502: Bad Gateway (https://api.github.com/graphql)", transient),
            ("error connecting to api.github.com", transient),
            ("gh: API rate limit exceeded for user ID 1. (HTTP 403)", transient),
            ("HTTP 401: Bad credentials", ErrorClass::Systemic),
            ("gh: Resource not accessible by integration (HTTP 403)", ErrorClass::Systemic),
            ("To get started with GitHub CLI, please run:  gh auth login", ErrorClass::Systemic),
            ("gh: Not Found (HTTP 404)", ErrorClass::Task),
            ("GraphQL: Could not resolve to a PullRequest with the number of 7.", ErrorClass::Task),
            ("pull request create failed: GraphQL: No commits between main and x", ErrorClass::Task),
            ("HTTP 422: Validation Failed", ErrorClass::Task),
            ("something never seen", ErrorClass::Unknown),
        ] {
            assert_eq!(said(words).of_writing("x").class(), class, "{words}");
        }
        assert_eq!(said("something never seen").of_reading("x").class(), transient);
    }

    #[test]
    fn a_pause_that_is_asked_for_is_kept() {
        let error = said("HTTP 429: too many requests (retry after 30s)").of_reading("x");
        assert_eq!(error.class(), ErrorClass::Transient { retry_after: Some(Duration::from_secs(30)) });
        assert_eq!(retry_after("Retry-After: 7"), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("retry after a while"), None);
    }

    #[test]
    fn only_an_answer_that_was_lost_may_hide_an_effect() {
        assert!(said("HTTP 502: Bad Gateway").may_have_worked());
        assert!(Failure::NoAnswer { reason: String::new() }.may_have_worked());
        assert!(!said("HTTP 422: Validation Failed").may_have_worked());
        assert!(!Failure::Missing { program: "gh".into() }.may_have_worked());
    }

    #[test]
    fn a_merge_that_is_refused_is_the_tasks_own() {
        let error = said("X Pull request #7 is not mergeable: the base branch policy prohibits the merge.")
            .of_merging(7);
        assert!(matches!(error, ForgeError::NotMergeable { number: 7, .. }));
        assert!(said("HTTP 409: Head branch was modified. Review and try the merge again.").head_moved());
    }
}
