use std::sync::LazyLock;

use insta::assert_snapshot;
use proptest::prelude::*;
use rehearsal_agent::clis::KNOWN;
use serde_json::json;

use super::*;

fn place() -> Place {
    Place {
        work_dir: vec!["/tmp/run-1/work".into(), "/private/tmp/run-1/work".into()],
        home: vec!["/tmp/run-1/home".into()],
        temp: vec!["/tmp/run-1/tmp".into()],
    }
}

fn rules_of(cli: &str) -> Vec<Rule> {
    Rule::for_client(KNOWN.named(cli).and_then(|cli| cli.requests.as_ref()))
}

fn normalised(cli: &str, text: &str) -> String {
    let normaliser = Normaliser::new(&rules_of(cli), &place(), &Secrets::default()).unwrap();
    normaliser.text(&mut Names::default(), text).into_owned()
}

fn plain(text: &str) -> String {
    normalised("sh", text)
}

#[test]
fn whole_paths_are_replaced_and_parts_of_names_are_not() {
    assert_snapshot!(plain("cd /tmp/run-1/work. ls /tmp/run-1/work/src /private/tmp/run-1/work"), @"cd ⟦cwd⟧. ls ⟦cwd⟧/src ⟦cwd⟧");
    assert_snapshot!(plain("/tmp/run-1/work-2 /tmp/run-1/work.bak /x/tmp/run-1/work/a /tmp/run-1/workers"), @"/tmp/run-1/work-2 /tmp/run-1/work.bak /x/tmp/run-1/work/a /tmp/run-1/workers");
    assert_snapshot!(plain(r#"{\"cwd\":\"/tmp/run-1/work\",\"text\":\"a\n/tmp/run-1/home/.x\"}"#), @r#"{\"cwd\":\"⟦cwd⟧\",\"text\":\"a\n⟦home⟧/.x\"}"#);
    assert_snapshot!(plain("~/.claude/projects/-tmp-run-1-work/memory and -tmp-run-1-worker"), @"~/.claude/projects/⟦cwd:slug⟧/memory and -tmp-run-1-worker");
}

#[test]
fn a_directory_inside_of_another_is_the_longer_one() {
    let place = Place { work_dir: vec!["/srv".into()], home: vec!["/srv/home".into()], temp: vec![] };
    let normaliser = Normaliser::new(&[Rule::Paths], &place, &Secrets::default()).unwrap();
    let text = normaliser.text(&mut Names::default(), "/srv/home/a /srv/b /srv/homework").into_owned();
    assert_snapshot!(text, @"⟦home⟧/a ⟦cwd⟧/b ⟦cwd⟧/homework");
}

#[test]
fn temporary_files_have_numbers() {
    assert_snapshot!(plain("/tmp/run-1/tmp/tmp.Xy12Ab34 /tmp/tmpab12cd34 /tmp/tmp.Xy12Ab34"), @"⟦tmp⟧/⟦file:1⟧ /tmp/⟦file:2⟧ /tmp/⟦file:1⟧");
}

#[test]
fn ids_are_numbered_by_first_sight_and_keep_their_number() {
    let (first, second) = ("01a1e2ae-d336-7242-b95f-9019eaa7fad2", "75b15841-278a-5630-b55f-02183de4a6ca");
    assert_snapshot!(plain(&format!("{second} {first} {second} msg_{first} toolu_01AbCdEf9 call_function")), @"⟦uuid:1⟧ ⟦uuid:2⟧ ⟦uuid:1⟧ ⟦id:1⟧ ⟦id:2⟧ call_function");
}

#[test]
fn dates_and_times_in_the_forms_that_tools_print() {
    for (text, expected) in [
        ("<current_date>2026-11-16</current_date>", "<current_date>⟦date⟧</current_date>"),
        ("at 2026-11-16T04:47:47.123Z", "at ⟦time⟧"),
        ("2026-11-16 04:47:47 +0000", "⟦time⟧"),
        ("Mon Nov 16 04:47:47 UTC 2026", "⟦date⟧"),
        ("Today is Monday, November 16, 2026.", "Today is ⟦date⟧."),
        ("Date:   Mon Nov 16 04:47:47 2026 +0000", "Date:   ⟦date⟧"),
        ("-rw-r--r-- 1 root root 3 Nov  6 04:47 a.txt", "-rw-r--r-- 1 root root 3 ⟦date⟧ a.txt"),
        ("Mon, 16 Nov 2026 04:47:47 GMT", "⟦date⟧"),
        ("1794804470552", "⟦time⟧"),
        ("interleaved-thinking-2025-05-14", "interleaved-thinking-2025-05-14"),
        ("cutoff is June 2026, 2026-13-01", "cutoff is June 2026, 2026-13-01"),
    ] {
        assert_eq!(plain(text), expected);
    }
}

#[test]
fn durations_that_were_measured_and_none_that_were_written() {
    assert_snapshot!(plain("Wall time: 0.0123 seconds, 3 passed in 1.2s, built in 12ms, real 0m0.012s"), @"Wall time: ⟦duration⟧, 3 passed in ⟦duration⟧, built in ⟦duration⟧, real ⟦duration⟧");
    assert_snapshot!(plain("waits up to 120000ms (2 minutes), version 1.2.3s4"), @"waits up to 120000ms (2 minutes), version 1.2.3s4");
}

#[test]
fn ports_commits_and_colours() {
    assert_snapshot!(plain("http://127.0.0.1:43799/v1 localhost:8080 10.127.0.0.1:22"), @"http://127.0.0.1:⟦port⟧/v1 localhost:⟦port⟧ 10.127.0.0.1:22");
    assert_snapshot!(plain("Recent commits:\n767354b init\n5e58973 more\n[main 767354b] init\ndefaced word"), @"
    Recent commits:
    ⟦commit:1⟧ init
    ⟦commit:2⟧ more
    [main ⟦commit:1⟧] init
    defaced word
    ");
    assert_eq!(plain("\u{1b}[1;31mred\u{1b}[0m \\u001b[2Kx"), "red x");
}

#[test]
fn every_agent_has_its_own_oddities() {
    assert_snapshot!(normalised("claude", " - OS Version: Linux 6.18.44\ncc_version=2.1.325.9af"), @"
     - OS Version: ⟦os⟧
    cc_version=2.1.325.⟦hex⟧
    ");
    assert_snapshot!(normalised("codex", "Chunk ID: e511d5\nOriginal token count: 48\n<timezone>Etc/UTC</timezone>"), @"
    Chunk ID: ⟦chunk⟧
    Original token count: ⟦count⟧
    <timezone>⟦timezone⟧</timezone>
    ");
    assert_snapshot!(normalised("gemini", "Process Group PGID: 4711, /tmp/run-1/home/.gemini/tmp/work"), @"Process Group PGID: ⟦pgid⟧, ⟦home⟧/.gemini/tmp/⟦project⟧");
    assert_eq!(plain("Chunk ID: e511d5"), "Chunk ID: e511d5");
}

#[test]
fn results_of_parallel_tools_are_put_into_the_order_of_their_calls() {
    let normaliser = Normaliser::new(&rules_of("claude"), &place(), &Secrets::default()).unwrap();
    let result = |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": text});
    let uuids = ["01a1e2ae-d336-7242-b95f-9019eaa7fad2", "75b15841-278a-5630-b55f-02183de4a6ca"];
    let turn = |results: Value| {
        let mut names = Names::default();
        let mut calls = json!([{"type": "tool_use", "id": "a"}, {"type": "tool_use", "id": "b"}]);
        normaliser.value(&mut names, &mut calls);
        let mut results = results;
        normaliser.value(&mut names, &mut results);
        results
    };
    let in_order =
        turn(json!([result("a", uuids[0]), result("b", uuids[1]), {"type": "text", "text": "go on"}]));
    let swapped =
        turn(json!([result("b", uuids[1]), result("a", uuids[0]), {"type": "text", "text": "go on"}]));
    assert_eq!(in_order, swapped);
    assert_snapshot!(in_order[0], @r#"{"content":"⟦uuid:1⟧","tool_use_id":"⟦id:1⟧","type":"tool_result"}"#);
    let exchanged =
        turn(json!([result("a", uuids[1]), result("b", "else"), {"type": "text", "text": "go on"}]));
    assert_ne!(in_order, exchanged);
}

#[test]
fn signatures_stay_as_they_are_in_requests_and_answers() {
    let normaliser = Normaliser::new(&rules_of("claude"), &place(), &Secrets::default()).unwrap();
    let signature = "sk-ant-abcdefghijkl 01a1e2ae-d336-7242-b95f-9019eaa7fad2";
    let mut value = json!({"type": "thinking", "thinking": "/tmp/run-1/work", "signature": signature});
    normaliser.value(&mut Names::default(), &mut value);
    assert_eq!(value, json!({"type": "thinking", "thinking": "⟦cwd⟧", "signature": signature}));
    let answer = format!(
        r#"{{"delta":{{"signature":"{signature}"}},"text":"/tmp/run-1/work/a sk-ant-abcdefghijkl"}}"#
    );
    let normal = normaliser.answer(&mut Names::default(), &answer).into_owned();
    assert_eq!(normal, format!(r#"{{"delta":{{"signature":"{signature}"}},"text":"⟦cwd⟧/a ⟦secret:1⟧"}}"#));
}

/// At every digit of it a commit could begin, and once that is none, a duration that goes on to its end: to look for these as
/// well would take minutes.
#[test]
fn a_word_of_a_hundred_thousand_digits_stays_as_it_is() {
    // The last one is a duration but for its last letter.
    let almost = format!("{}.5sx", "1".repeat(100_000));
    let only_times = Normaliser::new(&[Rule::Dates, Rule::Durations], &place(), &Secrets::default()).unwrap();
    for digits in ["1".repeat(100_000), "15".repeat(50_000), "a1".repeat(50_000), almost] {
        let text = format!("{digits} on 2026-11-16");
        assert_eq!(plain(&text), format!("{digits} on ⟦date⟧"));
        assert_eq!(only_times.text(&mut Names::default(), &text), format!("{digits} on ⟦date⟧"));
    }
}

#[test]
fn rules_have_names_and_versions() {
    let named = |text: &str| text.parse::<RuleName>();
    let clients = KNOWN.model_clients();
    assert_eq!(named("paths@1").unwrap().rule(&clients), Ok(Rule::Paths));
    assert_eq!(named("claude@1").unwrap().rule(&clients).unwrap().to_string(), "claude@1");
    assert_snapshot!(named("paths@9").unwrap_err(), @"the normaliser `paths` is of version 1 here, and not of version 9");
    assert_snapshot!(named("paths").unwrap_err(), @"the normaliser `paths` has no version");
    assert_snapshot!(named("path@1").unwrap().rule(&clients).unwrap_err(), @"there is no normaliser `path`");
    assert_snapshot!(named("claude@9").unwrap().rule(&clients).unwrap_err(), @"the normaliser `claude` is of version 1 here, and not of version 9");
}

fn all_rules() -> Vec<Rule> {
    Rule::for_client(None).into_iter().chain(KNOWN.model_clients().into_iter().map(Rule::Client)).collect()
}

fn other_place() -> Place {
    let name = |last: &str| vec![format!("/var/scratch/x.y/{last}")];
    Place { work_dir: name("some where"), home: name("me"), temp: name("t") }
}

static HERE: LazyLock<Normaliser> =
    LazyLock::new(|| Normaliser::new(&all_rules(), &place(), &Secrets::default()).unwrap());
static THERE: LazyLock<Normaliser> =
    LazyLock::new(|| Normaliser::new(&all_rules(), &other_place(), &Secrets::default()).unwrap());

proptest! {
    #[test]
    fn the_same_work_at_two_places_says_the_same(
        parts in prop::collection::vec((
            prop::sample::select(vec![
                "CWD", "CWD/a.rs", "HOME", "TMP/x", "é", "⟦cwd⟧", "⟦", "2026-11-16", "2026-11-16T04:47", "767354b init\n",
                "toolu_01AbCdEf9", "01a1e2ae-d336-7242-b95f-9019eaa7fad2", "sk-ant-abcdefghijkl", "1.5s", "\u{1b}[0m",
                "localhost:80", "-",
            ]),
            prop::sample::select(vec![" ", "\n", "\\n", "\"", "/", ": ", "é"]),
        ), 0..24),
    ) {
        let text: String = parts.iter().map(|(word, then)| format!("{word}{then}")).collect();
        let at = |place: &Place, normaliser: &Normaliser| {
            let text = text.replace("CWD", &place.work_dir[0]).replace("HOME", &place.home[0]).replace("TMP", &place.temp[0]);
            normaliser.text(&mut Names::default(), &text).into_owned()
        };
        prop_assert_eq!(at(&place(), &HERE), at(&other_place(), &THERE));
    }

    #[test]
    fn no_text_makes_it_fail(text in "\\PC*") {
        HERE.text(&mut Names::default(), &text);
        HERE.answer(&mut Names::default(), &text);
    }
}
