//! The page of an eval, opened in a real browser.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::env::TestEnv;

/// Writes what it is asked for, and tells what that costs; once with a name that tries to be a script.
const DILIGENT: &str = "
runs:
  - - write: { path: hello.txt, content: \"hi\\n\" }
    - commit: { message: Say hi }
    - usage: { input: 1200, output: 340, cost_usd: 0.05 }
    - say: Done.
  - - write: { path: hello.txt, content: \"hi\\n\" }
    - commit: { message: Say hi }
    - usage: { input: 1200, output: 340, cost_usd: 0.05 }
    - say: '<script>document.title = \"taken over\"</script><img src=http://example.org/x.png>'
";

const LAZY: &str = "
runs:
  - - usage: { input: 100, output: 10, cost_usd: 0.01 }
    - say: Done.
  - - usage: { input: 100, output: 10, cost_usd: 0.01 }
    - say: Done.
";

const EVAL: &str = "name: greeting
agents: [implementer, lazy]
repeat: 2
cases:
  - name: hello
    prompt: Say hi in hello.txt
    assert:
      - { type: files-created, value: hello.txt }
";

/// A page with two who were measured: one passes always, one never.
fn page() -> (TestEnv, String) {
    let env = TestEnv::new().agent_script(DILIGENT).other_agent("lazy", LAZY);
    env.file(".rehearsal/evals/greeting.yaml", EVAL).commit("Measure");
    env.run(&["eval", "run", "--live", "--jobs", "1", "--html", "page.html"]).ends_with(3);
    let url = format!("file://{}", env.repo.join("page.html"));
    (env, url)
}

#[test]
fn the_page_of_an_eval_shows_its_plots_and_opens_its_trials_in_a_browser() {
    let (env, url) = page();
    let Some(mut browser) = Browser::open(&env.scratch) else { return };
    browser.load(&url);

    let requests = browser.happened("Network.requestWillBeSent");
    let asked: Vec<&Value> = requests.iter().map(|event| &event["request"]["url"]).collect();
    assert_eq!(asked, [&json!(url)], "the page loads nothing but itself");
    for trouble in ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"] {
        assert_eq!(browser.happened(trouble), Vec::<&Value>::new(), "{trouble}");
    }
    assert_eq!(browser.evaluate("document.title"), "Eval greeting", "what an agent says is only text");
    assert_eq!(browser.evaluate("document.images.length + document.scripts.length"), 0);

    assert_eq!(
        browser.evaluate("[...document.querySelectorAll('svg')].map(svg => svg.getAttribute('aria-label'))"),
        json!(["Pass rates with 95 % intervals", "Cost against pass rate"])
    );
    assert_eq!(
        browser.evaluate("[...document.querySelectorAll('svg g > title')].map(title => title.textContent)"),
        json!([
            "hello, implementer: 100 % (34–100 %)",
            "hello, lazy: 0 % (0–66 %)",
            "implementer: $0.1000, 100 %",
            "lazy: $0.0200, 0 %",
        ])
    );
    points_are_where_their_numbers_say(&mut browser);
    a_trial_opens(&mut browser);
}

/// By where the browser really drew them.
fn points_are_where_their_numbers_say(browser: &mut Browser) {
    let points = browser.evaluate(
        "[...document.querySelectorAll('svg')].map(svg => {
            const frame = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('circle.rate')].map(circle => {
                const box = circle.getBoundingClientRect();
                const inside = box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom;
                return { x: box.x, y: box.y, inside: inside && box.width > 0 };
            });
        })",
    );
    let at = |plot: usize, point: usize, axis: &str| points[plot][point][axis].as_f64().unwrap();
    for plot in points.as_array().unwrap() {
        assert!(plot.as_array().unwrap().iter().all(|point| point["inside"] == true), "{points:#}");
    }
    assert!(at(0, 0, "x") > at(0, 1, "x"), "100 % is right of 0 %: {points:#}");
    assert!(at(1, 0, "x") > at(1, 1, "x"), "more dollars are further right: {points:#}");
    assert!(at(1, 0, "y") < at(1, 1, "y"), "100 % is above 0 %: {points:#}");
    let widths = browser.evaluate(
        "[...document.querySelectorAll('line.interval')].map(line => line.getBoundingClientRect().width)",
    );
    assert!(widths.as_array().unwrap().iter().all(|width| width.as_f64().unwrap() > 50.0), "{widths}");
}

/// Closed at first, its steps and its difference are there after a click.
fn a_trial_opens(browser: &mut Browser) {
    let seen = "['ol.steps', 'pre'].map(part => document.querySelector(`details ${part}`).checkVisibility())";
    assert_eq!(browser.evaluate(seen), json!([false, false]));
    browser.evaluate("document.querySelector('details summary').click()");
    assert_eq!(browser.evaluate(seen), json!([true, true]));
    assert_eq!(
        browser.evaluate("document.querySelector('details pre .added:last-child').textContent"),
        "+hi"
    );
    assert_eq!(browser.evaluate("document.querySelector('details ol.steps li').textContent"), "implementer");
    let colours = browser.evaluate(
        "['.added', 'b.good', 'b.bad'].map(part => getComputedStyle(document.querySelector(`details ${part}`)).color)",
    );
    let different: std::collections::BTreeSet<&str> =
        colours.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert!(
        different.len() >= 2 && !different.contains("rgb(0, 0, 0)"),
        "the style is not applied: {colours}"
    );
}
