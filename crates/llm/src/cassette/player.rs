//! Playing a cassette: to the same request the same answer, and a loud no to any other.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use rehearsal_core::ModelClient;
use serde::Serialize;

use super::difference::{Difference, differences, likeness};
use super::exchange::{Asked, Ended, Headers};
use super::key::{Key, Keyed, Keys};
use super::lane::LaneName;
use super::normalise::{Normaliser, PatternError, Place, Restorer, RuleError};
use super::policy::TOLD;
use super::read::{Cassette, Entry};
use super::relaxed::{LADDER, Matching, Rung};
use super::response::{Body, Response};
use super::scan::Secrets;

/// Gives recorded answers back.
#[derive(Debug)]
pub struct Player {
    cassette: Cassette,
    matching: Matching,
    restorer: Restorer,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    keys: Keys,
    /// Which lane of the cassette a conversation plays.
    bound: HashMap<String, LaneName>,
    /// What is still to be played in each lane, in its order.
    left: BTreeMap<LaneName, VecDeque<usize>>,
    played: usize,
    relaxed: Vec<RelaxedUse>,
    relaxations: usize,
    misses: Vec<Miss>,
    missed: usize,
}

impl State {
    /// The entries that may come next: one of a conversation that is known, the first of each lane for a new one, and
    /// any of a lane without order.
    fn candidates(&self, keyed: &Keyed) -> Vec<usize> {
        let of = |lane: &LaneName| self.left.get(lane).into_iter().flatten().copied();
        let Some(conversation) = &keyed.conversation else {
            return of(&keyed.lane).collect();
        };
        if let Some(lane) = self.bound.get(conversation) {
            return of(lane).take(1).collect();
        }
        let taken: HashSet<&LaneName> = self.bound.values().collect();
        let free = self.left.keys().filter(|lane| lane.is_ordered() && !taken.contains(lane));
        free.filter_map(|lane| of(lane).next()).collect()
    }

    fn take(&mut self, lane: LaneName, index: usize) {
        self.played += 1;
        if let Some(left) = self.left.get_mut(&lane)
            && let Some(at) = left.iter().position(|waiting| *waiting == index)
        {
            left.remove(at);
        }
    }
}

/// An answer to give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Playback {
    /// The request that it was recorded for.
    pub number: u32,
    /// Its lane in the cassette.
    pub lane: LaneName,
    /// The HTTP status.
    pub status: u16,
    /// The headers that were kept.
    pub headers: Headers,
    /// Milliseconds from the request to the first byte.
    pub at_ms: u64,
    /// Whether the connection is to break off at the end.
    pub ended: Ended,
    /// What it says.
    pub body: PlayedBody,
}

/// What a played answer says, with the directories of this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlayedBody {
    /// In one piece.
    Whole(String),
    /// Frame by frame.
    Frames(Vec<PlayedFrame>),
}

/// A frame to give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedFrame {
    /// Milliseconds from the request on, as it was recorded.
    pub at_ms: u64,
    /// The bytes.
    pub text: String,
}

/// A request that was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MissView"))]
#[error("{method} {target} was not recorded: {why}")]
pub struct Miss {
    /// The HTTP method.
    pub method: String,
    /// Path and query, normalised.
    pub target: String,
    /// What was expected instead.
    pub why: String,
    /// The recorded request that is most like it.
    pub nearest: Option<u32>,
    /// Where it differs from that one.
    pub differences: Vec<Difference>,
}

impl Miss {
    /// With where it differs, in one line.
    pub fn in_full(&self) -> String {
        let side = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".to_owned());
        let differences = self.differences.iter().map(|Difference { place, expected, got }| {
            format!("; {place}: recorded {:?}, asked {:?}", side(expected), side(got))
        });
        std::iter::once(self.to_string()).chain(differences).collect()
    }
}

/// An answer that was given although something differed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RelaxedView"))]
pub struct RelaxedUse {
    /// The recorded request.
    pub number: u32,
    /// What had to be allowed.
    pub rung: Rung,
    /// What differed.
    pub differences: Vec<Difference>,
}

/// What became of a cassette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayReport {
    /// How many answers were given.
    pub played: usize,
    /// Requests that nobody asked.
    pub unplayed: Vec<(u32, LaneName)>,
    /// Answers that were given although something differed: the first of them.
    pub relaxed: Vec<RelaxedUse>,
    /// How many there were in all.
    pub relaxations: usize,
    /// Requests that were not recorded: the first of them.
    pub misses: Vec<Miss>,
    /// How many there were in all.
    pub missed: usize,
    matching: Matching,
}

impl PlayReport {
    /// Whether it all went as it was recorded. A relaxed player lets recordings lie that nobody asked for.
    pub fn is_faithful(&self) -> bool {
        self.missed == 0 && (self.unplayed.is_empty() || self.matching != Matching::Strict)
    }
}

/// Why a cassette cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// It was recorded by rules that are not known here.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// Its place cannot be looked for.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

impl Player {
    /// For a run at this place. `clients` are the agent CLIs whose rules are known here.
    pub fn new(
        cassette: Cassette,
        matching: Matching,
        clients: &[&'static ModelClient],
        place: &Place,
        secrets: &Secrets,
    ) -> Result<Self, PlayError> {
        let rules = cassette.header.normalisers.iter().map(|name| name.rule(clients));
        let normaliser = Normaliser::new(&rules.collect::<Result<Vec<_>, _>>()?, place, secrets)?;
        let mut left: BTreeMap<LaneName, VecDeque<usize>> = BTreeMap::new();
        for (index, entry) in cassette.entries.iter().enumerate() {
            left.entry(entry.lane).or_default().push_back(index);
        }
        let state = State {
            keys: Keys::new(normaliser),
            bound: HashMap::new(),
            left,
            played: 0,
            relaxed: Vec::new(),
            relaxations: 0,
            misses: Vec::new(),
            missed: 0,
        };
        Ok(Self { cassette, matching, restorer: Restorer::new(place), state: Mutex::new(state) })
    }

    /// The answer to a request.
    pub fn play(&self, asked: &Asked<'_>) -> Result<Playback, Miss> {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        let keyed = state.keys.keyed(asked);
        let candidates = state.candidates(&keyed);
        let Some((index, rung)) = self.choose(&candidates, &keyed.key) else {
            let miss = self.miss(state, &candidates, &keyed.key);
            state.missed += 1;
            if state.misses.len() < TOLD {
                state.misses.push(miss.clone());
            }
            return Err(miss);
        };
        let entry = &self.cassette.entries[index];
        if let Some(rung) = rung {
            state.relaxations += 1;
            if state.relaxed.len() < TOLD {
                let differences = differences(&entry.key, &keyed.key);
                state.relaxed.push(RelaxedUse { number: entry.number, rung, differences });
            }
        }
        if let Some(conversation) = keyed.conversation {
            state.bound.insert(conversation, entry.lane);
        }
        state.take(entry.lane, index);
        Ok(self.playback(entry))
    }

    fn choose(&self, candidates: &[usize], key: &Key) -> Option<(usize, Option<Rung>)> {
        let entry = |index: usize| &self.cassette.entries[index].key;
        let exact = candidates.iter().copied().find(|index| entry(*index).equals(key));
        let Matching::Relaxed(highest) = self.matching else {
            return exact.map(|index| (index, None));
        };
        let rungs = LADDER.iter().copied().filter(|rung| *rung <= highest);
        exact.map(|index| (index, None)).or_else(|| {
            rungs.into_iter().find_map(|rung| {
                let found = candidates.iter().copied().find(|index| rung.allows(entry(*index), key));
                found.map(|index| (index, Some(rung)))
            })
        })
    }

    fn miss(&self, state: &State, candidates: &[usize], key: &Key) -> Miss {
        let entries = &self.cassette.entries;
        let nearest_of = |indexes: &mut dyn Iterator<Item = usize>| {
            indexes.max_by_key(|index| (likeness(&entries[*index].key, key), std::cmp::Reverse(*index)))
        };
        let expected = nearest_of(&mut candidates.iter().copied());
        let nearest = expected
            .or_else(|| nearest_of(&mut state.left.values().flatten().copied()))
            .or_else(|| nearest_of(&mut (0..entries.len())));
        let why = match nearest {
            None => "the cassette is empty".to_owned(),
            Some(_) if state.played == entries.len() => {
                format!("all {} recorded requests were played already", entries.len())
            }
            Some(index) if expected.is_some() => {
                format!("it differs from request {} in lane {}", entries[index].number, entries[index].lane)
            }
            Some(index) => {
                format!("nothing is left in its lane, and request {} is another", entries[index].number)
            }
        };
        Miss {
            method: key.method.clone(),
            target: key.target.clone(),
            why,
            nearest: nearest.map(|index| entries[index].number),
            differences: nearest.map(|index| differences(&entries[index].key, key)).unwrap_or_default(),
        }
    }

    fn playback(&self, entry: &Entry) -> Playback {
        let Response { status, headers, at_ms, ended, body } = entry.response.restored(&self.restorer);
        let body = match body {
            Body::Whole(text) => PlayedBody::Whole(text),
            Body::Frames(frames) => PlayedBody::Frames(
                frames
                    .into_iter()
                    .map(|frame| PlayedFrame { at_ms: frame.at_ms, text: frame.text })
                    .collect(),
            ),
        };
        Playback { number: entry.number, lane: entry.lane, status, headers, at_ms, ended, body }
    }

    /// What became of it so far.
    pub fn report(&self) -> PlayReport {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unplayed: Vec<(u32, LaneName)> = state
            .left
            .values()
            .flatten()
            .filter_map(|index| self.cassette.entries.get(*index))
            .map(|entry| (entry.number, entry.lane))
            .collect();
        unplayed.sort_unstable();
        PlayReport {
            played: state.played,
            unplayed,
            relaxed: state.relaxed.clone(),
            relaxations: state.relaxations,
            misses: state.misses.clone(),
            missed: state.missed,
            matching: self.matching,
        }
    }

    /// What is being played.
    pub fn cassette(&self) -> &Cassette {
        &self.cassette
    }
}
