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

pub use action::{
    ActionAnalysis, ActionFailure, ActionResult, ActionSummary, RunTests, RunTestsAction, RunTestsAnswer,
    RunTestsParameters,
};
pub use affected::{Affected, Dependencies, PythonImports, Selector, affected, needs_dependencies};
pub use agent_report::{AgentBudget, agent_report};
pub use analyse::{
    Cascade, Denial, DenialKind, ErrorPattern, FailedTest, FailureAnalysis, FailureContext, FailureGroup,
    FailurePattern, SourceReader, Withheld, analyse, blocked_by_sandbox, is_test_file,
};
pub use baseline::{AgainstBase, Compared, Comparison, compare};
pub use changes::{ChangedPlace, Changes, Relation, Since};
pub use check::{
    Check, CheckReport, CheckRequest, CheckVerdict, CheckedTests, DiagnosticCounts, NotRun, RecordedCheck,
    Stage, StageReport, check, check_page, check_page_for_agents, read_check,
};
pub use collect::{Collected, Collector, Ending, Limits, Progress, Stopped, Watcher};
pub use detect::{Candidate, Confidence, Detection, Evidence, Invocation, detect};
pub use diagnostics::{
    Diagnostic, DiagnosticParser, Severity, is_known_tool, known_tools, parser_for, tool_of,
};
pub use event::{Attempt, Event, Failure, Finished, Place, Problem, ProblemScope, Sink, TestId};
pub use framework::Framework;
pub use history::{Interval, RunMark, Slower, Standing, TestHistory, TestKey, TestRecord, histories};
pub use lines::{Line, Lines};
pub use parse::{Format, Head, Parser, Stream, Trust};
pub use paths::is_foreign;
pub use plan::{
    CommandLine, CoverageFile, CoverageFormat, FirstSignal, Machine, Pattern, PlannedFile, ReportFiles,
    RunPlan, Selection, Wish, plan,
};
pub use read::{Recorded, read};
pub use rehearsal_core::TestStatus;
pub use report::{Coverage, EarlierRun, FailureKind, FileCoverage, TestCase, TestReport, TestSummary};
pub use reporters::{EVENTS_VARIABLE, EnvChange, Injection};
pub use rerun::rerun_command;
pub use run::{
    DEFAULT_TIMEOUT, KnownDependencies, LONGEST_TIMEOUT, Launch, Project, RunEvent, RunWatcher,
    SandboxSpawner, SpawnEnd, SpawnError, Spawned, Spawner, TestRequest, TestRun, dependencies, run,
    run_projects,
};
pub use source::source_line;
pub use summary::{Mark, StyledText, SummaryExtras, summary};
pub use text::{HeadTail, strip_ansi};
pub use verdict::Verdict;
pub use working_tree::WorkingTree;
pub use write::{ctrf, junit};
