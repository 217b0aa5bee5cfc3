//! A model called from this process (a judge, or a model that is measured directly): live, recorded or replayed.

use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8Path;
use rehearsal_llm::cassette::{Normaliser, Place, Player, Recorder, Rule};
use rehearsal_llm::chat::{ChatRequest, ChatResponse};
use rehearsal_llm::model::{ChatModel, ChatStream, ModelError};
use rehearsal_llm::recording::RecordingModel;
use rehearsal_llm::replaying::ReplayingModel;
use rehearsal_llm::wire::Dialect;

use super::TrialContext;
use super::cassette::{Mode, open_to_play, replay};
use super::workspace::failed;
use crate::run::TrialError;
use crate::trial::{Replay, Source};

/// The recording of a model, to make or to play.
pub(crate) struct ModelCassette<'a> {
    pub(crate) mode: Mode,
    pub(crate) path: &'a Utf8Path,
    pub(crate) who: &'a str,
    pub(crate) place: &'a Place,
    pub(crate) context: &'a TrialContext,
}

/// A model with or without a recording.
pub(crate) enum CassetteModel<M> {
    Asked(M, Source),
    Recorded(RecordingModel<M>),
    Played { model: Box<ReplayingModel>, sha256: String },
}

impl<M: ChatModel> CassetteModel<M> {
    /// `live` creates the model itself. A replay does not call it and so needs no key.
    pub(crate) fn open(
        cassette: &ModelCassette<'_>,
        dialect: Dialect,
        live: impl FnOnce() -> Result<M, TrialError>,
    ) -> Result<Self, TrialError> {
        let ModelCassette { mode, path, who, place, context } = cassette;
        let (secrets, clock) = (context.secrets(), Arc::clone(&context.clock));
        match *mode {
            Mode::Scripted => Ok(Self::Asked(live()?, Source::Scripted)),
            Mode::Live => Ok(Self::Asked(live()?, Source::Live)),
            Mode::Record => {
                let cannot = |error: &dyn std::fmt::Display| failed("it cannot be recorded", error);
                let normaliser = Normaliser::new(&Rule::for_client(None), place, &secrets)
                    .map_err(|error| cannot(&error))?;
                let recorder = Recorder::create(path.as_std_path(), who, None, normaliser, &secrets)
                    .map_err(|error| cannot(&error))?;
                Ok(Self::Recorded(RecordingModel::new(live()?, dialect, recorder, clock)))
            }
            Mode::Replay(matching) => {
                let cannot = |error: &dyn std::fmt::Display| failed("it cannot be replayed", error);
                let cassette = open_to_play(path, &secrets)?;
                let sha256 = cassette.sha256.clone();
                let player =
                    Player::new(cassette, matching, &[], place, &secrets).map_err(|error| cannot(&error))?;
                let model = ReplayingModel::new(player, dialect, clock);
                Ok(Self::Played { model: Box::new(model), sha256 })
            }
        }
    }

    /// Completes a recording, and returns where the answers came from.
    pub(crate) fn finish(self) -> Result<(Source, Option<Replay>), TrialError> {
        match self {
            Self::Asked(_, source) => Ok((source, None)),
            Self::Recorded(model) => {
                model.finish().map_err(|error| failed("it was not recorded", &error))?;
                Ok((Source::Live, None))
            }
            Self::Played { model, sha256 } => {
                Ok((Source::Replayed { tape: sha256 }, Some(replay(&model.report()))))
            }
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
impl<M: ChatModel> ChatModel for CassetteModel<M> {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        self.model().chat(request).await
    }

    async fn chat_stream(&self, request: &ChatRequest) -> Result<ChatStream, ModelError> {
        self.model().chat_stream(request).await
    }
}
