//! Makes trials by asking models directly, and the stand-in `echo`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::config::Settings;
use rehearsal_core::{AgentName, Clock};
use rehearsal_eval::asked::{Asked, ECHO, answered, echoed, question};
use rehearsal_eval::case::{Case, Eval};
use rehearsal_eval::run::Unmade;
use rehearsal_eval::trial::{Trial, TrialId};
use rehearsal_llm::chat::ChatResponse;
use rehearsal_llm::clients::{Client, Endpoint, EndpointError, Settings as ClientSettings};
use rehearsal_llm::model::ChatModel;
use rehearsal_llm::wire::Dialect;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::scene::failed;
use super::tape::Mode;
use super::taped_model::{ModelTape, TapedModel};
use crate::error::CliError;

/// The vendors of an eval. Each has one client, and so one pool of connections, for all trials.
pub(super) struct Vendors {
    clock: Arc<dyn Clock>,
    known: HashMap<Dialect, Result<Vendor, NotAsked>>,
}

/// One that may be asked.
struct Vendor(Arc<Client>);

/// Why a vendor is not asked.
enum NotAsked {
    /// It wants money for it.
    SpendsTokens,
    /// It cannot be.
    Impossible(String),
}

/// What is to be asked in one trial.
pub(super) struct Question<'a> {
    pub(super) asked: Asked<'a>,
    pub(super) prompt: String,
    pub(super) case: &'a Case,
    pub(super) id: &'a TrialId,
}

impl Vendors {
    /// Those that the eval names. What is not on this machine is asked only when money may be spent.
    pub(super) fn of(
        eval: &Eval,
        mode: Mode,
        clock: Arc<dyn Clock>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let live = matches!(mode, Mode::Live | Mode::Record);
        let mut known = HashMap::new();
        for variant in eval.cases.iter().flat_map(|case| &case.variants) {
            if let Some(Asked::Model { dialect, .. }) = Asked::of(&variant.agent) {
                known.entry(dialect).or_insert_with(|| Vendor::new(dialect, live, &clock, &variable));
            }
        }
        Self { clock, known }
    }

    /// Asks once.
    pub(super) async fn ask(
        &self,
        question: Question<'_>,
        tape: &ModelTape<'_>,
        cancel: &CancellationToken,
    ) -> Result<Trial, Unmade> {
        let began = self.clock.now();
        match question.asked {
            Asked::Echo => Ok(echoed(question.id, began, self.clock.now(), question.prompt)),
            Asked::Model { dialect, name } => {
                let live = || Ok(Arc::clone(&self.vendor(dialect, &question)?.0));
                let model = TapedModel::on(tape, dialect, live)?;
                let answer = question.put_to(&model, name, cancel).await?;
                let ended = self.clock.now();
                let (source, replay) = model.finish()?;
                Ok(Trial { replay, ..answered(question.id, source, began, ended, &answer) })
            }
        }
    }

    fn vendor(&self, dialect: Dialect, question: &Question<'_>) -> Result<&Vendor, Unmade> {
        let agent = &question.id.variant.agent;
        match self.known.get(&dialect) {
            Some(Ok(vendor)) => Ok(vendor),
            Some(Err(NotAsked::Impossible(why))) => Err(failed(agent, why)),
            Some(Err(NotAsked::SpendsTokens)) | None => Err(Unmade::Skipped(format!(
                "`{agent}` spends tokens: run it with --live, or give it the address of a stand-in such as `rehearsal stage`"
            ))),
        }
    }
}

impl Vendor {
    fn new(
        dialect: Dialect,
        live: bool,
        clock: &Arc<dyn Clock>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, NotAsked> {
        let endpoint = match Endpoint::from_environment(dialect, variable) {
            // Without any variable it would be the vendor itself.
            Err(EndpointError::NoKey { .. }) if !live => return Err(NotAsked::SpendsTokens),
            Err(error) => return Err(NotAsked::Impossible(error.to_string())),
            Ok(endpoint) if !live && !endpoint.is_loopback() => return Err(NotAsked::SpendsTokens),
            Ok(endpoint) => endpoint,
        };
        let client = Client::new(endpoint, ClientSettings::default(), Arc::clone(clock));
        let client = client.map_err(|error| NotAsked::Impossible(error.to_string()))?;
        Ok(Self(Arc::new(client)))
    }
}

impl Question<'_> {
    /// What a vendor does not answer, or not in time, says nothing of its model.
    async fn put_to(
        &self,
        model: &dyn ChatModel,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<ChatResponse, Unmade> {
        let agent = &self.id.variant.agent;
        let request = question(name, &self.prompt);
        let limit = self.case.file.timeout.map_or(Duration::MAX, |limit| limit.0);
        match cancel.run_until_cancelled(timeout(limit, model.chat(&request))).await {
            None => Err(Unmade::Cancelled),
            Some(Err(_)) => Err(failed(agent, &"there was no answer within the case's `timeout`")),
            Some(Ok(answer)) => answer.map_err(|error| failed(agent, &error)),
        }
    }
}

/// A name must not mean two things.
pub(super) fn check_names(eval: &Eval, settings: &Settings) -> Result<(), CliError> {
    let named = eval.cases.iter().flat_map(|case| &case.variants).any(|variant| variant.agent == ECHO);
    let configured = AgentName::new(ECHO).is_ok_and(|name| settings.profile_of(&name).is_some());
    if named && configured {
        return Err(CliError::usage(format!(
            "`{ECHO}` is the stand-in that answers with its prompt, and an agent of the configuration"
        ))
        .hint(format!("give the agent `{ECHO}` another name")));
    }
    Ok(())
}
