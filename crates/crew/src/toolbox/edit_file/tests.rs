use super::*;
use insta::assert_snapshot;
use proptest::prelude::*;

fn asked(old: &str, new: &str) -> Arguments {
    Arguments { path: "a.rs".into(), old_string: old.into(), new_string: new.into(), replace_all: None }
}

fn wanted() -> Wanted {
    let dir = tempfile::tempdir().unwrap();
    let root = camino::Utf8Path::from_path(dir.path()).unwrap();
    Worktree::open(root).unwrap().wanted("a.rs").unwrap()
}

fn edited(content: &str, old: &str, new: &str) -> (String, String) {
    let Edited { content, told } = edit(content, &asked(old, new), &wanted()).unwrap();
    (content, told)
}

fn refused(content: &str, old: &str) -> String {
    edit(content, &asked(old, "new"), &wanted()).unwrap_err().to_string()
}

#[test]
fn a_text_that_is_there_once_is_replaced() {
    let (content, told) = edited("one\ntwo\nthree\n", "two", "2");
    assert_eq!((content.as_str(), told.as_str()), ("one\n2\nthree\n", "edited `a.rs` at line 2"));
}

#[test]
fn line_ends_and_blanks_at_the_end_do_not_matter_and_stay_as_the_file_has_them() {
    let (content, told) = edited("one  \r\ntwo\r\nthree\r\n", "one\ntwo\n", "1\n2\n2b\n");
    assert_eq!(content, "1\r\n2\r\n2b\r\nthree\r\n");
    assert_snapshot!(told, @"edited `a.rs` at line 1; line ends or blanks at the end of lines were not as in `old_string`");
    assert_eq!(edited("a\r\nb\r\n", "a", "x\ny").0, "x\r\ny\r\nb\r\n");
}

#[test]
fn a_text_that_is_indented_otherwise_is_found_and_what_replaces_it_is_indented_as_well() {
    let file = "impl A {\n    fn a() {\n        one();\n    }\n}\n";
    let (content, told) = edited(file, "fn a() {\n    one();\n}", "fn a() {\n    two();\n\n    three();\n}");
    assert_eq!(content, "impl A {\n    fn a() {\n        two();\n\n        three();\n    }\n}\n");
    assert_snapshot!(told, @"edited `a.rs` at line 2; it is indented otherwise than `old_string`, and so was `new_string` then");
}

#[test]
fn blanks_within_lines_matter_least() {
    let (content, told) = edited("let  x =  1;\n", "let x = 1;\n", "let x = 2;\n");
    assert_eq!(content, "let x = 2;\n");
    assert_snapshot!(told, @"edited `a.rs` at line 1; its blanks are not those of `old_string`: read the lines again");
}

#[test]
fn a_text_that_is_there_more_often_is_refused_with_its_lines_unless_all_are_meant() {
    let file = "x\na\nx\nb\nx\n";
    assert_snapshot!(refused(file, "x"), @"`old_string` is in `a.rs` 3 times (lines 1, 3, 5): add lines around it that make it unique, or set `replace_all`");
    let all = Arguments { replace_all: Some(true), ..asked("x", "y") };
    let edited = edit(file, &all, &wanted()).unwrap();
    assert_eq!(
        (edited.content.as_str(), edited.told.as_str()),
        ("y\na\ny\nb\ny\n", "edited `a.rs` at lines 1, 3, 5")
    );
}

#[test]
fn a_text_that_is_not_there_is_answered_with_what_is_nearest() {
    let file = "use std::fmt;\n\nfn greet(name: &str) -> String {\n    format!(\"Hello, {name}\")\n}\n\nfn leave() {}\n";
    assert_snapshot!(refused(file, "fn greet(name: String) -> String {\n    format!(\"Hello {}\", name)\n}"), @r#"
    `old_string` is not in `a.rs`. What is nearest to it:
         3	fn greet(name: &str) -> String {
         4	    format!("Hello, {name}")
         5	}
    "#);
    assert_snapshot!(refused("", "x"), @"
    `old_string` is not in `a.rs`. What is nearest to it:
    (the file is empty)
    ");
}

#[test]
fn what_changes_nothing_or_says_nothing_is_refused() {
    assert_snapshot!(refused("x", ""), @"`old_string` is empty; `write_file` writes a whole file");
    assert_snapshot!(refused("new", "new"), @"`old_string` and `new_string` are the same");
    assert!(refused("a\n\n\nb\n", "\n \n").starts_with("`old_string` is not in"));
}

#[test]
fn a_replacement_that_would_fill_the_memory_is_refused() {
    let all = Arguments { replace_all: Some(true), ..asked("a", &"b".repeat(1 << 20)) };
    let error = edit(&"a".repeat(1 << 20), &all, &wanted()).unwrap_err().to_string();
    assert_snapshot!(error, @"`a.rs` would have more than 4194304 bytes then");
}

#[test]
fn many_lines_that_are_all_alike_are_not_slow() {
    let file = "x \n".repeat(1 << 18);
    let old = "x\n".repeat(1 << 17) + "y\n";
    assert!(refused(&file, &old).starts_with("`old_string` is not in"));
}

proptest! {
    #[test]
    fn a_part_of_the_file_is_always_found_where_it_is(
        lines in prop::collection::vec("[ab \t]{0,4}", 1..12),
        from in 0usize..12,
        count in 1usize..6,
    ) {
        let content: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let from = from % lines.len();
        let old: String = lines[from..].iter().take(count).map(|line| format!("{line}\n")).collect();
        let (rung, matches) = matching::find(&content, &old).unwrap();
        prop_assert_eq!(rung, Rung::Exact);
        prop_assert!(!matches.is_empty());
        for found in &matches {
            prop_assert_eq!(&content[found.range.clone()], old.as_str());
        }
    }

    #[test]
    fn any_text_is_answered(content in "[ab\r\n\t é]{0,60}", old in "[ab\r\n\t é]{0,20}", new in "[ab\r\n\t é]{0,20}", all: bool) {
        let asked = Arguments { replace_all: Some(all), ..asked(&old, &new) };
        let _any = edit(&content, &asked, &wanted());
    }
}
