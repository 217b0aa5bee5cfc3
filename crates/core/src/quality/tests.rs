use proptest::prelude::*;

use super::*;

fn lines(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn file(path: &str, removed: &[&str], added: &[&str]) -> ChangedFile {
    let change = FileChange::Lines { added: lines(added), removed: lines(removed) };
    ChangedFile { path: path.to_owned(), change }
}

fn assessed(files: Vec<ChangedFile>) -> Assessment {
    assess(&Facts { files, sent_back: false }, &Rules::default())
}

fn reasons(assessment: &Assessment) -> String {
    match assessment {
        Assessment::Harmless => "harmless".to_owned(),
        Assessment::NeedsReview { reasons } => {
            reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        }
    }
}

fn told(files: Vec<ChangedFile>) -> String {
    reasons(&assessed(files))
}

#[test]
fn a_single_file_with_plain_lines_is_harmless() {
    assert_eq!(told(vec![file("src/add.py", &["    return a - b"], &["    return a + b"])]), "harmless");
}

#[test]
fn two_files_are_few_and_three_are_many() {
    let some =
        |count: usize| (0..count).map(|at| file(&format!("src/f{at}.py"), &["x = 1"], &["x = 2"])).collect();
    assert_eq!(told(some(2)), "harmless");
    assert_eq!(told(some(3)), "3 files changed, more than 2");
}

#[test]
fn what_a_review_sent_back_is_reviewed_again() {
    let facts = Facts { files: vec![file("a.py", &[], &["x = 1"])], sent_back: true };
    assert_eq!(reasons(&assess(&facts, &Rules::default())), "a review sent it back before");
}

#[test]
fn files_at_risky_places_are_reviewed() {
    let risky = |path: &str| {
        let told = told(vec![file(path, &[], &["x"])]);
        told.starts_with(&format!("`{path}` is at a risky place"))
    };
    for path in [
        "src/auth/session.py",
        "src/UserAuth.java",
        "lib/oauth.rb",
        "db/migrations/0001_init.sql",
        ".github/workflows/ci.yml",
        "Cargo.toml",
        "crates/a/Cargo.toml",
        "web/package.json",
        "requirements-dev.txt",
        "Dockerfile.prod",
        "src/config.py",
        "deploy/config/prod.yaml",
        ".env.local",
        "infra/main.tf",
        ".rehearsal/config.yaml",
        "JENKINSFILE",
    ] {
        assert!(risky(path), "{path}");
    }
    for path in ["AUTHORS", "src/author.py", "src/reconfigure.py", "docs/requirements.md", "src/lib.rs"] {
        assert!(!risky(path), "{path}");
    }
}

#[test]
fn changed_lines_that_speak_of_danger_are_reviewed() {
    let speaks = |line: &str| told(vec![file("src/a.py", &[], &[line])]);
    assert_eq!(speaks("accessToken = read()"), "`src/a.py`: a changed line speaks of `token`");
    assert_eq!(speaks("    cursor.execute('DROP TABLE t')"), "`src/a.py`: a changed line speaks of `drop`");
    assert_eq!(speaks("def delete_user(u):").lines().count(), 2);
    assert_eq!(speaks("os.system('rm -rf /tmp/x')"), "`src/a.py`: a changed line speaks of `rm -rf`");
    assert_eq!(speaks("run(cmd, shell=True)"), "`src/a.py`: a changed line speaks of `shell=True`");
    assert_eq!(speaks("tokenizer = Tokenizer()"), "harmless");
    assert_eq!(speaks("the backdrop is evaluated"), "harmless");
    // A line that goes away counts like one that comes.
    assert_eq!(
        told(vec![file("src/a.py", &["check_password(x)"], &["pass"])]),
        "`src/a.py`: a changed line speaks of `password`"
    );
}

#[test]
fn what_people_read_may_speak_of_anything() {
    assert_eq!(
        told(vec![file("docs/guide.md", &[], &["Delete the token, then drop the password."])]),
        "harmless"
    );
}

#[test]
fn a_change_of_a_public_interface_is_reviewed() {
    let change = |path: &str, line: &str| told(vec![file(path, &[], &[line])]) != "harmless";
    for (path, line) in [
        ("src/a.rs", "    pub fn add(a: i32) -> i32 {"),
        ("src/a.rs", "pub struct A {"),
        ("a.go", "func Add(a, b int) int {"),
        ("a.go", "func (c *Calc) Add(a int) {"),
        ("a.go", "type Calc struct {"),
        ("a.py", "def add(a, b):"),
        ("a.py", "async def fetch(url):"),
        ("a.py", "class Calc:"),
        ("a.py", "    def add(self, a):"),
        ("a.ts", "export function add(a: number) {"),
        ("a.js", "module.exports = { add }"),
        ("A.java", "    public int add(int a) {"),
        ("a.rb", "  def add(a)"),
        ("a.h", "int add(int a, int b);"),
        ("a.proto", "  int32 count = 3;"),
    ] {
        assert!(change(path, line), "{path}: {line}");
    }
    for (path, line) in [
        ("src/a.rs", "pub(crate) fn add(a: i32) -> i32 {"),
        ("src/a.rs", "    fn add(a: i32) -> i32 {"),
        ("a.go", "func add(a, b int) int {"),
        ("a.go", "func (c *Calc) add(a int) {"),
        ("a.py", "def _add(a, b):"),
        ("a.py", "    def inner(a):"),
        ("a.ts", "function add(a: number) {"),
        ("A.java", "    private int add(int a) {"),
        ("a.h", "// int add(int a, int b);"),
        ("tests/test_a.py", "def test_add():"),
        ("a_test.go", "func TestAdd(t *testing.T) {"),
        ("a.test.ts", "export const fixture = 1"),
    ] {
        assert!(!change(path, line), "{path}: {line}");
    }
}

#[test]
fn a_public_line_that_only_moved_changes_no_interface() {
    assert_eq!(told(vec![file("a.py", &["def add(a, b):"], &["def add(a, b):"])]), "harmless");
    assert_eq!(
        told(vec![file("a.py", &["def add(a):"], &["def add(a, b):"])]),
        "`a.py`: a public interface changes (`def add(a):`)\n`a.py`: a public interface changes (`def add(a, b):`)"
    );
}

#[test]
fn a_user_says_what_is_risky() {
    let rules = Rules::new(1, false, &lines(&["billing", "*.sql", "deploy/**"]), &lines(&["legacy"]));
    let told = |path: &str, line: &str| {
        reasons(&assess(&Facts { files: vec![file(path, &[], &[line])], sent_back: false }, &rules))
    };
    assert_eq!(told("src/auth.py", "def add(token):"), "harmless");
    assert_eq!(told("a/b/c.sql", "x"), "`a/b/c.sql` is at a risky place (`*.sql`)");
    assert_eq!(told("deploy/a/b.sh", "x"), "`deploy/a/b.sh` is at a risky place (`deploy/**`)");
    assert_eq!(told("src/a.py", "use_legacy = 1"), "`src/a.py`: a changed line speaks of `legacy`");
    assert_eq!(
        check_pattern("a[").unwrap_err(),
        "`a[` is not a pattern: unclosed character class; missing ']'"
    );
    assert_eq!(check_pattern(" ").unwrap_err(), "an empty pattern matches nothing");
}

const RAW: &[u8] = b":100644 100644 aaaa bbbb M\0src/a.py\0:000000 100644 0000 cccc A\0pic.png\0:100644 120000 aaaa bbbb T\0link\0:100644 100755 a b M\0run\xff\0";
const PATCH: &[u8] = b"diff --git a/src/a.py b/src/a.py
index aaaa..bbbb 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1 +1,2 @@ def x
--- a comment of SQL
+++ i
+diff --git is only text here
\\ No newline at end of file
diff --git a/pic.png b/pic.png
new file mode 100644
Binary files /dev/null and b/pic.png differ
diff --git a/link b/link
deleted file mode 100644
--- a/link
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/link b/link
new file mode 120000
diff --git \"a/run\\377\" \"b/run\\377\"
old mode 100644
new mode 100755
";

#[test]
fn what_git_lists_is_read_with_its_lines() {
    let files = listed(RAW, Some(PATCH)).unwrap();
    let expected = vec![
        file("src/a.py", &["-- a comment of SQL"], &["++ i", "diff --git is only text here"]),
        ChangedFile { path: "pic.png".into(), change: FileChange::Binary },
        ChangedFile { path: "link".into(), change: FileChange::Kind },
        ChangedFile { path: "run\u{fffd}".into(), change: FileChange::Kind },
    ];
    assert_eq!(files, expected);
}

#[test]
fn a_change_that_nobody_can_read_is_reviewed() {
    let files = listed(RAW, None).unwrap();
    assert_eq!(files[0].change, FileChange::Unread);
    assert_eq!(told(files[..1].to_vec()), "`src/a.py`: the change is too large to be looked through");
    // A file that the patch does not have was not read either.
    assert_eq!(listed(RAW, Some(b"")).unwrap()[0].change, FileChange::Unread);
    let binary = listed(RAW, Some(PATCH)).unwrap()[1].clone();
    assert_eq!(told(vec![binary]), "`pic.png` is not text");
}

#[test]
fn a_listing_of_another_form_is_an_error() {
    let error = listed(b"100644 M\0a\0", None).unwrap_err();
    assert_eq!(error.to_string(), "git lists changed files in a form that is not known: `100644 M`");
}

proptest! {
    #[test]
    fn no_diff_panics(
        raw in proptest::collection::vec(any::<u8>(), 0..200),
        patch in "(diff --git |@@ |\\+|-|\n|Binary files |é|.){0,40}",
    ) {
        let _ = listed(&raw, Some(patch.as_bytes()));
        if let Ok(files) = listed(RAW, Some(patch.as_bytes())) {
            let _ = assess(&Facts { files, sent_back: false }, &Rules::default());
        }
    }

    /// More lines never make a change more harmless.
    #[test]
    fn a_larger_change_is_never_more_harmless(line in "\\PC{0,60}", more in "\\PC{0,60}") {
        let one = assessed(vec![file("src/a.py", &[], &[&line])]);
        let both = assessed(vec![file("src/a.py", &[], &[&line, &more])]);
        prop_assert!(one == Assessment::Harmless || both != Assessment::Harmless);
    }
}
