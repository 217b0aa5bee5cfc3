//! Makes trials by asking models directly, and with the mock `echo`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::Clock;
use rehearsal_llm::chat::ChatResponse;
use rehearsal_llm::clients::{Client, Endpoint, EndpointError, Settings as ClientSettings};
use rehearsal_llm::model::ChatModel;
use rehearsal_llm::wire::Dialect;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::TrialContext;
use super::cassette::Mode;
use super::model::{CassetteModel, ModelCassette};
use super::workspace::failed;
use crate::case::{Case, Eval};
use crate::direct::{Direct, answered, echoed, question};
use crate::run::{Obstacle, TrialError};
use crate::trial::{Trial, TrialId};

/// The vendors of an eval. All trials share one client, and so one connection pool, per vendor.
pub(crate) struct Vendors {
    clock: Arc<dyn Clock>,
    known: HashMap<Dialect, Result<Arc<Client>, NotAsked>>,
}

/// Why a vendor is not asked.
enum NotAsked {
    /// It costs money.
    SpendsTokens,
    /// It cannot be asked.
    Impossible(String),
}

pub(crate) struct Question<'a> {
    pub(crate) direct: Direct<'a>,
    pub(crate) prompt: String,
    pub(crate) case: &'a Case,
    pub(crate) id: &'a TrialId,
}

impl Vendors {
    /// Those that the eval names. A remote vendor is asked only when money may be spent.
    pub(crate) fn of(eval: &Eval, mode: Mode, context: &TrialContext) -> Self {
        let live = matches!(mode, Mode::Live | Mode::Record);
        let mut known = HashMap::new();
        for variant in eval.cases.iter().flat_map(|case| &case.variants) {
            if let Some(Direct::Model { dialect, .. }) = Direct::of(&variant.agent) {
                known.entry(dialect).or_insert_with(|| client(dialect, live, context));
            }
        }
        Self { clock: Arc::clone(&context.clock), known }
    }

    pub(crate) async fn ask(
        &self,
        question: Question<'_>,
        cassette: &ModelCassette<'_>,
        cancel: &CancellationToken,
    ) -> Result<Trial, TrialError> {
        let began = self.clock.now();
        match question.direct {
            Direct::Echo => Ok(echoed(question.id, began, self.clock.now(), question.prompt)),
            Direct::Model { dialect, name } => {
                let live = || self.client(dialect, &question);
                let model = CassetteModel::open(cassette, dialect, live)?;
                let answer = question.put_to(&model, name, cancel).await?;
                let ended = self.clock.now();
                let (source, replay) = model.finish()?;
                Ok(Trial { replay, ..answered(question.id, source, began, ended, &answer) })
            }
        }
    }

    fn client(&self, dialect: Dialect, question: &Question<'_>) -> Result<Arc<Client>, TrialError> {
        let agent = &question.id.variant.agent;
        match self.known.get(&dialect) {
            Some(Ok(client)) => Ok(Arc::clone(client)),
            Some(Err(NotAsked::Impossible(why))) => Err(failed(agent, why)),
            Some(Err(NotAsked::SpendsTokens)) | None => {
                Err(TrialError::Obstacle(Obstacle::ModelSpendsTokens { model: agent.clone() }))
            }
        }
    }
}

fn client(dialect: Dialect, live: bool, context: &TrialContext) -> Result<Arc<Client>, NotAsked> {
    let variable = |name: &str| context.variables.get(name).cloned();
    let endpoint = match Endpoint::from_environment(dialect, variable) {
        // Without any variable it would be the vendor itself.
        Err(EndpointError::NoKey { .. }) if !live => return Err(NotAsked::SpendsTokens),
        Err(error) => return Err(NotAsked::Impossible(error.to_string())),
        Ok(endpoint) if !live && !endpoint.is_loopback() => return Err(NotAsked::SpendsTokens),
        Ok(endpoint) => endpoint,
    };
    let client = Client::new(endpoint, ClientSettings::default(), Arc::clone(&context.clock));
    client.map(Arc::new).map_err(|error| NotAsked::Impossible(error.to_string()))
}

impl Question<'_> {
    /// A missing or late answer says nothing about the model.
    async fn put_to(
        &self,
        model: &dyn ChatModel,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<ChatResponse, TrialError> {
        let agent = &self.id.variant.agent;
        let request = question(name, &self.prompt);
        let limit = self.case.file.timeout.map_or(Duration::MAX, |limit| limit.0);
        match cancel.run_until_cancelled(timeout(limit, model.chat(&request))).await {
            None => Err(TrialError::Cancelled),
            Some(Err(_)) => Err(failed(agent, &"there was no answer within the case's `timeout`")),
            Some(Ok(answer)) => answer.map_err(|error| failed(agent, &error)),
        }
    }
}
