//! From frames to steps: how fast they come, and what goes wrong.

use std::time::Duration;

use hyper::body::Bytes;

use crate::body::Step;
use crate::ids::Seeded;
use crate::script::{Fault, Pace};

/// An answer in frames, in one buffer.
#[derive(Debug, Clone)]
pub(crate) struct Framed {
    pub(crate) bytes: Bytes,
    /// Where each frame ends.
    pub(crate) ends: Vec<usize>,
}

impl Framed {
    /// An answer in one piece. To cut it, it has two halves.
    pub(crate) fn whole(bytes: Vec<u8>) -> Self {
        let ends = vec![bytes.len() / 2, bytes.len()];
        Self { bytes: bytes.into(), ends }
    }

    fn frame(&self, index: usize) -> Option<Bytes> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        Some(self.bytes.slice(start..end))
    }
}

pub(crate) fn steps(
    framed: Framed,
    pace: Pace,
    fault: Option<Fault>,
    seeded: Seeded,
) -> Box<dyn Iterator<Item = Step> + Send> {
    if pace == Pace::Instant && fault.is_none() {
        return Box::new(std::iter::once(Step::Send(framed.bytes)));
    }
    let mut pauses = Pauses { pace, seeded };
    let frames = framed.ends.len();
    let frames = match fault {
        // What follows a broken frame would not be read.
        Some(Fault::Malformed(after)) => frames.min(after.saturating_add(1)),
        _ => frames,
    };
    // One round more than there are frames: what goes wrong may do so at the very end.
    let steps = (0..=frames).flat_map(move |index| {
        let wrong = fault.as_ref().and_then(|fault| goes_wrong(fault, index, frames));
        let frame = if index < frames { framed.frame(index) } else { None };
        let frame = match fault {
            Some(Fault::Malformed(after)) if after == index => frame.map(|frame| broken(&frame)),
            _ => frame,
        };
        let pause = frame.as_ref().and_then(|_| pauses.before(index)).map(Step::Wait);
        [wrong, pause, frame.map(Step::Send)].into_iter().flatten()
    });
    Box::new(steps.scan(false, |is_over, step| {
        let now = !std::mem::replace(is_over, matches!(step, Step::Cut | Step::Hang));
        now.then_some(step)
    }))
}

/// What happens before a frame.
fn goes_wrong(fault: &Fault, index: usize, frames: usize) -> Option<Step> {
    let at = |after: usize| index == after.min(frames);
    match *fault {
        Fault::Cut(after) if at(after) => Some(Step::Cut),
        Fault::HangAfter(after) if at(after) => Some(Step::Hang),
        Fault::Stall { after, time } if at(after) => Some(Step::Wait(time)),
        Fault::FirstToken(time) if index == 0 => Some(Step::Wait(time)),
        _ => None,
    }
}

/// A frame without the last letter of its data, ended like a whole one.
fn broken(frame: &Bytes) -> Bytes {
    let mut short = frame.trim_ascii_end().to_vec();
    short.pop();
    short.extend_from_slice(b"\n\n");
    short.into()
}

struct Pauses {
    pace: Pace,
    seeded: Seeded,
}

impl Pauses {
    fn before(&mut self, index: usize) -> Option<Duration> {
        let Pace::Profile { first, per_second, jitter } = self.pace else { return None };
        if index == 0 {
            return Some(first);
        }
        let factor = 1.0 + jitter * (2.0 * self.seeded.fraction() - 1.0);
        Duration::try_from_secs_f64(factor / per_second).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(fault: Option<Fault>, pace: Pace) -> String {
        let framed =
            Framed { bytes: Bytes::from_static(b"data: 1\n\ndata: 2\n\ndata: 3\n\n"), ends: vec![9, 18, 27] };
        let shown = steps(framed, pace, fault, Seeded::new(1, "main", 0)).map(|step| match step {
            Step::Send(bytes) => format!("{:?}", String::from_utf8_lossy(&bytes)),
            other => format!("{other:?}"),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_goes_wrong_does_so_in_its_place() {
        let wrong = |fault| played(Some(fault), Pace::Instant);
        insta::assert_snapshot!(played(None, Pace::Instant), @r#""data: 1\n\ndata: 2\n\ndata: 3\n\n""#);
        insta::assert_snapshot!(wrong(Fault::Cut(0)), @"Cut");
        insta::assert_snapshot!(wrong(Fault::Cut(2)), @r#""data: 1\n\n" "data: 2\n\n" Cut"#);
        insta::assert_snapshot!(wrong(Fault::Cut(9)), @r#""data: 1\n\n" "data: 2\n\n" "data: 3\n\n" Cut"#);
        insta::assert_snapshot!(wrong(Fault::HangAfter(1)), @r#""data: 1\n\n" Hang"#);
        insta::assert_snapshot!(wrong(Fault::Malformed(1)), @r#""data: 1\n\n" "data: \n\n""#);
        insta::assert_snapshot!(wrong(Fault::Stall { after: 1, time: Duration::from_secs(5) }), @r#""data: 1\n\n" Wait(5s) "data: 2\n\n" "data: 3\n\n""#);
        insta::assert_snapshot!(wrong(Fault::FirstToken(Duration::from_secs(2))), @r#"Wait(2s) "data: 1\n\n" "data: 2\n\n" "data: 3\n\n""#);
    }

    #[test]
    fn a_profile_is_the_same_every_time() {
        let pace = Pace::Profile { first: Duration::from_millis(300), per_second: 100.0, jitter: 0.5 };
        let once = played(None, pace);
        assert_eq!(once, played(None, pace));
        insta::assert_snapshot!(once, @r#"Wait(300ms) "data: 1\n\n" Wait(13.324519ms) "data: 2\n\n" Wait(9.576464ms) "data: 3\n\n""#);
    }
}
