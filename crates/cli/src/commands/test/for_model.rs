//! The document of a run, cut to what a model can use.

use rehearsal_engine::Tested;
use rehearsal_testing::{FailureAnalysis, HeadTail};

use super::TestDocument;

/// Of each list in an answer for a model; the rest is counted in the summary, and is in the files that it names.
pub(crate) const LISTED_FOR_MODEL: usize = 20;
/// Bytes at each end of a text in it.
const TEXT_FOR_MODEL: usize = 500;

impl TestDocument {
    /// As much as a model can use: failures first, passed tests only if all are few, and long texts cut. Clients hand it
    /// to the model in place of the text.
    pub(crate) fn for_model(tested: Tested, agent_report: String) -> Self {
        let mut document = Self::of(tested.projects, &tested.notes);
        document.agent_report = Some(agent_report);
        let report = &mut document.report;
        report.tests.sort_by_key(|test| !test.status.is_failure());
        report.tests.truncate(LISTED_FOR_MODEL);
        for test in &mut report.tests {
            [&mut test.output, &mut test.error, &mut test.stack_trace].into_iter().for_each(shorten);
            [&mut test.expected, &mut test.actual].into_iter().flatten().for_each(shorten);
        }
        for problems in [&mut report.build_errors, &mut report.suite_errors, &mut report.run_errors] {
            problems.truncate(LISTED_FOR_MODEL);
            for problem in problems.iter_mut() {
                shorten(&mut problem.message);
            }
        }
        // The failures above are what the output says; whole, it is in its file.
        shorten(&mut report.raw_output);
        report.coverage.iter_mut().for_each(|coverage| coverage.files.truncate(LISTED_FOR_MODEL));
        report.files_written.truncated |= report.files_written.files.len() > LISTED_FOR_MODEL;
        report.files_written.files.truncate(LISTED_FOR_MODEL);
        let of_projects = document.projects.iter_mut().filter_map(|project| project.analysis.as_mut());
        for analysis in document.analysis.iter_mut().chain(of_projects) {
            bound(analysis);
        }
        document
    }
}

/// The groups have every failure once.
fn bound(analysis: &mut FailureAnalysis) {
    analysis.failed_tests.truncate(LISTED_FOR_MODEL);
    analysis.error_patterns.truncate(LISTED_FOR_MODEL);
    analysis.suggestions.truncate(LISTED_FOR_MODEL);
    analysis.affected_files.truncate(LISTED_FOR_MODEL);
    analysis.groups.truncate(LISTED_FOR_MODEL);
    analysis.cascades.truncate(LISTED_FOR_MODEL);
    analysis.denials.truncate(LISTED_FOR_MODEL);
    analysis.changed.truncate(LISTED_FOR_MODEL);
    for group in &mut analysis.groups {
        shorten(&mut group.message);
        [&mut group.expected, &mut group.actual].into_iter().flatten().for_each(shorten);
    }
}

pub(crate) fn shorten(text: &mut String) {
    if text.len() > 2 * TEXT_FOR_MODEL {
        let mut short = HeadTail::new(TEXT_FOR_MODEL);
        short.push(text);
        *text = short.into_text();
    }
}
