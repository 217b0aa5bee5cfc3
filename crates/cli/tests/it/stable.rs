//! Output with everything replaced that differs from run to run and from machine to machine.

use std::sync::LazyLock;

use regex::Regex;

use crate::env::{PROGRAM, TestEnv};

/// What is known of a scratch repository.
pub(crate) struct Stable<'a> {
    pub(crate) env: &'a TestEnv,
    /// In the order in which they were made.
    pub(crate) tasks: Vec<String>,
}

static REPLACED: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        (r"\b[0-9a-f]{40}\b", "[SHA]"),
        (r"\b[0-9a-f]{10}\b", "[COMMIT10]"),
        (r"(?m)^  [0-9a-f]{7} ", "  [SHORT] "),
        (r"(?m)^ *\+\d+\.\d\d s", "+[TIME]"),
        (r"\b(repo|greet)-[0-9a-f]{8}\b", "$1-[HASH]"),
        (r"(?m)^(commit )[0-9a-f]{10}\b", "$1[SHA]"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "[UUID]"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "[MOMENT]"),
        (r"(\buid \d+|[\w-]+)@[\w.-]+ \((no )?terminal\)", "[PERSON]"),
        (r"(?m)^\d\d:\d\d:\d\d ", "[CLOCK] "),
        (r"\b\d+ d \d+ h\b", "[TIME]"),
        (r"\b\d+ h \d+ min\b", "[TIME]"),
        (r"\b\d+ min \d+ s\b", "[TIME]"),
        (r"\b\d+(\.\d)? s\b", "[TIME]"),
        (r"\b(in|Duration:|\() ?\d+(\.\d+)?m?s\b", "$1 [TIME]"),
        (r"(\[STATE\]/tests/)[0-9a-z]{8}/", "$1[KEPT]/"),
        (r"(\[STATE\]/runs/)[0-9a-z]{8}\b", "$1[RUN]"),
        (r"(?m)^[0-9a-z]{8}( .* ago  )", "[RUN-ID]$1"),
        (r"\bprocess \d+", "process [PID]"),
        (r"\b\d+ GiB free", "[SIZE] free"),
        (r"(?m)^(ok    git +)[\w.]+", "$1[VERSION]"),
        // What a machine gives to the sandbox is its own; one line stands for all.
        (r"(?m)^(ok  |note|bad )(  sandbox +)\w[\w-]*: .*\n((ok  |note|bad )  sandbox \w+ .*\n(      hint: .*\n)?)+", "[SANDBOX]\n"),
        (r"\brehearsal \d+\.\d+\.\d+", "rehearsal [VERSION]"),
        (r"version [0-9a-f]{12}\b", "version [HASH]"),
    ]
    .into_iter()
    .map(|(pattern, with)| (Regex::new(pattern).unwrap(), with))
    .collect()
});

impl Stable<'_> {
    /// Ids are replaced by something of the same length, so that tables stay aligned.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut text = text
            .replace(PROGRAM, "[PROGRAM]")
            .replace(self.env.state_dir().as_str(), "[STATE]")
            .replace(self.env.repo.as_str(), "[REPO]")
            .replace(self.env.scratch.as_str(), "[SCRATCH]");
        for (index, task) in self.tasks.iter().enumerate() {
            text = text.replace(task, &format!("[TASK-{}]", index + 1));
        }
        for (index, run) in self.runs_in(&text).iter().enumerate() {
            text = text.replace(run, &format!("[RUN-{:02}]", index + 1));
        }
        for (pattern, with) in REPLACED.iter() {
            text = pattern.replace_all(&text, *with).into_owned();
        }
        text
    }

    /// The runs that a text names, in the order of their appearance.
    fn runs_in(&self, text: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.env.run_dir("")) else {
            return Vec::new();
        };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut found: Vec<(usize, String)> =
            names.filter_map(|name| text.find(&name).map(|at| (at, name))).collect();
        found.sort();
        found.into_iter().map(|(_, name)| name).collect()
    }
}
