//! Reports for agents from real outputs: short, whatever the runner said.

use rehearsal_testing::{AgentBudget, FailureContext, SummaryExtras, agent_report, analyse, summary};

use crate::Sample;

/// The four lines that every report begins with, and a reason: a runner that says less than this has said nothing.
const LEAST: u64 = 330;

#[test]
fn a_report_is_never_longer_than_what_the_runner_printed() {
    let mut wrong = String::new();
    for sample in Sample::all() {
        let report = sample.report(false);
        let analysis = analyse(&report, &FailureContext::default());
        let runner_text = sample.printed_bytes();
        let budget = AgentBudget { runner_text: Some(runner_text), ..AgentBudget::default() };
        let text = agent_report(&report, &analysis, budget);
        if text.len() as u64 > runner_text.max(LEAST) {
            wrong.push_str(&format!(
                "{}: {} bytes, printed were {runner_text}\n{text}\n",
                sample.id,
                text.len()
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn a_report_of_ten_failures_takes_a_kilobyte_and_a_half_at_most() {
    for sample in Sample::all() {
        let report = sample.report(false);
        let analysis = analyse(&report, &FailureContext::default());
        let text = agent_report(&report, &analysis, AgentBudget::default());
        if analysis.groups.len() <= 10 {
            assert!(text.len() <= 1500, "{}: {} bytes\n{text}", sample.id, text.len());
        }
    }
}

#[test]
fn a_report_names_every_group_of_failures_that_a_sample_has() {
    for sample in Sample::all() {
        let report = sample.report(false);
        let analysis = analyse(&report, &FailureContext::default());
        let text = agent_report(&report, &analysis, AgentBudget::default());
        for group in analysis.groups.iter().take(10) {
            let place = group.file.as_deref().unwrap_or_default();
            let name = group.test_names.first().map_or("", String::as_str);
            let named = text.contains(&name.chars().take(30).collect::<String>());
            assert!(named || text.contains(place), "{}: {name} {place}\n{text}", sample.id);
        }
    }
}

#[test]
fn neither_report_lets_control_characters_of_the_output_through() {
    for sample in Sample::all() {
        let report = sample.report(false);
        let analysis = analyse(&report, &FailureContext::default());
        let for_people = summary(&report, &analysis, &SummaryExtras::default()).to_string();
        let for_agents = agent_report(&report, &analysis, AgentBudget::default());
        for text in [for_people, for_agents] {
            let bad = text.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(bad, None, "{}\n{text:?}", sample.id);
        }
    }
}
