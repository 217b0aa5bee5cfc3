//! Recordings of trials: where they are, and the stage that makes or plays one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::cli_of;
use rehearsal_agent::clis::{Endpoint, KNOWN, Retries, StageModel, VendorApi};
use rehearsal_agent::environment::{Variables, granted};
use rehearsal_agent::probe::version_of;
use rehearsal_core::config::{DriverKind, Profile};
use rehearsal_engine::program_of;
use rehearsal_llm::cassette::{
    Cassette, Difference, Matching, Normaliser, PlayReport, Player, ReadError, Recorder, Rule, Secrets,
};
use rehearsal_stage::{RecordingPlay, ReplaySpeed, ReplayingPlay, Stage, Upstreams};
use sha2::{Digest as _, Sha256};

use super::workspace::{Workspace, failed};
use crate::case::Case;
use crate::run::{Obstacle, TrialError};
use crate::trial::{Replay, Source, TrialId, Variant};

/// More differences than anyone reads.
const MOST_DIFFERENCES: usize = 100;

/// Where the answers of models come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// From scripts: agents are mocks, and vendors are on this machine.
    Scripted,
    /// From vendors; this costs money.
    Live,
    /// From vendors, and recorded.
    Record,
    /// From recordings.
    Replay(Matching),
}

/// The recordings of an eval.
#[derive(Debug, Clone)]
pub(crate) struct Cassettes {
    /// `.rehearsal/cassettes`.
    pub(crate) directory: Utf8PathBuf,
    /// Where the eval's file is.
    pub(crate) beside: Utf8PathBuf,
    pub(crate) eval: String,
}

impl Cassettes {
    /// Where a trial is recorded. The first trial has the plain name, so that one recording serves any number of replays.
    pub(crate) fn made_at(&self, case: &Case, id: &TrialId) -> Utf8PathBuf {
        let number = if id.trial == 1 { String::new() } else { format!("@{}", id.trial) };
        self.named(case, id, &number)
    }

    /// The recording that a trial plays: its own, or else that of the first trial.
    pub(crate) fn played(&self, case: &Case, id: &TrialId) -> Result<Utf8PathBuf, TrialError> {
        let first = self.named(case, id, "");
        let found = [self.made_at(case, id), first.clone()].into_iter().find(|path| path.exists());
        found.ok_or_else(|| {
            let name = first.strip_prefix(&self.directory).unwrap_or(&first).to_string();
            let (eval, case) = (self.eval.clone(), case.name.clone());
            TrialError::Obstacle(Obstacle::NotRecorded { name, eval, case })
        })
    }

    /// The path whose judge has a recording, whether or not it has one itself.
    pub(crate) fn judged_at(&self, case: &Case, id: &TrialId) -> Utf8PathBuf {
        let own = self.made_at(case, id);
        if of_judge(&own).exists() { own } else { self.named(case, id, "") }
    }

    fn named(&self, case: &Case, id: &TrialId, number: &str) -> Utf8PathBuf {
        let variant = file_name(&id.variant);
        match &case.file.cassette {
            None => {
                let directory = self.directory.join("evals").join(&self.eval).join(&case.name);
                directory.join(format!("{variant}{number}.jsonl"))
            }
            Some(own) => {
                let (directory, own) = match own.strip_suffix(".jsonl") {
                    Some(file) => (&self.beside, file),
                    None => (&self.directory, own.as_str()),
                };
                let variant = if case.variants.len() > 1 { format!("+{variant}") } else { String::new() };
                directory.join(format!("{own}{variant}{number}.jsonl"))
            }
        }
    }
}

/// The recording of the judge, beside that of the trial.
pub(crate) fn of_judge(cassette: &Utf8Path) -> Utf8PathBuf {
    cassette.with_extension("judge.jsonl")
}

/// A variant as a file name. Unsafe characters are replaced, and a hash keeps the names distinct.
fn file_name(variant: &Variant) -> String {
    let parts =
        [Some(&variant.agent), variant.model.as_ref(), variant.prompt.as_ref(), variant.flow.as_ref()];
    let written: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain = |part: &&str| part.replace(|c| !is_plain(c), "_");
    let mut name = written.iter().map(plain).collect::<Vec<_>>().join("+");
    if name != written.join("+") || name.len() > 100 || name.starts_with('.') {
        name.truncate(80);
        let digest = Sha256::digest(written.join("\0"));
        let short: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        name = format!("{}+{short}", name.trim_start_matches('.'));
    }
    name
}

/// A stage that records or replays a trial.
pub(crate) struct CassetteStage {
    stage: Stage,
    play: CassettePlay,
}

enum CassettePlay {
    Recording(Arc<RecordingPlay>),
    Replaying { play: Arc<ReplayingPlay>, sha256: String },
}

impl CassetteStage {
    /// Records these agents, which call their vendors.
    pub(crate) async fn recording(
        path: &Utf8Path,
        agents: &[&Profile],
        workspace: &Workspace,
        ours: &Variables,
    ) -> Result<Self, TrialError> {
        let cannot = |error: &dyn std::fmt::Display| failed("it cannot be recorded", error);
        let [first, others @ ..] = agents else { return Err(cannot(&"there is no agent")) };
        let driver = first.driver;
        let secrets = secrets(agents, ours);
        let mut rules: Vec<Rule> = rules_of(driver);
        rules.extend(others.iter().flat_map(|profile| rules_of(profile.driver)));
        let normaliser =
            Normaliser::new(&rules, &workspace.place(), &secrets).map_err(|error| cannot(&error))?;
        let program = program_of(first).map_err(|error| cannot(&error))?;
        let version = match cli_of(driver).install {
            None => None,
            Some(_) => version_of(&program, ours, &workspace.home, &workspace.temp).await,
        };
        let recorder =
            Recorder::create(path.as_std_path(), driver.as_str(), version.as_deref(), normaliser, &secrets)
                .map_err(|error| cannot(&error))?;
        // Agents of one kind call one vendor; otherwise the form of a request determines the vendor.
        let is_one_kind = others.iter().all(|profile| profile.driver == driver);
        let vendor = cli_of(driver).vendor.filter(|_| is_one_kind);
        let upstreams = upstreams_of(vendor, &seen(first, ours));
        let play = Arc::new(RecordingPlay::new(recorder, upstreams).map_err(|error| cannot(&error))?);
        let stage = Stage::open(loopback(), Arc::clone(&play) as _).map_err(|error| cannot(&error))?;
        Ok(Self { stage, play: CassettePlay::Recording(play) })
    }

    pub(crate) fn replaying(
        path: &Utf8Path,
        matching: Matching,
        agents: &[&Profile],
        workspace: &Workspace,
        ours: &Variables,
    ) -> Result<Self, TrialError> {
        let secrets = secrets(agents, ours);
        let cassette = open_to_play(path, &secrets)?;
        let sha256 = cassette.sha256.clone();
        let player = Player::new(cassette, matching, &KNOWN.model_clients(), &workspace.place(), &secrets)
            .map_err(|error| failed("it cannot be replayed", &error))?;
        let play = Arc::new(ReplayingPlay::new(player, ReplaySpeed::Instant));
        let stage = Stage::open(loopback(), Arc::clone(&play) as _)
            .map_err(|error| failed("it cannot be replayed", &error))?;
        Ok(Self { stage, play: CassettePlay::Replaying { play, sha256 } })
    }

    /// The agent's profile, changed so that it calls only this stage.
    pub(crate) fn connect(
        &self,
        profile: &Profile,
        ours: &Variables,
        home: &Utf8Path,
    ) -> Result<Profile, TrialError> {
        let cli = cli_of(profile.driver);
        let url = format!("http://{}", self.stage.address());
        let model = StageModel::OfVendor(profile.model.as_deref());
        let mut on_stage = cli.on_stage(Endpoint { url: &url, model, retries: Retries::Default });
        if matches!(self.play, CassettePlay::Recording(_)) {
            cli.give_keys(&mut on_stage, &seen(profile, ours));
        }
        on_stage.write_files(home).map_err(|error| failed("the agent's home", &error))?;
        let mut connected = profile.clone();
        connected.env.extend(on_stage.environment());
        connected.model = on_stage.model;
        connected.args.extend(on_stage.arguments);
        for name in ["NO_PROXY", "no_proxy"] {
            let known = ours.get(name).filter(|known| !known.is_empty());
            let all = known.map_or_else(String::new, |known| format!("{known},")) + "127.0.0.1,localhost";
            connected.env.insert(name.to_owned(), all);
        }
        Ok(connected)
    }

    /// Closes the stage, and returns where the answers came from. A recording is kept only if the trial is evidence.
    pub(crate) async fn finish(self, is_evidence: bool) -> Result<(Source, Option<Replay>), TrialError> {
        self.stage.close().await;
        match self.play {
            CassettePlay::Recording(_) if !is_evidence => Ok((Source::Live, None)),
            CassettePlay::Recording(play) => {
                let written = play.finish().await.map_err(|error| failed("nothing was recorded", &error))?;
                let is_scripted = written.requests == 0;
                Ok((if is_scripted { Source::Scripted } else { Source::Live }, None))
            }
            CassettePlay::Replaying { play, sha256 } => {
                Ok((Source::Replayed { tape: sha256 }, Some(replay(&play.report()))))
            }
        }
    }
}

pub(crate) fn replay(report: &PlayReport) -> Replay {
    let at = |differences: &[Difference]| {
        differences.first().map(|one| format!(" at {}", one.place)).unwrap_or_default()
    };
    let missed = report.misses.iter().map(|miss| format!("{miss}{}", at(&miss.differences)));
    let relaxed = report.relaxed.iter().map(|used| {
        let place = at(&used.differences);
        format!("request {} was played although its {} differ{place}", used.number, used.rung.name())
    });
    let unplayed =
        report.unplayed.iter().map(|(number, lane)| format!("request {number} ({lane}) was never asked"));
    Replay {
        exact: report.is_faithful() && report.relaxations == 0,
        differences: missed.chain(relaxed).chain(unplayed).take(MOST_DIFFERENCES).collect(),
        missed: report.missed as u64,
    }
}

/// Opens a recording to replay. One that contains a known secret is refused: a reported difference could reveal it.
pub(crate) fn open_to_play(path: &Utf8Path, secrets: &Secrets) -> Result<Cassette, TrialError> {
    Cassette::open_without(secrets, path.as_std_path()).map_err(|error| match error {
        ReadError::Secret(_) => {
            let (cassette, error) = (path.to_string(), error.to_string());
            TrialError::Obstacle(Obstacle::HoldsSecrets { cassette, error })
        }
        error => TrialError::Failed(format!("`{path}` cannot be played: {error}; record it again")),
    })
}

/// The environment an agent would use to reach its model.
fn seen(profile: &Profile, ours: &Variables) -> Variables {
    let mut seen = granted(ours, cli_of(profile.driver), &profile.pass_env);
    seen.extend(profile.env.clone());
    seen
}

fn secrets(agents: &[&Profile], ours: &Variables) -> Secrets {
    let theirs = agents.iter().flat_map(|profile| &profile.env);
    Secrets::of(ours.iter().chain(theirs).map(|(name, value)| (name.as_str(), value.as_str())))
}

fn rules_of(driver: DriverKind) -> Vec<Rule> {
    Rule::for_client(cli_of(driver).requests.as_ref())
}

/// Where agents ask by themselves, with these variables: their vendor; without one, the vendor of each request's form.
fn upstreams_of(vendor: Option<VendorApi>, variables: &Variables) -> Upstreams {
    let address = |vendor: VendorApi| vendor.address(variables);
    match vendor {
        // Not every vendor that speaks like OpenAI has a version in its address.
        Some(vendor @ VendorApi::OpenAi) => {
            Upstreams::each(address(vendor), address(vendor), address(vendor))
        }
        Some(vendor) => Upstreams::one(address(vendor)),
        None => Upstreams::each(
            address(VendorApi::Anthropic),
            address(VendorApi::OpenAi),
            address(VendorApi::Gemini),
        ),
    }
}

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(agent: &str, model: Option<&str>) -> Variant {
        Variant { agent: agent.into(), model: model.map(str::to_owned), prompt: None, flow: None }
    }

    #[test]
    fn an_agent_asks_where_it_is_told_to_and_its_vendor_otherwise() {
        let own = [
            ("ANTHROPIC_BASE_URL".to_owned(), "http://127.0.0.1:1/".to_owned()),
            ("OPENAI_BASE_URL".to_owned(), "http://127.0.0.1:2/v1".to_owned()),
            ("GOOGLE_GEMINI_BASE_URL".to_owned(), String::new()),
        ];
        let own: Variables = own.into_iter().collect();
        let of = |agent: &str, own: &Variables| upstreams_of(KNOWN.of_program(agent).vendor, own);
        assert_eq!(of("claude", &own), Upstreams::one("http://127.0.0.1:1"));
        let openai = "http://127.0.0.1:2/v1";
        assert_eq!(of("codex", &own), Upstreams::each(openai, openai, openai));
        let vendor = "https://generativelanguage.googleapis.com";
        assert_eq!(of("gemini", &own), Upstreams::one(vendor));
        assert_eq!(of("crew", &own), Upstreams::each("http://127.0.0.1:1", openai, vendor));
        assert_eq!(of("claude", &Variables::new()), Upstreams::one("https://api.anthropic.com"));
    }

    #[test]
    fn every_variant_has_its_own_file_name() {
        assert_eq!(file_name(&variant("claude", None)), "claude");
        assert_eq!(file_name(&variant("claude", Some("sonnet-4.5"))), "claude+sonnet-4.5");
        let names: Vec<String> = ["a/b", "a_b", "a b", "a+b", "../../a", ".a", &"a".repeat(500)]
            .iter()
            .map(|model| file_name(&variant("x", Some(model))))
            .collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!name.contains('/') && name.len() < 120, "{name}");
            assert!(!names[..index].contains(name), "{names:?}");
        }
    }
}
