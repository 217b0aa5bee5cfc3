//! What is always answered the same way: models, counts of tokens, greetings.

use hyper::StatusCode;
use rehearsal_llm::wire::Dialect;
use serde::Serialize;

use crate::answering::error;
use crate::play::{Answer, Asked};
use crate::route::Endpoint;

/// For those who ask which models there are, where the script names none.
const MODELS: [&str; 1] = ["rehearsal"];

pub(crate) fn answer(endpoint: &Endpoint, asked: &Asked, models: &[String]) -> Answer {
    let models: Vec<&str> =
        if models.is_empty() { MODELS.to_vec() } else { models.iter().map(String::as_str).collect() };
    match endpoint {
        Endpoint::Hello => Answer::empty(StatusCode::OK),
        // codex then goes on over HTTP at once; any other status makes it try again for seconds.
        Endpoint::WebSocket => Answer::empty(StatusCode::UPGRADE_REQUIRED),
        // About four bytes are a token.
        Endpoint::CountTokens(dialect) => json(&Count::of(*dialect, asked.body.len().div_ceil(4))),
        Endpoint::Models(Dialect::Gemini) => {
            json(&GeminiModels { models: models.iter().map(|id| GeminiModel::new(id)).collect() })
        }
        Endpoint::Models(_) => json(&ModelList::new(&models)),
        Endpoint::Model(Dialect::Gemini, id) => json(&GeminiModel::new(id)),
        Endpoint::Model(_, id) => json(&Model::new(id)),
        Endpoint::Chat { .. } | Endpoint::Unknown => {
            let message = format!("the stage does not play {} {}", asked.method, asked.path);
            error(Dialect::OpenAiChat, StatusCode::NOT_FOUND, &message).with("x-should-retry", "false")
        }
    }
}

fn json(body: &impl Serialize) -> Answer {
    Answer::json(StatusCode::OK, serde_json::to_vec(body).unwrap_or_default())
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Count {
    #[serde(rename = "input_tokens", skip_serializing_if = "Option::is_none")]
    input_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_tokens: Option<usize>,
}

impl Count {
    fn of(dialect: Dialect, tokens: usize) -> Self {
        match dialect {
            Dialect::Gemini => Self { total_tokens: Some(tokens), ..Self::default() },
            _ => Self { input_tokens: Some(tokens), ..Self::default() },
        }
    }
}

/// Anthropic's list and OpenAI's, in one: each looks for its own fields.
#[derive(Serialize)]
struct ModelList<'a> {
    object: &'static str,
    data: Vec<Model<'a>>,
    has_more: bool,
    first_id: Option<&'a str>,
    last_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Model<'a> {
    id: &'a str,
    r#type: &'static str,
    object: &'static str,
    display_name: &'a str,
    created: u64,
    created_at: &'static str,
    owned_by: &'static str,
}

impl<'a> Model<'a> {
    fn new(id: &'a str) -> Self {
        Self {
            id,
            r#type: "model",
            object: "model",
            display_name: id,
            created: 1_700_000_000,
            created_at: "2023-11-14T22:13:20Z",
            owned_by: "rehearsal",
        }
    }
}

impl<'a> ModelList<'a> {
    fn new(models: &[&'a str]) -> Self {
        Self {
            object: "list",
            data: models.iter().map(|id| Model::new(id)).collect(),
            has_more: false,
            first_id: models.first().copied(),
            last_id: models.last().copied(),
        }
    }
}

#[derive(Serialize)]
struct GeminiModels {
    models: Vec<GeminiModel>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiModel {
    name: String,
    display_name: String,
    supported_generation_methods: [&'static str; 3],
}

impl GeminiModel {
    fn new(id: &str) -> Self {
        Self {
            name: format!("models/{id}"),
            display_name: id.to_owned(),
            supported_generation_methods: ["generateContent", "streamGenerateContent", "countTokens"],
        }
    }
}
