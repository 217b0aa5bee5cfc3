//! Playing a cassette: to the same request the same answer, and a loud no to any other.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::difference::{Difference, differences, likeness};
use super::exchange::{Asked, Ended, Headers};
use super::key::{Key, Keyed, Keys};
use super::lane::LaneName;
use super::normalise::{Normaliser, PatternError, Place, Restorer};
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
    played: Vec<bool>,
    relaxed: Vec<RelaxedUse>,
    misses: Vec<Miss>,
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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Answers that were given although something differed.
    pub relaxed: Vec<RelaxedUse>,
    /// Requests that were not recorded.
    pub misses: Vec<Miss>,
    matching: Matching,
}

impl PlayReport {
    /// Whether it all went as it was recorded. A relaxed player lets recordings lie that nobody asked for.
    pub fn is_faithful(&self) -> bool {
        self.misses.is_empty() && (self.unplayed.is_empty() || self.matching != Matching::Strict)
    }
}

impl Player {
    /// For a run at this place.
    pub fn new(
        cassette: Cassette,
        matching: Matching,
        place: &Place,
        secrets: &Secrets,
    ) -> Result<Self, PatternError> {
        let normaliser = Normaliser::new(&cassette.header.normalisers, place, secrets)?;
        let state = State {
            keys: Keys::new(normaliser),
            bound: HashMap::new(),
            played: vec![false; cassette.entries.len()],
            relaxed: Vec::new(),
            misses: Vec::new(),
        };
        Ok(Self { cassette, matching, restorer: Restorer::new(place), state: Mutex::new(state) })
    }

    /// The answer to a request.
    pub fn play(&self, asked: &Asked<'_>) -> Result<Playback, Miss> {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        let keyed = state.keys.keyed(asked);
        let candidates = self.candidates(state, &keyed);
        let Some((index, rung)) = self.choose(&candidates, &keyed.key) else {
            let miss = self.miss(state, &candidates, &keyed.key);
            state.misses.push(miss.clone());
            return Err(miss);
        };
        let entry = &self.cassette.entries[index];
        if let Some(rung) = rung {
            let differences = differences(&entry.key, &keyed.key);
            state.relaxed.push(RelaxedUse { number: entry.number, rung, differences });
        }
        if let Some(conversation) = keyed.conversation {
            state.bound.insert(conversation, entry.lane);
        }
        state.played[index] = true;
        Ok(self.playback(entry))
    }

    /// The entries that may come next: one of a conversation that is known, the first of each lane for a new one, and
    /// any of a lane without order.
    fn candidates(&self, state: &State, keyed: &Keyed) -> Vec<usize> {
        let entries = &self.cassette.entries;
        let unplayed = |index: &usize| !state.played[*index];
        let next_of =
            |lane: LaneName| (0..entries.len()).filter(unplayed).find(|index| entries[*index].lane == lane);
        let Some(conversation) = &keyed.conversation else {
            return (0..entries.len())
                .filter(unplayed)
                .filter(|index| entries[*index].lane == keyed.lane)
                .collect();
        };
        if let Some(lane) = state.bound.get(conversation) {
            return next_of(*lane).into_iter().collect();
        }
        let taken: Vec<&LaneName> = state.bound.values().collect();
        let mut lanes: Vec<LaneName> = entries
            .iter()
            .map(|entry| entry.lane)
            .filter(|lane| lane.is_ordered() && !taken.contains(&lane))
            .collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes.into_iter().filter_map(next_of).collect()
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
            .or_else(|| nearest_of(&mut (0..entries.len()).filter(|index| !state.played[*index])))
            .or_else(|| nearest_of(&mut (0..entries.len())));
        let why = match nearest {
            None => "the cassette is empty".to_owned(),
            Some(_) if state.played.iter().all(|played| *played) => {
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
        let unplayed = self.cassette.entries.iter().zip(&state.played).filter(|(_, played)| !**played);
        PlayReport {
            played: state.played.iter().filter(|played| **played).count(),
            unplayed: unplayed.map(|(entry, _)| (entry.number, entry.lane)).collect(),
            relaxed: state.relaxed.clone(),
            misses: state.misses.clone(),
            matching: self.matching,
        }
    }

    /// What is being played.
    pub fn cassette(&self) -> &Cassette {
        &self.cassette
    }
}
