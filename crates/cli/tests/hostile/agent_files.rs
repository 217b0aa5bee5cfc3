//! What an agent leaves in its run directory and in the repository.

use insta::assert_snapshot;

use crate::scene::{SESSION, Scene};

/// A run of an agent that does this and says that it is done: what the loop tells of it.
fn after(command: &str) -> (Scene, String) {
    let scene = Scene::playing(&format!(
        "run:\n  - run: {{ command: {} }}\n  - say: Done.\n",
        serde_json::to_string(command).unwrap()
    ));
    let said = scene.rehearsal(&["run", SESSION, "--iterations", "1"]);
    // A run that failed is the loop's only one.
    assert!(matches!(said.code, Some(0 | 6)), "{}", said.err);
    let told = scene.succeed(&["runs", "show", &run_of(&scene)]);
    (scene, format!("{}{told}", said.err))
}

fn run_of(scene: &Scene) -> String {
    let list = scene.succeed(&["runs", "list", "--json"]);
    list.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

#[test]
fn a_result_file_that_is_none_is_told_and_breaks_nothing() {
    for (command, reason) in [
        ("printf '\\377\\000\\033{' > $TASK_DIR/result.json", "`result.json` cannot be used: "),
        ("head -c 5000000 /dev/zero > $TASK_DIR/result.json", "it is larger than 1 MiB"),
        ("ln -s /etc/passwd $TASK_DIR/result.json", "it is a symbolic link"),
        ("ln -s /dev/zero $TASK_DIR/result.json", "it is a symbolic link"),
        ("mkdir $TASK_DIR/result.json", "it is not a regular file"),
        ("mkfifo $TASK_DIR/result.json", "it is not a regular file"),
        ("printf '{\"outcome\": \"great\"}' > $TASK_DIR/result.json", "unknown variant `great`"),
    ] {
        let (scene, told) = after(command);
        assert!(told.contains(reason), "{command}: {told}");
        assert!(!told.contains("root:"), "{command}: {told}");
        assert!(scene.succeed(&["doctor"]).contains("every task is what its events say"));
    }
}

#[test]
fn junk_in_a_report_is_told_and_the_good_lines_count() {
    let (scene, told) = after(
        "printf '\\377\\000\\033{\\n' > $TASK_DIR/report.jsonl; \
         echo '{\"type\":\"task_done\",\"id\":\"'$TASK_ID'\",\"reason\":\"it was done\"}' >> $TASK_DIR/report.jsonl; \
         echo '{\"type\":\"task_done\",\"id\":\"../../x\"}' >> $TASK_DIR/report.jsonl",
    );
    assert!(told.contains("note: line 1 of `report.jsonl` cannot be read: "), "{told}");
    assert!(
        told.contains("reported on task `../../x`, which is ignored: there is no task `../../x`"),
        "{told}"
    );
    assert!(scene.succeed(&["task", "list", "--all"]).contains("  done  "), "{told}");
}

#[test]
fn a_report_that_is_a_link_or_endless_is_not_read() {
    let (_, told) = after("ln -s /etc/passwd $TASK_DIR/report.jsonl");
    assert!(told.contains("note: `report.jsonl` cannot be used: it is a symbolic link"), "{told}");
    let (_, told) = after("head -c 9000000 /dev/zero > $TASK_DIR/report.jsonl");
    assert!(told.contains("note: `report.jsonl` cannot be used: it is larger than 4 MiB"), "{told}");
}

#[test]
fn files_with_terrible_names_are_counted_and_shown_without_harm() {
    let (scene, told) = after(
        "touch \"$(printf 'new\\nline')\" \"$(printf 'tab\\there')\" 'quo\"te' \"$(printf 'esc\\033[2J')\" \
         \"$(printf 'caf\\351')\" ' blank ' && git add --all && \
         git -c user.name=A -c user.email=a@example.invalid commit --quiet \
         --message=\"$(printf 'Subject \\033[31m \\351')\"",
    );
    assert!(told.contains(", 1 commit, 7 changed files, "), "{told}");
    let run = run_of(&scene);
    let mut command = scene.command(&["runs", "show", &run]);
    let shown = crate::scene::watch(command.env("CLICOLOR_FORCE", "1").spawn().unwrap()).out;
    assert!(!shown.contains("\u{1b}[2J") && !shown.contains("\u{1b}[31m \u{fffd}"), "{shown:?}");
    assert!(shown.contains("changed new\u{fffd}line\n"), "{shown:?}");
    let document = scene.succeed(&["runs", "show", &run, "--json"]);
    assert!(document.contains(r#""new\nline""#) && document.contains(r#""quo\"te""#), "{document}");
}

#[test]
fn output_that_is_no_text_is_no_reason_to_stop() {
    let scene =
        Scene::playing("run:\n  - broken_utf8\n  - broken_json\n  - task_done: current\n  - say: Done.\n");
    let said = scene.rehearsal(&["run", SESSION]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_snapshot!(said.out.lines().last().unwrap(), @"all tasks are done");
}
