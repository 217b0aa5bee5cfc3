//! Which tests a repository has, for commands that only mention them.

use camino::Utf8Path;
use rehearsal_testing::{Candidate, Framework, detect};
use serde::Serialize;

/// The tests of one project.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FoundTests {
    /// The runner.
    pub(crate) framework: Framework,
    /// Where, relative to the repository.
    root: String,
    /// The file that tells.
    found_by: Option<String>,
    /// The project's own command, where no runner is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
}

pub(crate) fn found_tests(root: &Utf8Path) -> Vec<FoundTests> {
    let found = detect(root, &|program| which::which(program).is_ok());
    let view = |candidate: &Candidate| FoundTests {
        framework: candidate.framework,
        root: candidate.place().to_owned(),
        found_by: candidate.evidence.first().map(|evidence| evidence.file.to_string()),
        command: Some(candidate.invocation.command.join(" "))
            .filter(|command| candidate.framework == Framework::Generic && !command.is_empty()),
    };
    found.chosen().map(view).collect()
}

/// In a line; nothing if there are none.
pub(crate) fn in_words(tests: &[FoundTests]) -> Option<String> {
    let words = |test: &FoundTests| {
        let what = test.command.as_deref().unwrap_or(test.framework.name());
        let place = if test.root == "." { String::new() } else { format!(" in {}", test.root) };
        let by = test.found_by.as_deref().map_or_else(String::new, |file| format!(" ({file})"));
        format!("{what}{place}{by}")
    };
    let all: Vec<String> = tests.iter().map(words).collect();
    (!all.is_empty()).then(|| all.join(", "))
}
