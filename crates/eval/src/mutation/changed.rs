//! Other changes of files, other commits, other ends of tests and commands.

use rehearsal_core::TestStatus;

use super::Mutant;
use crate::trial::{ChangeKind, FileChange, PullRequest, Trial};

/// Of more files, the rest stay as they are.
const MOST_REVERTED: usize = 20;
/// More files than any change is to have.
const MANY: usize = 1000;
/// A place that no scope has, unless it has everything.
const OUTSIDE: &str = "zz-outside/of-the-scope.zz";

pub(super) fn mutants(trial: &Trial) -> Vec<Mutant> {
    let mut all = vec![
        Mutant::of(trial, "no file is changed", |mutant| {
            mutant.changes.clear();
            mutant.diff.clear();
            mutant.commits.clear();
            mutant.uncommitted = false;
            mutant.commands.clear();
            if let Some(tested) = &mut mutant.tests {
                tested.after = tested.before.clone();
            }
        }),
        Mutant::of(trial, "one more file is changed, outside of the scope", |mutant| {
            create(mutant, OUTSIDE, "out of scope");
        }),
        Mutant::of(trial, "a thousand more files are changed", |mutant| {
            let more = (0..MANY).map(|number| change(&format!("zz-many/{number}"), ChangeKind::Created));
            mutant.changes.extend(more);
        }),
        Mutant::of(trial, "the added lines are dropped", |mutant| {
            let is_added = |line: &&str| line.starts_with('+') && !line.starts_with("+++ ");
            mutant.diff = trial.diff.split_inclusive('\n').filter(|line| !is_added(line)).collect();
            forget_ends(mutant);
        }),
        Mutant::of(trial, "something is left uncommitted", |mutant| mutant.uncommitted = true),
        Mutant::of(trial, "nothing is committed", |mutant| {
            mutant.commits.clear();
            mutant.uncommitted = !mutant.changes.is_empty();
        }),
        Mutant::of(trial, "the commits say nothing", |mutant| {
            mutant.commits.iter_mut().for_each(|subject| "~".clone_into(subject));
        }),
        Mutant::of(trial, "there is no pull request", |mutant| mutant.pull_request = None),
        Mutant::of(trial, "the pull request is another", |mutant| {
            mutant.pull_request = trial
                .pull_request
                .as_ref()
                .map(|one| PullRequest { title: "~".to_owned(), merged: !one.merged });
        }),
        Mutant::of(trial, "every test fails", |mutant| {
            if let Some(tested) = &mut mutant.tests {
                tested.after.values_mut().for_each(|status| *status = TestStatus::Fail);
            }
        }),
        Mutant::of(trial, "no test is left", |mutant| {
            if let Some(tested) = &mut mutant.tests {
                tested.after.clear();
            }
        }),
        Mutant::of(trial, "every command ends otherwise", |mutant| {
            for end in mutant.commands.values_mut() {
                end.code = end.code.map(|code| i32::from(code == 0));
            }
        }),
    ];
    all.extend(trial.changes.iter().take(MOST_REVERTED).map(|change| {
        Mutant::of(trial, format!("`{}` stays as it was", change.path), |mutant| revert(mutant, &change.path))
    }));
    all
}

pub(super) fn change(path: &str, kind: ChangeKind) -> FileChange {
    FileChange { path: path.to_owned(), kind }
}

/// A new file, in the difference too.
pub(super) fn create(mutant: &mut Trial, path: &str, line: &str) {
    mutant.changes.push(change(path, ChangeKind::Created));
    mutant.diff.push_str(&format!(
        "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{line}\n"
    ));
}

/// Takes one file out of the changes and of the difference.
fn revert(mutant: &mut Trial, path: &str) {
    mutant.changes.retain(|change| change.path != path);
    let head = format!("diff --git a/{path} b/{path}");
    let mut inside = false;
    let kept = mutant.diff.split_inclusive('\n').filter(|line| {
        if line.starts_with("diff --git ") {
            inside = line.trim_end() == head;
        }
        !inside
    });
    mutant.diff = kept.collect();
    forget_ends(mutant);
}

/// How tests and commands would end with other files is not known, and not what it was.
fn forget_ends(mutant: &mut Trial) {
    mutant.tests = None;
    mutant.commands.clear();
}
