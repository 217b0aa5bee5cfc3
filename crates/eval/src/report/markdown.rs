//! For the summary page of a CI run.

use super::{cost, percent, range, seconds, tokens};
use crate::summary::{Cell, Summary};

/// The whole eval as Markdown.
pub fn markdown(summary: &Summary) -> String {
    let mut page = format!("## Eval `{}`\n\n", plain(&summary.eval));
    for requirement in &summary.requirements {
        let mark = if requirement.holds { "✅" } else { "❌" };
        page.push_str(&format!("- {mark} {}: {}\n", plain(&requirement.what), plain(&requirement.because)));
    }
    page.push_str("\n| case | agent | passed | rate (95 %) | time p50 (p95) | tokens p50 (p95) | cost |\n");
    page.push_str("|---|---|---|---|---|---|---|\n");
    for cell in &summary.cells {
        page.push_str(&row(cell));
    }
    page.push('\n');
    for one in &summary.variants {
        page.push_str(&format!(
            "**{}**: {} over {} cases ({}), {}\n\n",
            plain(&one.variant.to_string()),
            percent(one.pass_rate),
            one.cases,
            range(one.interval),
            cost(one.cost),
        ));
    }
    page
}

fn row(cell: &Cell) -> String {
    let mut passed = format!("{}/{}", cell.passed, cell.samples());
    for (count, what) in
        [(cell.errors, "errors"), (cell.skipped, "skipped"), (cell.unsteady_tapes, "unsteady tapes")]
    {
        if count > 0 {
            passed.push_str(&format!(", {count} {what}"));
        }
    }
    format!(
        "| {} | {} | {passed} | {} ({}) | {} | {} | {} |\n",
        plain(&cell.case),
        plain(&cell.variant.to_string()),
        percent(cell.pass_rate),
        range(cell.interval),
        seconds(cell.latency_ms),
        tokens(cell.tokens),
        cost(cell.cost),
    )
}

/// Text that is nothing but text in a table of Markdown.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '|' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '\\' | '#' => {
                plain.push('\\');
                plain.push(letter);
            }
            '\n' | '\r' => plain.push(' '),
            _ => plain.push(letter),
        }
    }
    plain
}
