use std::fmt::Write as _;

use super::*;
use crate::TestStatus;

/// Files that a run left.
struct Left {
    directory: tempfile::TempDir,
}

impl Left {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let left = Self { directory: tempfile::tempdir().unwrap() };
        for (name, bytes) in files {
            let path = left.path(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, bytes).unwrap();
        }
        left
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.directory.path()).unwrap().join(name)
    }

    fn read(&self, names: &[&str], exit: i32) -> std::io::Result<TestReport> {
        let files = names.iter().map(|name| self.path(name)).collect();
        read(&Recorded { files, ending: Ending::of_status(exit), ..Recorded::default() })
    }
}

/// The verdict, and how many tests there were, passed and failed.
fn told(report: &TestReport) -> (Verdict, u64, u64, u64) {
    (report.verdict, report.summary.total, report.summary.passed, report.summary.failed)
}

const PYTEST: &str = "<testsuites><testsuite name='pytest' tests='2' failures='1'>\
    <testcase classname='tests.test_cart' name='test_good' time='0.1'/>\
    <testcase classname='tests.test_cart' name='test_bad' time='0.1'><failure message='assert 1 == 2'>tests/test_cart.py:5: AssertionError</failure></testcase>\
    </testsuite></testsuites>";
const JEST: &str = "<testsuites name='jest tests'><testsuite name='cart'>\
    <testcase classname='cart' name='adds'/></testsuite></testsuites>";

#[test]
fn reports_of_two_runners_are_parts_of_one_run() {
    let left = Left::new(&[("api.xml", PYTEST.as_bytes()), ("web.xml", JEST.as_bytes())]);
    let report = left.read(&["api.xml", "web.xml"], 1).unwrap();
    assert_eq!(told(&report), (Verdict::Failed, 3, 2, 1));
    let names: Vec<_> = report.tests.iter().map(|test| test.name.as_str()).collect();
    assert_eq!(names, ["tests/test_cart.py::test_good", "tests/test_cart.py::test_bad", "cart adds"]);
}

#[test]
fn a_directory_of_reports_counts_and_the_printed_text_adds_what_it_knows() {
    let text = "============================= test session starts ==============================\n\
        collected 2 items\n\ntests/test_cart.py .F                                                    [100%]\n\n\
        =================================== FAILURES ===================================\n\
        ___________________________________ test_bad ___________________________________\n\n\
        >       assert 1 == 2\nE       assert 1 == 2\n\ntests/test_cart.py:5: AssertionError\n\
        =========================== short test summary info ============================\n\
        FAILED tests/test_cart.py::test_bad - assert 1 == 2\n\
        ========================= 1 failed, 1 passed in 0.02s ==========================\n";
    let left = Left::new(&[("reports/a.xml", PYTEST.as_bytes()), ("out.txt", text.as_bytes())]);
    let report = left.read(&["reports", "out.txt"], 1).unwrap();
    assert_eq!((told(&report), report.framework), ((Verdict::Failed, 2, 1, 1), Framework::Pytest));
    assert!(report.raw_output.contains("short test summary info"));
}

#[test]
fn standard_error_alone_is_read_too() {
    let bun = "bun test v1.2.0\n\ntest/a.test.ts:\n(pass) good [0.05ms]\n(fail) bad [0.10ms]\n\n 1 pass\n 1 fail\nRan 2 tests across 1 files. [65.00ms]\n";
    let left = Left::new(&[("run.stderr.txt", bun.as_bytes())]);
    assert_eq!(told(&left.read(&["run.stderr.txt"], 1).unwrap()), (Verdict::Failed, 2, 1, 1));
}

#[test]
fn nothing_is_not_good_and_a_report_without_content_is_broken() {
    let left = Left::new(&[("empty.txt", b""), ("empty.xml", b""), ("notes/readme.md", b"# no report")]);
    let judged =
        |name, exit| left.read(&[name], exit).map(|report| (report.verdict, report.reasons)).unwrap();
    assert_eq!(judged("empty.txt", 0), (Verdict::NoTests, vec!["no tests ran".to_owned()]));
    assert_eq!(judged("empty.txt", 2).0, Verdict::Failed);
    let cut = ["the output ends without the runner's own end", "no tests ran"].map(str::to_owned).to_vec();
    assert_eq!(judged("empty.xml", 0), (Verdict::Inconsistent, cut.clone()));
    assert_eq!(judged("notes", 0), (Verdict::Inconsistent, cut));
    assert_eq!(read(&Recorded::default()).unwrap().verdict, Verdict::NoTests);
}

#[test]
fn bytes_that_are_no_text_are_read_by_the_exit_status() {
    let bytes: Vec<u8> = (0..100_000_u32).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect();
    let left = Left::new(&[("core.bin", &bytes)]);
    let report = left.read(&["core.bin"], 1).unwrap();
    assert_eq!((report.framework, report.summary.total, report.success), (Framework::Generic, 0, false));
}

#[test]
fn of_a_long_log_the_report_has_both_ends() {
    let mut log = String::new();
    for number in 0..40_000 {
        writeln!(log, "line {number} of a long log").unwrap();
    }
    let left = Left::new(&[("log.txt", log.as_bytes())]);
    let report = left.read(&["log.txt"], 0).unwrap();
    assert!(report.raw_output.starts_with("line 0 of"), "{}", report.raw_output);
    assert!(report.raw_output.ends_with("line 39999 of a long log\n"), "{}", report.raw_output);
}

#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let left = Left::new(&[]);
    let fifo = left.path("fifo");
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mkfifoat(rustix::fs::CWD, fifo.as_std_path(), mode).unwrap();
    let error = left.read(&["fifo"], 0).unwrap_err();
    assert_eq!(error.to_string(), format!("`{fifo}` is not a regular file"));
    let error = left.read(&["/dev/zero"], 0).unwrap_err();
    assert_eq!(error.to_string(), "`/dev/zero` is not a regular file");
    let error = left.read(&["missing.txt"], 0).unwrap_err();
    let missing = left.path("missing.txt");
    assert_eq!(
        error.to_string(),
        format!("`{missing}` cannot be opened: No such file or directory (os error 2)")
    );
}

#[test]
fn a_report_may_be_called_like_standard_error() {
    let left = Left::new(&[("stderr.xml", PYTEST.as_bytes())]);
    let report = left.read(&["stderr.xml"], 1).unwrap();
    assert_eq!(told(&report), (Verdict::Failed, 2, 1, 1));
    assert_eq!(report.tests[1].status, TestStatus::Fail);
}
