//! Perl, and whoever else puts programs that speak TAP into `t/`.

use super::{Candidate, Confidence, Found};
use crate::Framework;

const MARKERS: [&str; 6] = ["Makefile.PL", "Build.PL", "cpanfile", "dist.ini", "META.json", ".proverc"];

pub(super) fn detect(found: &mut Found<'_>) {
    let tree = found.tree;
    for (directory, files) in tree.directories() {
        let Some(test) = files.iter().find(|name| name.ends_with(".t")) else { continue };
        if directory.file_name() != Some("t") {
            continue;
        }
        let Some(root) = directory.parent() else { continue };
        let marker = tree.first_of(root, &MARKERS);
        let confidence = if marker.is_some() { Confidence::Certain } else { Confidence::Likely };
        let mut candidate =
            Candidate::new(Framework::Tap, root, confidence).because(directory.join(test), "");
        if let Some(marker) = marker {
            candidate = candidate.because(root.join(marker), "");
        }
        found.candidates.push(candidate);
    }
}
