//! The crew: our own agents. They run as processes like all others, and speak our own types.

use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_core::config::HumanDuration;
use rehearsal_core::{Activity, Feature, WireEnd, WireReport};
use serde::{Deserialize, Serialize};

use super::{AgentCli, Endpoint, StageModel, StageSetup};
use crate::driver::bounds::{ACTIVITY_TEXT, DETAIL, END_OF_FINAL_TEXT, MESSAGE, cut, keep_ends, one_line};
use crate::driver::json::describe;
use crate::driver::stream::{Close, Format, JsonLines, Reading, may_be_object};
use crate::driver::tool::call_arguments;
use crate::driver::{CommandLine, Offer};
use crate::mock::wire::MockCli;
use crate::redact::Redactor;
use crate::{Permission, RunRequest};

mod mock;

pub(super) static CLI: AgentCli = AgentCli {
    name: "crew",
    command,
    parser: |here| Box::new(JsonLines::new(CrewFormat::default(), here)),
    // It asks vendors by their keys alone.
    variables: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "GEMINI_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
    ],
    stage,
    confines_itself: true,
    mock: MockCli {
        version: concat!("rehearsal ", env!("CARGO_PKG_VERSION")),
        usage: "rehearsal crew run [OPTIONS] --role <ROLE>",
        options: &[
            "--role <ROLE>",
            "--model <MODEL>",
            "--timeout <DURATION>",
            "--agents-dir <DIR>",
            "--max-turns <N>",
            "--max-tokens <N>",
            "--append-system-prompt <TEXT>",
            "--read-only",
        ],
        wire: |scene| Box::new(mock::Crew::new(&scene)),
    },
    ..AgentCli::PLAIN
};

/// Who of the crew is to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrewOrder {
    /// The role.
    pub role: String,
    /// Where the user's own roles are.
    pub agents_dir: Option<Utf8PathBuf>,
    /// The longest it may work; none: as long as its role may.
    pub timeout: Option<Duration>,
}

impl Default for CrewOrder {
    fn default() -> Self {
        Self { role: "code".to_owned(), agents_dir: None, timeout: None }
    }
}

impl CrewOrder {
    /// The arguments that say it, before all that the driver adds.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = ["crew", "run", "--json", "--role", &self.role].map(str::to_owned).to_vec();
        let mut option = |flag: &str, value: Option<String>| {
            arguments.extend(value.map(|value| [flag.to_owned(), value]).into_iter().flatten());
        };
        option("--agents-dir", self.agents_dir.as_ref().map(ToString::to_string));
        option("--timeout", self.timeout.map(|limit| HumanDuration(limit).to_string()));
        arguments
    }
}

fn command(mut offer: Offer<'_>, request: &RunRequest) -> CommandLine {
    offer.option("--model", request.model.as_deref());
    offer.option("--max-turns", request.budget.turns.map(|turns| turns.to_string()).as_deref());
    offer.option("--max-tokens", request.budget.tokens.map(|tokens| tokens.to_string()).as_deref());
    offer.option("--append-system-prompt", request.system_prompt.as_deref());
    if request.permission == Permission::Plan {
        offer.args(&["--read-only"]);
    }
    offer.lost(request.resume.is_some(), Feature::Resume);
    offer.lost(request.budget.usd.is_some(), Feature::CostLimit);
    offer.finish(request)
}

fn stage(endpoint: &Endpoint<'_>) -> StageSetup {
    // Its own choice may be a vendor's without an address.
    let model = (endpoint.model == StageModel::Any).then(|| "anthropic:rehearsal".to_owned());
    StageSetup { model, ..StageSetup::for_any_vendor(endpoint) }
}

/// A line of the crew's output: what it does as it does it, and at last one report.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CrewLine {
    /// Something that it did.
    Activity(Activity),
    /// The whole, at the end.
    Report(Box<WireReport>),
}

/// More refusals say nothing new.
const MOST_DENIALS: usize = 100;

impl CrewLine {
    /// With all texts in their bounds. Who writes bounds them so that the line can be read, and who reads does not trust it.
    pub fn bounded(self) -> Self {
        match self {
            Self::Activity(activity) => Self::Activity(bounded(activity)),
            Self::Report(mut report) => {
                report.final_text = keep_ends(report.final_text.into(), END_OF_FINAL_TEXT);
                report.denials.truncate(MOST_DENIALS);
                for denial in &mut report.denials {
                    denial.tool = one_line(&denial.tool, DETAIL);
                    denial.detail = one_line(&denial.detail, DETAIL);
                }
                if let Some(WireEnd::Error(error)) = &mut report.end {
                    error.message = cut(&error.message, MESSAGE);
                }
                Self::Report(report)
            }
        }
    }

    /// Without secrets.
    pub fn redacted(self, redactor: &Redactor) -> Self {
        match self {
            Self::Activity(activity) => Self::Activity(redactor.redact_activity(activity)),
            Self::Report(mut report) => {
                redactor.redact_in_place(&mut report.final_text);
                report.denials.iter_mut().for_each(|denial| redactor.redact_in_place(&mut denial.detail));
                if let Some(WireEnd::Error(error)) = &mut report.end {
                    redactor.redact_in_place(&mut error.message);
                }
                Self::Report(report)
            }
        }
    }
}

/// A line as it is read: one of the two, and what later versions add.
#[derive(Deserialize)]
struct AnyLine {
    activity: Option<Activity>,
    report: Option<Box<WireReport>>,
}

impl AnyLine {
    fn line(self) -> Option<CrewLine> {
        let report = self.report.map(CrewLine::Report);
        self.activity.map(CrewLine::Activity).or(report).map(CrewLine::bounded)
    }
}

fn bounded(activity: Activity) -> Activity {
    let name = |text: String| one_line(&text, DETAIL);
    match activity {
        Activity::Started { session_id, model } => {
            Activity::Started { session_id: session_id.map(name), model: model.map(name) }
        }
        Activity::Text { text } => Activity::Text { text: cut(&text, ACTIVITY_TEXT) },
        Activity::ToolCalled { tool, detail, arguments } => {
            let arguments = arguments.as_deref().and_then(call_arguments);
            Activity::ToolCalled { tool: name(tool), detail: name(detail), arguments }
        }
        Activity::ToolReturned { tool, is_error } => Activity::ToolReturned { tool: name(tool), is_error },
        Activity::Retrying { message } => Activity::Retrying { message: cut(&message, MESSAGE) },
        Activity::Unreadable { reason } => Activity::Unreadable { reason: cut(&reason, MESSAGE) },
        activity @ (Activity::Turn { .. } | Activity::Usage { .. }) => activity,
    }
}

/// The state of reading.
#[derive(Default)]
struct CrewFormat {
    /// What is known before the report comes: it may never come.
    so_far: WireReport,
    report: Option<WireReport>,
}

impl CrewFormat {
    fn note(&mut self, activity: &Activity) {
        match activity {
            Activity::Started { session_id, model } => {
                self.so_far.session_id.clone_from(session_id);
                self.so_far.model.clone_from(model);
            }
            Activity::Turn { number } => self.so_far.turns = Some(*number),
            Activity::Text { text } => self.so_far.final_text.clone_from(text),
            Activity::Usage { tokens, .. } => self.so_far.tokens = Some(*tokens),
            Activity::ToolCalled { .. }
            | Activity::ToolReturned { .. }
            | Activity::Retrying { .. }
            | Activity::Unreadable { .. } => {}
        }
    }
}

impl Format for CrewFormat {
    fn read(&mut self, line: &str, out: &mut Vec<Activity>) -> Reading {
        if !may_be_object(line) {
            return Reading::Foreign;
        }
        match serde_json::from_str::<AnyLine>(line).map(AnyLine::line) {
            Ok(Some(CrewLine::Activity(activity))) => {
                self.note(&activity);
                out.push(activity);
                Reading::Event
            }
            Ok(Some(CrewLine::Report(report))) => {
                self.report = Some(*report);
                Reading::Event
            }
            Ok(None) => Reading::Foreign,
            Err(error) => Reading::Broken(describe(&error)),
        }
    }

    fn has_ended(&self) -> bool {
        self.report.is_some()
    }

    fn report(self, _: &Close) -> WireReport {
        self.report.unwrap_or(self.so_far)
    }
}

#[cfg(test)]
mod tests {
    use rehearsal_core::{Exit, Timestamp, Tokens, WireError, WireErrorKind, WireShape};

    use super::*;
    use crate::driver::Here;

    fn read(lines: &str) -> (Vec<Activity>, WireReport) {
        let mut parser = (CLI.parser)(Here::at(Timestamp(0)));
        let mut out = Vec::new();
        parser.push(lines.as_bytes(), &mut out);
        (out, parser.finish(Some(Exit::Code(0)), b""))
    }

    fn line(line: &CrewLine) -> String {
        serde_json::to_string(line).unwrap() + "\n"
    }

    #[test]
    fn what_the_crew_writes_is_read_back_as_it_was() {
        let activities = [
            Activity::Started { session_id: None, model: Some("m".into()) },
            Activity::Turn { number: 1 },
            Activity::ToolCalled {
                tool: "read_file".into(),
                detail: "a.txt".into(),
                arguments: Some(r#"{"path":"a.txt"}"#.into()),
            },
            Activity::ToolReturned { tool: "read_file".into(), is_error: false },
            Activity::Usage { tokens: Tokens { input: 3, cached: 1, output: 2 }, cost_usd: None },
        ];
        let report = WireReport {
            final_text: "Done.".into(),
            turns: Some(1),
            shape: WireShape::Structured,
            end: Some(WireEnd::Success),
            ..WireReport::default()
        };
        let mut text: String =
            activities.iter().cloned().map(|activity| line(&CrewLine::Activity(activity))).collect();
        text.push('\n');
        text.push_str(&line(&CrewLine::Report(Box::new(report.clone()))));
        assert_eq!(read(&text), (activities.to_vec(), report));
    }

    #[test]
    fn without_its_report_a_run_has_no_end() {
        let text = line(&CrewLine::Activity(Activity::Turn { number: 4 }));
        let (_, report) = read(&text);
        assert_eq!((report.end, report.turns, report.shape), (None, Some(4), WireShape::Structured));
    }

    #[test]
    fn no_text_of_a_report_is_longer_than_it_may_be() {
        let error = WireError { kind: WireErrorKind::Other, status: None, message: "x".repeat(1 << 20) };
        let report = WireReport {
            final_text: "y".repeat(4 << 20),
            end: Some(WireEnd::Error(error)),
            ..WireReport::default()
        };
        let (_, read) = read(&line(&CrewLine::Report(Box::new(report))));
        let Some(WireEnd::Error(error)) = read.end else { panic!("{:?}", read.end) };
        assert!(error.message.len() < 3000 && read.final_text.len() < 2 << 20);
    }
}
