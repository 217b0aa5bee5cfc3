//! Opening files that someone else named or made: they may be anything.

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;

use camino::Utf8Path;
use rustix::fs::OFlags;

/// Opens a regular file to be read. Never waits: a FIFO is opened without blocking and then refused, as is a device, of
/// which no one knows where it ends.
pub(crate) fn open(path: &Utf8Path) -> std::io::Result<File> {
    let no_wait = i32::try_from(OFlags::NONBLOCK.bits()).map_err(Error::other)?;
    let told = |error: Error| Error::new(error.kind(), format!("`{path}` cannot be opened: {error}"));
    let file = File::options().read(true).custom_flags(no_wait).open(path).map_err(told)?;
    if !file.metadata().map_err(told)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, format!("`{path}` is not a regular file")));
    }
    Ok(file)
}
