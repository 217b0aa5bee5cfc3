//! Go: modules, and workspaces of them.

use camino::{Utf8Path, Utf8PathBuf};

use super::{Candidate, Confidence, Found};
use crate::Framework;

pub(super) fn detect(found: &mut Found<'_>) {
    let tree = found.tree;
    let workspaces: Vec<(Utf8PathBuf, Vec<Utf8PathBuf>)> = tree
        .having("go.work")
        .map(|root| (root.to_owned(), used_modules(&tree.read(root, "go.work").unwrap_or_default(), root)))
        .collect();
    for (root, modules) in &workspaces {
        let tested: Vec<_> = modules.iter().filter(|module| tests_in(found, module).is_some()).collect();
        let mut candidate = Candidate::new(Framework::Go, root, Confidence::Certain)
            .because(root.join("go.work"), format!("uses {} modules", modules.len()));
        if tested.is_empty() {
            candidate = candidate.passed_over("its modules have no `*_test.go`");
        }
        candidate.invocation.targets = tested.iter().map(|module| packages_of(module, root)).collect();
        found.add(candidate);
    }
    for module in tree.having("go.mod") {
        let mut candidate = Candidate::new(Framework::Go, module, Confidence::Certain)
            .because(module.join("go.mod"), "a module");
        match tests_in(found, module) {
            Some(test) => candidate = candidate.because(test, ""),
            None => candidate = candidate.passed_over("it has no `*_test.go`"),
        }
        let workspace = workspaces.iter().find(|(_, modules)| modules.iter().any(|it| it == module));
        if let Some((root, _)) = workspace {
            let file = root.join("go.work");
            candidate = candidate.passed_over(format!("it is run with the workspace of `{file}`"));
        }
        found.add(candidate);
    }
}

/// A test file of the module itself. What begins with `_` or `.`, and `testdata`, the go tool passes by.
fn tests_in(found: &Found<'_>, module: &Utf8Path) -> Option<Utf8PathBuf> {
    let not_its_own = |path: &Utf8Path| {
        let name = path.file_name().unwrap_or_default();
        found.tree.has(path, "go.mod") || name.starts_with(['_', '.']) || name == "testdata"
    };
    found
        .tree
        .find_below(module, not_its_own, |name| name.ends_with("_test.go") && !name.starts_with(['_', '.']))
}

fn packages_of(module: &Utf8Path, workspace: &Utf8Path) -> String {
    let relative = module.strip_prefix(workspace).unwrap_or(module);
    if relative.as_str().is_empty() { "./...".to_owned() } else { format!("./{relative}/...") }
}

/// The directories that `use` names, alone or in a block.
fn used_modules(text: &str, root: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut modules = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let path = match line.strip_prefix("use") {
            Some(rest) if rest.trim() == "(" => {
                in_block = true;
                continue;
            }
            Some(rest) if rest.starts_with([' ', '\t', '"']) => rest,
            _ if line == ")" => {
                in_block = false;
                continue;
            }
            _ if in_block => line,
            _ => continue,
        };
        let path = path.trim().trim_matches(['"', '`']);
        let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
        let inside = !path.is_empty() && !path.starts_with('/') && !path.split('/').any(|part| part == "..");
        if inside {
            modules.push(if path == "." { root.to_owned() } else { root.join(path) });
        }
    }
    modules
}
