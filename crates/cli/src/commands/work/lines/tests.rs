use insta::assert_snapshot;

use super::*;

const MINUTE: u64 = 60;

fn task(id: &str, title: &str, doing: &str) -> (TaskId, InWork) {
    let id = TaskId::new(id).unwrap();
    (id, InWork { title: title.to_owned(), doing: doing.to_owned(), ..InWork::default() })
}

fn now() -> Now {
    Now { monotonic: Duration::from_secs(2 * MINUTE + 5), wall: Timestamp(1_000_000) }
}

fn busy() -> Lines {
    let (greet, plain) = task("k3f", "Add a greeting", "Bash cargo test --workspace --all-features");
    let tokens = Tokens { input: 1_234, cached: 0, output: 340 };
    let greet_task = InWork { tokens: Some(tokens), cost_usd: Some(0.12), ..plain };
    let long = "Rewrite the parser so that every error names the line and the column at which it was found";
    let (parse, parse_task) = task("m81", long, "starting");
    let (wide, wide_task) =
        task("p2q", "挨拶を追加する: 名前がないときの挨拶を追加してテストする", "Edit 挨拶.rs");
    let limit = Wait {
        what: "claude is paused: usage limit reached".to_owned(),
        until: Some(Until { at: Timestamp(1_000_000 + 4 * 3_600_000), shown: "15:00".to_owned() }),
    };
    Lines {
        tasks: [(greet, greet_task), (parse, parse_task), (wide, wide_task)].into(),
        pauses: [("claude".to_owned(), limit)].into(),
        wait: None,
    }
}

/// Each line in a frame as wide as the terminal: what is wider would stick out.
fn screen(lines: &Lines, width: usize) -> String {
    let shown = lines.shown(width, 24, now());
    for line in &shown {
        assert!(columns(line) <= width - MARGIN, "{line}");
    }
    shown.join("\n")
}

#[test]
fn a_narrow_terminal_shows_who_how_long_and_how_much() {
    assert_snapshot!(screen(&busy(), 50), @"
    ⠙ k3f Add a greeting · 2m05s · 1.5k · $0.12
    ⠙ m81 Rewrite the parser so… · starting · 2m05s
    ⠙ p2q 挨拶を追加する:… · Edit 挨拶.rs · 2m05s
    ⠙ claude is paused:… · 4h00m left, until 15:00
    ");
}

#[test]
fn a_usual_terminal_shows_what_the_agent_does() {
    assert_snapshot!(screen(&busy(), 90), @"
    ⠙ k3f Add a greeting · Bash cargo test --worksp… · 2 min 5 s · 1.2k in, 340 out · $0.12
    ⠙ m81 Rewrite the parser so that every error names the line and… · starting · 2 min 5 s
    ⠙ p2q 挨拶を追加する: 名前がないときの挨拶を追加してテスト… · Edit 挨拶.rs · 2 min 5 s
    ⠙ claude is paused: usage limit reached · 4 h 0 min left, until 15:00
    ");
}

#[test]
fn a_wide_terminal_shows_it_all() {
    assert_snapshot!(screen(&busy(), 200), @"
    ⠙ k3f Add a greeting · Bash cargo test --workspace --all-features · 2 min 5 s · 1.2k in, 340 out · $0.12
    ⠙ m81 Rewrite the parser so that every error names the line and the column at which it was found · starting · 2 min 5 s
    ⠙ p2q 挨拶を追加する: 名前がないときの挨拶を追加してテストする · Edit 挨拶.rs · 2 min 5 s
    ⠙ claude is paused: usage limit reached · 4 h 0 min left, until 15:00
    ");
}

#[test]
fn a_worker_without_a_task_counts_down() {
    let until = Until { at: Timestamp(1_000_000 + 65_000), shown: "15:00".to_owned() };
    let wait = Wait { what: "waiting: rate_limited".to_owned(), until: Some(until) };
    let waiting = Lines { wait: Some(wait), ..Lines::default() };
    assert_snapshot!(screen(&waiting, 50), @"⠙ waiting: rate_limi… · 1m05s left, until 15:00");
    assert_snapshot!(screen(&waiting, 90), @"⠙ waiting: rate_limited · 1 min 5 s left, until 15:00");
    let over = Now { wall: Timestamp(1_000_000 + 5 * 3_600_000), ..now() };
    assert_eq!(busy().shown(50, 24, over).len(), 3, "a pause that is over is not shown");
    let busy_again = Lines { wait: waiting.wait, ..busy() };
    assert!(!screen(&busy_again, 90).contains("rate_limited"));
}

#[test]
fn a_low_terminal_says_how_many_lines_it_has_no_room_for() {
    let lines = busy().shown(50, 3, now());
    assert_eq!((lines.len(), lines[1].as_str()), (2, "… and 3 more"));
}

#[test]
fn a_terminal_of_no_width_is_no_reason_to_panic() {
    for width in 0..60 {
        for line in busy().shown(width, 24, now()) {
            assert!(columns(&line) <= width.saturating_sub(MARGIN), "{width}: {line}");
        }
    }
}
