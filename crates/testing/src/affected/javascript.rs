//! Jest and Vitest know their graph themselves: they are asked with the changed files.

use rehearsal_core::TestResult;

use super::{Reach, Reached, Selector};
use crate::Changes;

const SOURCES: [&str; 12] =
    [".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".json", ".vue", ".svelte", ".css"];

pub(super) fn reach(files: &[&str], failed_before: &[TestResult], changes: &Changes) -> Reached {
    let mut reach = Reach::default();
    for file in files {
        if let Some(test) = test_of_snapshot(file) {
            reach.selectors.push(Selector::File(test));
            continue;
        }
        if changes.is_deleted(file) {
            return Err(format!("`{file}` is gone, and what imported it cannot be asked for"));
        }
        if !SOURCES.iter().any(|end| file.ends_with(end)) {
            return Err(format!("`{file}` changed, and any test may read it"));
        }
        reach.selectors.push(Selector::RelatedTo((*file).to_owned()));
    }
    // Tests are asked for by files here, and a test stands in one.
    for test in failed_before {
        if test.package.is_empty() {
            return Err(format!("`{}` failed before, and its file is not known", test.name));
        }
        reach.selectors.push(Selector::File(test.package.clone()));
    }
    reach.failed_before = failed_before.len();
    if !files.is_empty() {
        reach.reasons.push(FOLLOWS.to_owned());
    }
    Ok(reach)
}

const FOLLOWS: &str = "the runner follows imports that are written out, not computed ones";

/// `test/__snapshots__/cart.test.js.snap` belongs to `test/cart.test.js`.
fn test_of_snapshot(file: &str) -> Option<String> {
    let test = file.strip_suffix(".snap")?;
    let (directory, name) = test.split_once("__snapshots__/")?;
    Some(format!("{directory}{name}"))
}
