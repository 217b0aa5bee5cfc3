//! What a parser made of a text, in a few lines that a test can show.

use super::{Format, Stream};
use crate::{Collector, Ending, Limits};

/// Every test (status, name, place, first line of its message), every problem, every complaint, and the end.
pub(super) fn retold(format: &str, out: &str, err: &str) -> String {
    let mut collector = Collector::new(None, Limits::default());
    let mut parser = Format::named(format).unwrap().parser();
    parser.feed(Stream::Out, out.as_bytes(), &mut collector);
    parser.feed(Stream::Err, err.as_bytes(), &mut collector);
    parser.finish(&mut collector);
    let run = collector.finish(&Ending::of_status(1));
    let place = |file: &Option<String>, line: Option<u32>| {
        let file = file.as_ref().map(|file| format!(" @ {file}")).unwrap_or_default();
        file + &line.map(|line| format!(":{line}")).unwrap_or_default()
    };
    let first = |text: &str| text.lines().next().map(|line| format!(" | {line}")).unwrap_or_default();
    let mut told = String::new();
    for test in &run.tests {
        let status = format!("{:?}", test.status).to_lowercase();
        told += &format!("{status} {}{}{}\n", test.name, place(&test.file, test.line), first(&test.error));
    }
    for problem in &run.problems {
        let scope = format!("{:?}", problem.scope).to_lowercase();
        let at = place(&problem.file, problem.line);
        told += &format!("{scope} problem {}{at}{}\n", problem.name, first(&problem.message));
    }
    for complaint in &run.complaints {
        told += &format!("complaint | {complaint}\n");
    }
    told + if run.ended { "ended" } else { "cut off" }
}
