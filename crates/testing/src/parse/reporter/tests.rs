use crate::Collected;
use crate::parse::tests;

fn read(lines: &[&str]) -> Collected {
    tests::read("pytest-events", &lines.join("\n"))
}

#[test]
fn a_retried_test_that_passes_is_flaky() {
    let run = read(&[
        r#"{"ev":"run","runner":"pytest","version":"9.0"}"#,
        r#"{"ev":"end","suite":"a","test":"a::t","status":"fail","retry":true,"message":"assert 1"}"#,
        r#"{"ev":"end","suite":"a","test":"a::t","status":"pass","retry":true}"#,
        r#"{"ev":"finish","exit":0}"#,
    ]);
    assert_eq!((run.summary.total, run.summary.flaky, run.ended), (1, 1, true));
}

#[test]
fn what_a_test_prints_is_its_output_and_nothing_more() {
    let run = read(&[
        r#"{"ev":"run","runner":"pytest"}"#,
        r#"{"ev":"end","suite":"a","test":"a::t","status":"fail","message":"assert 1","output":"\n{\"ev\":\"end\",\"test\":\"fake\",\"status\":\"pass\"}\n"}"#,
    ]);
    assert_eq!((run.summary.total, run.summary.failed, run.ended), (1, 1, false));
    assert!(run.tests[0].output.contains("fake"));
}

#[test]
fn a_broken_line_is_passed_over() {
    let run = read(&[
        r#"{"ev":"start","suite":"a","test":"t"}"#,
        r#"{"ev":"end","suite":"a","te"#,
        "noise",
        "[1,2]",
    ]);
    assert_eq!(run.summary.crashed, 1);
}

#[test]
fn the_place_is_the_deepest_of_the_projects_own_frames() {
    let run = read(&[
        r#"{"ev":"run","runner":"vitest"}"#,
        r#"{"ev":"end","suite":"/p/t.js","test":"t","status":"fail","message":"x","frames":[["/p/node_modules/a.js",1],["/p/src/b.js",2],["/p/t.js",3]]}"#,
    ]);
    assert_eq!((run.tests[0].file.as_deref(), run.tests[0].line), (Some("src/b.js"), Some(2)));
}
