//! From a repository's own history: commits whose tests fail before and pass after.

use rehearsal_core::SourceError;
use serde_json::json;

use super::draft::{AssertionDraft, CaseDraft, EvalDraft, RepositoryDraft};
use super::names::Names;

const HEAD: &str = "# From the history of this repository: the tests of each commit fail before it and pass after it.\n\
                    # `rehearsal eval oracle` tries each case with the commit itself.";

/// A commit that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mined {
    /// The commit.
    pub commit: String,
    /// The one before it.
    pub parent: String,
    /// Its message.
    pub message: String,
    /// What it did to tests.
    pub tests: String,
    /// What it did to everything else.
    pub sources: String,
    /// The tests that fail without and pass with what it did.
    pub fail_to_pass: Vec<String>,
}

/// Makes an eval of commits of the repository at `path`, as the eval's file sees it.
pub fn history(name: &str, path: &str, mined: &[Mined]) -> Result<String, SourceError> {
    let mut names = Names::default();
    let cases = mined.iter().map(|one| case(one, path, &mut names)).collect();
    EvalDraft { name: name.to_owned(), cases, ..EvalDraft::default() }.write(HEAD)
}

fn case(one: &Mined, path: &str, names: &mut Names) -> CaseDraft {
    let short: String = one.commit.chars().take(8).collect();
    let subject = one.message.lines().next().unwrap_or_default();
    // Nothing else that passed may break: names of all of them would be longer than the eval.
    let value = json!({ "fail_to_pass": one.fail_to_pass, "pass_to_pass": "all" });
    CaseDraft {
        name: names.give(&format!("{short}-{subject}"), &short),
        prompt: prompt_of(&one.message).unwrap_or_else(|| "Make the failing tests pass.".to_owned()),
        repository: Some(RepositoryDraft {
            path: path.to_owned(),
            at: one.parent.clone(),
            patch: Some(one.tests.clone()),
        }),
        assertions: vec![AssertionDraft {
            kind: "tests".to_owned(),
            value,
            weight: 1.0,
            threshold: None,
            metric: None,
        }],
        known_patch: Some(one.sources.clone()),
        ..CaseDraft::default()
    }
}

/// What a message asks for: without its trailers, and without whatever shows the solution. None if nothing is left.
pub fn prompt_of(message: &str) -> Option<String> {
    let mut lines: Vec<&str> = Vec::new();
    let mut fenced = false;
    for line in message.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if begins_a_diff(line) {
            break;
        }
        if !fenced && !is_trailer(line) {
            lines.push(line.trim_end());
        }
    }
    let text = lines.join("\n");
    let text = text.trim();
    (!text.is_empty()).then(|| format!("{text}\n\nThe tests for it are there already; make them pass.\n"))
}

fn begins_a_diff(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("diff --git ")
        || line.starts_with("@@ ")
        || line.starts_with("--- a/")
        || line.starts_with("+++ b/")
}

/// `Signed-off-by: …`: who and where, not what.
fn is_trailer(line: &str) -> bool {
    const KEYS: [&str; 12] = [
        "signed-off-by",
        "co-authored-by",
        "reviewed-by",
        "acked-by",
        "tested-by",
        "reported-by",
        "suggested-by",
        "change-id",
        "cc",
        "reviewed-on",
        "git-svn-id",
        "differential revision",
    ];
    line.split_once(':').is_some_and(|(key, _)| KEYS.contains(&key.trim().to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    #[test]
    fn a_prompt_has_what_is_wanted_and_nothing_of_the_solution() {
        let message = "Count the empty cart\n\nIt was left out.\n\n```rust\nlet n = 0;\n```\n\nFixes #12\n\n\
                       Signed-off-by: A <a@b>\ndiff --git a/x b/x\n+let n = 0;\n";
        assert_snapshot!(prompt_of(message).unwrap(), @"
        Count the empty cart

        It was left out.


        Fixes #12

        The tests for it are there already; make them pass.
        ");
        assert_eq!(prompt_of("Co-authored-by: A <a@b>\n"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_message_brings_a_diff_into_a_prompt(message in "(diff --git |@@ |--- a/|```|Fix|\\PC|\n){0,60}") {
            if let Some(prompt) = prompt_of(&message) {
                proptest::prop_assert!(!prompt.lines().any(begins_a_diff), "{}", prompt);
            }
        }
    }

    #[test]
    fn a_commit_becomes_a_case_that_can_be_read() {
        let mined = Mined {
            commit: "0123456789abcdef".into(),
            parent: "fedcba9876543210".into(),
            message: "Fix: the \"cart\"\n".into(),
            tests: "diff --git a/t b/t\n--- a/t\n+++ b/t\n@@ -1 +1 @@\n-a \n+\tb\n".into(),
            sources:
                "diff --git a/s b/s\n--- a/s\n+++ b/s\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"
                    .into(),
            fail_to_pass: vec!["cart::adds".into()],
        };
        assert_snapshot!(history("own", ".", &[mined]).unwrap(), @r#"
        # From the history of this repository: the tests of each commit fail before it and pass after it.
        # `rehearsal eval oracle` tries each case with the commit itself.
        name: own
        cases:
        - name: 01234567-Fix-the-cart
          prompt: |
            Fix: the "cart"
            
            The tests for it are there already; make them pass.
          repository:
            path: '.'
            at: fedcba9876543210
            patch: |
              diff --git a/t b/t
              --- a/t
              +++ b/t
              @@ -1 +1 @@
              -a 
              +	b
          assert:
          - {type: tests, value: {fail_to_pass: [cart::adds], pass_to_pass: all}}
          known_patch: |
            diff --git a/s b/s
            --- a/s
            +++ b/s
            @@ -1 +1 @@
            -a
            +b
            \ No newline at end of file
        "#);
    }
}
