//! Reading what compilers and linters printed elsewhere.

use std::io::Read;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::Exit;

use super::gather::{Gather, Known};
use super::reader::Recognising;
use super::{CheckReport, CheckVerdict, DiagnosticCounts, Stage, StageReport};
use crate::{DiagnosticParser, HeadTail, Stream, is_known_tool, parser_for};

/// Tools whose output is that of a build.
const COMPILERS: [&str; 20] = [
    "rustc",
    "cargo",
    "tsc",
    "typescript",
    "vue-tsc",
    "msbuild",
    "dotnet",
    "csc",
    "python",
    "python3",
    "gcc",
    "clang",
    "cc",
    "make",
    "cmake",
    "go",
    "javac",
    "maven",
    "gradle",
    "php",
];

/// Recorded output.
#[derive(Debug, Clone, Default)]
pub struct RecordedCheck {
    /// What was printed, in any number of files: each is read by itself.
    pub files: Vec<Utf8PathBuf>,
    /// Who printed it; without it, the text tells.
    pub tool: Option<String>,
    /// How it exited, if that is known.
    pub exit: Option<i32>,
    /// Where it ran, if that is known: files are named relative to it.
    pub root: Option<Utf8PathBuf>,
}

/// What it came to.
pub fn read_check(recorded: &RecordedCheck) -> std::io::Result<CheckReport> {
    let stages: std::io::Result<Vec<StageReport>> =
        recorded.files.iter().map(|file| read_one(recorded, file)).collect();
    Ok(CheckReport::of(stages?, Vec::new(), Vec::new()))
}

fn read_one(recorded: &RecordedCheck, path: &Utf8Path) -> std::io::Result<StageReport> {
    let root = recorded.root.clone().unwrap_or_default();
    let mut known = Known::default();
    let mut gather = Gather::new(&root, "", &mut known);
    let named = recorded.tool.as_deref();
    let mut parser: Box<dyn DiagnosticParser> = match named {
        // Some tools write JSON if they are told to: their name alone does not say what is in the file.
        Some(tool) if tool.ends_with("-json") && is_known_tool(tool) => parser_for(tool),
        _ => Box::new(Recognising::new(named.unwrap_or("generic"))),
    };
    let mut ends = HeadTail::new(8 << 10);
    let mut file = fs_err::File::open(path)?;
    let mut buffer = vec![0; 64 << 10];
    let mut tool = named.map(str::to_owned);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        ends.push(&String::from_utf8_lossy(&buffer[..count]));
        parser.feed(Stream::Out, &buffer[..count], &mut |it| {
            tool.get_or_insert_with(|| it.tool.clone());
            gather.take(it);
        });
    }
    parser.finish(&mut |it| {
        tool.get_or_insert_with(|| it.tool.clone());
        gather.take(it);
    });
    let tool = tool.unwrap_or_else(|| "unknown".to_owned());
    let mut report = StageReport {
        name: if COMPILERS.contains(&tool.as_str()) { Stage::Build } else { Stage::Lint },
        tool,
        root: String::new(),
        command: None,
        verdict: CheckVerdict::Passed,
        reason: None,
        exit_code: recorded.exit,
        duration: 0,
        counts: DiagnosticCounts::default(),
        diagnostics: Vec::new(),
        left_out: 0,
        output: String::new(),
        output_file: Some(path.to_string()),
        sandbox_refused: None,
        notes: Vec::new(),
    };
    report.told_by(gather);
    report.judge_recorded(recorded.exit, &ends);
    Ok(report)
}

impl StageReport {
    /// Without an exit status only errors speak, and a text in which nothing could be read says nothing good.
    fn judge_recorded(&mut self, exit: Option<i32>, ends: &HeadTail) {
        let output = ends.clone().into_text();
        if let Some(code) = exit {
            let exit = if code > 128 { Exit::Signal(code - 128) } else { Exit::Code(code) };
            self.judge(None, Some(exit), &output);
        } else if self.counts.errors > 0 || (self.counts.total() == 0 && !output.trim().is_empty()) {
            self.verdict = CheckVerdict::Failed;
            if self.counts.errors == 0 {
                self.reason = Some("no diagnostic was recognised, and how it exited is not known".to_owned());
            }
        } else {
            self.notes.push("how it exited is not known: only errors count".to_owned());
        }
        self.explain(&output);
    }
}
