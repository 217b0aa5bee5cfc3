//! What an agent has written and we have not written down yet, in memory that outlives us.
//!
//! Read from a pipe into our own memory, output would be lost with us. The kernel moves it into a file in memory instead,
//! of which the shim has a duplicate; a mark beside it says up to where, in whole lines, it stands in the log. Whoever
//! adopts the agent cuts the log at the mark and goes on from there: no line is lost, and none comes twice.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::pipe::{SpliceFlags, splice};

use crate::policy::{MAX_SPOOLED, SPOOL_RENEWED};

#[derive(Debug)]
pub(super) struct Spool {
    raw: File,
    marks: File,
    /// How much `raw` holds, and how much of that was taken from it.
    length: u64,
    taken: u64,
    mark: Mark,
    /// Up to where the memory of `raw` was given back.
    freed: u64,
}

/// A moment at which a line was written whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// How far into `raw`.
    raw: u64,
    /// How long the log was.
    pub(super) log: u64,
    /// It is no end of a line: this one was too long to be kept. The rest of it must not be read alone, for it may be the
    /// rest of a secret.
    pub(super) is_within_line: bool,
}

impl Mark {
    const LENGTH: usize = 24;

    fn encode(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        for (place, number) in [self.raw, self.log, self.is_within_line.into()].into_iter().enumerate() {
            bytes[place * 8..][..8].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: [u8; Self::LENGTH]) -> Self {
        let number = |place: usize| {
            let eight = bytes.get(place * 8..).and_then(|rest| rest.first_chunk());
            eight.map_or(0, |eight| u64::from_le_bytes(*eight))
        };
        Self { raw: number(0), log: number(1), is_within_line: number(2) != 0 }
    }
}

impl Spool {
    /// An empty one, for a log that has this length.
    pub(super) fn new(log: u64) -> io::Result<Self> {
        let make = |name: &str| memfd_create(name, MemfdFlags::CLOEXEC).map(File::from);
        let mark = Mark { raw: 0, log, is_within_line: false };
        let (raw, marks) = (make("spool")?, make("marks")?);
        let mut spool = Self { raw, marks, length: 0, taken: 0, mark, freed: 0 };
        spool.set_mark(mark)?;
        Ok(spool)
    }

    /// The one that a dead worker has left.
    pub(super) fn found(kept: Vec<OwnedFd>) -> io::Result<Self> {
        let mut kept = kept.into_iter().map(File::from);
        let (Some(raw), Some(marks)) = (kept.next(), kept.next()) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let mut bytes = [0; Mark::LENGTH];
        marks.read_exact_at(&mut bytes, 0)?;
        let length = raw.metadata()?.len();
        let mark = Mark::decode(bytes);
        if mark.raw > length {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { raw, marks, length, taken: mark.raw, mark, freed: mark.raw })
    }

    /// For the shim, to be handed to whoever adopts the agent.
    pub(super) fn duplicates(&self) -> io::Result<Vec<OwnedFd>> {
        [&self.raw, &self.marks].into_iter().map(|file| file.as_fd().try_clone_to_owned()).collect()
    }

    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    /// Moves what a pipe has into the spool, as much as fits into the chunk; zero when the pipe is closed.
    pub(super) fn fill_from(&mut self, pipe: impl AsFd, chunk: &mut [u8]) -> io::Result<usize> {
        let mut end = self.length;
        let moved = splice(pipe, None, &self.raw, Some(&mut end), chunk.len(), SpliceFlags::NONBLOCK)?;
        self.length += moved as u64;
        self.next(chunk)
    }

    /// The next bytes that were not taken yet; zero when there are none.
    pub(super) fn next(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length - self.taken).unwrap_or(usize::MAX).min(chunk.len());
        self.raw.read_exact_at(&mut chunk[..left], self.taken)?;
        self.taken += left as u64;
        Ok(left)
    }

    /// What was taken is written, but for so many bytes at its end: it ends with a whole line, and the log has this
    /// length.
    pub(super) fn written(&mut self, but: usize, log: u64) -> io::Result<()> {
        let raw = self.taken - but as u64;
        self.set_mark(Mark { raw, log, is_within_line: false })
    }

    /// All that was taken is written, and the line goes on. It is kept until it becomes too long.
    pub(super) fn written_in_part(&mut self, log: u64) -> io::Result<()> {
        if self.taken - self.mark.raw <= MAX_SPOOLED {
            return Ok(());
        }
        self.set_mark(Mark { raw: self.taken, log, is_within_line: true })
    }

    /// What is before the mark is not needed any more, and its memory is given back from time to time.
    fn set_mark(&mut self, mark: Mark) -> io::Result<()> {
        self.marks.write_all_at(&mark.encode(), 0)?;
        self.mark = mark;
        let done = mark.raw - self.freed;
        if done >= SPOOL_RENEWED {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.raw, hole, self.freed, done)?;
            self.freed = mark.raw;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// As the next worker finds it.
    fn found(spool: &Spool) -> Spool {
        Spool::found(spool.duplicates().unwrap()).unwrap()
    }

    fn rest_of(mut spool: Spool) -> String {
        let mut chunk = [0; 64];
        let length = spool.next(&mut chunk).unwrap();
        String::from_utf8(chunk[..length].to_vec()).unwrap()
    }

    #[test]
    fn what_was_taken_from_a_pipe_and_not_written_is_there_for_the_next_one() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut spool = Spool::new(10).unwrap();
        assert_eq!((rest_of(found(&spool)), found(&spool).mark().log), (String::new(), 10));
        writer.write_all(b"one\ntwo\nthr").unwrap();
        let mut chunk = [0; 64];
        assert_eq!(spool.fill_from(&reader, &mut chunk).unwrap(), 11);
        assert_eq!(&chunk[..11], b"one\ntwo\nthr");
        assert_eq!(rest_of(found(&spool)), "one\ntwo\nthr", "nothing is written yet");
        spool.written(3, 18).unwrap();
        spool.written_in_part(21).unwrap();
        assert_eq!((rest_of(found(&spool)), found(&spool).mark().log), ("thr".to_owned(), 18));
        drop(writer);
        assert_eq!(spool.fill_from(&reader, &mut chunk).unwrap(), 0, "the pipe is closed");
    }

    #[test]
    fn it_does_not_grow_with_what_goes_through_it() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut spool = Spool::new(0).unwrap();
        let mut chunk = vec![0; 1 << 16];
        let lines = "a line of an agent\n".repeat(2_000);
        let endless = "x".repeat(1 << 15);
        for round in 0_u64..1_000 {
            // Whatever is read at once, hardly ever ends with a line.
            let (text, rest) = if round < 500 { (&lines[..lines.len() - 4], 15) } else { (&*endless, 0) };
            writer.write_all(text.as_bytes()).unwrap();
            assert_eq!(spool.fill_from(&reader, &mut chunk).unwrap(), text.len());
            if rest > 0 {
                spool.written(rest, round).unwrap();
            }
            spool.written_in_part(round).unwrap();
            let kept = spool.raw.metadata().unwrap().blocks() * 512;
            assert!(kept <= MAX_SPOOLED + 2 * SPOOL_RENEWED, "{kept}");
        }
        assert!(found(&spool).mark().is_within_line);
    }
}
