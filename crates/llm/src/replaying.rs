//! Says again what a model said.

use std::sync::Arc;

use async_trait::async_trait;
use rehearsal_core::Clock;

use crate::cassette::{PlayReport, Player};
use crate::chat::{ChatRequest, ChatResponse};
use crate::deltas::Told;
use crate::model::{ChatModel, ChatStream, ModelError};
use crate::taped::{Question, Taped};
use crate::wire::Dialect;

/// Answers from a cassette. To what was not recorded it has no answer, and says where it differs; a relaxed player answers, and
/// [`ReplayingModel::report`] tells what differed.
pub struct ReplayingModel {
    player: Player,
    dialect: Dialect,
    clock: Arc<dyn Clock>,
}

impl ReplayingModel {
    /// Plays a cassette that was recorded in this vendor's format, in process or over HTTP.
    pub fn new(player: Player, dialect: Dialect, clock: Arc<dyn Clock>) -> Self {
        Self { player, dialect, clock }
    }

    /// What became of the cassette so far: what was played although it differed, what was missed, what is left.
    pub fn report(&self) -> PlayReport {
        self.player.report()
    }

    fn play(&self, request: &ChatRequest, stream: bool) -> Result<Taped, ModelError> {
        let played = self.player.play(&Question::new(self.dialect, request, stream).asked());
        let playback = played.map_err(|miss| ModelError::NotScripted { message: miss.in_full() })?;
        Ok(Taped {
            status: playback.status,
            headers: playback.headers,
            ended: playback.ended,
            body: playback.body.into(),
        })
    }
}

impl std::fmt::Debug for ReplayingModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplayingModel").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

#[async_trait]
impl ChatModel for ReplayingModel {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        self.play(request, false)?.read(self.dialect, self.clock.now())
    }

    async fn chat_stream(&self, request: &ChatRequest) -> Result<ChatStream, ModelError> {
        let deltas = self.play(request, true)?.deltas(self.dialect, self.clock.now())?;
        Ok(Box::pin(Told::new(deltas.into_iter())))
    }
}
