//! `task import`: Markdown and JSON lines, good and bad.

use insta::assert_snapshot;

use crate::env::TestEnv;

#[test]
fn a_markdown_checklist_becomes_tasks() {
    let env = TestEnv::new().session("greet");
    env.file(
        "PLAN.md",
        "# Plan\n\n## Greetings\n\n- [ ] Say hello\n  In three languages.\n  - it is polite\n  - it is tested\n- [x] Say nothing\n- [ ] Say goodbye\n",
    );
    assert_snapshot!(env.run(&["task", "import", "PLAN.md"]), @"2 tasks added to session `greet`, 1 that is done left out");
    env.know_all_tasks();
    assert_snapshot!(env.run(&["task", "list"]), @r"
    ID        STATUS  PRIORITY  SESSION  TITLE
    [TASK-1]  todo    medium    greet    Say hello
    [TASK-2]  todo    medium    greet    Say goodbye
    ");
    assert_snapshot!(env.run(&["task", "show", &env.task_id(1)]), @r"
    [TASK-1]  Say hello
    todo, medium priority, 0 attempts
    session greet, flow loop, added [TIME] ago
    labels: greetings
    - it is polite
    - it is tested

    In three languages.
    ");
}

#[test]
fn json_lines_become_tasks_with_dependencies() {
    let env = TestEnv::new().session("greet");
    let lines = "{\"key\": \"a\", \"title\": \"Say hello\", \"criteria\": [\"polite\"], \"priority\": \"high\"}\n\n{\"title\": \"Say goodbye\", \"depends_on\": [\"a\"]}\n";
    assert_snapshot!(env.run_with_input(&["task", "import", "-", "--format", "json-lines"], lines), @"2 tasks added to session `greet`");
    env.know_all_tasks();
    assert_snapshot!(env.run(&["task", "show", &env.task_id(2)]), @r"
    [TASK-2]  Say goodbye
    todo, medium priority, 0 attempts
    session greet, flow loop, added [TIME] ago
    after: [TASK-1]
    ");
}

#[test]
fn a_mistake_is_shown_with_its_line_and_nothing_is_added() {
    let env = TestEnv::new().session("greet");
    env.file("broken.jsonl", "{\"title\": \"Fine\"}\n{\"title\": \n");
    assert_snapshot!(env.run(&["task", "import", "broken.jsonl"]), @r"
    [stderr]
    error: EOF while parsing a value
      --> broken.jsonl:2:10
    [exit 2]
    ");
    env.file("key.jsonl", "{\"title\": \"Fine\", \"priorty\": \"high\"}\n");
    assert_snapshot!(env.run(&["task", "import", "key.jsonl"]), @r"
    [stderr]
    error: unknown field `priorty`, expected one of `key`, `title`, `body`, `criteria`, `priority`, `labels`, `depends_on`, `budget`, `done`
      --> key.jsonl:1:27
    hint: did you mean `priority`?
    [exit 2]
    ");
    env.file("value.jsonl", "{\"title\": \"Fine\"}\n{\"title\": \"Bad\", \"priority\": \"soon\"}\n");
    assert_snapshot!(env.run(&["task", "import", "value.jsonl"]), @r"
    [stderr]
    error: unknown variant `soon`, expected one of `urgent`, `high`, `medium`, `low`
      --> value.jsonl:2:35
    [exit 2]
    ");
    env.file("after.jsonl", "{\"title\": \"Fine\", \"depends_on\": [\"nobody\"]}\n");
    assert_snapshot!(env.run(&["task", "import", "after.jsonl"]), @r"
    [stderr]
    error: there is no task `nobody`
    hint: `rehearsal task list` shows what there is
    [exit 2]
    ");
    env.file("twice.jsonl", "{\"key\": \"a\", \"title\": \"One\"}\n{\"key\": \"a\", \"title\": \"Two\"}\n");
    assert_snapshot!(env.run(&["task", "import", "twice.jsonl"]), @r"
    [stderr]
    error: the key `a` is used twice
    [exit 2]
    ");
    assert_eq!(env.json(&["task", "list"])["tasks"], serde_json::json!([]));
}

#[test]
fn what_is_no_list_of_tasks_is_refused() {
    let env = TestEnv::new().session("greet");
    env.file("junk.md", b"# Plan\n- [ ] \xff\xfe\x00\x01 junk\n");
    assert_snapshot!(env.run(&["task", "import", "junk.md"]), @r"
    [stderr]
    error: this is not text: it is not valid UTF-8
      --> junk.md:2:7
    [exit 2]
    ");
    env.file("binary.jsonl", [0_u8, 159, 146, 150, 10, 0, 1, 2]);
    assert_snapshot!(env.run(&["task", "import", "binary.jsonl"]), @r"
    [stderr]
    error: this is not text: it is not valid UTF-8
      --> binary.jsonl:1:2
    [exit 2]
    ");
    env.file("nul.jsonl", "\0\0\0\0");
    assert_snapshot!(env.run(&["task", "import", "nul.jsonl"]), @r"
    [stderr]
    error: the file is not text: it has a NUL byte
      --> nul.jsonl:1:1
    [exit 2]
    ");
    env.file("empty.md", "Nothing to do.\n");
    assert_snapshot!(env.run(&["task", "import", "empty.md"]), @r"
    [stderr]
    error: `empty.md` has no open tasks
    hint: in Markdown a task is a line `- [ ] title`; in JSON lines an object with a `title`
    [exit 2]
    ");
    env.file("tasks.txt", "- [ ] Say hello\n");
    assert_snapshot!(env.run(&["task", "import", "tasks.txt"]), @r"
    [stderr]
    error: cannot tell what `tasks.txt` is
    hint: say it with `--format markdown` or `--format json-lines`
    [exit 2]
    ");
    assert_snapshot!(env.run(&["task", "import", "missing.md"]), @r"
    [stderr]
    error: failed to open file `[REPO]/missing.md`: No such file or directory (os error 2)
    [exit 2]
    ");
    assert_eq!(env.json(&["task", "list"])["tasks"], serde_json::json!([]));
}
