//! `test --action FILE`: the action `run_tests`, with its JSON request and its JSON answer.

use std::time::Duration;

use async_trait::async_trait;
use camino::Utf8Path;
use rehearsal_app::file::read_text;
use rehearsal_app::testing::{self, Choices};
use rehearsal_core::config::HumanDuration;
use rehearsal_core::{Place, SourceError};
use rehearsal_crew::{TestRunError, TestRunner};
use rehearsal_engine::Wanted;
use rehearsal_testing::{
    FailureAnalysis, RunTests, RunTestsAnswer, RunTestsParameters, RunWatcher, TestReport,
};

use tokio_util::sync::CancellationToken;

use super::TestArgs;
use super::answer::exit_of;
use super::stop::Stop;
use crate::commands::Done;
use crate::context::Context;
use crate::context::read_stdin;
use crate::error::CliError;
use crate::ui::{Document, emit};

pub(super) async fn run(request: &Utf8Path, args: &TestArgs, context: &Context) -> Done {
    let RunTests { parameters, .. } = read(request, context)?;
    let tests = ActionTests { choices: args.choices(), context: context.clone() };
    let stop = Stop::listen()?;
    let answer = tests.answer(&parameters, &stop.now).await?;
    let verdict = answer.test_result.verdict;
    // The answer itself is what was asked for, with and without `--json`.
    emit(&Document::new(answer));
    Ok(stop.exit().unwrap_or_else(|| exit_of(verdict)))
}

/// The tests of the repository around, as the action asks for them: from a file, or as the tool of an agent.
#[derive(Clone)]
pub(crate) struct ActionTests {
    /// What holds unless the action says otherwise.
    pub(crate) choices: Choices,
    pub(crate) context: Context,
}

impl ActionTests {
    async fn answer(
        &self,
        parameters: &RunTestsParameters,
        cancel: &CancellationToken,
    ) -> Result<RunTestsAnswer, CliError> {
        let given = self.choices.clone();
        let timeout = parameters.timeout_seconds.map(|seconds| HumanDuration(Duration::from_secs(seconds)));
        let choices = Choices {
            framework: parameters.framework.or(given.framework),
            timeout: timeout.or(given.timeout),
            ..given
        };
        let wanted =
            Wanted { patterns: parameters.test_pattern.iter().cloned().collect(), ..Wanted::default() };
        let tester = testing::tester(&self.context.project()?, choices).await?;
        let tested = testing::test(&tester, &wanted, &RunWatcher::none(), cancel).await?;
        let report = TestReport::together(tested.projects.iter().map(|project| &project.report));
        let analysis = FailureAnalysis::together(tested.projects.iter().map(|project| &project.analysis));
        Ok(RunTestsAnswer::new(&report, &analysis))
    }
}

#[async_trait]
impl TestRunner for ActionTests {
    async fn run_tests(
        &self,
        parameters: &RunTestsParameters,
        cancel: &CancellationToken,
    ) -> Result<RunTestsAnswer, TestRunError> {
        self.answer(parameters, cancel)
            .await
            .map_err(|error| TestRunError(error.render().trim_end().to_owned()))
    }
}

fn read(request: &Utf8Path, context: &Context) -> Result<RunTests, CliError> {
    let text = if request == "-" {
        read_stdin()?
    } else {
        read_text(&context.directory.join(request))?
            .ok_or_else(|| CliError::usage(format!("there is no file `{request}`")))?
    };
    serde_json::from_str(&text).map_err(|error| {
        let message = error.to_string();
        let place = Place { line: error.line() as u64, column: error.column() as u64 };
        // serde_json says the place too.
        let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
        let error =
            SourceError::at(Some(place), what).hint("`rehearsal schema run-tests` has the form of a request");
        CliError::in_file(error, if request == "-" { "standard input" } else { request.as_str() })
    })
}
