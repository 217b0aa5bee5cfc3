//! What cannot be wanted of a model that is asked directly.

use rehearsal_core::SourceError;
use rehearsal_core::yaml::Spanned;

use crate::assertion::{Assertion, AssertionFile};
use crate::case::{CaseFile, EvalFile, RepositoryFile};
use crate::direct::Direct;

/// The assertions of the eval and of the case are in the order in which they were written.
pub(super) fn check(
    agent: &str,
    direct: Direct<'_>,
    file: &EvalFile,
    case: &Spanned<CaseFile>,
    (common, own): (&[Assertion], &[Assertion]),
) -> Result<(), SourceError> {
    let at_case = |message: String| Err(SourceError::at(case.place, message));
    let name = &case.value.name;
    if let Direct::Model { name: "", .. } = direct {
        return at_case(format!("`{agent}` names no model"));
    }
    if !file.models.is_empty() {
        return at_case(format!("`{agent}` is asked as it is: it has no `models` to choose from"));
    }
    if !file.flows.is_empty() {
        return at_case(format!("`{agent}` is asked once: it goes through no `flows`"));
    }
    if case.value.repository != RepositoryFile::default() {
        return at_case(format!("`{agent}` has no repository: case `{name}` gives it one"));
    }
    if case.value.setup.is_some() {
        return at_case(format!("`{agent}` has no repository: case `{name}` sets one up"));
    }
    let written: [(&[Spanned<AssertionFile>], _); 2] =
        [(&file.assertions, common), (&case.value.assertions, own)];
    for (file, assertion) in written.into_iter().flat_map(|(files, read)| files.iter().zip(read)) {
        if assertion.needs_repository() {
            let message = format!("`{agent}` has no repository: `{}` cannot be said of it", assertion.name);
            return Err(SourceError::at(file.place, message));
        }
    }
    Ok(())
}
