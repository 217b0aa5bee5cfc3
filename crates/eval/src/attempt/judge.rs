//! Asks the judge of an eval, live or from a recording.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use rehearsal_core::Tokens;
use rehearsal_crew::{ModelChoice, Roles};
use rehearsal_llm::cassette::{Matching, Place};
use rehearsal_llm::chat::{ChatRequest, Message};
use rehearsal_llm::clients::{Client, Settings};
use rehearsal_llm::model::ChatModel;

use super::TrialContext;
use super::cassette::Mode;
use super::model::{CassetteModel, ModelCassette};
use super::workspace::failed;
use crate::assertion::Check;
use crate::case::Case;
use crate::judge::{question, vote};
use crate::run::TrialError;
use crate::trial::{Trial, Vote};

/// The role whose rules pick the judge's endpoint from its model name.
const ROLE: &str = "code";

pub(crate) struct Judge<'a> {
    /// `vendor:model`.
    pub(crate) model: &'a str,
    pub(crate) mode: Mode,
    pub(crate) cassette: &'a Utf8Path,
    pub(crate) place: &'a Place,
    pub(crate) context: &'a TrialContext,
}

/// The rubrics of a case, each with its number of votes.
pub(crate) fn rubrics(case: &Case) -> BTreeMap<&str, u32> {
    let mut all = BTreeMap::new();
    for assertion in &case.assertions {
        if let Check::Rubric { rubric, votes } = &assertion.check {
            let most = all.entry(rubric.as_str()).or_insert(0);
            *most = (*most).max(*votes);
        }
    }
    all
}

impl Judge<'_> {
    /// The votes on each rubric; none if no judge may be asked.
    pub(crate) async fn votes(
        &self,
        rubrics: &BTreeMap<&str, u32>,
        prompt: &str,
        trial: &Trial,
    ) -> Result<Judged, TrialError> {
        let nobody = self.mode == Mode::Scripted || (self.is_replay() && !self.cassette.exists());
        if nobody {
            return Ok(Judged::default());
        }
        // A replay needs no key: the model's name determines the wire format.
        let variable = |name: &str| {
            if self.is_replay() {
                return name.ends_with("_API_KEY").then(|| "not-a-key".to_owned());
            }
            self.context.variables.get(name).cloned()
        };
        let (chosen, endpoint) = self.choose(variable)?;
        let live = || {
            let client = Client::new(endpoint, Settings::default(), Arc::clone(&self.context.clock));
            client.map_err(|error| failed("the judge", &error))
        };
        // However the agent is replayed: a judge's answer counts only for exactly the recorded question.
        let mode = if self.is_replay() { Mode::Replay(Matching::Strict) } else { self.mode };
        let (path, context) = (self.cassette, self.context);
        let cassette = ModelCassette { mode, path, who: "judge", place: self.place, context };
        let judge = CassetteModel::open(&cassette, chosen.dialect, live).map_err(of_judge)?;
        let judged = Asking { rubrics, prompt, trial }.all(&judge, &chosen).await;
        // A recording of a failed request would fail on every replay.
        if judged.failures == 0 {
            judge.finish().map_err(of_judge)?;
        }
        Ok(judged)
    }

    fn is_replay(&self) -> bool {
        matches!(self.mode, Mode::Replay(_))
    }

    fn choose(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(Chosen, rehearsal_llm::clients::Endpoint), TrialError> {
        let cannot = |error: &dyn std::error::Error| {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            TrialError::Failed(format!("the judge `{}`: {error}{cause}", self.model))
        };
        let roles = Roles::built_in().map_err(|error| cannot(&error))?;
        let role = roles.get(ROLE).map_err(|error| cannot(&error))?;
        let choice = ModelChoice::new(Some(self.model), role, variable).map_err(|error| cannot(&error))?;
        Ok((Chosen { dialect: choice.endpoint.dialect(), model: choice.model }, choice.endpoint))
    }
}

/// Says that the judge is the cause.
fn of_judge(unmade: TrialError) -> TrialError {
    match unmade {
        TrialError::Failed(why) => TrialError::Failed(format!("the judge: {why}")),
        other => other,
    }
}

/// The judge's model and wire format.
struct Chosen {
    dialect: rehearsal_llm::wire::Dialect,
    model: String,
}

/// What every judge is asked about.
struct Asking<'a> {
    rubrics: &'a BTreeMap<&'a str, u32>,
    prompt: &'a str,
    trial: &'a Trial,
}

#[derive(Default)]
pub(crate) struct Judged {
    pub(crate) votes: BTreeMap<String, Vec<Vote>>,
    /// The sum of all reported tokens.
    pub(crate) tokens: Option<Tokens>,
    /// How many requests failed.
    failures: u32,
}

impl Asking<'_> {
    async fn all(&self, judge: &dyn ChatModel, chosen: &Chosen) -> Judged {
        let mut judged = Judged::default();
        for (rubric, votes) in self.rubrics {
            let text = question(rubric, self.prompt, self.trial);
            let request = ChatRequest::new(&chosen.model, vec![Message::user(text)]);
            let mut said = Vec::new();
            for _ in 0..*votes {
                said.push(match judge.chat(&request).await {
                    Ok(answer) => {
                        if let Some(tokens) = answer.usage.tokens() {
                            *judged.tokens.get_or_insert_default() += tokens;
                        }
                        vote(&answer.text())
                    }
                    Err(error) => {
                        judged.failures += 1;
                        Vote::Unreadable { reason: error.to_string() }
                    }
                });
            }
            judged.votes.insert((*rubric).to_owned(), said);
        }
        judged
    }
}
