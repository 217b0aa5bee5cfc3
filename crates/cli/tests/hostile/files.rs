//! Files that people write.

use insta::assert_snapshot;

use crate::scene::{SESSION, Scene};

const CONFIG: &str = ".rehearsal/config.yaml";

fn config(content: impl AsRef<[u8]>) -> String {
    let scene = Scene::new();
    scene.write(CONFIG, content);
    let told = scene.refused(&["config", "show"]);
    // Whatever reads the configuration says the same.
    assert_eq!(scene.refused(&["run", SESSION]), told);
    told
}

#[test]
fn a_broken_configuration_is_refused_with_its_place() {
    assert_snapshot!(config("agents:\n  implementer: [\n"), @r"
    error: unclosed bracket '['
      --> .rehearsal/config.yaml:2:16
    ");
    assert_snapshot!(config("agents:\n  implementer:\n    drivr: claude\n"), @r"
    error: unknown field `drivr`, expected one of driver, role, program, args, model, permission, system_prompt, timeout, idle_timeout, repeated_calls, tool_calls, budget, pass_env, env, enabled, fallback, accounts, at_once, interval, sandbox
      --> .rehearsal/config.yaml:3:5
    hint: did you mean `driver`?
    ");
}

#[test]
fn a_configuration_that_is_no_text_is_refused_with_its_place() {
    assert_snapshot!(config(b"agents:\n  \xc3\xa9: \xff\xfe\n"), @r"
    error: this is not text: it is not valid UTF-8
      --> $DIR/repo/.rehearsal/config.yaml:2:6
    ");
    let told = config([0_u8, 1, 2, 3]);
    assert!(told.contains("--> .rehearsal/config.yaml:1:1\n"), "{told}");
    assert_snapshot!(config(vec![b'#'; 5 << 20]), @"error: `$DIR/repo/.rehearsal/config.yaml` is too large: at most 4 MiB are read");
}

#[test]
fn a_configuration_that_is_no_file_is_neither_waited_for_nor_read_without_end() {
    let scene = Scene::new();
    let path = scene.repo.join(CONFIG);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path.as_std_path(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let expected = "error: `$DIR/repo/.rehearsal/config.yaml` is not a regular file\n";
    assert_eq!(scene.refused(&["config", "show"]), expected);
    fs_err::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert_eq!(scene.refused(&["config", "show"]), expected);
    fs_err::remove_file(&path).unwrap();
    fs_err::create_dir(&path).unwrap();
    assert_eq!(
        scene.refused(&["config", "show"]),
        "error: `$DIR/repo/.rehearsal/config.yaml` is a directory\n"
    );
}

#[test]
fn nesting_without_end_and_alias_bombs_need_neither_time_nor_memory() {
    for open in ["[", "{a: ", "- "] {
        let told = config(format!("agents: {}", open.repeat(100_000)));
        assert!(told.contains("--> .rehearsal/config.yaml:1:"), "{told}");
    }
    let fuse = "agents:\n  x:\n    env:\n      a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
    let level = |level: usize| {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        format!("      a{level}: &a{level} [{aliases}]\n")
    };
    let bomb = format!("{fuse}{}", (1..20).map(level).collect::<String>());
    let told = config(bomb);
    assert!(told.contains("--> .rehearsal/config.yaml:"), "{told}");
}

#[test]
fn a_broken_flow_is_refused_with_its_place() {
    let scene = Scene::new();
    scene.write(".rehearsal/flows/x.yaml", "name: x\nstart: a\nstates:\n  a: { agnt: b }\n");
    assert_snapshot!(scene.refused(&["flow", "check", "x"]), @r"
    error: unknown field `agnt`, expected one of agent, steps, on, otherwise, wait, for, end, room
      --> .rehearsal/flows/x.yaml:4:8
    hint: did you mean `agent`?
    ");
    scene.write(".rehearsal/flows/x.yaml", b"name: x\n\x00\x01\xff");
    assert_snapshot!(scene.refused(&["flow", "check", "x"]), @r"
    error: this is not text: it is not valid UTF-8
      --> $DIR/repo/.rehearsal/flows/x.yaml:2:3
    ");
}

#[test]
fn a_broken_prompt_template_is_refused_before_anything_runs() {
    let scene = Scene::playing("run: []");
    let refused = |content: &[u8]| {
        scene.write(".rehearsal/prompts/loop.md", content);
        scene.refused(&["run", SESSION, "--dry-run"])
    };
    assert_snapshot!(refused(b"hello\n{{ tasks | nope }}\n"), @r"
    error: the prompt template cannot be used: unknown filter: filter nope is unknown
      --> .rehearsal/prompts/loop.md:2
    hint: `rehearsal run SESSION --dry-run` renders it and runs nothing
    ");
    assert_snapshot!(refused(b"hello\n\xff"), @r"
    error: this is not text: it is not valid UTF-8
      --> $DIR/repo/.rehearsal/prompts/loop.md:2:1
    ");
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}";
    let told = refused(endless.as_bytes());
    assert!(told.starts_with("error: the prompt template cannot be used: "), "{told}");
    scene.refused(&["run", SESSION]);
    assert_eq!(scene.succeed(&["runs", "list", "--json"]), "{\"schema_version\":1,\"runs\":[]}\n");
}

#[test]
fn a_broken_script_of_a_stand_in_says_where_and_fails_the_run() {
    let scene = Scene::playing("run:\n  - say: hi\n  - wirte: { path: a }\n");
    let said = scene.rehearsal(&["run", SESSION, "--max-failures", "1"]);
    assert_eq!(said.code, Some(6), "{}", said.err);
    let script = scene.root.join("script.yaml");
    let played = scene.rehearsal(&["mock-agent", "--script", script.as_str()]);
    assert!(
        played.err.contains("script.yaml:3:5: unknown variant `wirte`, expected one of "),
        "{}",
        played.err
    );
    assert_eq!(played.code, Some(2));
}

#[test]
fn an_import_file_with_one_bad_line_adds_nothing() {
    let scene = Scene::new();
    let import = |name: &str, content: &[u8]| {
        let path = scene.write(name, content);
        scene.refused(&["task", "import", path.as_str()])
    };
    assert_snapshot!(import("a.md", b"- [ ] good\n- [ ] b\xc3\x28d\n"), @r"
    error: this is not text: it is not valid UTF-8
      --> $DIR/repo/a.md:2:8
    ");
    assert_snapshot!(import("a.jsonl", b"{\"title\":\"good\"}\n{\"titel\":\"b\"}\n"), @r"
    error: unknown field `titel`, expected one of `key`, `title`, `body`, `criteria`, `priority`, `labels`, `depends_on`, `budget`, `done`
      --> $DIR/repo/a.jsonl:2:8
    hint: did you mean `title`?
    ");
    assert_snapshot!(import("a.jsonl", b"{\"title\":\"good\"}\n{\"title\": "), @r"
    error: EOF while parsing a value
      --> $DIR/repo/a.jsonl:2:10
    ");
    assert_snapshot!(import("a.jsonl", &[0x89, b'P', b'N', b'G', 0, 0xff]), @r"
    error: this is not text: it is not valid UTF-8
      --> $DIR/repo/a.jsonl:1:1
    ");
    let long = [b"{\"title\":\"good\"}\n\"".as_slice(), &vec![b'x'; 2 << 20]].concat();
    assert_snapshot!(import("a.jsonl", &long), @r"
    error: the line is longer than 1 MiB
      --> $DIR/repo/a.jsonl:2:1
    ");
    assert_snapshot!(import("a.md", &vec![b'\n'; 17 << 20]), @"error: `$DIR/repo/a.md` is too large: at most 16 MiB are read");
    let nested = format!("{{\"title\":{}", "[".repeat(100_000));
    let told = import("a.jsonl", nested.as_bytes());
    assert!(told.contains("a.jsonl:1:"), "{told}");
    assert!(scene.succeed(&["task", "list"]).starts_with("no tasks"));
}
