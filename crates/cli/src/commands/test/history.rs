//! `test history|flaky|slow`: what earlier runs tell.

use rehearsal_app::testing::{self, TestsDocument};
use rehearsal_core::TestRun;

use crate::commands::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{one_line, table};
use crate::words;

pub(super) async fn runs(last: u32, context: &Context) -> Done {
    let history = testing::runs(&context.project()?, last).await?;
    if history.runs.is_empty() {
        context.ui.say("no runs are remembered yet; `rehearsal test` makes one");
    } else {
        let row = |run: &TestRun| {
            vec![
                run.id.to_string(),
                words::relative(run.at, context.now()),
                run.framework.clone(),
                if run.root.is_empty() { ".".to_owned() } else { one_line(&run.root, 30) },
                run.verdict.clone(),
                format!("{}/{}", run.total - run.failed, run.total),
            ]
        };
        let rows: Vec<Vec<String>> = history.runs.iter().map(row).collect();
        context.ui.say(table(&["RUN", "WHEN", "RUNNER", "PROJECT", "VERDICT", "GOOD"], &rows));
    }
    context.ui.document(history);
    Ok(Exit::Ok)
}

pub(super) async fn flaky(context: &Context) -> Done {
    let tests = testing::flaky(&context.project()?).await?;
    Ok(list(tests, "no test gave different results on the same files", context))
}

pub(super) async fn slow(context: &Context) -> Done {
    let tests = testing::slow(&context.project()?).await?;
    Ok(list(tests, "no runs are remembered yet; `rehearsal test` makes one", context))
}

fn list(document: TestsDocument, none: &str, context: &Context) -> Exit {
    if document.tests.is_empty() {
        context.ui.say(none);
    }
    for test in &document.tests {
        context.ui.say(format!("{}  {}", one_line(&test.test.name, 80), test.words()));
    }
    context.ui.document(document);
    Exit::Ok
}
