//! A repository's tests: detect, run, parse, analyse; and, in the same form, what compilers and linters say.
//!
//! **Invariant:** a report always comes back. Output of any size and any content is read in bounded memory; a text
//! that a test prints cannot fake a result; nothing but a complete, consistent, good run is green.

mod action;
mod affected;
mod agent_report;
mod analyse;
mod baseline;
mod changes;
mod check;
mod collect;
mod combine;
mod detect;
mod diagnostics;
mod event;
mod framework;
mod history;
mod lines;
#[cfg(test)]
mod made;
mod parse;
mod paths;
mod plan;
mod raw_ends;
mod read;
mod regular_file;
mod report;
mod reporters;
mod rerun;
mod run;
mod source;
mod streak;
mod summary;
mod telling;
mod text;
mod verdict;
mod words;
mod working_tree;
mod write;

pub use action::{RunTests, RunTestsAnswer, RunTestsParameters};
pub use affected::{Affected, affected, needs_dependencies};
pub use agent_report::{AgentBudget, agent_report};
pub use analyse::{FailureAnalysis, FailureContext, Withheld, analyse, blocked_by_sandbox, is_test_file};
pub use baseline::{Comparison, compare};
pub use changes::{Changes, Since};
pub use check::{
    Check, CheckReport, CheckRequest, CheckVerdict, CheckedTests, NotRun, RecordedCheck, Stage, check,
    check_page, check_page_for_agents, read_check,
};
pub use collect::{Collected, Collector, Ending, Limits, Progress};
pub use detect::{Candidate, detect};
pub use diagnostics::{is_known_tool, known_tools};
pub use event::{Event, Finished, Place, Problem};
pub use framework::Framework;
pub use history::{Standing, TestHistory, TestRecord, histories};
pub use lines::{Line, Lines};
pub use parse::{Format, Head, Stream};
pub use plan::{Machine, Pattern, ReportFiles, RunPlan, plan};
pub use read::{Recorded, read};
pub use rehearsal_core::TestStatus;
pub use report::{EarlierRun, TestCase, TestReport, TestSummary};
pub use reporters::{EnvChange, Injection};
pub use run::{
    KnownDependencies, Project, RunEvent, RunWatcher, SandboxSpawner, TestRequest, TestRun, dependencies,
    run, run_projects,
};
pub use source::source_line;
pub use summary::{Mark, StyledText, SummaryExtras, summary};
pub use text::HeadTail;
pub use verdict::Verdict;
pub use working_tree::WorkingTree;
pub use write::{ctrf, junit};

pub(crate) use affected::{Dependencies, PythonImports, Selector};
pub(crate) use analyse::{Denial, FailurePattern};
pub(crate) use baseline::AgainstBase;
pub(crate) use changes::{ChangedPlace, Relation};
pub(crate) use collect::Stopped;
pub(crate) use detect::{Confidence, Evidence};
pub(crate) use diagnostics::{Diagnostic, DiagnosticParser, Severity, parser_for, tool_of};
pub(crate) use event::{Attempt, Failure, ProblemScope, Sink, TestId};
pub(crate) use parse::Trust;
pub(crate) use paths::is_foreign;
pub(crate) use plan::{CommandLine, CoverageFile, CoverageFormat, FirstSignal, PlannedFile, Selection, Wish};
pub(crate) use report::{Coverage, FailureKind, FileCoverage};
pub(crate) use rerun::rerun_command;
pub(crate) use run::{SpawnError, Spawner};
pub(crate) use text::strip_ansi;
