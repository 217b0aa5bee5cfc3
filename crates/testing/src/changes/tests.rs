use super::*;
use insta::assert_snapshot;
use proptest::prelude::*;

const DIFF: &str = "\
diff --git a/shop/cart.py b/shop/cart.py
index 1..2 100644
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -10,2 +10,3 @@ def total
-a
--- b/fake.py
+x
+++ b/fake.py
+@@ -1 +1 @@
@@ -40 +41 @@
-y
+z
@@ -50,2 +50,0 @@
-gone
-gone
diff --git a/old name.py b/new name.py
similarity index 90%
rename from old name.py
rename to new name.py
--- a/old name.py\t
+++ b/new name.py\t
@@ -1 +1 @@
-a
+b
diff --git a/logo.png b/logo.png
index 1..2 100644
Binary files a/logo.png and b/logo.png differ
diff --git a/dead.py b/dead.py
deleted file mode 100644
--- a/dead.py
+++ /dev/null
@@ -1 +0,0 @@
-a
diff --git \"a/t\\303\\274r\\t.py\" \"b/t\\303\\274r\\t.py\"
new file mode 100644
--- /dev/null
+++ \"b/t\\303\\274r\\t.py\"
@@ -0,0 +1 @@
+a
";

fn changes() -> Changes {
    let uncommitted = "--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -41 +41 @@\n-y\n+z\n";
    Changes::of_diffs(Since::LastCommit, DIFF, uncommitted)
}

#[test]
fn each_file_of_a_diff_is_read_and_no_line_of_its_text_is_taken_for_a_header() {
    let files: Vec<String> = changes().files().map(str::to_owned).collect();
    assert_eq!(files, ["dead.py", "logo.png", "new name.py", "old name.py", "shop/cart.py", "tür\t.py"]);
    assert_eq!(changes().lines("shop/cart.py"), "10-12, 41, 50");
    assert!(changes().is_deleted("dead.py") && changes().is_deleted("old name.py"));
}

#[test]
fn a_place_is_in_a_changed_line_or_file_or_unrelated() {
    let changes = changes();
    assert_eq!(changes.relation("shop/cart.py", Some(12)), Relation::InChangedLine);
    assert_eq!(changes.relation("shop/cart.py", Some(13)), Relation::InChangedFile);
    assert_eq!(changes.relation("shop/cart.py", None), Relation::InChangedFile);
    assert_eq!(changes.relation("tür\t.py", Some(99)), Relation::InChangedLine, "all of a new file is new");
    assert_eq!(changes.relation("shop/other.py", Some(1)), Relation::Unrelated);
}

#[test]
fn it_is_said_when_a_line_changed() {
    let words = |line| changes().place("shop/cart.py", Some(line)).unwrap().words;
    assert_snapshot!(words(10), @"changed in the last commit");
    assert_snapshot!(words(41), @"changed and is not committed");
    let since = Changes::of_diffs(Since::Base("main".to_owned()), DIFF, "");
    assert_snapshot!(since.when("shop/cart.py", Some(10)), @"changed since `main`");
}

proptest! {
    #[test]
    fn no_diff_breaks_it(diff in "(diff --git |a/|b/|--- |\\+\\+\\+ |@@ -|[0-9,+ @\\\\\"xü]|\n){0,60}") {
        let _ = Changes::of_diffs(Since::LastCommit, &diff, &diff);
    }
}

/// A real repository of its own.
struct Repository(tempfile::TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.0.path()).unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "a repository is made as a person makes it")]
    fn git(&self, args: &[&str]) {
        let status = std::process::Command::new("git")
            .args(["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"])
            .args(args)
            .current_dir(self.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .status()
            .unwrap();
        assert!(status.success(), "git {args:?}");
    }

    fn commit(&self, file: &str, text: &str) {
        self.write(file, text);
        self.git(&["add", "."]);
        self.git(&["commit", "-q", "-m", "a change"]);
    }

    fn write(&self, file: &str, text: &str) {
        fs_err::create_dir_all(self.path().join(file).parent().unwrap()).unwrap();
        fs_err::write(self.path().join(file), text).unwrap();
    }

    fn when(&self, since: Since, file: &str, line: u32) -> Option<String> {
        let changes = read(self.path(), since).unwrap();
        changes.place(file, Some(line)).map(|place| format!("{:?}: {}", place.relation, place.words))
    }
}

fn read(project: &Utf8Path, since: Since) -> Result<Changes, GitError> {
    rehearsal_process::block_on(Changes::read(project, since)).unwrap()
}

#[test]
fn git_tells_the_last_commit_from_what_is_not_committed_though_lines_moved() {
    let repository = Repository::new();
    repository.commit("src/cart.py", "one\ntwo\nthree\n");
    repository.commit("src/cart.py", "one\ntwo\nTHREE\n");
    repository.write("src/cart.py", "zero\none\ntwo\nTHREE\n");
    repository.write("src/new.py", "x\n");
    let when = |line| repository.when(Since::LastCommit, "src/cart.py", line).unwrap();
    assert_snapshot!(when(1), @"InChangedLine: changed and is not committed");
    assert_snapshot!(when(4), @"InChangedLine: changed in the last commit");
    assert_snapshot!(when(2), @"InChangedFile: changed and is not committed");
    let new = repository.when(Since::LastCommit, "src/new.py", 1).unwrap();
    assert_snapshot!(new, @"InChangedLine: is new and not committed");
}

#[test]
fn changes_since_a_branch_are_those_of_this_side_alone() {
    let repository = Repository::new();
    repository.commit("a.py", "1\n");
    repository.git(&["checkout", "-q", "-b", "work"]);
    repository.commit("b.py", "1\n");
    repository.git(&["checkout", "-q", "main"]);
    repository.commit("a.py", "2\n");
    repository.git(&["checkout", "-q", "work"]);
    let changes = read(repository.path(), Since::Base("main".to_owned())).unwrap();
    assert_eq!(changes.files().collect::<Vec<_>>(), ["b.py"]);
}

#[test]
fn in_a_nested_project_names_are_relative_to_it() {
    let repository = Repository::new();
    repository.commit("a.py", "1\n");
    repository.commit("web/src/cart.js", "1\n");
    let changes = read(&repository.path().join("web"), Since::LastCommit).unwrap();
    assert_eq!(changes.files().collect::<Vec<_>>(), ["src/cart.js"]);
}

#[test]
fn a_first_commit_is_all_new_and_so_is_a_repository_without_any() {
    let repository = Repository::new();
    repository.write("a.py", "1\n");
    let when = |repository: &Repository| repository.when(Since::LastCommit, "a.py", 1).unwrap();
    assert_snapshot!(when(&repository), @"InChangedLine: is new and not committed");
    repository.commit("a.py", "1\n");
    assert_snapshot!(when(&repository), @"InChangedLine: changed in the last commit");
}

#[test]
fn what_git_cannot_tell_is_an_error_with_a_name() {
    let repository = Repository::new();
    repository.commit("a.py", "1\n");
    let error = |since| read(repository.path(), since).unwrap_err().to_string();
    assert_snapshot!(error(Since::Base("nope".to_owned())), @"`nope` is not a commit of this repository");
    assert_snapshot!(error(Since::Base("--output=x".to_owned())), @"`--output=x` is not a commit of this repository");
    let outside = tempfile::tempdir().unwrap();
    let outside = Utf8Path::from_path(outside.path()).unwrap();
    let error = read(outside, Since::LastCommit).unwrap_err().to_string();
    assert_eq!(error, format!("`{outside}` is not in a git repository"));
}
