//! What `test` answers: for people, programs, agents, and files of other tools.

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use rehearsal_engine::TestedProject;
use rehearsal_testing::{
    AgentBudget, Comparison, FailureAnalysis, Mark, StyledText, SummaryExtras, TestReport, TestSummary,
    Verdict, agent_report, ctrf, junit, summary,
};
use serde::Serialize;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{BAD, BOLD, DIM, GOOD, ODD, harmless, styled};
use crate::words;

/// Tokens that an answer for an agent may have, without a word of the user.
pub(crate) const DEFAULT_BUDGET: u32 = 2000;

/// In which form the answer is wanted.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// Also write the results as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<Utf8PathBuf>,
    /// Also write the results as CTRF JSON
    #[arg(long, value_name = "FILE")]
    pub(super) ctrf: Option<Utf8PathBuf>,
    /// Answer for a coding agent: failures first, each once, in few words
    #[arg(long)]
    pub(super) agent: bool,
    /// How many tokens that answer may have
    #[arg(long, value_name = "TOKENS", default_value_t = DEFAULT_BUDGET, requires = "agent")]
    pub(super) budget: u32,
}

impl AnswerArgs {
    /// Whether its files can be written: to be known before the tests have run for an hour.
    pub(super) fn check_files(&self, context: &Context) -> Result<(), CliError> {
        for path in self.junit.iter().chain(&self.ctrf) {
            let path = context.directory.join(path);
            let is_new = !path.exists();
            let opened = fs_err::File::options().create(true).append(true).open(&path);
            opened.map_err(|error| {
                CliError::of(Exit::Usage, &error).hint("its directory must be there, and writable")
            })?;
            if is_new {
                fs_err::remove_file(&path)?;
            }
        }
        Ok(())
    }
}

/// `test --json`: the report of the project, or of all projects together.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TestDocument {
    /// With `--agent`: the answer for a coding agent, failures first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent_report: Option<String>,
    #[serde(flatten)]
    pub(super) report: TestReport,
    /// What is behind the failures; none if nothing failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) analysis: Option<FailureAnalysis>,
    /// How the failures stand to the base, if that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
    /// Each project by itself, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) projects: Vec<ProjectView>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ProjectView {
    root: String,
    framework: String,
    verdict: Verdict,
    reasons: Vec<String>,
    summary: TestSummary,
    command: Option<String>,
    /// What is behind its failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) analysis: Option<FailureAnalysis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
}

/// Where results come from that are not of now.
pub(super) fn nothing_changed(report: &TestReport, context: &Context) -> Option<String> {
    let earlier = report.earlier_run.as_ref()?;
    Some(format!(
        "nothing changed since run {}, {}: {} passed (files that git ignores are not looked at)",
        earlier.run,
        words::relative(earlier.at, context.now()),
        words::count(report.summary.total, "test"),
    ))
}

/// Gives the answer, and says how the command ends.
pub(super) fn answer(
    mut projects: Vec<TestedProject>,
    notes: &[String],
    args: &AnswerArgs,
    context: &Context,
) -> Result<Exit, CliError> {
    for report in projects.iter_mut().map(|project| &mut project.report) {
        report.notes.extend(nothing_changed(report, context));
    }
    for project in &projects {
        if !args.agent {
            let notes: Vec<String> = project.report.notes.iter().chain(notes).cloned().collect();
            let missing = project.report.verdict == Verdict::RunnerMissing;
            let next =
                missing.then_some("install it, or name another command: rehearsal test --command COMMAND");
            let extras = SummaryExtras { notes: &notes, comparison: project.comparison.as_ref(), next };
            context.ui.say(coloured(&summary(&project.report, &project.analysis, &extras)).trim_end());
        }
    }
    let budget = |report: &TestReport| {
        let runner_text = Some(report.raw_output.len() as u64).filter(|size| *size > 0);
        AgentBudget { tokens: args.budget, runner_text }
    };
    let for_agent = args.agent.then(|| for_agent(&projects, notes, budget));
    if let Some(text) = &for_agent {
        context.ui.say(text);
    } else if projects.is_empty() {
        context.ui.say("no tests were found here");
        context.ui.say("next: name the command that runs them: rehearsal test --command COMMAND");
        for note in notes {
            context.ui.say(note);
        }
    }
    let mut document = TestDocument::of(projects, notes);
    document.agent_report = for_agent;
    write_file(args.junit.as_deref(), context, |to| junit(&document.report, to))?;
    let start = u64::try_from(context.now().0).unwrap_or(0).saturating_sub(document.report.duration);
    write_file(args.ctrf.as_deref(), context, |to| ctrf(&document.report, start, to))?;
    let exit = exit_of(document.report.verdict);
    context.ui.document(document);
    Ok(exit)
}

/// The answer for a coding agent, project by project; without any the notes tell why.
pub(crate) fn for_agent(
    projects: &[TestedProject],
    notes: &[String],
    budget: impl Fn(&TestReport) -> AgentBudget,
) -> String {
    if projects.is_empty() {
        return harmless(&[&["no tests were found".to_owned()], notes].concat().join("\n"));
    }
    let page = |project: &TestedProject| {
        let text = agent_report(&project.report, &project.analysis, budget(&project.report));
        harmless(text.trim_end())
    };
    projects.iter().map(page).collect::<Vec<_>>().join("\n")
}

impl TestDocument {
    pub(crate) fn of(mut projects: Vec<TestedProject>, notes: &[String]) -> Self {
        if projects.len() == 1
            && let Some(mut project) = projects.pop()
        {
            project.report.notes.extend(notes.iter().cloned());
            let analysis = (!project.report.success).then_some(project.analysis);
            return Self {
                agent_report: None,
                report: project.report,
                analysis,
                comparison: project.comparison,
                projects: Vec::new(),
            };
        }
        let mut report = TestReport::together(projects.iter().map(|project| &project.report));
        report.notes.extend(notes.iter().cloned());
        let view = |project: TestedProject| ProjectView {
            root: project.report.root.unwrap_or_default(),
            framework: project.report.framework.to_string(),
            verdict: project.report.verdict,
            reasons: project.report.reasons,
            summary: project.report.summary,
            command: project.report.command,
            analysis: (!project.report.success).then_some(project.analysis),
            comparison: project.comparison,
        };
        let projects = projects.into_iter().map(view).collect();
        Self { agent_report: None, report, analysis: None, comparison: None, projects }
    }
}

/// The marks become colours; the words stay what they are.
pub(crate) fn coloured(text: &StyledText) -> String {
    let piece = |(mark, text): (Mark, &str)| {
        let text = harmless(text);
        match mark {
            Mark::Plain => text,
            Mark::Strong => styled(BOLD, text),
            Mark::Good | Mark::Expected => styled(GOOD, text),
            Mark::Bad | Mark::Actual => styled(BAD, text),
            Mark::Caution => styled(ODD, text),
            Mark::Quiet => styled(DIM, text),
        }
    };
    text.pieces().map(piece).collect()
}

fn write_file(
    path: Option<&Utf8Path>,
    context: &Context,
    write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>,
) -> Result<(), CliError> {
    let Some(path) = path else { return Ok(()) };
    let mut file = std::io::BufWriter::new(fs_err::File::create(context.directory.join(path))?);
    write(&mut file)?;
    std::io::Write::flush(&mut file)?;
    Ok(())
}

/// A red run is a red gate; that a program is missing is a matter of set-up.
pub(super) fn exit_of(verdict: Verdict) -> Exit {
    match verdict {
        Verdict::Passed | Verdict::Unaffected => Exit::Ok,
        Verdict::TimedOut => Exit::Timeout,
        Verdict::RunnerMissing => Exit::Usage,
        _ => Exit::Red,
    }
}
