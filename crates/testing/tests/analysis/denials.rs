//! What programs print that a sandbox stopped: each is told as a denial, of the right kind.

use rehearsal_testing::{FailureContext, Withheld, analyse, blocked_by_sandbox};

use crate::Sample;

fn withheld() -> Withheld {
    Withheld {
        network: true,
        filesystem: true,
        writable: vec!["/tmp".into()],
        memory: Some(700 << 20),
        open_files: Some(64),
        processes: Some(64),
    }
}

#[test]
fn each_denial_is_told_as_one_of_its_kind() {
    let samples: Vec<Sample> =
        Sample::all().into_iter().filter(|it| it.truth.sandbox_denial.is_some()).collect();
    assert!(samples.len() >= 26);
    let mut wrong = String::new();
    for sample in samples {
        // A process that a memory group kills prints nothing: the group's own counter tells, and the runner reads it.
        let report = sample.report(sample.truth.mechanism.contains("oom_kill"));
        let context = FailureContext { withheld: Some(&withheld()), ..FailureContext::default() };
        let analysis = analyse(&report, &context);
        let told: Vec<String> = analysis
            .denials
            .iter()
            .map(|it| serde_json::to_string(&it.kind).unwrap().replace('"', ""))
            .collect();
        if told != [sample.truth.sandbox_denial.clone().unwrap()] {
            wrong.push_str(&format!("{}: {told:?}\n", sample.id));
        }
        let mut judged = report;
        blocked_by_sandbox(&mut judged, &withheld());
        let verdict = judged.verdict.name();
        if !["sandbox_blocked", "out_of_memory", "limit"].contains(&verdict) || judged.success {
            wrong.push_str(&format!("{}: {verdict}\n", sample.id));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn without_a_sandbox_nothing_was_denied() {
    for sample in Sample::all().into_iter().filter(|it| it.truth.sandbox_denial.is_some()) {
        let analysis = analyse(&sample.report(false), &FailureContext::default());
        assert_eq!(analysis.denials, [], "{}", sample.id);
    }
}
