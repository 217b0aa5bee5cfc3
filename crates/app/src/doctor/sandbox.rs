//! What the sandbox can do on this machine.

use camino::Utf8Path;
use rehearsal_core::config::{SandboxLevel, Settings};
use rehearsal_sandbox::{Layer, LayerReport, Rung, SandboxError, SandboxReport, State, probe};

use super::{Finding, Subject};

/// What was found of the sandbox.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum SandboxFact {
    /// What the sandbox comes to. Tests that require all of it miss these layers.
    Whole { rung: Rung, missing: Vec<Layer> },
    /// It could not be tried.
    Untried(SandboxError),
    /// A layer of it.
    Layer(Layer, LayerReport),
}

/// Tries the usual sandbox out, and reports each layer. With settings, a layer that tests require must be there.
pub(super) fn look(
    directory: &Utf8Path,
    settings: Option<&Settings>,
    findings: &mut Vec<Finding>,
) -> Option<SandboxReport> {
    match probe(directory) {
        Ok(report) => {
            let required = settings.is_some_and(|it| it.testing.sandbox.level == SandboxLevel::Required);
            findings.extend(findings_of(&report, required));
            Some(report)
        }
        Err(error) => {
            findings.push(Finding::bad(Subject::Sandbox, SandboxFact::Untried(error)));
            None
        }
    }
}

fn findings_of(report: &SandboxReport, tests_require_it: bool) -> Vec<Finding> {
    let missing: Vec<Layer> = report.missing().into_iter().map(|(layer, _)| layer).collect();
    let is_refused = tests_require_it && !missing.is_empty();
    let finding = if is_refused { Finding::bad } else { Finding::ok };
    let missing = if is_refused { missing } else { Vec::new() };
    let whole = finding(Subject::Sandbox, SandboxFact::Whole { rung: report.rung, missing });
    std::iter::once(whole)
        .chain(report.layers.all().into_iter().map(|(layer, report)| of_layer(layer, report)))
        .collect()
}

fn of_layer(layer: Layer, report: &LayerReport) -> Finding {
    let holds = matches!(report.state, State::Enforced | State::Off);
    let finding = if holds { Finding::ok } else { Finding::note };
    finding(Subject::Layer(layer), SandboxFact::Layer(layer, report.clone()))
}
