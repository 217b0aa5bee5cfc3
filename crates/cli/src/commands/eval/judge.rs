//! Asks the judge of an eval, live or from its recording.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use rehearsal_core::Clock;
use rehearsal_crew::{ModelChoice, Roles};
use rehearsal_eval::assertion::Check;
use rehearsal_eval::case::Case;
use rehearsal_eval::judge::{question, vote};
use rehearsal_eval::run::Unmade;
use rehearsal_eval::trial::{Trial, Vote};
use rehearsal_llm::cassette::{AgentPack, Cassette, Matching, Normaliser, Place, Player, Recorder};
use rehearsal_llm::chat::{ChatRequest, Message};
use rehearsal_llm::clients::{Client, Settings};
use rehearsal_llm::model::ChatModel;
use rehearsal_llm::recording::RecordingModel;
use rehearsal_llm::replaying::ReplayingModel;

use super::scene::failed;
use super::tape::Mode;
use crate::commands::cassette::secrets;
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
    /// The votes on each rubric; nothing where nobody may be asked.
    pub(super) async fn votes(
        &self,
        rubrics: &BTreeMap<&str, u32>,
        prompt: &str,
        trial: &Trial,
    ) -> Result<BTreeMap<String, Vec<Vote>>, Unmade> {
        let ask = Asking { rubrics, prompt, trial };
        match self.mode {
            Mode::StandIns => Ok(BTreeMap::new()),
            Mode::Live => {
                let (client, choice) = self.client()?;
                Ok(ask.all(&client, &choice).await.votes)
            }
            Mode::Record => {
                let (client, choice) = self.client()?;
                let recording =
                    RecordingModel::new(client, choice.dialect, self.recorder()?, Arc::clone(&self.clock));
                let Judged { votes, all_answered } = ask.all(&recording, &choice).await;
                // A recording of a vendor that failed would fail for ever.
                if all_answered {
                    recording.finish().map_err(|error| failed("the judge was not recorded", &error))?;
                }
                Ok(votes)
            }
            Mode::Replay(_) if !self.tape.exists() => Ok(BTreeMap::new()),
            Mode::Replay(_) => {
                // Whoever plays a recording needs no key; the name alone says whose format it is in.
                let choice =
                    self.choose(|name| name.ends_with("_API_KEY").then(|| "not-a-key".to_owned()))?.0;
                let cannot = |error: &dyn std::fmt::Display| failed("the judge cannot be replayed", error);
                let cassette = Cassette::open(self.tape.as_std_path()).map_err(|error| cannot(&error))?;
                let player = Player::new(cassette, Matching::Strict, &self.place, &secrets())
                    .map_err(|error| cannot(&error))?;
                let replaying = ReplayingModel::new(player, choice.dialect, Arc::clone(&self.clock));
                Ok(ask.all(&replaying, &choice).await.votes)
            }
        }
    }

    fn client(&self) -> Result<(Client, Chosen), Unmade> {
        let variables = variables();
        let (chosen, endpoint) = self.choose(|name| variables.get(name).cloned())?;
        let client = Client::new(endpoint, Settings::default(), Arc::clone(&self.clock));
        Ok((client.map_err(|error| failed("the judge", &error))?, chosen))
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

    fn recorder(&self) -> Result<Recorder, Unmade> {
        let cannot = |error: &dyn std::fmt::Display| failed("the judge cannot be recorded", error);
        let secrets = secrets();
        let normaliser = Normaliser::new(&AgentPack::Plain.rules(), &self.place, &secrets)
            .map_err(|error| cannot(&error))?;
        Recorder::create(self.tape.as_std_path(), "judge", None, normaliser, &secrets)
            .map_err(|error| cannot(&error))
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
struct Judged {
    votes: BTreeMap<String, Vec<Vote>>,
    /// Whether each of them answered, readable or not.
    all_answered: bool,
}

impl Asking<'_> {
    async fn all(&self, judge: &dyn ChatModel, chosen: &Chosen) -> Judged {
        let mut judged = Judged { votes: BTreeMap::new(), all_answered: true };
        for (rubric, votes) in self.rubrics {
            let text = question(rubric, self.prompt, self.trial);
            let request = ChatRequest::new(&chosen.model, vec![Message::user(text)]);
            let mut said = Vec::new();
            for _ in 0..*votes {
                let answer = judge.chat(&request).await;
                judged.all_answered &= answer.is_ok();
                said.push(match answer {
                    Ok(answer) => vote(&answer.text()),
                    Err(error) => Vote::Unreadable { reason: error.to_string() },
                });
            }
            judged.votes.insert((*rubric).to_owned(), said);
        }
        judged
    }
}
