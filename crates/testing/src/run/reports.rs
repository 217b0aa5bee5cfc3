//! The report files that a run left.

use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use globset::{Glob, GlobMatcher};

use crate::combine::Telling;
use crate::read::{Source, telling};
use crate::{Collector, Ending, Framework, Limits, RunPlan, Trust};

/// A run does not leave more reports, and its project has not more directories to look for them in.
const MOST_FILES: usize = 20_000;
const MOST_DIRECTORIES: usize = 50_000;

/// Reads the reports that are not older than the run. All of its processes are gone: nothing changes any more.
pub(super) fn read_reports(
    plan: &RunPlan,
    since: SystemTime,
    ending: &Ending,
    notes: &mut Vec<String>,
) -> Vec<Telling> {
    let mut tellings = Vec::new();
    for path in report_files(plan, since) {
        match read_one(&path, plan, ending) {
            Ok(Some(telling)) => tellings.push(telling),
            Ok(None) => {}
            Err(error) => notes.push(format!("a report cannot be read: {error}")),
        }
    }
    tellings
}

fn read_one(path: &Utf8Path, plan: &RunPlan, ending: &Ending) -> std::io::Result<Option<Telling>> {
    let framework = (plan.framework != Framework::Generic).then_some(plan.framework);
    let source = Source::open(path.to_owned(), framework)?;
    let format = source.format;
    if format.trust <= Trust::Text {
        return Ok(None);
    }
    let collector = Collector::new(Some(&plan.root), Limits::default());
    telling(format, vec![source], collector, ending, &mut |_| {}).map(Some)
}

fn report_files(plan: &RunPlan, since: SystemTime) -> Vec<Utf8PathBuf> {
    let mut files = Vec::new();
    for report in &plan.reports {
        match report.glob.as_deref().map(Glob::new) {
            None => files.push(report.path.clone()),
            Some(Ok(glob)) => find(&report.path, &glob.compile_matcher(), &mut files),
            Some(Err(_)) => {}
        }
    }
    // Only regular files: a link leads anywhere, and a FIFO would be waited for.
    files.retain(|path| {
        path.symlink_metadata()
            .is_ok_and(|it| it.is_file() && it.modified().is_ok_and(|modified| modified >= since))
    });
    files.sort();
    files.truncate(MOST_FILES);
    files
}

fn find(directory: &Utf8Path, glob: &GlobMatcher, files: &mut Vec<Utf8PathBuf>) {
    let mut pending = vec![directory.to_owned()];
    let mut looked_at = 0;
    while let Some(directory) = pending.pop() {
        looked_at += 1;
        if looked_at > MOST_DIRECTORIES || files.len() > MOST_FILES {
            return;
        }
        let Ok(entries) = directory.read_dir_utf8() else { continue };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && !matches!(entry.file_name(), ".git" | "node_modules") {
                pending.push(entry.into_path());
            } else if kind.is_file() && glob.is_match(entry.path()) {
                files.push(entry.into_path());
            }
        }
    }
}
