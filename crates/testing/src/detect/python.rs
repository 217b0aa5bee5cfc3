//! Python: pytest, unittest, and Django's runner.

use camino::{Utf8Path, Utf8PathBuf};

use super::{Candidate, Confidence, Evidence, Found, Invocation};
use crate::Framework;

/// Files that make a directory a project.
const MARKERS: [&str; 9] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "Pipfile",
    "manage.py",
    "requirements.txt",
];
/// Files in which a dependency on pytest stands.
const DEPENDENCIES: [&str; 10] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
    "test-requirements.txt",
    "Pipfile",
    "tox.ini",
];
/// So many test files are read to see how they are written.
const READ: usize = 20;

pub(super) fn detect(found: &mut Found<'_>) {
    let tree = found.tree;
    let is_marked = |path: &Utf8Path| tree.first_of(path, &MARKERS).is_some();
    let packages = package_roots(found, &is_marked);
    let is_project = |path: &Utf8Path| is_marked(path) || packages.iter().any(|root| root == path);
    let mut roots: Vec<Utf8PathBuf> = tree
        .directories()
        .map(|(path, _)| path)
        .filter(|path| is_project(path))
        .map(Utf8Path::to_owned)
        .collect();
    // Tests that no project holds belong to the repository.
    if !roots.iter().any(|root| root.as_str().is_empty()) {
        roots.insert(0, Utf8PathBuf::new());
    }
    let first_own = found.candidates.len();
    for root in &roots {
        let candidate = candidate_of(found, root, &|path| is_project(path));
        found.candidates.extend(candidate);
    }
    leave_to_nested(&mut found.candidates[first_own..]);
}

/// Directories that hold packages of tests, where no project does: what is below can be imported only from there.
fn package_roots(found: &Found<'_>, is_marked: &dyn Fn(&Utf8Path) -> bool) -> Vec<Utf8PathBuf> {
    let is_package = |path: &Utf8Path| found.tree.has(path, "__init__.py");
    let mut roots: Vec<Utf8PathBuf> = test_files(found, Utf8Path::new(""), is_marked)
        .iter()
        .filter_map(|test| test.parent().filter(|directory| is_package(directory)))
        .filter_map(|directory| directory.ancestors().find(|path| !is_package(path)))
        .filter(|root| !root.as_str().is_empty() && !is_marked(Utf8Path::new("")))
        .map(Utf8Path::to_owned)
        .collect();
    roots.sort();
    roots.dedup();
    roots
}

fn candidate_of(found: &Found<'_>, root: &Utf8Path, stop: &dyn Fn(&Utf8Path) -> bool) -> Option<Candidate> {
    let tests = test_files(found, root, stop);
    let first = tests.first()?.clone();
    let configured = pytest_config(found, root);
    let certain = configured.is_some();
    let written =
        configured.or_else(|| pytest_dependency(found, root)).or_else(|| written_for_pytest(found, &tests));
    if let Some(evidence) = written {
        let confidence = if certain { Confidence::Certain } else { Confidence::Likely };
        let mut candidate = Candidate::new(Framework::Pytest, root, confidence);
        candidate.evidence.push(evidence);
        return Some(candidate.because(first, ""));
    }
    if found.tree.has(root, "manage.py") {
        let mut candidate = Candidate::new(Framework::Unittest, root, Confidence::Likely)
            .because(root.join("manage.py"), "Django's runner")
            .because(first, "");
        let command = ["python", "manage.py", "test"].map(str::to_owned).into();
        candidate.invocation = Invocation { command, ..Invocation::default() };
        return Some(candidate);
    }
    let unittest = tests.iter().take(READ).find(|file| text(found, file).contains("unittest"))?;
    let mut candidate = Candidate::new(Framework::Unittest, root, Confidence::Likely)
        .because(unittest.clone(), "uses unittest, and nothing names pytest");
    candidate.invocation.targets.extend(directory_without_package(found, root, unittest));
    Some(candidate)
}

/// unittest's discovery enters only packages: a directory of tests that is none must be named.
fn directory_without_package(found: &Found<'_>, root: &Utf8Path, test: &Utf8Path) -> Option<String> {
    let directory = test.parent()?;
    let relative = directory.strip_prefix(root).ok().filter(|it| !it.as_str().is_empty())?;
    (!found.tree.has(directory, "__init__.py")).then(|| relative.to_string())
}

fn is_test(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".py") else { return false };
    stem.starts_with("test_") || stem.ends_with("_test") || stem == "tests" || stem == "test"
}

/// At most as many as are looked at.
fn test_files(found: &Found<'_>, root: &Utf8Path, stop: &dyn Fn(&Utf8Path) -> bool) -> Vec<Utf8PathBuf> {
    found
        .tree
        .below(root, stop)
        .flat_map(|(path, files)| files.iter().filter(|name| is_test(name)).map(move |name| path.join(name)))
        .take(READ)
        .collect()
}

/// The place where pytest is configured.
fn pytest_config(found: &Found<'_>, root: &Utf8Path) -> Option<Evidence> {
    let tree = found.tree;
    let evidence = |name: &str, what: &str| Evidence { file: root.join(name), what: what.to_owned() };
    if let Some(name) = tree.first_of(root, &["pytest.ini", ".pytest.ini", "pytest.toml"]) {
        return Some(evidence(name, ""));
    }
    for (name, sections) in [
        ("pyproject.toml", &["[tool.pytest.ini_options]", "[tool.pytest]"][..]),
        ("setup.cfg", &["[tool:pytest]"]),
        ("tox.ini", &["[pytest]"]),
    ] {
        let text = tree.read(root, name).unwrap_or_default();
        let section = sections.iter().find(|section| text.lines().any(|line| line.trim() == **section));
        if let Some(section) = section {
            return Some(evidence(name, section));
        }
    }
    tree.has(root, "conftest.py").then(|| evidence("conftest.py", ""))
}

fn pytest_dependency(found: &Found<'_>, root: &Utf8Path) -> Option<Evidence> {
    let names = |text: &str| {
        text.lines().map(|line| line.split('#').next().unwrap_or_default()).any(|line| {
            line.match_indices("pytest").any(|(at, _)| {
                let before = line[..at].chars().next_back();
                before.is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '_' && c != '.')
            })
        })
    };
    let file = DEPENDENCIES.iter().find(|name| names(&found.tree.read(root, name).unwrap_or_default()))?;
    Some(Evidence { file: root.join(file), what: "names pytest".to_owned() })
}

/// Functions that begin with `test_` at the left margin are for pytest alone.
fn written_for_pytest(found: &Found<'_>, tests: &[Utf8PathBuf]) -> Option<Evidence> {
    tests.iter().find_map(|file| {
        let text = text(found, file);
        let line = text.lines().find(|line| {
            let imports = ["import pytest", "from pytest"].iter().any(|start| line.starts_with(start));
            imports || line.starts_with("def test_") || line.starts_with("async def test_")
        })?;
        let what = line.split('(').next().unwrap_or_default().chars().take(60).collect();
        Some(Evidence { file: file.clone(), what })
    })
}

fn text(found: &Found<'_>, file: &Utf8Path) -> String {
    let directory = file.parent().unwrap_or(Utf8Path::new(""));
    found.tree.read(directory, file.file_name().unwrap_or_default()).unwrap_or_default()
}

/// A project with its own files below another one has its own environment, and is run there: the upper one leaves
/// it out.
fn leave_to_nested(candidates: &mut [Candidate]) {
    let roots: Vec<Utf8PathBuf> = candidates.iter().map(|it| it.root.clone()).collect();
    for candidate in candidates {
        let nested =
            roots.iter().filter(|root| **root != candidate.root && root.starts_with(&candidate.root));
        candidate.invocation.leave_out = nested
            .filter_map(|root| root.strip_prefix(&candidate.root).ok().map(ToString::to_string))
            .collect();
    }
}
