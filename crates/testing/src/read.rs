//! Reading what a run left behind: its printed output and its report files.

use std::io::Read;

use camino::{Utf8Path, Utf8PathBuf};

use crate::combine::{Telling, combine};
use crate::parse::{Format, Head, Stream, Trust};
use crate::raw_ends::RawEnds;
use crate::telling::Teller;
use crate::verdict::judge;
use crate::{
    Collected, Collector, Ending, Framework, Limits, ProblemScope, TestReport, Verdict, regular_file,
    strip_ansi,
};

/// Enough of a text to tell its format by.
pub(crate) const HEAD: usize = 64 << 10;

/// A recorded run.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// What it left: printed output and reports, in any order; a directory stands for the files in it.
    pub files: Vec<Utf8PathBuf>,
    /// The runner, if it is known.
    pub framework: Option<Framework>,
    /// Where it ran, if that is known: file names are told relative to it.
    pub root: Option<Utf8PathBuf>,
    /// How it ended.
    pub ending: Ending,
}

/// What it came to.
pub fn read(recorded: &Recorded) -> std::io::Result<TestReport> {
    let mut sources = Vec::new();
    for path in &recorded.files {
        for file in files_in(path)? {
            sources.push(Source::open(file, recorded.framework)?);
        }
    }
    let framework = framework_of(&sources, recorded.framework);
    let collector = || Collector::new(recorded.root.as_deref(), Limits::default());
    let mut tellings = Vec::new();
    let (printed, reports): (Vec<_>, Vec<_>) =
        sources.into_iter().partition(|it| it.format.trust <= Trust::Text);
    for report in reports {
        let format = report.format;
        tellings.push(telling(format, vec![report], collector(), &recorded.ending, &mut |_| {})?);
    }
    let mut raw = RawEnds::new();
    if let Some(format) = printed_format(&printed, framework) {
        // What stands on standard error is often about what comes on standard output: which binary it is of.
        let (errors, output): (Vec<_>, Vec<_>) =
            printed.into_iter().partition(|it| it.stream() == Stream::Err);
        let printed = errors.into_iter().chain(output).collect();
        tellings.push(telling(format, printed, collector(), &recorded.ending, &mut |bytes| raw.push(bytes))?);
    }
    let mut run = combine(tellings);
    // Of a file alone nobody knows that it is of tests at all: without one that it names, its run is not green.
    let is_command = recorded.framework == Some(Framework::Generic);
    if recorded.ending.exit.is_some_and(rehearsal_core::Exit::is_success) && !is_command {
        run.exit_decides = false;
    }
    Ok(conclude(framework, run, &recorded.ending, raw.into_text()))
}

/// A report of a run, from all that is known of it.
pub(crate) fn conclude(
    framework: Framework,
    run: Collected,
    ending: &Ending,
    raw_output: String,
) -> TestReport {
    let (verdict, reasons) = judge(&run, ending);
    let of_scope =
        |scope| run.problems.iter().filter(|problem| problem.scope == scope).cloned().collect::<Vec<_>>();
    let (build_errors, suite_errors, run_errors) =
        (of_scope(ProblemScope::Build), of_scope(ProblemScope::Suite), of_scope(ProblemScope::Run));
    let partial = run.summary.not_run > 0
        || run.summary.crashed > 0
        || run.declared.is_some_and(|declared| declared > run.summary.total)
        || !run.ended
        || ending.stopped.is_some();
    TestReport {
        framework_version: run.version,
        success: verdict.is_green(),
        verdict,
        reasons,
        duration: run.tests.iter().map(|test| test.duration).sum(),
        tests: run.tests,
        summary: run.summary,
        build_errors,
        suite_errors,
        run_errors,
        raw_output,
        exit_code: ending.exit_code(),
        signal: ending.signal(),
        timed_out: verdict == Verdict::TimedOut,
        partial,
        ..TestReport::empty(framework)
    }
}

/// A file of a run.
pub(crate) struct Source {
    path: Utf8PathBuf,
    pub(crate) format: &'static Format,
}

impl Source {
    pub(crate) fn open(path: Utf8PathBuf, framework: Option<Framework>) -> std::io::Result<Self> {
        let mut bytes = Vec::with_capacity(HEAD);
        regular_file::open(&path)?.take(HEAD as u64).read_to_end(&mut bytes)?;
        let head = String::from_utf8_lossy(&bytes);
        let file_name = path.file_name().unwrap_or_default();
        let format = Format::of(&Head { file_name, text: &strip_ansi(&head) }, framework);
        Ok(Self { path, format })
    }

    fn stream(&self) -> Stream {
        let name = self.path.file_name().unwrap_or_default();
        if name.contains("stderr") || name.ends_with(".err") { Stream::Err } else { Stream::Out }
    }
}

/// A named file is read as it is; of a directory the files that may be reports, in the order of their names.
fn files_in(path: &Utf8Path) -> std::io::Result<Vec<Utf8PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in path.read_dir_utf8()? {
        let entry = entry?;
        if entry.file_type()?.is_file() && matches!(entry.path().extension(), Some("xml" | "trx" | "json")) {
            files.push(entry.into_path());
        }
    }
    files.sort();
    Ok(files)
}

/// The runner that was named, else the one of the most trusted file that knows its runner.
fn framework_of(sources: &[Source], named: Option<Framework>) -> Framework {
    let told = |source: &&Source| !matches!(source.format.framework, Framework::Generic);
    let specific = |source: &&Source| !matches!(source.format.framework, Framework::Junit | Framework::Tap);
    let best = |it: Vec<&Source>| {
        it.into_iter().max_by_key(|source| source.format.trust).map(|it| it.format.framework)
    };
    let told: Vec<&Source> = sources.iter().filter(told).collect();
    let specific: Vec<&Source> = told.iter().copied().filter(specific).collect();
    named.or_else(|| best(specific)).or_else(|| best(told)).unwrap_or(Framework::Generic)
}

/// The format of what was printed on both streams: one that was recognised, else that of the known runner.
fn printed_format(printed: &[Source], framework: Framework) -> Option<&'static Format> {
    let recognised = printed.iter().map(|source| source.format).max_by_key(|format| format.trust)?;
    if recognised.trust == Trust::Text {
        return Some(recognised);
    }
    Format::text_of(framework).or(Some(recognised))
}

/// Reads files as one telling of a run; `each` takes their bytes as they are.
pub(crate) fn telling(
    format: &'static Format,
    sources: Vec<Source>,
    collector: Collector,
    ending: &Ending,
    each: &mut dyn FnMut(&[u8]),
) -> std::io::Result<Telling> {
    let mut teller = Teller::new(format, collector);
    let mut buffer = vec![0; 128 << 10];
    for source in sources {
        let mut file = regular_file::open(&source.path)?;
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            // A report may have any name.
            let stream = if format.trust > Trust::Text { Stream::Out } else { source.stream() };
            teller.feed(stream, &buffer[..count]);
            each(&buffer[..count]);
        }
    }
    Ok(teller.finish(ending))
}

#[cfg(test)]
mod tests;
