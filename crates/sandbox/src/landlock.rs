//! What Landlock is told: reading everywhere that is not hidden, writing where the policy says.

use std::ffi::CString;

use camino::{Utf8Path, Utf8PathBuf};

use crate::error::SandboxError;
use crate::plan::LandlockRules;
use crate::sys::LandlockHandled;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
const SCOPE_ABSTRACT_UNIX: u64 = 1;
const SCOPE_SIGNAL: u64 = 1 << 1;
/// The rights that mean something for a file; the kernel refuses others in a rule for one.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
const READ: u64 = EXECUTE | READ_FILE | READ_DIR;

/// The first version that keeps signals and abstract sockets inside.
pub(crate) const ABI_WITH_SCOPES: u32 = 6;

/// What may be done at and below a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Allowed {
    Read(Utf8PathBuf),
    Everything(Utf8PathBuf),
}

/// The rules for a kernel with this version of Landlock.
pub(crate) fn rules(abi: u32, allowed: &[Allowed]) -> Result<LandlockRules, SandboxError> {
    let handled = all_file_rights(abi);
    let scoped = if abi >= ABI_WITH_SCOPES { SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL } else { 0 };
    let allowed = allowed.iter().map(|allowed| {
        let (path, rights) = match allowed {
            Allowed::Read(path) => (path, READ),
            Allowed::Everything(path) => (path, handled),
        };
        let rights = if path.is_dir() { rights } else { rights & OF_FILES };
        Ok((path_c_string(path)?, rights & handled))
    });
    Ok(LandlockRules {
        handled: LandlockHandled { files: handled, network: 0, scoped },
        allowed: allowed.collect::<Result<_, SandboxError>>()?,
    })
}

fn all_file_rights(abi: u32) -> u64 {
    let count = match abi {
        0 | 1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    (1 << count) - 1
}

/// Without mounts, what is hidden cannot be covered: everything around it is named instead.
pub(crate) fn everything_but(hidden: &[Utf8PathBuf]) -> Vec<Allowed> {
    /// More entries than any directory above a home has.
    const MOST: usize = 4096;
    let mut allowed = Vec::new();
    let mut directories = vec![Utf8PathBuf::from("/")];
    while let Some(directory) = directories.pop() {
        if allowed.len() >= MOST || hidden.contains(&directory) {
            continue;
        }
        if !hidden.iter().any(|hidden| hidden.starts_with(&directory)) {
            allowed.push(Allowed::Read(directory));
            continue;
        }
        let Ok(entries) = directory.read_dir_utf8() else { continue };
        directories.extend(entries.filter_map(Result::ok).take(MOST).map(|entry| entry.path().to_owned()));
    }
    allowed
}

pub(crate) fn path_c_string(path: &Utf8Path) -> Result<CString, SandboxError> {
    crate::command::c_string(path.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_around_a_hidden_directory_is_named_and_it_is_not() {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(root.path().canonicalize().unwrap()).unwrap();
        for directory in ["homes/ann", "homes/bob", "srv"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        let allowed = everything_but(&[root.join("homes/ann")]);
        let allows = |path: &str| allowed.contains(&Allowed::Read(root.join(path)));
        assert!(allows("homes/bob") && allows("srv"));
        assert!(!allows("homes") && !allows("homes/ann") && !allowed.contains(&Allowed::Read("/".into())));
    }
}
