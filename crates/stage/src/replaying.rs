//! Plays a cassette.

use std::time::Duration;

use async_trait::async_trait;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use rehearsal_llm::cassette::{self, Ended, Miss, PlayReport, Playback, PlayedBody, Player};
use rehearsal_llm::wire::Dialect;

use crate::answering::refusal;
use crate::body::{Body, Frames, Step};
use crate::play::{Answer, Asked, Play};
use crate::route::{Endpoint, route};

/// How fast recorded answers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplaySpeed {
    /// At once.
    #[default]
    Instant,
    /// As they came when they were recorded.
    Recorded,
}

/// A play that answers from a cassette, and refuses what was not recorded.
#[derive(Debug)]
pub struct ReplayingPlay {
    player: Player,
    speed: ReplaySpeed,
}

impl ReplayingPlay {
    /// From a player.
    pub fn new(player: Player, speed: ReplaySpeed) -> Self {
        Self { player, speed }
    }

    /// What became of the cassette so far.
    pub fn report(&self) -> PlayReport {
        self.player.report()
    }

    fn given(&self, playback: Playback) -> Answer {
        let Playback { status, headers, at_ms, ended, body, .. } = playback;
        let body = match body {
            PlayedBody::Whole(text) if ended == Ended::Whole && self.speed == ReplaySpeed::Instant => {
                Body::Whole(text.into())
            }
            PlayedBody::Whole(text) => self.steps(at_ms, vec![(at_ms, text)], ended),
            PlayedBody::Frames(frames) => {
                let frames = frames.into_iter().map(|frame| (frame.at_ms, frame.text)).collect();
                self.steps(at_ms, frames, ended)
            }
        };
        let pairs = headers.iter().filter_map(|(name, value)| {
            Some((HeaderName::try_from(name.as_str()).ok()?, HeaderValue::try_from(value.as_str()).ok()?))
        });
        Answer {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY),
            headers: pairs.collect(),
            body,
        }
    }

    fn steps(&self, first_ms: u64, frames: Vec<(u64, String)>, ended: Ended) -> Body {
        let is_paced = self.speed == ReplaySpeed::Recorded;
        let mut now = 0;
        let mut wait_until = move |at: u64| {
            let wait = at.saturating_sub(now);
            now = now.max(at);
            (is_paced && wait > 0).then(|| Step::Wait(Duration::from_millis(wait)))
        };
        let begin = wait_until(first_ms);
        let cut = (ended == Ended::Cut).then_some(Step::Cut);
        let steps = frames.into_iter().flat_map(move |(at, text)| {
            wait_until(at).into_iter().chain([Step::Send(text.into())]).collect::<Vec<_>>()
        });
        Body::Frames(Frames::new(begin.into_iter().chain(steps).chain(cut)))
    }
}

#[async_trait]
impl Play for ReplayingPlay {
    async fn answer(&self, asked: Asked) -> Answer {
        let headers = asked.text_headers();
        let request = cassette::Asked {
            method: asked.method.as_str(),
            target: &asked.path,
            headers: &headers,
            body: &asked.body,
        };
        match self.player.play(&request) {
            Ok(playback) => self.given(playback),
            // In the form of the vendor, and so that no client tries again.
            Err(missed) => refusal(dialect_of(&asked), &told(&missed)),
        }
    }
}

pub(crate) fn dialect_of(asked: &Asked) -> Dialect {
    match route(&asked.method, &asked.path, asked.header("anthropic-version").is_some()) {
        Endpoint::Chat { dialect, .. }
        | Endpoint::CountTokens(dialect)
        | Endpoint::Models(dialect)
        | Endpoint::Model(dialect, _) => dialect,
        Endpoint::Hello | Endpoint::WebSocket | Endpoint::Unknown => Dialect::OpenAiChat,
    }
}

/// The first difference only: clients look for words in an error, and Claude Code then tries without what was named.
fn told(miss: &Miss) -> String {
    let place =
        miss.differences.first().map(|difference| format!(" at {}", difference.place)).unwrap_or_default();
    format!("cassette: {miss}{place}")
}
