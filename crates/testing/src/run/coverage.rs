//! Coverage, from the files in which the runners leave it.

use std::collections::BTreeMap;

use camino::Utf8Path;
use serde::Deserialize;

use crate::detect::file::read_regular;
use crate::{Coverage, CoverageFile, CoverageFormat, FileCoverage};

/// Of a larger project the least covered files are listed.
const MOST_FILES: usize = 500;
/// A larger file is not read.
const LARGEST: u64 = 64 << 20;

/// Lines or statements that were reached, and all of them.
type Counts = (u64, u64);

/// What a run left, or why there is nothing.
pub(super) fn read(file: &CoverageFile, root: &Utf8Path) -> Result<Coverage, String> {
    let text = read_regular(&file.path, LARGEST).ok_or("no coverage: the runner left none")?;
    let by_file = match file.format {
        CoverageFormat::GoProfile => go_profile(&text),
        CoverageFormat::JsonSummary => json_summary(&text)?,
        CoverageFormat::CoveragePy => coverage_py(&text)?,
        CoverageFormat::LlvmCov => llvm_cov(&text)?,
        CoverageFormat::Lcov => lcov(&text),
    };
    Ok(summed(by_file, root))
}

fn summed(by_file: BTreeMap<String, Counts>, root: &Utf8Path) -> Coverage {
    let (covered, total) = by_file.values().fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
    let mut files: Vec<FileCoverage> = by_file
        .into_iter()
        .map(|(file, (covered, total))| {
            let relative = Utf8Path::new(&file).strip_prefix(root).map(ToString::to_string);
            FileCoverage { file: relative.unwrap_or(file), percent: percent(covered, total), covered, total }
        })
        .collect();
    files.sort_by(|a, b| a.percent.total_cmp(&b.percent).then_with(|| a.file.cmp(&b.file)));
    files.truncate(MOST_FILES);
    Coverage { percent: percent(covered, total), covered, total, files }
}

/// With one digit after the point, as all tools show it.
#[expect(clippy::cast_precision_loss, reason = "no file has 2^52 lines")]
fn percent(covered: u64, total: u64) -> f64 {
    if total == 0 { 100.0 } else { (covered as f64 * 1000.0 / total as f64).round() / 10.0 }
}

/// `example.com/shop/cart.go:3.20,5.2 1 1`: statements and how often they ran. A block appears once for each package
/// whose tests reach it.
fn go_profile(text: &str) -> BTreeMap<String, Counts> {
    let mut blocks: BTreeMap<(&str, &str), (u64, bool)> = BTreeMap::new();
    for line in text.lines() {
        let Some((place, rest)) = line.rsplit_once(':') else { continue };
        let mut fields = rest.split(' ');
        let (Some(block), Some(statements), Some(runs)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (Ok(statements), Ok(runs)) = (statements.parse::<u64>(), runs.parse::<u64>()) else { continue };
        let known = blocks.entry((place, block)).or_insert((statements, false));
        known.1 |= runs > 0;
    }
    let mut files: BTreeMap<String, Counts> = BTreeMap::new();
    for ((file, _), (statements, reached)) in blocks {
        let counts = files.entry(file.to_owned()).or_default();
        counts.0 += if reached { statements } else { 0 };
        counts.1 += statements;
    }
    files
}

fn json_summary(text: &str) -> Result<BTreeMap<String, Counts>, String> {
    #[derive(Deserialize)]
    struct Entry {
        lines: Lines,
    }
    #[derive(Deserialize)]
    struct Lines {
        total: u64,
        covered: u64,
    }
    let entries: BTreeMap<String, Entry> = parsed(text)?;
    let files = entries.into_iter().filter(|(file, _)| file != "total");
    Ok(files.map(|(file, entry)| (file, (entry.lines.covered, entry.lines.total))).collect())
}

fn coverage_py(text: &str) -> Result<BTreeMap<String, Counts>, String> {
    #[derive(Deserialize)]
    struct Report {
        files: BTreeMap<String, Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        summary: Summary,
    }
    #[derive(Deserialize)]
    struct Summary {
        covered_lines: u64,
        num_statements: u64,
    }
    let report: Report = parsed(text)?;
    let counts = |entry: Entry| (entry.summary.covered_lines, entry.summary.num_statements);
    Ok(report.files.into_iter().map(|(file, entry)| (file, counts(entry))).collect())
}

fn llvm_cov(text: &str) -> Result<BTreeMap<String, Counts>, String> {
    #[derive(Deserialize)]
    struct Report {
        data: Vec<Data>,
    }
    #[derive(Deserialize)]
    struct Data {
        files: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        filename: String,
        summary: Summary,
    }
    #[derive(Deserialize)]
    struct Summary {
        lines: Lines,
    }
    #[derive(Deserialize)]
    struct Lines {
        count: u64,
        covered: u64,
    }
    let report: Report = parsed(text)?;
    let entries = report.data.into_iter().flat_map(|data| data.files);
    Ok(entries.map(|it| (it.filename, (it.summary.lines.covered, it.summary.lines.count))).collect())
}

fn lcov(text: &str) -> BTreeMap<String, Counts> {
    let mut files: BTreeMap<String, Counts> = BTreeMap::new();
    let mut file = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("SF:") {
            name.clone_into(&mut file);
        } else if let Some(hits) = line.strip_prefix("DA:").and_then(|rest| rest.split(',').nth(1)) {
            let counts = files.entry(file.clone()).or_default();
            counts.0 += u64::from(hits.trim() != "0");
            counts.1 += 1;
        }
    }
    files
}

fn parsed<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("no coverage: what the runner left cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    fn told(format: CoverageFormat, text: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap().join("coverage");
        fs_err::write(&path, text).unwrap();
        match read(&CoverageFile { path, format }, Utf8Path::new("/shop")) {
            Err(why) => why,
            Ok(coverage) => {
                let files =
                    coverage.files.iter().map(|it| format!(" {} {}/{}", it.file, it.covered, it.total));
                format!("{}%{}", coverage.percent, files.collect::<String>())
            }
        }
    }

    #[test]
    fn each_tools_own_form_comes_to_the_same() {
        let go = "mode: set\nex.com/shop/a.go:1.2,3.4 2 1\nex.com/shop/a.go:5.2,6.4 1 0\nex.com/shop/a.go:5.2,6.4 1 0\nex.com/shop/b.go:1.1,2.2 1 0\n";
        assert_snapshot!(told(CoverageFormat::GoProfile, go), @"50% ex.com/shop/b.go 0/1 ex.com/shop/a.go 2/3");
        let istanbul = r#"{"total":{"lines":{"total":9,"covered":9}},"/shop/a.js":{"lines":{"total":3,"covered":2,"pct":66}}}"#;
        assert_snapshot!(told(CoverageFormat::JsonSummary, istanbul), @"66.7% a.js 2/3");
        let python = r#"{"files":{"a.py":{"summary":{"covered_lines":2,"num_statements":3}}}}"#;
        assert_snapshot!(told(CoverageFormat::CoveragePy, python), @"66.7% a.py 2/3");
        let llvm = r#"{"data":[{"files":[{"filename":"/shop/src/lib.rs","summary":{"lines":{"count":3,"covered":2}}}]}]}"#;
        assert_snapshot!(told(CoverageFormat::LlvmCov, llvm), @"66.7% src/lib.rs 2/3");
        assert_snapshot!(told(CoverageFormat::Lcov, "SF:a.js\nDA:1,4\nDA:2,0\nDA:3,1\nend_of_record\n"), @"66.7% a.js 2/3");
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        assert_snapshot!(told(CoverageFormat::CoveragePy, "{"), @"no coverage: what the runner left cannot be read: EOF while parsing an object at line 1 column 1");
    }
}
