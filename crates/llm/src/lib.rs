//! Talks to a model: chat types, vendors' wire formats, clients, cassettes, stand-ins.
//!
//! [`chat`] has the words that everyone here speaks, [`model`] the port that a client or a stand-in fills. Each
//! vendor's format is a [`wire::Dialect`] that is read and written in both directions, so that a client and a server
//! that plays the vendor cannot disagree about it. [`sse`] cuts a stream of bytes into events. A [`cassette`] holds exchanges
//! that were recorded, and plays them.
//!
//! Whoever needs a [`model::ChatModel`] takes a [`clients::Client`] of a vendor, a [`scripted::ScriptedModel`] that says what it was told to
//! say, or a [`replaying::ReplayingModel`] that says again what a [`recording::RecordingModel`] heard.
//!
//! **Invariant:** what a vendor sent and we do not understand is kept or passed over, and never an error by itself.
//! What must come back to the vendor unchanged (thinking and its signature, blocks of kinds that we do not know) does.
//!
//! ```
//! use rehearsal_llm::chat::{ChatRequest, Message};
//! use rehearsal_llm::wire::Dialect;
//!
//! let request = ChatRequest::new("some-model", vec![Message::user("Say hello")]);
//! let body = Dialect::Anthropic.write_request(&request, true);
//! let received = Dialect::Anthropic.read_request(&body).unwrap();
//! assert!(received.stream);
//! assert_eq!(received.chat.messages, request.messages);
//! ```

pub mod assembly;
pub mod cassette;
pub mod chat;
pub mod clients;
mod deltas;
mod failure;
pub mod http;
pub mod json_schema;
mod key;
pub mod model;
mod pieces;
pub mod recording;
pub mod replaying;
pub mod scripted;
pub mod sse;
mod taped;
pub mod wire;

pub use key::{ApiKey, KeyError};
