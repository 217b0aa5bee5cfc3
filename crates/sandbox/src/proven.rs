//! What was found to hold for policies of one shape. To try it out again for each command would take as long as to start it.

use std::sync::{Mutex, PoisonError};

use camino::Utf8PathBuf;

use crate::means::Available;
use crate::policy::{Limits, Network, Policy};
use rehearsal_core::sandbox::ProjectMode;
use rehearsal_core::sandbox::Rung;

/// A process that runs commands in more places than this has time to try again.
const MOST: usize = 16;

static PROVEN: Mutex<Vec<(Shape, Available)>> = Mutex::new(Vec::new());

/// What decides which layers there are. Directories that one command may write to are not part of it: where one of them cannot be
/// had, the start fails, and everything is tried out after all.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    highest: Rung,
    mode: ProjectMode,
    network: Network,
    project: Utf8PathBuf,
    home: Option<Utf8PathBuf>,
    limits: Limits,
}

impl Shape {
    pub(crate) fn of(policy: &Policy, highest: Rung) -> Self {
        Self {
            highest,
            mode: policy.mode,
            network: policy.network,
            project: policy.project.clone(),
            home: policy.home.clone(),
            limits: policy.limits,
        }
    }
}

pub(crate) fn recall(shape: &Shape) -> Option<Available> {
    let proven = PROVEN.lock().unwrap_or_else(PoisonError::into_inner);
    proven.iter().find(|(known, _)| known == shape).map(|(_, available)| available.clone())
}

pub(crate) fn remember(shape: Shape, available: &Available) {
    let mut proven = PROVEN.lock().unwrap_or_else(PoisonError::into_inner);
    proven.retain(|(known, _)| *known != shape);
    if proven.len() >= MOST {
        proven.remove(0);
    }
    proven.push((shape, available.clone()));
}
