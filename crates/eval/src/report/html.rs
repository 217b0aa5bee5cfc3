//! One file that can be opened anywhere: no script, nothing loaded from elsewhere.

use super::plot::{cost_against_success, rates};
use super::{cost, percent, range, seconds, tokens};
use crate::grade::{Grade, Graded, Verdict};
use crate::summary::{Cell, Record, Summary};
use crate::trial::{Step, Trial};

/// Trials beyond these are told in `trials.jsonl` only.
const MOST_TRIALS: usize = 2000;
/// More of what an agent said is told in `trials.jsonl` only.
const MOST_SAID: usize = 4000;
/// Steps of one trial beyond these are counted only.
const MOST_STEPS: usize = 200;

/// The whole eval as a page.
pub fn html(summary: &Summary, records: &[Record]) -> String {
    let mut page = String::new();
    let title = escape(&summary.eval);
    page.push_str(&format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>Eval {title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<h1>Eval {title}</h1>\n",
        include_str!("page.css"),
    ));
    requirements(summary, &mut page);
    page.push_str("<h2>Pass rates</h2>\n");
    page.push_str(&rates(&summary.cells));
    let points: Vec<(String, f64, f64)> = summary
        .variants
        .iter()
        .filter(|one| one.cost.unknown == 0 && one.cost.usd > 0.0)
        .filter_map(|one| Some((one.variant.to_string(), one.cost.usd, one.pass_rate?)))
        .collect();
    if !points.is_empty() {
        page.push_str("<h2>Cost against success</h2>\n");
        page.push_str(&cost_against_success(&points));
    }
    table(summary, &mut page);
    page.push_str("<h2>Trials</h2>\n");
    for record in records.iter().take(MOST_TRIALS) {
        trial(record, &mut page);
    }
    if let Some(more) = records.len().checked_sub(MOST_TRIALS + 1) {
        page.push_str(&format!("<p>{} more are in trials.jsonl.</p>\n", more + 1));
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn requirements(summary: &Summary, page: &mut String) {
    page.push_str("<ul>\n");
    for one in &summary.requirements {
        let (class, mark) = if one.holds { ("good", "✓") } else { ("bad", "✗") };
        page.push_str(&format!(
            "<li class=\"{class}\">{mark} {}: {}</li>\n",
            escape(&one.what),
            escape(&one.because)
        ));
    }
    page.push_str("</ul>\n");
}

fn table(summary: &Summary, page: &mut String) {
    page.push_str("<h2>Cases</h2>\n<table>\n<tr><th>case<th>agent<th>passed<th>rate (95 %)<th>time p50 (p95)<th>tokens p50 (p95)<th>cost</tr>\n");
    let row = |cell: &Cell| {
        let errors = if cell.errors > 0 { format!(", {} errors", cell.errors) } else { String::new() };
        format!(
            "<tr><td>{}<td>{}<td>{}/{}{errors}<td>{} ({})<td>{}<td>{}<td>{}</tr>\n",
            escape(&cell.case),
            escape(&cell.variant.to_string()),
            cell.passed,
            cell.samples(),
            percent(cell.pass_rate),
            range(cell.interval),
            seconds(cell.latency_ms),
            tokens(cell.tokens),
            cost(cell.cost),
        )
    };
    page.extend(summary.cells.iter().map(row));
    page.push_str("</table>\n");
}

fn trial(record: &Record, page: &mut String) {
    let (class, word) = match record.verdict {
        Verdict::Pass => ("good", "pass"),
        Verdict::Fail => ("bad", "fail"),
        Verdict::Error => ("odd", "error"),
        Verdict::Skipped => ("odd", "skipped"),
    };
    let id = &record.id;
    let name = escape(&format!("{}, {}, trial {}", id.case, id.variant, id.trial));
    page.push_str(&format!("<details><summary><b class=\"{class}\">{word}</b> {name}</summary>\n"));
    if let Some(reason) = &record.reason {
        page.push_str(&format!("<p class=\"odd\">{}</p>\n", escape(reason)));
    }
    page.push_str("<ul>\n");
    for one in &record.graded {
        page.push_str(&graded(one));
    }
    page.push_str("</ul>\n");
    if let Some(trial) = &record.trial {
        trajectory(trial, page);
        said(trial, page);
        if !trial.diff.is_empty() {
            page.push_str("<pre>");
            page.extend(trial.diff.lines().map(diff_line));
            page.push_str("</pre>\n");
        }
    }
    page.push_str("</details>\n");
}

fn graded(one: &Graded) -> String {
    let (class, mark, because) = match &one.grade {
        Grade::Holds { because } => ("good", "✓", because),
        Grade::Broken { because } => ("bad", "✗", because),
        Grade::Unknown { because } => ("odd", "?", because),
    };
    format!("<li><span class=\"{class}\">{mark}</span> {}: {}</li>\n", escape(&one.name), escape(because))
}

fn trajectory(trial: &Trial, page: &mut String) {
    page.push_str("<ol class=\"steps\">\n");
    for step in trial.steps.iter().take(MOST_STEPS) {
        let line = match step {
            Step::Agent { name } => format!("<b>{}</b>", escape(name)),
            Step::Tool { tool, arguments, is_error, .. } => {
                let failed = if *is_error == Some(true) { " <span class=\"bad\">failed</span>" } else { "" };
                format!("{} {}{failed}", escape(tool), escape(&short(arguments)))
            }
            Step::Text { text } => format!("<i>{}</i>", escape(&short(text))),
        };
        page.push_str(&format!("<li>{line}</li>\n"));
    }
    page.push_str("</ol>\n");
    if let Some(more) = trial.steps.len().checked_sub(MOST_STEPS + 1) {
        page.push_str(&format!("<p>{} more steps</p>\n", more + 1));
    }
}

/// The last word, if it is not among the steps: not every agent tells these.
fn said(trial: &Trial, page: &mut String) {
    let is_told = trial.steps.iter().any(|step| matches!(step, Step::Text { text } if *text == trial.output));
    if trial.output.trim().is_empty() || is_told {
        return;
    }
    let short: String = trial.output.chars().take(MOST_SAID).collect();
    let mark = if short.len() < trial.output.len() { "…" } else { "" };
    page.push_str(&format!("<pre class=\"said\">{}{mark}</pre>\n", escape(&short)));
}

fn diff_line(line: &str) -> String {
    let class = match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => "",
        [b'+', ..] => "added",
        [b'-', ..] => "removed",
        _ => "",
    };
    format!("<span class=\"{class}\">{}</span>\n", escape(line))
}

fn short(text: &str) -> String {
    const MOST: usize = 160;
    let short: String = text.chars().take(MOST).collect();
    let mark = if short.len() < text.len() { "…" } else { "" };
    format!("{short}{mark}")
}

/// Text that is nothing but text in HTML, in an attribute too. Control characters are not allowed there at all.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(letter),
            letter if letter.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_wrote_is_text_and_nothing_else() {
        assert_eq!(
            escape("<script>alert('x')</script>&\u{1b}[31m\"\n"),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;\u{fffd}[31m&quot;\n"
        );
    }
}
