//! The output as it came: its ends for the report, all of it in a file.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};

use crate::raw_ends::RawEnds;

/// No disk is filled by a test that prints without end.
const LARGEST_FILE: u64 = 1 << 30;

/// Takes all that was printed, on both streams in the order of its arrival.
pub(crate) struct Raw {
    ends: RawEnds,
    file: Option<(Utf8PathBuf, std::io::BufWriter<fs_err::File>)>,
    room: u64,
    pub notes: Vec<String>,
}

impl Raw {
    pub(crate) fn new(path: Option<&Utf8Path>) -> Self {
        let mut raw = Self { ends: RawEnds::new(), file: None, room: LARGEST_FILE, notes: Vec::new() };
        if let Some(path) = path {
            match fs_err::File::create(path) {
                Ok(file) => {
                    raw.file = Some((path.to_owned(), std::io::BufWriter::with_capacity(64 << 10, file)))
                }
                Err(error) => raw.notes.push(format!("the output is not kept: {error}")),
            }
        }
        raw
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.spill(bytes);
        self.ends.push(bytes);
    }

    fn spill(&mut self, bytes: &[u8]) {
        let Some((_, file)) = &mut self.file else { return };
        let fits = bytes.len().min(usize::try_from(self.room).unwrap_or(usize::MAX));
        if fits < bytes.len() && self.room > 0 {
            self.notes.push(format!("only the first {LARGEST_FILE} bytes of the output are kept"));
        }
        self.room -= fits as u64;
        if let Err(error) = file.write_all(&bytes[..fits]) {
            self.notes.push(format!("the output is not kept whole: {error}"));
            self.room = 0;
        }
    }

    /// The ends of it, and the file.
    pub(crate) fn finish(mut self) -> (String, Option<Utf8PathBuf>, Vec<String>) {
        let path = self.file.map(|(path, mut file)| {
            if let Err(error) = file.flush() {
                self.notes.push(format!("the output is not kept whole: {error}"));
            }
            path
        });
        (self.ends.into_text(), path, self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_come_in_two_pieces_stay_whole_and_others_are_replaced() {
        let mut raw = Raw::new(None);
        for piece in ["é".as_bytes().split_at(1).0, &"é".as_bytes()[1..], b"\xff!", b"\xe2\x82"] {
            raw.push(piece);
        }
        assert_eq!(raw.finish().0, "é\u{fffd}!\u{fffd}");
    }

    #[test]
    fn all_of_it_is_in_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap().join("output.log");
        let mut raw = Raw::new(Some(&path));
        for _ in 0..100 {
            raw.push(&[b'x'; 1000]);
        }
        let (ends, file, notes) = raw.finish();
        assert!(ends.contains("bytes left out"));
        assert_eq!((file.as_ref(), notes.len()), (Some(&path), 0));
        assert_eq!(fs_err::read(path).unwrap().len(), 100_000);
    }
}
