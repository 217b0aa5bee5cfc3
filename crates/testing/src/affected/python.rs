//! Python: who imports whom, from the `import` lines of all files.

mod scan;

use std::collections::{BTreeMap, HashMap};

use rehearsal_core::TestResult;

use super::graph::{Graph, directory, upwards};
use super::{Reach, Reached, Selector};
use crate::Framework;
use crate::analyse::is_test_file;
use scan::{Import, scan};

/// The imports of a project's Python files. Only they are kept of each file.
#[derive(Debug, Clone, Default)]
pub struct PythonImports {
    files: BTreeMap<String, Vec<Import>>,
}

impl PythonImports {
    /// Takes one file, by its name within the project.
    pub fn add(&mut self, file: &str, text: &str) {
        self.files.insert(file.to_owned(), scan(text));
    }
}

pub(super) fn reach(
    framework: Framework,
    changed: &[&str],
    failed_before: &[TestResult],
    imports: &PythonImports,
) -> Reached {
    if let Some(data) = changed.iter().find(|file| !file.ends_with(".py")) {
        return Err(format!("`{data}` changed, and any test may read it"));
    }
    // A file that is gone is still imported.
    let files: Vec<&str> = imports.files.keys().map(String::as_str).chain(changed.iter().copied()).collect();
    let modules = Modules::of(&files);
    let mut graph = Graph::default();
    for file in &files {
        graph.node(file);
    }
    for (file, own) in &imports.files {
        for import in own {
            match import {
                Import::Computed => {
                    for other in changed {
                        graph.depends(other, file);
                    }
                }
                import => {
                    for other in modules.meant_by(import, file) {
                        graph.depends(other, file);
                    }
                }
            }
        }
        // pytest loads these of itself, and Python the packages that a file lies in.
        for beside in upwards(directory(file)) {
            for name in ["conftest.py", "__init__.py"] {
                if let Some(loaded) = modules.at(beside, name).filter(|loaded| loaded != file) {
                    graph.depends(loaded, file);
                }
            }
        }
    }
    let reached = graph.reached_from(changed.iter().copied());
    let mut reach = Reach::default();
    for file in imports.files.keys().filter(|file| holds_tests(file)) {
        if graph.is_reached(&reached, file) {
            reach.selectors.push(Selector::File(file.clone()));
        } else {
            reach.skipped.push(file.clone());
        }
    }
    for test in failed_before {
        // pytest names the file, and would refuse one that is gone; unittest takes parts of names, found or not.
        let file = test.name.split("::").next().unwrap_or_default();
        let is_there = framework == Framework::Unittest || imports.files.contains_key(file);
        let is_reached = reach.selectors.contains(&Selector::File(file.to_owned()));
        if is_there && !is_reached {
            reach.selectors.push(without_parameters(test));
            reach.failed_before += 1;
        }
    }
    let computed = imports.files.values().flatten().filter(|import| **import == Import::Computed).count();
    if computed > 0 && !changed.is_empty() {
        reach.reasons.push("files that compute what they import count as depending on everything".to_owned());
    }
    Ok(reach)
}

/// The function with all its parameters: they may be others now.
fn without_parameters(test: &TestResult) -> Selector {
    let name = test.name.split_once('[').map_or(test.name.as_str(), |(name, _)| name);
    Selector::Test { package: test.package.clone(), name: name.to_owned() }
}

fn holds_tests(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let named =
        name.starts_with("test_") || name.ends_with("_test.py") || matches!(name, "tests.py" | "test.py");
    named || (is_test_file(file) && !matches!(name, "conftest.py" | "__init__.py"))
}

/// Files by the names that they can be imported as. Where a project's roots are is not known, so that every end of a
/// path counts as a name.
struct Modules<'a> {
    by_name: HashMap<String, Vec<&'a str>>,
    by_path: HashMap<&'a str, &'a str>,
}

impl<'a> Modules<'a> {
    fn of(files: &[&'a str]) -> Self {
        let mut modules = Self { by_name: HashMap::new(), by_path: HashMap::new() };
        for file in files {
            modules.by_path.insert(file, file);
            let path = file.strip_suffix(".py").unwrap_or(file);
            let path = path.strip_suffix("/__init__").unwrap_or(path);
            let parts: Vec<&str> = path.split('/').collect();
            for start in 0..parts.len().min(DEEPEST) {
                modules.by_name.entry(parts[start..].join(".")).or_default().push(file);
            }
        }
        modules
    }

    fn at(&self, directory: &str, name: &str) -> Option<&'a str> {
        let path = if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
        self.by_path.get(path.as_str()).copied()
    }

    /// The files that an import may load: the module, the packages above it, and names in it that are modules.
    fn meant_by(&self, import: &Import, from: &str) -> Vec<&'a str> {
        let (module, names) = match import {
            Import::Module(module) => (module.clone(), &[][..]),
            Import::From { up: 0, module, names } => (module.clone(), names.as_slice()),
            Import::From { up, module, names } => {
                let package = upwards(directory(from)).nth(up - 1).unwrap_or_default().replace('/', ".");
                let dot = if package.is_empty() || module.is_empty() { "" } else { "." };
                (format!("{package}{dot}{module}"), names.as_slice())
            }
            Import::Computed => return Vec::new(),
        };
        let mut meant: Vec<&'a str> = Vec::new();
        for (at, _) in module.match_indices('.').chain([(module.len(), "")]) {
            meant.extend(self.by_name.get(&module[..at]).into_iter().flatten());
        }
        for name in names {
            let full = if module.is_empty() { name.clone() } else { format!("{module}.{name}") };
            meant.extend(self.by_name.get(&full).into_iter().flatten());
        }
        meant.sort_unstable();
        meant.dedup();
        meant
    }
}

/// Deeper paths have no more names.
const DEEPEST: usize = 12;
