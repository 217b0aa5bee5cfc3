//! Real outputs of real runners, each with its truth: what we read must be what happened.
//!
//! Every sample is read whole, as a live run is (all its files together), and then each of its reports alone, as
//! someone would who has only that one.

#![expect(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod chunks;
mod lacking;
mod truth;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::Exit;
use rehearsal_testing::{Ending, Recorded, read};
use rstest::rstest;
use truth::{Sample, samples};

#[rstest]
#[case::ava("ava")]
#[case::bats("bats")]
#[case::bun("bun")]
#[case::busted("busted")]
#[case::cargo_test("cargo-test")]
#[case::ctest("ctest")]
#[case::deno("deno")]
#[case::dotnet("dotnet")]
#[case::exunit("exunit")]
#[case::go("go")]
#[case::jest("jest")]
#[case::junit("junit")]
#[case::minitest("minitest")]
#[case::mocha("mocha")]
#[case::nextest("nextest")]
#[case::node_test("node-test")]
#[case::phpunit("phpunit")]
#[case::pytest("pytest")]
#[case::rspec("rspec")]
#[case::tap("tap")]
#[case::unittest("unittest")]
#[case::vitest("vitest")]
fn what_is_read_is_what_happened(#[case] runner: &str) {
    let mut wrong = Vec::new();
    for sample in samples().into_iter().filter(|sample| sample.dir == runner) {
        let files = sample.paths();
        let together = sample.mismatches(&report_of(&sample, &files), true);
        note(&mut wrong, &sample.id, "all files", &together);
        for file in files.iter().filter(|_| files.len() > 1) {
            if Sample::is_whole(file) {
                let alone = sample.mismatches(&report_of(&sample, std::slice::from_ref(file)), false);
                note(&mut wrong, &sample.id, file.file_name().unwrap(), &alone);
            }
        }
    }
    let wrong = lacking::unexplained(runner, &wrong);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn report_of(sample: &Sample, files: &[Utf8PathBuf]) -> rehearsal_testing::TestReport {
    let exit = sample.exit_code.map(Exit::Code).or(sample.signal.map(Exit::Signal));
    let ending = Ending { exit, ..Ending::default() };
    read(&Recorded { files: files.to_vec(), framework: None, root: None, ending }).unwrap()
}

fn note(wrong: &mut Vec<(String, String, String)>, id: &str, file: &str, mismatches: &[String]) {
    for mismatch in mismatches {
        wrong.push((id.to_owned(), file.to_owned(), mismatch.clone()));
    }
}

/// Where the samples are.
fn fixtures() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}
