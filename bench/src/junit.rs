//! Reading `JUnit`'s XML, beside a bare reader of XML that does nothing with what it reads.

use std::io::{BufReader, Read};
use std::time::Duration;

use quick_xml::Reader;
use quick_xml::events::Event;
use rehearsal_testing::{Collector, Ending, Format, Limits, Stream};
use rustix::time::{ClockId, clock_gettime};

const TESTS_OF_A_CLASS: usize = 100;
const CLASSES: usize = 3000;
const CHUNK: usize = 128 << 10;

pub(crate) fn measure() {
    let class = class();
    let bytes = class.len() * CLASSES;
    let rounds = 5;
    let ours = (0..rounds).map(|_| cpu_time(|| ours(&class))).min().unwrap();
    let bare = (0..rounds).map(|_| cpu_time(|| bare(&class))).min().unwrap();
    println!(
        "{:<44} {:>9.2} ms {:>9.2} ms {:>7.2}   >= 0.7 of bare quick-xml, CPU time",
        format!("junit: {} MB, {} tests", bytes / 1_000_000, TESTS_OF_A_CLASS * CLASSES),
        super::millis(ours),
        super::millis(bare),
        bare.as_secs_f64() / ours.as_secs_f64(),
    );
}

fn ours(class: &[u8]) {
    let mut collector = Collector::new(None, Limits::default());
    let mut parser = Format::named("junit").unwrap().parser();
    let mut document = Document::new(class);
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = document.read(&mut buffer).unwrap();
        if count == 0 {
            break;
        }
        parser.feed(Stream::Out, &buffer[..count], &mut collector);
    }
    parser.finish(&mut collector);
    let run = collector.finish(&Ending::default());
    assert_eq!(run.summary.total, (TESTS_OF_A_CLASS * CLASSES) as u64);
    assert!(run.ended);
}

fn bare(class: &[u8]) {
    let mut reader = Reader::from_reader(BufReader::with_capacity(CHUNK, Document::new(class)));
    let mut buffer = Vec::new();
    while !matches!(reader.read_event_into(&mut buffer).unwrap(), Event::Eof) {
        buffer.clear();
    }
}

/// A class of tests as Surefire writes it: some fail, some are skipped, all print five lines.
fn class() -> Vec<u8> {
    let line = "order913 größe7 parse100 token641 日本22 user87 cart4 sync930 retry5 alpha61\n";
    let mut class = "<testsuite name=\"com.example.BigTest\" tests=\"100\" time=\"1.0\">\n".to_owned();
    for test in 0..TESTS_OF_A_CLASS {
        class += &format!("<testcase name=\"case{test}\" classname=\"com.example.BigTest\" time=\"0.001\">");
        if test == 50 {
            class += "<failure message=\"expected: &lt;1&gt; but was: &lt;2&gt;\" type=\"org.opentest4j.AssertionFailedError\">\
                      <![CDATA[org.opentest4j.AssertionFailedError: expected: <1> but was: <2>\n\tat com.example.BigTest.case(BigTest.java:10)\n]]></failure>";
        } else if test == 60 {
            class += "<skipped message=\"later\"/>";
        }
        class += &format!("<system-out>{}</system-out></testcase>\n", line.repeat(5));
    }
    class += "</testsuite>\n";
    class.into_bytes()
}

/// The same class many times, inside one root.
struct Document<'a> {
    parts: Vec<&'a [u8]>,
}

impl<'a> Document<'a> {
    fn new(class: &'a [u8]) -> Self {
        let mut parts: Vec<&[u8]> = vec![b"</testsuites>"];
        parts.extend(std::iter::repeat_n(class, CLASSES));
        parts.push(b"<testsuites>");
        Self { parts }
    }
}

impl Read for Document<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Some(part) = self.parts.last_mut() else { return Ok(0) };
        let count = part.read(buffer)?;
        if part.is_empty() {
            self.parts.pop();
        }
        Ok(count)
    }
}

fn cpu_time(work: impl FnOnce()) -> Duration {
    let now = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap();
    let before = now();
    work();
    now().saturating_sub(before)
}
