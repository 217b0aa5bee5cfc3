//! What a scenario expects, held against what came of it.

use std::collections::BTreeMap;
use std::fmt::Display;

use camino::Utf8PathBuf;
use rehearsal_core::config::HumanDuration;
use rehearsal_core::yaml::{Entries, Spanned};
use rehearsal_core::{AgentName, Blame, Lane, OutcomeName, TaskId};
use serde::{Deserialize, Serialize};

use crate::observed::{Observed, ObservedTask};

/// What is to come of a scenario. What is not named may be anything.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// The tasks, by id.
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<TaskId, ExpectTask>"))]
    pub tasks: Entries<TaskId, ExpectTask>,
    /// The agents, in the order in which their runs begin: all of them.
    pub trajectory: Option<Vec<AgentName>>,
    /// Lines of the time line that come in this order, with any others between: each is a part of its line.
    pub events: Vec<String>,
    /// Lines of which none may come, as parts of them.
    pub never: Vec<String>,
    /// The base branch.
    pub base: ExpectBase,
    /// Branches of the remote: there or not.
    pub branches: BTreeMap<String, bool>,
    /// How many pull requests there are.
    pub pull_requests: Option<usize>,
    /// Calls of `gh` that come in this order, as the repositories of their arguments.
    pub gh: Vec<String>,
    /// How often `gh` was called so.
    pub gh_times: BTreeMap<String, usize>,
    /// Warnings of workers: each the name of one, such as `reviewer_changes_undone`, or another part of its line in the
    /// time line.
    pub warnings: Vec<String>,
    /// The lanes that are held in the end, all of them.
    pub held: Option<Vec<Lane>>,
    /// The tasks are refused when they are added, with these words.
    pub refused: Option<String>,
    /// The least time it takes, in its own time.
    pub at_least: Option<HumanDuration>,
    /// The most time it takes.
    pub at_most: Option<HumanDuration>,
}

/// What is to come of a task.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ExpectTask {
    /// The word that listings show in the end.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub status: Option<Spanned<String>>,
    /// Where it was, step by step: states, `claimed` while it is worked on, `waiting`, `blocked`, `needs_continuation`.
    pub through: Option<Vec<String>>,
    /// Runs that used up an attempt.
    pub attempts: Option<u32>,
    /// Times it was sent back.
    pub rejections: Option<u32>,
    /// Runs that went on where the last one stopped.
    pub continuations: Option<u32>,
    /// Failures of the system in a row.
    pub setbacks: Option<u32>,
    /// Workers that were lost with it.
    pub losses: Option<u32>,
    /// How its runs ended, in order.
    pub outcomes: Option<Vec<OutcomeName>>,
    /// Who was blamed for each.
    pub blamed: Option<Vec<Blame>>,
    /// A part of what the next run would be told.
    pub feedback: Option<String>,
    /// A part of why it waits.
    pub reason: Option<String>,
    /// A part of what `why` says about it.
    pub why: Option<String>,
    /// Whether its work does not fit the base.
    pub needs_rebase: Option<bool>,
    /// Whether its work is on the base.
    pub merged: Option<bool>,
    /// The number of its pull request.
    pub pull_request: Option<u64>,
    /// What agents were told.
    pub prompts: Vec<ExpectPrompt>,
}

/// What an agent was told.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ExpectPrompt {
    /// Which agent.
    pub agent: AgentName,
    /// In which of its runs for this task, counted from 1.
    #[serde(default = "first")]
    pub run: usize,
    /// A part of the prompt.
    #[serde(default)]
    pub contains: Option<String>,
    /// What is no part of it.
    #[serde(default)]
    pub lacks: Option<String>,
}

fn first() -> usize {
    1
}

/// What is to come of the base.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ExpectBase {
    /// Files and what is in them.
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, String>"))]
    pub files: BTreeMap<Utf8PathBuf, String>,
    /// Files that are not there.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub lacks: Vec<Utf8PathBuf>,
    /// How many commits it has more than in the beginning, merges not counted.
    pub commits: Option<usize>,
}

/// Something that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mismatch {
    /// What it is about.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

/// Collects what is not as expected.
#[derive(Default)]
struct Findings(Vec<Mismatch>);

impl Findings {
    fn add(&mut self, what: impl Into<String>, expected: impl Display, found: impl Display) {
        let (what, expected, found) = (what.into(), expected.to_string(), found.to_string());
        self.0.push(Mismatch { what, expected, found });
    }

    fn equal<T: PartialEq + Display>(&mut self, what: impl Into<String>, expected: Option<T>, found: T) {
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            self.add(what, expected, found);
        }
    }

    fn contains(&mut self, what: impl Into<String>, part: Option<&str>, found: Option<&str>) {
        let Some(part) = part else { return };
        if !found.is_some_and(|found| found.contains(part)) {
            self.add(what, format!("… {part} …"), found.unwrap_or("nothing"));
        }
    }
}

impl Expect {
    /// What is not as expected.
    pub(crate) fn check(&self, observed: &Observed) -> Vec<Mismatch> {
        let mut findings = Findings::default();
        for (id, expected) in &self.tasks.0 {
            let id = &id.value;
            match observed.tasks.get(id) {
                Some(task) => expected.check(id, task, &mut findings),
                None => findings.add(format!("task {id}"), "there", "not there"),
            }
        }
        if let Some(trajectory) = &self.trajectory {
            findings.equal("trajectory", Some(listed(trajectory)), listed(&observed.trajectory));
        }
        let lines: Vec<String> =
            observed.timeline.iter().map(|it| format!("{}: {}", it.who, it.what)).collect();
        in_order("events", &self.events, &lines, |line, part| line.contains(part), &mut findings);
        for part in &self.never {
            if let Some(line) = lines.iter().find(|line| line.contains(part.as_str())) {
                findings.add("events", format!("never … {part} …"), line);
            }
        }
        self.check_git(observed, &mut findings);
        let begins = |call: &str, with: &str| call.starts_with(with);
        in_order("gh", &self.gh, &observed.gh, begins, &mut findings);
        for (call, times) in &self.gh_times {
            let found = observed.gh.iter().filter(|found| found.starts_with(call.as_str())).count();
            findings.equal(format!("times of `gh {call}`"), Some(*times), found);
        }
        for part in &self.warnings {
            let all = observed.warnings.join("\n");
            findings.contains("warnings", Some(part), (!all.is_empty()).then_some(&all));
        }
        if let Some(held) = &self.held {
            findings.equal("lanes held", Some(listed(held)), listed(&observed.held));
        }
        let lasted = HumanDuration(observed.elapsed);
        if let Some(least) = self.at_least.filter(|least| lasted < *least) {
            findings.add("time", format!("at least {least}"), lasted);
        }
        if let Some(most) = self.at_most.filter(|most| lasted > *most) {
            findings.add("time", format!("at most {most}"), lasted);
        }
        findings.0
    }

    fn check_git(&self, observed: &Observed, findings: &mut Findings) {
        for (path, content) in &self.base.files {
            match observed.base_files.get(path) {
                Some(found) if found == content => {}
                Some(found) => findings.add(format!("`{path}` on the base"), content, found),
                None => findings.add(format!("`{path}` on the base"), content, "not there"),
            }
        }
        for path in &self.base.lacks {
            if let Some(found) = observed.base_files.get(path) {
                findings.add(format!("`{path}` on the base"), "not there", found);
            }
        }
        findings.equal("commits on the base", self.base.commits, observed.base_commits);
        for (branch, there) in &self.branches {
            let word = |there: bool| if there { "there" } else { "not there" };
            let found = observed.branches.contains(branch);
            findings.equal(format!("branch `{branch}`"), Some(word(*there)), word(found));
        }
        findings.equal("pull requests", self.pull_requests, observed.pull_requests.len());
    }
}

impl ExpectTask {
    fn check(&self, id: &TaskId, observed: &ObservedTask, findings: &mut Findings) {
        let task = &observed.task;
        let of = |what: &str| format!("task {id}: {what}");
        findings.equal(
            of("status"),
            self.status.as_ref().map(|status| status.value.as_str()),
            observed.status(),
        );
        if let Some(through) = &self.through {
            findings.equal(of("through"), Some(through.join(" → ")), observed.through.join(" → "));
        }
        findings.equal(of("attempts"), self.attempts, task.attempts);
        findings.equal(of("rejections"), self.rejections, task.rejections);
        findings.equal(of("continuations"), self.continuations, task.continuations);
        findings.equal(of("setbacks"), self.setbacks, task.setbacks);
        findings.equal(of("losses"), self.losses, task.losses);
        if let Some(outcomes) = &self.outcomes {
            let found = observed.runs.iter().map(|run| run.outcome);
            findings.equal(of("outcomes"), Some(listed(outcomes)), came_of(found));
        }
        if let Some(blamed) = &self.blamed {
            let word = |blame: &Blame| format!("{blame:?}").to_lowercase();
            let found = observed.runs.iter().map(|run| run.outcome.map(OutcomeName::blame));
            let found: Vec<String> =
                found.map(|blame| blame.map_or_else(|| "unfinished".to_owned(), |it| word(&it))).collect();
            findings.equal(
                of("blamed"),
                Some(blamed.iter().map(word).collect::<Vec<_>>().join(", ")),
                found.join(", "),
            );
        }
        let feedback = task.feedback.as_ref().map(|feedback| feedback.text.as_str());
        findings.contains(of("feedback"), self.feedback.as_deref(), feedback);
        findings.contains(of("reason"), self.reason.as_deref(), observed.reason());
        findings.contains(of("why"), self.why.as_deref(), Some(&observed.why));
        findings.equal(of("needs_rebase"), self.needs_rebase, task.delivery.needs_rebase);
        findings.equal(of("merged"), self.merged, task.delivery.merged.is_some());
        if let Some(number) = self.pull_request {
            let found =
                task.delivery.pull_request.as_ref().map_or_else(|| "none".into(), |it| it.number.to_string());
            findings.equal(of("pull request"), Some(number.to_string()), found);
        }
        for prompt in &self.prompts {
            prompt.check(id, observed, findings);
        }
    }
}

impl ExpectPrompt {
    fn check(&self, id: &TaskId, observed: &ObservedTask, findings: &mut Findings) {
        let what = format!("task {id}: prompt of run {} of {}", self.run, self.agent);
        let own = observed.runs.iter().filter(|run| run.agent == self.agent);
        let Some(run) = own.clone().nth(self.run.saturating_sub(1)) else {
            return findings.add(what, "there", format!("{} runs", own.count()));
        };
        findings.contains(what.clone(), self.contains.as_deref(), Some(&run.prompt));
        if let Some(part) = self.lacks.as_deref().filter(|part| run.prompt.contains(part)) {
            findings.add(what, format!("without … {part} …"), &run.prompt);
        }
    }
}

fn came_of(outcomes: impl Iterator<Item = Option<OutcomeName>>) -> String {
    let words = outcomes.map(|outcome| outcome.map_or_else(|| "unfinished".into(), |it| it.to_string()));
    words.collect::<Vec<String>>().join(", ")
}

fn listed(items: &[impl Display]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether the parts come in this order.
fn in_order(
    what: &str,
    parts: &[String],
    lines: &[String],
    fits: impl Fn(&str, &str) -> bool,
    findings: &mut Findings,
) {
    let mut rest = lines.iter();
    let mut after = None;
    for part in parts {
        if !rest.any(|line| fits(line, part)) {
            let place = after.map_or_else(String::new, |after| format!(", after … {after} …"));
            return findings.add(what, format!("… {part} …{place}"), lines.join("\n"));
        }
        after = Some(part);
    }
}
