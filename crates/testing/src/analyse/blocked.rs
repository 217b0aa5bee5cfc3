//! Whether the sandbox alone is to blame for a run.

use super::denial::{DenialKind, Withheld};
use super::failing::Failing;
use super::tree::Tree;
use super::{FailureContext, analyse};
use crate::{TestReport, Verdict};

/// Makes the verdict `sandbox_blocked` (or `out_of_memory`, or `limit`) if everything that failed was denied by the
/// sandbox, and says so in the reasons. A run is never better for it.
pub fn blocked_by_sandbox(report: &mut TestReport, withheld: &Withheld) {
    let may_be = matches!(
        report.verdict,
        Verdict::Failed | Verdict::BuildFailed | Verdict::CollectFailed | Verdict::Crashed | Verdict::NoTests
    );
    let stopped = report.timed_out || report.summary.timed_out > 0;
    if !may_be || stopped {
        return;
    }
    let tree = Tree::of(report, None);
    let all = Failing::all(report, &tree, Some(withheld));
    let told = u64::try_from(all.iter().filter(|it| it.is_test()).count()).unwrap_or(u64::MAX);
    // Of a very large run not every failure was kept: what is not there may be of another kind.
    if all.is_empty() || told < report.summary.failed || all.iter().any(|it| it.denied.is_none()) {
        return;
    }
    let kinds: Vec<DenialKind> = all.iter().filter_map(|it| it.denied.as_ref()).map(|it| it.kind).collect();
    let only = |wanted: &[DenialKind]| kinds.iter().all(|kind| wanted.contains(kind));
    let verdict = if only(&[DenialKind::Memory]) {
        Verdict::OutOfMemory
    } else if only(&[DenialKind::Fds, DenialKind::Processes]) {
        Verdict::Limit
    } else {
        Verdict::SandboxBlocked
    };
    let context = FailureContext { withheld: Some(withheld), ..FailureContext::default() };
    let denials = analyse(report, &context).denials;
    let facts = denials.iter().map(super::Denial::fact);
    report.reasons.splice(0..0, facts);
    report.verdict = verdict;
}
