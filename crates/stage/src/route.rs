//! Which interface of which vendor is asked.

use hyper::Method;
use rehearsal_llm::wire::Dialect;

/// What is behind a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// The model.
    Chat {
        /// In whose format.
        dialect: Dialect,
        /// What the path says, where it does: Gemini names the model and whether to stream.
        named: Option<Named>,
    },
    /// How many tokens a request would be.
    CountTokens(Dialect),
    /// Which models there are.
    Models(Dialect),
    /// One of them.
    Model(Dialect, String),
    /// Whether anyone is there.
    Hello,
    /// The same conversation over a web socket, which codex tries first.
    WebSocket,
    /// Nothing that we know.
    Unknown,
}

/// What Gemini says in the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The model.
    pub model: String,
    /// Whether the answer is wanted piece by piece, and how the pieces are framed.
    pub stream: Option<Framing>,
}

/// How pieces are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// As server-sent events.
    Events,
    /// As elements of one long JSON list.
    List,
}

/// Finds what is behind a path. Clients put the version in the base address or in the path, so both are taken.
pub fn route(method: &Method, path: &str, is_anthropic: bool) -> Endpoint {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let bare = path.trim_end_matches('/');
    let bare = bare.strip_prefix("/v1beta").or_else(|| bare.strip_prefix("/v1")).unwrap_or(bare);
    let openai_or_anthropic = if is_anthropic { Dialect::Anthropic } else { Dialect::OpenAiChat };
    if *method == Method::POST {
        return match bare {
            "/messages" => chat(Dialect::Anthropic),
            "/chat/completions" => chat(Dialect::OpenAiChat),
            "/responses" => chat(Dialect::OpenAiResponses),
            "/messages/count_tokens" => Endpoint::CountTokens(Dialect::Anthropic),
            _ => gemini(bare, query),
        };
    }
    match bare {
        "" | "/api/hello" => Endpoint::Hello,
        "/responses" => Endpoint::WebSocket,
        "/models" if path.starts_with("/v1beta") => Endpoint::Models(Dialect::Gemini),
        "/models" => Endpoint::Models(openai_or_anthropic),
        _ => match bare.strip_prefix("/models/") {
            Some(model) if path.starts_with("/v1beta") => Endpoint::Model(Dialect::Gemini, model.to_owned()),
            Some(model) => Endpoint::Model(openai_or_anthropic, model.to_owned()),
            None => Endpoint::Unknown,
        },
    }
}

fn chat(dialect: Dialect) -> Endpoint {
    Endpoint::Chat { dialect, named: None }
}

/// `/models/MODEL:VERB`.
fn gemini(bare: &str, query: &str) -> Endpoint {
    let Some((model, verb)) = bare.strip_prefix("/models/").and_then(|rest| rest.split_once(':')) else {
        return Endpoint::Unknown;
    };
    let model = model.to_owned();
    let stream = match verb {
        "generateContent" => None,
        "streamGenerateContent" if query.split('&').any(|pair| pair == "alt=sse") => Some(Framing::Events),
        "streamGenerateContent" => Some(Framing::List),
        "countTokens" => return Endpoint::CountTokens(Dialect::Gemini),
        _ => return Endpoint::Unknown,
    };
    Endpoint::Chat { dialect: Dialect::Gemini, named: Some(Named { model, stream }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_the_real_clis_are_known() {
        let post = |path: &str| route(&Method::POST, path, false);
        assert_eq!(post("/v1/messages?beta=true"), chat(Dialect::Anthropic));
        assert_eq!(post("/v1/responses"), chat(Dialect::OpenAiResponses));
        assert_eq!(post("/chat/completions"), chat(Dialect::OpenAiChat));
        assert_eq!(post("/v1/messages/count_tokens"), Endpoint::CountTokens(Dialect::Anthropic));
        let named = |stream| Some(Named { model: "gemini-2.5-pro".into(), stream });
        let gemini = |stream| Endpoint::Chat { dialect: Dialect::Gemini, named: named(stream) };
        assert_eq!(
            post("/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"),
            gemini(Some(Framing::Events))
        );
        assert_eq!(
            post("/v1beta/models/gemini-2.5-pro:streamGenerateContent?key=x"),
            gemini(Some(Framing::List))
        );
        assert_eq!(post("/v1beta/models/gemini-2.5-pro:generateContent"), gemini(None));
        assert_eq!(route(&Method::HEAD, "/api/hello", false), Endpoint::Hello);
        assert_eq!(route(&Method::HEAD, "/", false), Endpoint::Hello);
        assert_eq!(route(&Method::GET, "/v1/responses", false), Endpoint::WebSocket);
        assert_eq!(route(&Method::GET, "/v1/models?limit=1", true), Endpoint::Models(Dialect::Anthropic));
        assert_eq!(post("/v1/embeddings"), Endpoint::Unknown);
    }
}
