//! A model that is asked in process: live, recorded, or from its recording. The judge is one, and whoever is asked directly.

use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8Path;
use rehearsal_core::Clock;
use rehearsal_eval::run::Unmade;
use rehearsal_eval::trial::{Replay, Source};
use rehearsal_llm::cassette::{Normaliser, Place, Player, Recorder, Rule};
use rehearsal_llm::chat::{ChatRequest, ChatResponse};
use rehearsal_llm::model::{ChatModel, ChatStream, ModelError};
use rehearsal_llm::recording::RecordingModel;
use rehearsal_llm::replaying::ReplayingModel;
use rehearsal_llm::wire::Dialect;

use super::scene::failed;
use super::tape::{Mode, open_to_play, replay};
use crate::commands::cassette::secrets;

/// Where what a model says is kept, and whether it is made or played.
pub(super) struct ModelTape<'a> {
    pub(super) mode: Mode,
    pub(super) path: &'a Utf8Path,
    /// Whose words they are.
    pub(super) who: &'a str,
    pub(super) place: &'a Place,
    pub(super) clock: Arc<dyn Clock>,
}

/// A model on a tape, or without one.
pub(super) enum TapedModel<M> {
    Asked(M, Source),
    Recorded(RecordingModel<M>),
    Played { model: Box<ReplayingModel>, tape: String },
}

impl<M: ChatModel> TapedModel<M> {
    /// `live` is the model itself; nobody needs it, nor its key, where a recording is played.
    pub(super) fn on(
        tape: &ModelTape<'_>,
        dialect: Dialect,
        live: impl FnOnce() -> Result<M, Unmade>,
    ) -> Result<Self, Unmade> {
        let ModelTape { path, who, place, clock, .. } = tape;
        let secrets = secrets();
        match tape.mode {
            Mode::StandIns => Ok(Self::Asked(live()?, Source::Scripted)),
            Mode::Live => Ok(Self::Asked(live()?, Source::Live)),
            Mode::Record => {
                let cannot = |error: &dyn std::fmt::Display| failed("it cannot be recorded", error);
                let normaliser = Normaliser::new(&Rule::for_client(None), place, &secrets)
                    .map_err(|error| cannot(&error))?;
                let recorder = Recorder::create(path.as_std_path(), who, None, normaliser, &secrets)
                    .map_err(|error| cannot(&error))?;
                Ok(Self::Recorded(RecordingModel::new(live()?, dialect, recorder, Arc::clone(clock))))
            }
            Mode::Replay(matching) => {
                let cannot = |error: &dyn std::fmt::Display| failed("it cannot be replayed", error);
                let cassette = open_to_play(path, &secrets)?;
                let tape = cassette.sha256.clone();
                let player =
                    Player::new(cassette, matching, &[], place, &secrets).map_err(|error| cannot(&error))?;
                let model = ReplayingModel::new(player, dialect, Arc::clone(clock));
                Ok(Self::Played { model: Box::new(model), tape })
            }
        }
    }

    /// Gives a recording its name, and says where the answers came from.
    pub(super) fn finish(self) -> Result<(Source, Option<Replay>), Unmade> {
        match self {
            Self::Asked(_, source) => Ok((source, None)),
            Self::Recorded(model) => {
                model.finish().map_err(|error| failed("it was not recorded", &error))?;
                Ok((Source::Live, None))
            }
            Self::Played { model, tape } => Ok((Source::Replayed { tape }, Some(replay(&model.report())))),
        }
    }

    fn model(&self) -> &dyn ChatModel {
        match self {
            Self::Asked(model, _) => model,
            Self::Recorded(model) => model,
            Self::Played { model, .. } => model.as_ref(),
        }
    }
}

#[async_trait]
impl<M: ChatModel> ChatModel for TapedModel<M> {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        self.model().chat(request).await
    }

    async fn chat_stream(&self, request: &ChatRequest) -> Result<ChatStream, ModelError> {
        self.model().chat_stream(request).await
    }
}
