//! What this machine can do, for whoever asks before there is a command.

use camino::Utf8PathBuf;

use crate::error::SandboxError;
use crate::policy::Policy;
use crate::sandbox::Sandbox;
use rehearsal_core::sandbox::SandboxReport;

/// What the usual policy would get here. Every layer is tried by using it.
pub fn probe(project: impl Into<Utf8PathBuf>) -> Result<SandboxReport, SandboxError> {
    Ok(Sandbox::prepare(&Policy::new(project))?.report().clone())
}
