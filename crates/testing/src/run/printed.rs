//! What a run prints, read while it comes: the format shows itself in the first lines.

use crate::combine::Telling;
use crate::parse::{Format, Head, Stream, Trust};
use crate::read::HEAD;
use crate::telling::Teller;
use crate::{Collector, Ending, Framework, strip_ansi};

/// Makes the collector of one telling.
pub(super) type MakeCollector<'a> = dyn Fn(Trust) -> Collector + Send + Sync + 'a;

/// Both streams. Standard output may be a structured stream, with a reader of its own; all other text is read together
/// with what comes on standard error.
pub(super) struct Printed<'a> {
    framework: Option<Framework>,
    collector: &'a MakeCollector<'a>,
    out: Output,
    text: Text,
}

enum Output {
    Undecided(Vec<u8>),
    Structured(Box<Teller>),
    Text,
}

/// All that is text.
enum Text {
    Undecided(Vec<(Stream, Vec<u8>)>),
    Known(Box<Teller>),
}

impl<'a> Printed<'a> {
    pub(super) fn new(framework: Framework, collector: &'a MakeCollector<'a>) -> Self {
        Self {
            framework: (framework != Framework::Generic).then_some(framework),
            collector,
            out: Output::Undecided(Vec::new()),
            text: Text::Undecided(Vec::new()),
        }
    }

    pub(super) fn feed(&mut self, stream: Stream, bytes: &[u8]) {
        match (&mut self.out, stream) {
            (Output::Structured(teller), Stream::Out) => teller.feed(stream, bytes),
            (Output::Undecided(head), Stream::Out) => {
                head.extend_from_slice(bytes);
                self.decide_out(Last::No);
            }
            (Output::Text, Stream::Out) | (_, Stream::Err) => self.feed_text(stream, bytes),
        }
    }

    fn decide_out(&mut self, last: Last) {
        let Output::Undecided(head) = &mut self.out else { return };
        let Some(format) = recognise(head, self.framework, last) else { return };
        let head = std::mem::take(head);
        if format.trust > Trust::Text {
            let mut teller = Teller::new(format, (self.collector)(format.trust));
            teller.feed(Stream::Out, &head);
            self.out = Output::Structured(Box::new(teller));
        } else {
            self.out = Output::Text;
            self.feed_text(Stream::Out, &head);
        }
    }

    fn feed_text(&mut self, stream: Stream, bytes: &[u8]) {
        match &mut self.text {
            Text::Known(teller) => teller.feed(stream, bytes),
            Text::Undecided(waiting) => {
                waiting.push((stream, bytes.to_vec()));
                self.decide_text(Last::No);
            }
        }
    }

    /// Text that shows no format is read as the known runner prints for people.
    fn decide_text(&mut self, last: Last) {
        let Text::Undecided(waiting) = &mut self.text else { return };
        let head: Vec<u8> = waiting.iter().flat_map(|(_, bytes)| bytes).copied().take(HEAD).collect();
        let Some(format) = recognise(&head, self.framework, last) else { return };
        let of_runner = || self.framework.and_then(Format::text_of);
        let format = if format.trust == Trust::Text { Some(format) } else { of_runner() };
        let Some(format) = format.or(Format::named("generic")) else { return };
        let mut teller = Teller::new(format, (self.collector)(format.trust));
        for (stream, bytes) in waiting.drain(..) {
            teller.feed(stream, &bytes);
        }
        self.text = Text::Known(Box::new(teller));
    }

    /// From now on we are ending the run. What is not recognised by now will be read as if all of it came before.
    pub(super) fn stopping(&mut self) {
        if let Output::Structured(teller) = &mut self.out {
            teller.stopping();
        }
        if let Text::Known(teller) = &mut self.text {
            teller.stopping();
        }
    }

    /// The streams are over.
    pub(super) fn finish(mut self, ending: &Ending) -> Vec<Telling> {
        self.decide_out(Last::Yes);
        self.decide_text(Last::Yes);
        let structured = if let Output::Structured(teller) = self.out { Some(teller) } else { None };
        let text = if let Text::Known(teller) = self.text { Some(teller) } else { None };
        structured.into_iter().chain(text).map(|teller| teller.finish(ending)).collect()
    }
}

/// Whether more may come.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    No,
    Yes,
}

/// The format of a text that begins like this; nothing while it can still become clearer.
pub(super) fn recognised(file_name: &str, head: &[u8], framework: Option<Framework>) -> &'static Format {
    let text = String::from_utf8_lossy(&head[..head.len().min(HEAD)]);
    Format::of(&Head { file_name, text: &strip_ansi(&text) }, framework)
}

fn recognise(head: &[u8], framework: Option<Framework>, last: Last) -> Option<&'static Format> {
    if last == Last::Yes || head.len() >= HEAD {
        return Some(recognised("", head, framework));
    }
    // A line that is not whole may look like something else.
    let end = memchr::memrchr(b'\n', head)? + 1;
    let format = recognised("", &head[..end], framework);
    let is_clear = !format.is_plain_tap() || framework == Some(Framework::Tap) || has_a_point(&head[..end]);
    (format.trust > Trust::ExitStatus && is_clear).then_some(format)
}

/// Whether a test has ended: TAP shows whose it is with its first point, and who watches waits for it.
fn has_a_point(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"ok ") || line.starts_with(b"not ok "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    /// The formats of the tellings of what was printed in these pieces.
    fn told(framework: Framework, pieces: &[(Stream, &str)]) -> Vec<(&'static str, u64)> {
        let collector = |_| Collector::new(None, Limits::default());
        let mut printed = Printed::new(framework, &collector);
        for (stream, text) in pieces {
            printed.feed(*stream, text.as_bytes());
        }
        let tellings = printed.finish(&Ending::of_status(0));
        tellings.into_iter().map(|telling| (telling.format, telling.run.summary.total)).collect()
    }

    const EVENTS: [&str; 2] = [
        r#"{"Action":"run","Package":"shop","Test":"TestSum"}"#,
        r#"{"Action":"pass","Package":"shop","Test":"TestSum","Elapsed":0.1}"#,
    ];

    #[test]
    fn a_stream_of_events_is_recognised_in_pieces_and_errors_beside_it_are_text() {
        let (head, tail) = EVENTS[0].split_at(9);
        let pieces = [
            (Stream::Err, "go: warning\n"),
            (Stream::Out, head),
            (Stream::Out, tail),
            (Stream::Out, "\n"),
            (Stream::Out, EVENTS[1]),
        ];
        assert_eq!(told(Framework::Go, &pieces), [("go-json", 1), ("go-text", 0)]);
    }

    #[test]
    fn the_first_line_of_tap_does_not_decide_its_dialect() {
        let pieces = [(Stream::Out, "1..1\n"), (Stream::Out, "ok 1 adds up in 5ms\n")];
        assert_eq!(told(Framework::Bats, &pieces), [("bats-tap", 1), ("bats-text", 0)]);
        assert_eq!(told(Framework::Generic, &pieces), [("bats-tap", 1), ("generic", 0)]);
        assert_eq!(told(Framework::Tap, &pieces), [("tap", 1), ("prove", 0)]);
    }

    #[test]
    fn what_no_one_knows_is_read_by_the_exit_status_alone() {
        assert_eq!(told(Framework::Generic, &[(Stream::Out, "hello\n")]), [("generic", 0)]);
        assert_eq!(told(Framework::Generic, &[]), [("generic", 0)]);
    }
}
