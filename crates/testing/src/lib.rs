//! A repository's tests: detect, run, parse, analyse.
//!
//! **Invariant:** a report always comes back. Output of any size and any content is read in bounded memory; a text
//! that a test prints cannot fake a result; nothing but a complete, consistent, good run is green.

mod collect;
mod combine;
mod diagnostics;
mod event;
mod framework;
mod lines;
mod parse;
mod paths;
mod read;
mod report;
mod text;
mod verdict;

pub use collect::{Collected, Collector, Ending, Limits, Progress, Stopped, Watcher};
pub use diagnostics::{Diagnostic, DiagnosticParser, Severity, parser_for, tool_of};
pub use event::{Attempt, Event, Failure, Finished, Place, Problem, ProblemScope, Sink, TestId};
pub use framework::Framework;
pub use lines::{Line, Lines};
pub use parse::{Format, Head, Parser, Stream, Trust};
pub use paths::is_foreign;
pub use read::{Recorded, read};
pub use report::{FailureKind, TestCase, TestReport, TestStatus, TestSummary};
pub use text::{HeadTail, strip_ansi};
pub use verdict::Verdict;
