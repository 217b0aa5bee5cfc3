//! Recordings of trials: where they are kept, and the stage on which one is made or played.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::environment::{Variables, granted};
use rehearsal_core::config::{DriverKind, Profile};
use rehearsal_engine::program_of;
use rehearsal_eval::case::Case;
use rehearsal_eval::run::Unmade;
use rehearsal_eval::trial::{Replay, Source, Trial, TrialId, Variant};
use rehearsal_llm::cassette::{
    AgentPack, Cassette, Difference, Matching, Normaliser, Place, PlayReport, Player, ReadError, Recorder,
    Rule, Secrets,
};
use rehearsal_stage::{RecordingPlay, ReplaySpeed, ReplayingPlay, Stage};
use sha2::{Digest as _, Sha256};

use super::scene::{Scene, failed};
use crate::commands::on_stage::{OnStage, upstreams_of};
use crate::commands::performance::version_of;

/// More than anyone reads.
const MOST_DIFFERENCES: usize = 100;

/// Where the answers of models come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// From nobody: agents are stand-ins.
    StandIns,
    /// From vendors, for money.
    Live,
    /// From vendors, and kept.
    Record,
    /// From what was kept.
    Replay(Matching),
}

/// Where the recordings of an eval are.
#[derive(Debug, Clone)]
pub(super) struct Tapes {
    /// `.rehearsal/cassettes`.
    pub(super) directory: Utf8PathBuf,
    /// Where the eval's file is.
    pub(super) beside: Utf8PathBuf,
    /// The eval.
    pub(super) eval: String,
}

impl Tapes {
    /// Where the recording of a trial is made. The first trial has the plain name, so that one recording serves any number of replays.
    pub(super) fn made_at(&self, case: &Case, id: &TrialId) -> Utf8PathBuf {
        let number = if id.trial == 1 { String::new() } else { format!("@{}", id.trial) };
        self.named(case, id, &number)
    }

    /// The recording that a trial plays: its own, or else that of the first.
    pub(super) fn played(&self, case: &Case, id: &TrialId) -> Result<Utf8PathBuf, Unmade> {
        let first = self.named(case, id, "");
        let found = [self.made_at(case, id), first.clone()].into_iter().find(|path| path.exists());
        found.ok_or_else(|| {
            let (eval, case) = (&self.eval, &case.name);
            let name = first.strip_prefix(&self.directory).unwrap_or(&first);
            Unmade::Skipped(format!(
                "there is no recording `{name}`; record it first: rehearsal eval run {eval} --case {case} --record"
            ))
        })
    }

    /// Where the recording would be beside which there is one of the judge.
    pub(super) fn judged_at(&self, case: &Case, id: &TrialId) -> Utf8PathBuf {
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

/// Beside a recording, that of its judge.
pub(super) fn of_judge(tape: &Utf8Path) -> Utf8PathBuf {
    tape.with_extension("judge.jsonl")
}

/// Who was measured, as the name of a file. What no file should be called is replaced, and told apart by a hash.
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

/// A stage on which a trial is recorded or replayed.
pub(super) struct TapedStage {
    stage: Stage,
    play: TapedPlay,
}

enum TapedPlay {
    Recording(Arc<RecordingPlay>),
    Replaying { play: Arc<ReplayingPlay>, tape: String },
}

impl TapedStage {
    /// Makes a recording of these agents, who ask their vendors.
    pub(super) async fn recording(
        path: &Utf8Path,
        agents: &[&Profile],
        scene: &Scene,
        ours: &Variables,
    ) -> Result<Self, Unmade> {
        let cannot = |error: &dyn std::fmt::Display| failed("it cannot be recorded", error);
        let [first, others @ ..] = agents else { return Err(cannot(&"there is no agent")) };
        let driver = first.driver;
        let secrets = secrets(agents, ours);
        let mut rules: Vec<Rule> = pack(driver).rules();
        rules.extend(others.iter().flat_map(|profile| pack(profile.driver).rules()));
        let normaliser = Normaliser::new(&rules, &scene.place(), &secrets).map_err(|error| cannot(&error))?;
        let program = program_of(first).map_err(|error| cannot(&error))?;
        let version = version_of(pack(driver), &program, &scene.home, &scene.temp).await;
        let recorder =
            Recorder::create(path.as_std_path(), driver.as_str(), version.as_deref(), normaliser, &secrets)
                .map_err(|error| cannot(&error))?;
        // Agents of one kind ask one vendor; of several, the form of a request says which.
        let is_one_kind = others.iter().all(|profile| profile.driver == driver);
        let asking = if is_one_kind { driver.as_str() } else { DriverKind::Crew.as_str() };
        let upstreams = upstreams_of(asking, &seen(first, ours));
        let play = Arc::new(RecordingPlay::new(recorder, upstreams).map_err(|error| cannot(&error))?);
        let stage = Stage::open(loopback(), Arc::clone(&play) as _).map_err(|error| cannot(&error))?;
        Ok(Self { stage, play: TapedPlay::Recording(play) })
    }

    /// Plays a recording.
    pub(super) fn replaying(
        path: &Utf8Path,
        matching: Matching,
        agents: &[&Profile],
        scene: &Scene,
        ours: &Variables,
    ) -> Result<Self, Unmade> {
        let secrets = secrets(agents, ours);
        let cassette = open_to_play(path, &secrets)?;
        let tape = cassette.sha256.clone();
        let player = Player::new(cassette, matching, &scene.place(), &secrets)
            .map_err(|error| failed("it cannot be replayed", &error))?;
        let play = Arc::new(ReplayingPlay::new(player, ReplaySpeed::Instant));
        let stage = Stage::open(loopback(), Arc::clone(&play) as _)
            .map_err(|error| failed("it cannot be replayed", &error))?;
        Ok(Self { stage, play: TapedPlay::Replaying { play, tape } })
    }

    /// The agent, so that it asks this stage and nobody else.
    pub(super) fn dress(
        &self,
        profile: &Profile,
        ours: &Variables,
        home: &Utf8Path,
    ) -> Result<Profile, Unmade> {
        let driver = profile.driver.as_str();
        let mut on_stage = OnStage::of(driver, self.stage.address());
        let model = on_stage.keep_model(profile.model.as_deref());
        if matches!(self.play, TapedPlay::Recording(_)) {
            on_stage.give_keys(driver, &seen(profile, ours));
        }
        on_stage.write_files(home).map_err(|error| failed("the agent's home", &error))?;
        let mut dressed = profile.clone();
        dressed.model = model;
        dressed.args.extend(on_stage.arguments);
        dressed.env.extend(on_stage.variables);
        for name in ["NO_PROXY", "no_proxy"] {
            let known = ours.get(name).filter(|known| !known.is_empty());
            let all = known.map_or_else(String::new, |known| format!("{known},")) + "127.0.0.1,localhost";
            dressed.env.insert(name.to_owned(), all);
        }
        Ok(dressed)
    }

    /// Closes it, and says where the answers came from. A recording of a run that says nothing about the agent is not kept.
    pub(super) async fn finish(self, says_something: bool) -> Result<(Source, Option<Replay>), Unmade> {
        self.stage.close().await;
        match self.play {
            TapedPlay::Recording(_) if !says_something => Ok((Source::Live, None)),
            TapedPlay::Recording(play) => {
                let written = play.finish().await.map_err(|error| failed("nothing was recorded", &error))?;
                let is_scripted = written.requests == 0;
                Ok((if is_scripted { Source::Scripted } else { Source::Live }, None))
            }
            TapedPlay::Replaying { play, tape } => {
                Ok((Source::Replayed { tape }, Some(replay(&play.report()))))
            }
        }
    }
}

/// What became of a recording, for the trial.
pub(super) fn replay(report: &PlayReport) -> Replay {
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

/// What an agent would see to reach its model.
/// One that holds a secret which is known here is not played: what differs from it is told, and so would the secret be.
pub(super) fn open_to_play(path: &Utf8Path, secrets: &Secrets) -> Result<Cassette, Unmade> {
    Cassette::open_without(secrets, path.as_std_path()).map_err(|error| {
        Unmade::Failed(match error {
            ReadError::Secret(_) => {
                format!("{error}, which `rehearsal cassette redact` takes out: `{path}` is not played")
            }
            error => format!("`{path}` cannot be played: {error}; record it again"),
        })
    })
}

fn seen(profile: &Profile, ours: &Variables) -> Variables {
    let mut seen = granted(ours, profile.driver.as_str(), &profile.pass_env);
    seen.extend(profile.env.clone());
    seen
}

fn secrets(agents: &[&Profile], ours: &Variables) -> Secrets {
    let theirs = agents.iter().flat_map(|profile| &profile.env);
    Secrets::of(ours.iter().chain(theirs).map(|(name, value)| (name.as_str(), value.as_str())))
}

fn pack(driver: DriverKind) -> AgentPack {
    AgentPack::named(driver.as_str())
}

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

impl Scene {
    /// The directories that differ from trial to trial.
    pub(super) fn place(&self) -> Place {
        crate::commands::performance::place(&self.works_in, &self.home, &self.temp)
    }
}

/// Whether a trial says something about the agent: only then is a recording of it worth keeping.
pub(super) fn says_something(trial: &Trial) -> bool {
    rehearsal_eval::grade::no_evidence(trial).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(agent: &str, model: Option<&str>) -> Variant {
        Variant { agent: agent.into(), model: model.map(str::to_owned), prompt: None, flow: None }
    }

    #[test]
    fn whoever_is_measured_names_a_file_of_their_own() {
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
