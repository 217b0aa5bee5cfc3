//! What all structured formats have in common: lines of JSON, among which anything may come.

use rehearsal_core::{Activity, Exit, WireEnd, WireReport, WireShape};

use super::bounds::{ACTIVITY_TEXT, DETAIL, END_OF_FINAL_TEXT, Ends, cut, one_line};
use super::fault::Fault;
use super::lines::{Line, LineSplitter};
use super::{Here, WireParser, complaint};

/// What is quoted of a line that cannot be read.
const QUOTED: usize = 60;

/// A flood of garbage is told of this often; the rest is in the run's log.
const MOST_UNREADABLE: u32 = 100;

/// A vendor's format.
pub trait Format: Send {
    /// Reads one line, which is not blank.
    fn read(&mut self, line: &str, out: &mut Vec<Activity>) -> Reading;

    /// Whether the final event was the last thing that came.
    fn has_ended(&self) -> bool;

    /// Reads one line of standard error.
    fn read_stderr(&mut self, _line: &str, _out: &mut Vec<Activity>) {}

    /// What is still open when the output ends.
    fn unfinished(&self) -> Option<String> {
        None
    }

    /// The report. Its shape, and the final text of plain output, are filled in by the caller.
    fn report(self, close: &Close) -> WireReport;
}

/// What a line turned out to be.
#[derive(Debug)]
pub enum Reading {
    /// An event of the format, known or not.
    Event,
    /// A part of something that is not complete.
    Part,
    /// Something else: plain text, or JSON of another kind.
    Foreign,
    /// An attempt at an event; the reason why it is none.
    Broken(String),
}

/// What is known beside the output, once the process is gone.
#[derive(Debug)]
pub struct Close {
    /// How the process ended.
    pub exit: Option<Exit>,
    /// The last part of the standard error. It is the agent's own: tools write elsewhere.
    pub stderr: String,
    /// Nothing came on standard output.
    pub silent: bool,
}

impl Close {
    /// The process returned a status other than zero by itself.
    pub fn failed_by_itself(&self) -> bool {
        matches!(self.exit, Some(Exit::Code(code)) if code != 0)
    }

    /// The process returned zero by itself.
    fn succeeded(&self) -> bool {
        self.exit.is_some_and(Exit::is_success)
    }

    /// The first line of the standard error for which `is` holds, without its decoration.
    pub fn stderr_line(&self, is: impl Fn(&str) -> bool) -> Option<String> {
        self.stderr.lines().map(undecorated).find(|line| is(line))
    }
}

/// A line without terminal colours.
pub(crate) fn undecorated(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..at]);
        let sequence = &rest[at + 2..];
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).map_or(sequence.len(), |end| end + 1);
        rest = &sequence[end..];
    }
    plain.push_str(rest);
    plain.trim().to_owned()
}

/// The parser of a format that comes in lines of JSON.
pub struct JsonLines<F> {
    here: Here,
    lines: LineSplitter,
    stderr: LineSplitter,
    reader: Reader<F>,
    /// What came before the first event: if none comes, it was plain text.
    plain: Ends,
}

struct Reader<F> {
    format: F,
    any_event: bool,
    blank: bool,
    /// The first line is broken JSON: it was meant to be the format.
    began_as_json: bool,
    /// What went wrong since the last event.
    trouble: Option<String>,
    unreadable: u32,
    /// What it says about the request that it tries again, until something else comes.
    retrying: Option<String>,
}

impl<F: Format> JsonLines<F> {
    /// A parser of this format.
    pub fn new(format: F, here: Here) -> Self {
        let reader = Reader {
            format,
            any_event: false,
            blank: true,
            began_as_json: false,
            trouble: None,
            unreadable: 0,
            retrying: None,
        };
        let (lines, stderr) = (LineSplitter::new(), LineSplitter::new());
        Self { here, lines, stderr, reader, plain: Ends::new(END_OF_FINAL_TEXT, END_OF_FINAL_TEXT) }
    }
}

impl<F: Format> WireParser for JsonLines<F> {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Activity>) {
        let Self { lines, reader, plain, .. } = self;
        if !reader.any_event {
            plain.push(bytes);
        }
        lines.push(bytes, |line| reader.take(line, out));
        if reader.any_event {
            plain.clear();
        }
    }

    fn push_stderr(&mut self, bytes: &[u8], out: &mut Vec<Activity>) {
        let Self { stderr, reader, .. } = self;
        stderr.push(bytes, |line| {
            if let Ok(text) = str::from_utf8(line.bytes) {
                let before = out.len();
                reader.format.read_stderr(text, out);
                reader.note_retry(&out[before..]);
            }
        });
    }

    fn has_ended(&self) -> bool {
        self.reader.format.has_ended()
    }

    fn finish(mut self: Box<Self>, exit: Option<Exit>, stderr: &[u8]) -> WireReport {
        let mut unseen = Vec::new();
        self.lines.finish(|line| self.reader.take(line, &mut unseen));
        let Self { mut reader, plain, here, .. } = *self;
        if let Some(open) = reader.format.unfinished() {
            reader.began_as_json |= !reader.any_event;
            reader.trouble = Some(open);
        }
        let close =
            Close { exit, stderr: String::from_utf8_lossy(stderr).into_owned(), silent: reader.blank };
        let shape = reader.shape();
        let retrying = reader.retrying.take();
        let mut report = reader.format.report(&close);
        if matches!(report.end, None | Some(WireEnd::Error(_))) {
            report.retrying =
                retrying.map(|message| Fault { message: &message, ..Fault::default() }.error(&here));
        }
        if shape == WireShape::PlainText {
            report.final_text = plain.into_text();
        }
        close.complete(&mut report, shape == WireShape::PlainText, &here);
        // Trouble matters only where it hides the end.
        let hidden = matches!(shape, WireShape::Broken { .. }) && report.end.is_none();
        report.shape =
            if hidden || !matches!(shape, WireShape::Broken { .. }) { shape } else { WireShape::Structured };
        report
    }
}

impl Close {
    /// Fills in what a program without a structured end says in plain text about its failure.
    pub(crate) fn complete(&self, report: &mut WireReport, is_plain: bool, here: &Here) {
        if report.end.is_some() {
            return;
        }
        let plain = if is_plain { &*report.final_text } else { "" };
        let by_signal = self.exit.is_some_and(|exit| exit.signal_told_as_status().is_some());
        if self.failed_by_itself() && !by_signal {
            let complaint = complaint::of_failure(self, plain, here);
            if let Some(complaint) = complaint {
                report.end = complaint.end;
                report.complaint = Some(complaint.line);
            }
        } else if self.succeeded() && (is_plain || self.silent) {
            report.end = complaint::in_spite_of_success(self, plain, here);
        }
    }
}

impl<F: Format> Reader<F> {
    fn take(&mut self, line: Line<'_>, out: &mut Vec<Activity>) {
        let bytes = line.bytes.trim_ascii();
        if bytes.is_empty() {
            return;
        }
        let before = out.len();
        let reading = match (line.oversized, str::from_utf8(line.bytes)) {
            (Some(length), _) => Reading::Broken(format!("a line of {length} bytes is too long to be read")),
            (None, Err(_)) => Reading::Broken("a line that is not UTF-8".to_owned()),
            (None, Ok(text)) => self.format.read(text, out),
        };
        self.note_retry(&out[before..]);
        match reading {
            Reading::Event => {
                self.any_event = true;
                self.trouble = None;
            }
            Reading::Part => {}
            Reading::Foreign if self.any_event => {
                self.unreadable("a line that is no event", bytes, out);
            }
            Reading::Foreign => {
                let text = cut(&String::from_utf8_lossy(bytes), ACTIVITY_TEXT);
                out.push(Activity::Text { text });
            }
            Reading::Broken(reason) => {
                self.began_as_json |= self.blank && (bytes.starts_with(b"{\"") || bytes.starts_with(b"[{"));
                self.unreadable(&reason, bytes, out);
            }
        }
        self.blank = false;
    }

    /// Whatever is no retry shows that the last one was answered.
    fn note_retry(&mut self, activities: &[Activity]) {
        for activity in activities {
            match activity {
                Activity::Retrying { message } => self.retrying = Some(message.clone()),
                Activity::Unreadable { .. } => {}
                _ => self.retrying = None,
            }
        }
    }

    fn unreadable(&mut self, reason: &str, line: &[u8], out: &mut Vec<Activity>) {
        let reason = format!("{reason}: `{}`", quoted(line));
        self.unreadable = self.unreadable.saturating_add(1);
        if self.unreadable <= MOST_UNREADABLE {
            out.push(Activity::Unreadable { reason: reason.clone() });
        }
        self.trouble = Some(reason);
    }

    fn shape(&mut self) -> WireShape {
        let broken = self.trouble.take().filter(|_| self.any_event || self.began_as_json);
        match broken {
            _ if self.blank => WireShape::Empty,
            Some(reason) => WireShape::Broken { reason },
            None if self.any_event => WireShape::Structured,
            None => WireShape::PlainText,
        }
    }
}

/// The beginning of a line that cannot be read, in characters that do nothing to a terminal.
fn quoted(line: &[u8]) -> String {
    let start = String::from_utf8_lossy(&line[..line.len().min(4 * DETAIL)]);
    let harmless: String = start.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    one_line(&harmless, QUOTED)
}

/// Whether a line may be an object of JSON.
pub(crate) fn may_be_object(line: &str) -> bool {
    line.trim_start().starts_with('{')
}
