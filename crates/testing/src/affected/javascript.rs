//! Jest and Vitest know their graph themselves: they are asked with the changed files.

use super::{Reach, Reached, Selector};
use crate::Changes;

const SOURCES: [&str; 12] =
    [".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".json", ".vue", ".svelte", ".css"];

pub(super) fn reach(files: &[&str], changes: &Changes) -> Reached {
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
    reach.reasons.push("the runner follows imports that are written out, not computed ones".to_owned());
    Ok(reach)
}

/// `test/__snapshots__/cart.test.js.snap` belongs to `test/cart.test.js`.
fn test_of_snapshot(file: &str) -> Option<String> {
    let test = file.strip_suffix(".snap")?;
    let (directory, name) = test.split_once("__snapshots__/")?;
    Some(format!("{directory}{name}"))
}
