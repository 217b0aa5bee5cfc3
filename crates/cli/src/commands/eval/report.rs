//! What people and programs see of evals.

use std::io::Write as _;
use std::time::Duration;

use rehearsal_app::evals::LoadedEval;
use rehearsal_core::Tokens;
use rehearsal_eval::grade::Verdict;
use rehearsal_eval::report::{html, junit, markdown};
use rehearsal_eval::run::{Archive, EvalRun, Progress};
use rehearsal_eval::statistics::{Comparison, Method};
use rehearsal_eval::summary::{Cell, Record, Summary};
use rehearsal_eval::trial::Source;
use serde::Serialize;

use super::{HOW_TO_BEGIN, ReportFiles};
use crate::commands::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{BAD, GOOD, ODD, Ui, harmless, one_line, styled, table};
use crate::words;

/// `eval run --json`, `eval show --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct EvalDocument {
    /// The name of the run.
    run: String,
    /// Where its trials, results and page are.
    directory: String,
    /// Whether all that was required holds.
    holds: bool,
    #[serde(flatten)]
    summary: Summary,
}

/// `eval list --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct EvalListDocument {
    evals: Vec<EvalView>,
    /// The runs, the oldest first.
    runs: Vec<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EvalView {
    name: String,
    about: String,
    cases: usize,
    trials: u64,
}

/// `eval compare --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CompareDocument {
    first: String,
    second: String,
    #[serde(flatten)]
    comparison: Comparison,
}

pub(super) fn list(found: &[LoadedEval], runs: &Archive, context: &Context) -> Done {
    let view = |found: &LoadedEval| EvalView {
        name: found.eval.name.clone(),
        about: found.eval.about.clone(),
        cases: found.eval.cases.len(),
        trials: found.eval.cases.iter().map(|case| case.variants.len() as u64 * u64::from(case.repeat)).sum(),
    };
    let evals: Vec<EvalView> = found.iter().map(view).collect();
    let rows: Vec<Vec<String>> = evals
        .iter()
        .map(|one| {
            vec![one.name.clone(), one.cases.to_string(), one.trials.to_string(), one_line(&one.about, 60)]
        })
        .collect();
    if rows.is_empty() {
        context.ui.say(format!("no evals; {HOW_TO_BEGIN}"));
    } else {
        context.ui.say(table(&["EVAL", "CASES", "TRIALS", "ABOUT"], &rows));
    }
    let runs = runs.names()?;
    for run in &runs {
        context.ui.say(format!("run {run}"));
    }
    context.ui.document(EvalListDocument { evals, runs });
    Ok(Exit::Ok)
}

/// A line for each trial, while it runs.
pub(super) fn progress(record: &Record, progress: Progress, elapsed: Duration, ui: Ui) {
    if !ui.is_live() {
        return;
    }
    let id = &record.id;
    let rest = progress.estimate(elapsed).map_or_else(String::new, |estimate| {
        let usd = estimate.usd.map_or_else(String::new, |usd| format!(", about ${usd:.2}"));
        format!("; about {} left{usd}", words::duration(estimate.time))
    });
    ui.aside(format!(
        "{} {}, {}, trial {} ({}/{}{rest})",
        word(record.verdict),
        id.case,
        harmless(&id.variant.to_string()),
        id.trial,
        progress.made,
        progress.to_make,
    ));
}

fn word(verdict: Verdict) -> String {
    match verdict {
        Verdict::Pass => styled(GOOD, "pass"),
        Verdict::Fail => styled(BAD, "fail"),
        Verdict::Error => styled(ODD, "error"),
        Verdict::Skipped => styled(ODD, "skipped"),
    }
}

/// The table, what is wrong, what was required; and the files that were asked for.
pub(super) fn summary(
    summary: &Summary,
    records: &[Record],
    run: &EvalRun,
    files: &ReportFiles,
    context: &Context,
) -> Result<(), CliError> {
    let ui = context.ui;
    let rows: Vec<Vec<String>> = summary.cells.iter().map(row).collect();
    ui.say(table(&["CASE", "AGENT", "PASSED", "RATE", "95 %", "TIME", "COST"], &rows));
    for cell in &summary.cells {
        of_one_tape(cell, ui);
    }
    for record in records {
        wrong(record, ui);
    }
    of_judges(records, ui);
    for one in &summary.requirements {
        let mark = if one.holds { styled(GOOD, "✓") } else { styled(BAD, "✗") };
        ui.say(format!("{mark} {}: {}", harmless(&one.what), harmless(&one.because)));
    }
    ui.say(format!("run {}: {}", run.name(), run.directory().join("report.html")));
    write(files.html.as_deref(), context, || html(summary, records))?;
    write(files.markdown.as_deref(), context, || markdown(summary))?;
    if let Some(path) = &files.junit {
        let mut file = std::io::BufWriter::new(fs_err::File::create(context.directory.join(path))?);
        rehearsal_testing::junit(&junit(records), &mut file)?;
        file.flush()?;
    }
    ui.document(EvalDocument {
        run: run.name().to_owned(),
        directory: run.directory().to_string(),
        holds: summary.holds(),
        summary: summary.clone(),
    });
    Ok(())
}

/// What judges used is no agent's, and what it cost is told by nobody. A recording uses nothing.
fn of_judges(records: &[Record], ui: Ui) {
    let trials = records.iter().filter_map(|record| record.trial.as_ref());
    let asked = trials.filter(|trial| !matches!(trial.source, Source::Replayed { .. }));
    let tokens: u64 = asked.filter_map(|trial| trial.judge_tokens).map(Tokens::total).sum();
    if tokens > 0 {
        ui.say(format!("the judges used {tokens} tokens, which are in none of these costs"));
    }
}

fn write(
    path: Option<&camino::Utf8Path>,
    context: &Context,
    text: impl FnOnce() -> String,
) -> Result<(), CliError> {
    match path {
        Some(path) => Ok(fs_err::write(context.directory.join(path), text())?),
        None => Ok(()),
    }
}

fn row(cell: &Cell) -> Vec<String> {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut passed = format!("{}/{}", cell.passed, cell.samples());
    if cell.errors > 0 {
        passed.push_str(&format!(" +{} errors", cell.errors));
    }
    if cell.skipped > 0 {
        passed.push_str(&format!(" +{} skipped", cell.skipped));
    }
    let unknown = if cell.cost.unknown > 0 { " + ?" } else { "" };
    vec![
        cell.case.clone(),
        harmless(&cell.variant.to_string()),
        passed,
        cell.pass_rate.map_or_else(|| "–".to_owned(), percent),
        cell.interval
            .map_or_else(|| "–".to_owned(), |one| format!("{} to {}", percent(one.low), percent(one.high))),
        cell.latency_ms.map_or_else(|| "–".to_owned(), |spread| format!("{:.1} s", spread.p50 / 1000.0)),
        format!("${:.2}{unknown}", cell.cost.usd),
    ]
}

/// More trials than samples: they played the same recording.
fn of_one_tape(cell: &Cell, ui: Ui) {
    let samples = cell.samples() + cell.errors;
    if cell.trials > samples {
        ui.say(format!(
            "{}, {}: {} trials are {}, because they play the same recording",
            cell.case,
            harmless(&cell.variant.to_string()),
            cell.trials,
            words::count(samples, "sample")
        ));
    }
}

/// Why a trial did not pass.
fn wrong(record: &Record, ui: Ui) {
    if record.verdict == Verdict::Pass {
        return;
    }
    let id = &record.id;
    let reason = record.reason.as_ref().map(|reason| format!(": {}", one_line(reason, 160)));
    let remedy = record.obstacle.as_ref().map(|obstacle| format!("; {}", harmless(&words::remedy(obstacle))));
    let (reason, remedy) = (reason.unwrap_or_default(), remedy.unwrap_or_default());
    ui.say(format!(
        "{} {}, {}, trial {}{reason}{remedy}",
        word(record.verdict),
        id.case,
        harmless(&id.variant.to_string()),
        id.trial
    ));
    for one in &record.graded {
        if let Some(because) = one.grade.objection() {
            ui.say(format!("  {}: {}", one_line(&one.name, 80), one_line(because, 200)));
        }
    }
}

pub(super) fn comparison(first: String, second: String, comparison: Comparison, context: &Context) {
    let Comparison { cases, better, worse, difference, p_value, method } = comparison;
    let how = match method {
        Method::Exact => "exact",
        Method::Sampled => "sampled",
    };
    context.ui.say(format!(
        "{first} has {:+.1} points against {second} over {}: better in {better}, worse in {worse}; p = {p_value:.4} ({how})",
        difference * 100.0,
        words::count(cases, "case"),
    ));
    context.ui.document(CompareDocument { first, second, comparison });
}
