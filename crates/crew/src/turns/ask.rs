//! One request, heard piece by piece.

use std::future::poll_fn;

use rehearsal_core::Activity;
use rehearsal_llm::assembly::Assembly;
use rehearsal_llm::chat::{ChatResponse, Delta, Part};
use rehearsal_llm::model::ModelError;

use super::{Run, Witness};

/// An answer that is cut in the middle is asked for again so often. What can be cured before an answer begins, the client cures.
const TRIES: u32 = 3;

/// Text is told when a line has ended and there is so much of it: a line each would be a flood.
const WORTH_TELLING: usize = 256;

impl Run<'_> {
    /// Asks. A conversation that is too long for the vendor is shortened, and asked once more.
    pub(super) async fn ask(&mut self) -> Result<ChatResponse, ModelError> {
        match self.ask_patiently().await {
            Err(ModelError::TooLong { message }) => {
                if !self.conversation.shrink() {
                    return Err(ModelError::TooLong { message });
                }
                let message = "the conversation is too long for the model: its beginning is left out";
                self.witness.saw(Activity::Retrying { message: message.to_owned() });
                self.ask_patiently().await
            }
            answered => answered,
        }
    }

    async fn ask_patiently(&self) -> Result<ChatResponse, ModelError> {
        let mut tries = 1;
        loop {
            match self.ask_once().await {
                Err(Failed::Midway(error)) if error.is_retryable() && tries < TRIES => {
                    tries += 1;
                    self.witness.saw(Activity::Retrying { message: error.to_string() });
                }
                Err(Failed::Midway(error) | Failed::Before(error)) => return Err(error),
                Ok(answer) => return Ok(answer),
            }
        }
    }

    async fn ask_once(&self) -> Result<ChatResponse, Failed> {
        let mut stream = self.model.chat_stream(self.conversation.request()).await.map_err(Failed::Before)?;
        let mut assembly = Assembly::default();
        let mut telling = Telling { witness: self.witness, text: String::new(), part: None };
        while let Some(delta) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
            let delta = delta.map_err(Failed::Midway)?;
            telling.hear(&delta);
            assembly.push(delta).map_err(|error| Failed::Midway(error.into()))?;
        }
        telling.tell();
        assembly.finish().map_err(|error| Failed::Midway(error.into()))
    }
}

/// When it failed.
enum Failed {
    /// Before anything came: the client has tried all it can.
    Before(ModelError),
    /// In the middle of the answer.
    Midway(ModelError),
}

/// Tells the text of an answer while it comes.
struct Telling<'a> {
    witness: &'a dyn Witness,
    text: String,
    /// The part that is text, if one is coming.
    part: Option<usize>,
}

impl Telling<'_> {
    fn hear(&mut self, delta: &Delta) {
        match delta {
            Delta::PartStarted { index, part: Part::Text(text) } => {
                self.tell();
                self.part = Some(*index);
                self.text.push_str(&text.text);
            }
            Delta::PartStarted { .. } => {
                self.tell();
                self.part = None;
            }
            Delta::More { index, text } if self.part == Some(*index) => {
                self.text.push_str(text);
                self.tell_lines();
            }
            Delta::More { .. } => self.witness.is_alive(),
            Delta::Started { .. } | Delta::Signature { .. } | Delta::Usage(_) | Delta::Finished(_) => {}
        }
    }

    fn tell_lines(&mut self) {
        if self.text.len() < WORTH_TELLING {
            return self.witness.is_alive();
        }
        let Some(end) = self.text.rfind('\n') else { return self.witness.is_alive() };
        let rest = self.text.split_off(end + 1);
        self.tell();
        self.text = rest;
    }

    fn tell(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() {
            self.witness.saw(Activity::Text { text });
        }
    }
}
