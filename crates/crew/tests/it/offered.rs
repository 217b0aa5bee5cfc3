//! What a model is told of the tools: it pays for each word.

use insta::assert_snapshot;
use rehearsal_crew::{Permissions, Tools, WebSearch};
use rehearsal_llm::chat::ToolInput;

use crate::place::{ALL, Place};
use crate::testing::Runner;

#[tokio::test]
async fn each_tool_says_what_it_does_and_what_it_takes() {
    let mut place = Place::new().may(Permissions { web: true, ..ALL });
    place.workplace.web_search = Some(WebSearch { url: "http://localhost/?q={query}".into() });
    place.workplace.tests = Some(std::sync::Arc::new(Runner::default()));
    let told = place.toolbox().await.definitions().into_iter().map(|tool| {
        let ToolInput::Schema(schema) = tool.input else { panic!("`{}` takes no JSON", tool.name) };
        format!("{}: {}\n{}\n", tool.name, tool.description, schema.as_str())
    });
    assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @"");
}
