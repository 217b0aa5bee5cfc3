//! No secret in any file of a run, nor in anything that is told.

use crate::support::Bench;

const VALUE: &str = "correct-horse-battery";
const SHAPE: &str = "sk-ant-api03-0123456789abcdef";

#[tokio::test]
async fn secrets_are_redacted_in_every_file_and_report() {
    let mut bench = Bench::new();
    bench.ours.insert("DEPLOY_TOKEN".into(), VALUE.into());
    bench.request.env_grants.push("DEPLOY_TOKEN".into());
    bench.request.prompt = format!("use {VALUE}");
    let script = format!(
        r#"printf 'one %s two\n' "$DEPLOY_TOKEN"
        printf 'cut correct-ho'; sleep 0.05; printf 'rse-battery end\n'
        printf 'key sk-ant-api'; sleep 0.05; printf '03-0123456789abcdef\n'
        echo "error $DEPLOY_TOKEN {SHAPE}" >&2
        printf '{{"outcome":"blocked","reason":"%s","progress":["{SHAPE}"]}}' "$DEPLOY_TOKEN" > $TASK_DIR/result.json
        printf '{{"type":"task_blocked","id":"a","reason":"%s"}}\n%s\n' "$DEPLOY_TOKEN" "$DEPLOY_TOKEN" > $TASK_DIR/report.jsonl"#
    );
    let report = bench.sh(&script).await;
    assert_eq!(report.verdict.outcome.to_string(), "blocked: [redacted:DEPLOY_TOKEN]");
    assert_eq!(
        bench.file("stdout.log"),
        "one [redacted:DEPLOY_TOKEN] two\ncut [redacted:DEPLOY_TOKEN] end\nkey [redacted]\n"
    );
    assert_eq!(bench.file("stderr.log"), "error [redacted:DEPLOY_TOKEN] [redacted]\n");
    assert_eq!(bench.file("prompt.md"), "use [redacted:DEPLOY_TOKEN]");
    let told = format!("{report:?} {:?}", bench.seen.lock().unwrap());
    assert!(!told.contains(VALUE) && !told.contains(SHAPE), "{told}");
    // What the agent wrote itself, in its own words, is the agent's.
    for name in ["prompt.md", "stdout.log", "stderr.log", "activity.jsonl"] {
        let content = bench.file(name);
        assert!(!content.contains(VALUE) && !content.contains(SHAPE), "{name}: {content}");
    }
}

#[tokio::test]
async fn a_secret_that_was_not_granted_does_not_reach_the_agent() {
    let mut bench = Bench::new();
    bench.ours.insert("DEPLOY_TOKEN".into(), VALUE.into());
    let report = bench.sh("echo \"<$DEPLOY_TOKEN>\"").await;
    assert_eq!(report.evidence.wire.final_text, "<>\n");
}
