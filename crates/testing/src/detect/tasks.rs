//! Commands that a project offers for its tests: of use where no runner was found.

use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};

use super::{Candidate, Confidence, Found, Invocation};
use crate::Framework;

/// Only the root is looked at: below it a runner that nobody knows would be one guess too many.
pub(super) fn detect(found: &mut Found<'_>) {
    let root = Utf8Path::new("");
    let offers = [
        makefile(found, root),
        justfile(found, root),
        marker(found, root, "tox.ini", &["tox"]),
        marker(found, root, "noxfile.py", &["nox"]),
        executable(found, "test"),
        executable(found, "script/test"),
        executable(found, "scripts/test.sh"),
        executable(found, "bin/test"),
        executable(found, "test.sh"),
    ];
    let runner_found = found.candidates.iter().any(|it| it.passed_over.is_none());
    let mut first = None;
    for mut offer in offers.into_iter().flatten() {
        if runner_found {
            offer.passed_over = Some("the runners themselves were found, and tell more".to_owned());
        } else if let Some(first) = &first {
            offer.passed_over = Some(format!("`{first}` is tried first"));
        } else {
            first = Some(offer.invocation.command.join(" "));
        }
        found.add(offer);
    }
}

fn offer(file: impl Into<Utf8PathBuf>, what: &str, command: &[&str]) -> Candidate {
    let mut candidate =
        Candidate::new(Framework::Generic, Utf8Path::new(""), Confidence::Guess).because(file, what);
    let command = command.iter().map(|&word| word.to_owned()).collect();
    candidate.invocation = Invocation { command, ..Invocation::default() };
    candidate
}

fn makefile(found: &Found<'_>, root: &Utf8Path) -> Option<Candidate> {
    let name = found.tree.first_of(root, &["GNUmakefile", "makefile", "Makefile"])?;
    let text = found.tree.read(root, name)?;
    let target = ["test", "check", "tests"].into_iter().find(|target| {
        text.lines().any(|line| line.strip_prefix(target).is_some_and(|rest| is_rule(rest.trim_start())))
    })?;
    Some(offer(name, &format!("target `{target}`"), &["make", target]))
}

/// What follows the target of a rule; `test := …` is a variable.
fn is_rule(rest: &str) -> bool {
    rest.starts_with(':') && !rest.starts_with(":=") && !rest.starts_with("::=")
}

fn justfile(found: &Found<'_>, root: &Utf8Path) -> Option<Candidate> {
    let name = found.tree.first_of(root, &["justfile", "Justfile", ".justfile"])?;
    let text = found.tree.read(root, name)?;
    let is_recipe = |line: &str| {
        let line = line.strip_prefix('@').unwrap_or(line);
        let rest = line.strip_prefix("test");
        rest.is_some_and(|rest| rest.starts_with([':', ' ']) && rest.contains(':') && !rest.contains(":="))
    };
    text.lines().any(is_recipe).then(|| offer(name, "recipe `test`", &["just", "test"]))
}

fn marker(found: &Found<'_>, root: &Utf8Path, name: &str, command: &[&str]) -> Option<Candidate> {
    found.tree.has(root, name).then(|| offer(name, "", command))
}

fn executable(found: &Found<'_>, path: &str) -> Option<Candidate> {
    let absolute = found.tree.root().join(path);
    let metadata = absolute.symlink_metadata().ok()?;
    let runs = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
    runs.then(|| offer(path, "can be executed", &[&format!("./{path}")]))
}
