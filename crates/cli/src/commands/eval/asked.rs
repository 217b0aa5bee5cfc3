//! Makes trials by asking models directly, and the stand-in `echo`.

use std::collections::HashMap;
use std::sync::Arc;

use rehearsal_core::config::Settings;
use rehearsal_core::{AgentName, Clock};
use rehearsal_eval::asked::{Asked, ECHO, answered, echoed, question};
use rehearsal_eval::case::{Case, Eval};
use rehearsal_eval::run::Unmade;
use rehearsal_eval::trial::{Source, Trial, TrialId};
use rehearsal_llm::clients::{Client, Endpoint, EndpointError, Settings as ClientSettings};
use rehearsal_llm::model::ChatModel;
use rehearsal_llm::wire::Dialect;
use tokio_util::sync::CancellationToken;

use super::scene::failed;
use crate::error::CliError;

/// The vendors of an eval. Each has one client, and so one pool of connections, for all trials.
pub(super) struct Vendors {
    clock: Arc<dyn Clock>,
    known: HashMap<Dialect, Result<Vendor, NotAsked>>,
}

/// One that may be asked.
struct Vendor {
    client: Client,
    source: Source,
}

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
        live: bool,
        clock: Arc<dyn Clock>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
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
        cancel: &CancellationToken,
    ) -> Result<Trial, Unmade> {
        let began = self.clock.now();
        match question.asked {
            Asked::Echo => Ok(echoed(question.id, began, self.clock.now(), question.prompt)),
            Asked::Model { dialect, name } => {
                let vendor = self.vendor(dialect, &question)?;
                let answer = vendor.answer(name, &question, cancel).await?;
                Ok(answered(question.id, vendor.source.clone(), began, self.clock.now(), &answer))
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
        Ok(Self { client, source: if live { Source::Live } else { Source::Scripted } })
    }

    /// What a vendor does not answer, or not in time, says nothing of its model.
    async fn answer(
        &self,
        model: &str,
        of: &Question<'_>,
        cancel: &CancellationToken,
    ) -> Result<rehearsal_llm::chat::ChatResponse, Unmade> {
        let agent = &of.id.variant.agent;
        let request = question(model, &of.prompt);
        let late = async {
            match of.case.file.timeout {
                Some(limit) => tokio::time::sleep(limit.0).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            answer = self.client.chat(&request) => answer.map_err(|error| failed(agent, &error)),
            () = late => Err(failed(agent, &"there was no answer within the case's `timeout`")),
            () = cancel.cancelled() => Err(Unmade::Cancelled),
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
