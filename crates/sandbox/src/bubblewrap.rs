//! The rung on which another program makes the namespaces: `bwrap`, where the machine allows them to it alone.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};

use libc::sock_filter;

use crate::layout::Places;
use crate::policy::Network;
use rehearsal_core::sandbox::ProjectMode;

/// Its arguments up to the command. `filter` is the number of a descriptor with the filter of system calls.
pub(crate) fn arguments(
    places: &Places,
    mode: ProjectMode,
    network: Network,
    filter: Option<i32>,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> =
        ["--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/"]
            .map(OsString::from)
            .into();
    let mut add = |words: &[&str]| arguments.extend(words.iter().map(OsString::from));
    if network == Network::Allowed {
        add(&["--share-net"]);
    }
    add(&["--dev", "/dev", "--proc", "/proc"]);
    for hidden in &places.hidden {
        add(&["--tmpfs", hidden.as_str()]);
    }
    for path in &places.readable {
        add(&["--ro-bind", path.as_str(), path.as_str()]);
    }
    let project = places.project.as_str();
    add(&[if mode == ProjectMode::Writable { "--bind" } else { "--ro-bind" }, project, project]);
    let writable = places.writable.iter().map(|path| ("--bind", path));
    let mut on_top: Vec<_> =
        writable.chain(places.protected.iter().map(|path| ("--ro-bind", path))).collect();
    // What is deeper lies over what is around it; of the same place, the second.
    on_top.sort_by_key(|(_, path)| path.components().count());
    for (how, path) in on_top {
        add(&[how, path.as_str(), path.as_str()]);
    }
    for (path, is_directory) in &places.masked {
        if *is_directory {
            add(&["--tmpfs", path.as_str()]);
        } else {
            add(&["--ro-bind", "/dev/null", path.as_str()]);
        }
    }
    if let Some(filter) = filter {
        add(&["--seccomp", &filter.to_string()]);
    }
    add(&["--"]);
    arguments
}

/// The filter in a file as `bwrap` reads it: the kernel's structures one after the other.
pub(crate) fn filter_file(program: &[sock_filter]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create(c"filter", rustix::fs::MemfdFlags::CLOEXEC)?);
    for instruction in program {
        file.write_all(&instruction.code.to_ne_bytes())?;
        file.write_all(&[instruction.jt, instruction.jf])?;
        file.write_all(&instruction.k.to_ne_bytes())?;
    }
    file.rewind()?;
    Ok(file)
}
