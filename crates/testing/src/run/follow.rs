//! A file that grows while tests run, read as it grows.

use std::io::Read;

use camino::Utf8Path;

use super::printed::{MakeCollector, recognised};
use crate::combine::Telling;
use crate::parse::{Stream, Trust};
use crate::telling::Teller;
use crate::{Ending, Framework};

/// The file is made by us and stays open, so that nothing that a test puts in its place is ever opened.
pub(super) struct Followed<'a> {
    file: fs_err::File,
    name: String,
    framework: Framework,
    collector: &'a MakeCollector<'a>,
    head: Vec<u8>,
    teller: Option<Teller>,
    buffer: Vec<u8>,
}

impl<'a> Followed<'a> {
    pub(super) fn create(
        path: &Utf8Path,
        framework: Framework,
        collector: &'a MakeCollector<'a>,
    ) -> std::io::Result<Self> {
        let file = fs_err::OpenOptions::new().read(true).append(true).create_new(true).open(path)?;
        let name = path.file_name().unwrap_or_default().to_owned();
        Ok(Self {
            file,
            name,
            framework,
            collector,
            head: Vec::new(),
            teller: None,
            buffer: vec![0; 128 << 10],
        })
    }

    /// Reads what has come since; says whether there was something.
    pub(super) fn read(&mut self) -> bool {
        let Ok(count @ 1..) = self.file.read(&mut self.buffer) else { return false };
        let bytes = &self.buffer[..count];
        if let Some(teller) = &mut self.teller {
            teller.feed(Stream::Out, bytes);
            return true;
        }
        self.head.extend_from_slice(bytes);
        if memchr::memchr(b'\n', &self.head).is_some() {
            self.decide();
        }
        true
    }

    fn decide(&mut self) {
        let format = recognised(&self.name, &self.head, Some(self.framework));
        if format.trust > Trust::Text {
            let teller = self.teller.insert(Teller::new(format, (self.collector)(format.trust)));
            teller.feed(Stream::Out, &std::mem::take(&mut self.head));
        }
    }

    /// From now on we are ending the run.
    pub(super) fn stopping(&mut self) {
        while self.read() {}
        if let Some(teller) = &mut self.teller {
            teller.stopping();
        }
    }

    /// Nobody writes any more. A file without events tells nothing.
    pub(super) fn finish(mut self, ending: &Ending) -> Option<Telling> {
        while self.read() {}
        if self.teller.is_none() {
            self.decide();
        }
        self.teller.map(|teller| teller.finish(ending))
    }
}
