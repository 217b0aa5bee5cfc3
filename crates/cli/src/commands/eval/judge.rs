//! Asks the judge of an eval, live or from its recording.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use rehearsal_core::{Clock, Tokens};
use rehearsal_crew::{ModelChoice, Roles};
use rehearsal_eval::assertion::Check;
use rehearsal_eval::case::Case;
use rehearsal_eval::judge::{question, vote};
use rehearsal_eval::run::Unmade;
use rehearsal_eval::trial::{Trial, Vote};
use rehearsal_llm::cassette::{Matching, Place};
use rehearsal_llm::chat::{ChatRequest, Message};
use rehearsal_llm::clients::{Client, Settings};
use rehearsal_llm::model::ChatModel;

use super::scene::failed;
use super::tape::Mode;
use super::taped_model::{ModelTape, TapedModel};
use crate::context::variables;

/// Judging is looking at code, and a model is named as it is for whoever writes it.
const ROLE: &str = "code";

/// Who judges, and where it is recorded.
pub(super) struct Judge<'a> {
    /// `vendor:model`.
    pub(super) model: &'a str,
    pub(super) mode: Mode,
    pub(super) tape: &'a Utf8Path,
    pub(super) place: Place,
    pub(super) clock: Arc<dyn Clock>,
}

/// What is to be judged of a case, and by how many.
pub(super) fn rubrics(case: &Case) -> BTreeMap<&str, u32> {
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
    /// What is said of each rubric; nothing where nobody may be asked.
    pub(super) async fn votes(
        &self,
        rubrics: &BTreeMap<&str, u32>,
        prompt: &str,
        trial: &Trial,
    ) -> Result<Judged, Unmade> {
        let nobody = self.mode == Mode::StandIns || (self.is_replay() && !self.tape.exists());
        if nobody {
            return Ok(Judged::default());
        }
        // Whoever plays a recording needs no key; the name alone says whose format it is in.
        let ours = variables();
        let variable = |name: &str| {
            if self.is_replay() {
                return name.ends_with("_API_KEY").then(|| "not-a-key".to_owned());
            }
            ours.get(name).cloned()
        };
        let (chosen, endpoint) = self.choose(variable)?;
        let live = || {
            let client = Client::new(endpoint, Settings::default(), Arc::clone(&self.clock));
            client.map_err(|error| failed("the judge", &error))
        };
        // However the agent was replayed: a judge who was asked something else has said nothing.
        let mode = if self.is_replay() { Mode::Replay(Matching::Strict) } else { self.mode };
        let clock = Arc::clone(&self.clock);
        let tape = ModelTape { mode, path: self.tape, who: "judge", place: &self.place, clock };
        let judge = TapedModel::on(&tape, chosen.dialect, live).map_err(of_judge)?;
        let judged = Asking { rubrics, prompt, trial }.all(&judge, &chosen).await;
        // A recording of a vendor that failed would fail for ever.
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
    ) -> Result<(Chosen, rehearsal_llm::clients::Endpoint), Unmade> {
        let cannot = |error: &dyn std::error::Error| {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            Unmade::Failed(format!("the judge `{}`: {error}{cause}", self.model))
        };
        let roles = Roles::built_in().map_err(|error| cannot(&error))?;
        let role = roles.get(ROLE).map_err(|error| cannot(&error))?;
        let choice = ModelChoice::new(Some(self.model), role, variable).map_err(|error| cannot(&error))?;
        Ok((Chosen { dialect: choice.endpoint.dialect(), model: choice.model }, choice.endpoint))
    }
}

/// Whose trouble it is.
fn of_judge(unmade: Unmade) -> Unmade {
    match unmade {
        Unmade::Failed(why) => Unmade::Failed(format!("the judge: {why}")),
        other => other,
    }
}

/// The model of a judge, and the format in which it is asked.
struct Chosen {
    dialect: rehearsal_llm::wire::Dialect,
    model: String,
}

/// What is asked of every judge.
struct Asking<'a> {
    rubrics: &'a BTreeMap<&'a str, u32>,
    prompt: &'a str,
    trial: &'a Trial,
}

/// What the judges said.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) votes: BTreeMap<String, Vec<Vote>>,
    /// Of all that told them.
    pub(super) tokens: Option<Tokens>,
    /// How many gave no answer, readable or not.
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
