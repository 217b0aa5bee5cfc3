//! pytest and unittest, with the interpreter of the project's own environment.

use camino::Utf8PathBuf;

use super::{CoverageFile, CoverageFormat, FirstSignal, Pattern, Planner, RunPlan};
use crate::detect::file::read_inside;

/// Environments that projects have in their own directory.
const ENVIRONMENTS: [&str; 3] = [".venv", "venv", "env"];

pub(super) fn pytest(planner: &Planner<'_>) -> RunPlan {
    let mut plan = start(planner);
    plan.first_signal = FirstSignal::Interrupt;
    plan.args(["-m", "pytest"]);
    plan.inject(planner, None);
    let report = planner.scratch("junit.xml");
    plan.args(["-p".to_owned(), "no:cacheprovider".to_owned(), format!("--junit-xml={report}")]);
    plan.reads(report);
    if let Some(count) = planner.wish.parallel {
        if installed(planner, "xdist") {
            plan.arg(format!("--numprocesses={count}"));
        } else if count > 1 {
            plan.note("one test at a time: pytest-xdist is not installed");
        }
    }
    if planner.wish.coverage {
        if installed(planner, "pytest_cov") {
            let path = planner.scratch("coverage.json");
            plan.args(["--cov".to_owned(), format!("--cov-report=json:{path}")]);
            plan.set("COVERAGE_FILE", planner.scratch("coverage.db"));
            plan.coverage = Some(CoverageFile::new(path, CoverageFormat::CoveragePy));
        } else {
            plan.note("no coverage: pytest-cov is not installed");
        }
    }
    select_in_pytest(planner, &mut plan);
    plan
}

fn select_in_pytest(planner: &Planner<'_>, plan: &mut RunPlan) {
    let selection = planner.selection();
    let (files, names) = selection.wanted(&planner.root);
    let (unwanted_files, unwanted) = selection.unwanted(&planner.root);
    for file in unwanted_files {
        let option = if file.text().contains("::") { "deselect" } else { "ignore" };
        plan.arg(format!("--{option}={}", file.text()));
    }
    for nested in &planner.candidate.invocation.leave_out {
        plan.arg(format!("--ignore={nested}"));
    }
    if names.iter().chain(&unwanted).any(|pattern| pattern.has_wildcard()) {
        plan.note("pytest's `-k` knows parts of names and no wildcards: it may select more than was meant");
    }
    let wanted = joined(&names, " or ");
    let unwanted = joined(&unwanted, " or ").map(|names| format!("not ({names})"));
    let wanted = if unwanted.is_some() { wanted.map(|names| format!("({names})")) } else { wanted };
    let both: Vec<String> = wanted.into_iter().chain(unwanted).collect();
    if !both.is_empty() {
        plan.args(["-k".to_owned(), both.join(" and ")]);
    }
    let mut nodes: Vec<String> = selection.tests.iter().map(|test| node(planner, &test.name)).collect();
    // Of one function with many parameters many may have failed.
    nodes.dedup();
    plan.args(nodes);
    plan.args(selection.reached_files(&planner.root));
    plan.args(files.iter().map(|file| file.text()));
}

/// How pytest is asked for a test of an earlier run: it refuses to run anything if one of those it is asked for is not
/// there any more. Then it is all of the file.
fn node<'t>(planner: &Planner<'_>, name: &'t str) -> String {
    let mut parts = name.split("::");
    let file = parts.next().unwrap_or_default();
    let text = read_inside(&planner.root, &planner.root.join(file)).unwrap_or_default();
    let has = |part: &'t str| {
        let plain = part.split('[').next().unwrap_or(part);
        text.contains(&format!("def {plain}(")) || text.contains(&format!("class {plain}"))
    };
    if parts.all(has) { name.to_owned() } else { file.to_owned() }
}

/// An expression for `-k`, in which only these characters make up a name.
fn joined(patterns: &[&Pattern], by: &str) -> Option<String> {
    let is_name = |c: char| c.is_alphanumeric() || "_:+-.[]/".contains(c);
    let terms: Vec<String> = patterns
        .iter()
        .filter_map(|pattern| {
            let parts: Vec<_> =
                pattern.text().split(|c| !is_name(c)).filter(|part| !part.is_empty()).collect();
            (!parts.is_empty()).then(|| parts.join(" and "))
        })
        .collect();
    (!terms.is_empty()).then(|| terms.join(by))
}

pub(super) fn unittest(planner: &Planner<'_>) -> RunPlan {
    let mut plan = start(planner);
    plan.first_signal = FirstSignal::Interrupt;
    let own = &planner.candidate.invocation.command;
    if own.is_empty() {
        plan.args(["-u", "-m", "unittest", "discover", "-v"]);
        if let Some(directory) = planner.targets().first() {
            plan.args(["-s", directory]);
        }
    } else {
        plan.args(own[1..].iter().cloned().chain(["--verbosity=2".to_owned(), "--noinput".to_owned()]));
    }
    let (files, names) = planner.selection().wanted(&planner.root);
    let reached = planner.selection().reached_files(&planner.root);
    if !names.is_empty() && !reached.is_empty() {
        plan.note(
            "unittest runs what fits any of its patterns: tests that the change does not reach are run too",
        );
    }
    for name in &names {
        // unittest puts stars around what has none; a star of the user's own is meant for one part of the dotted name.
        let shape = if name.has_wildcard() { format!("*.{}", name.text()) } else { name.text().to_owned() };
        plan.args(["-k".to_owned(), shape]);
    }
    let reached_too = names.is_empty();
    for test in planner.selection().tests.iter().filter(|_| reached_too) {
        plan.args(["-k", &test.name]);
    }
    // Its names begin with the module, with or without the packages above it.
    for file in reached.into_iter().filter(|_| reached_too) {
        let module = file.rsplit('/').next().unwrap_or(&file).trim_end_matches(".py");
        plan.args(["-k".to_owned(), format!("*{module}.*")]);
    }
    for file in files {
        let (directory, name) = file.text().rsplit_once('/').unwrap_or((".", file.text()));
        plan.args(["-s", directory, "-p", name]);
    }
    if !planner.selection().exclude.is_empty() {
        plan.note("unittest cannot leave tests out: the excluded ones are run too");
    }
    if planner.wish.coverage {
        plan.note("no coverage: unittest has none of its own");
    }
    plan
}

/// The interpreter of the project: what its lock file asks for, its own environment, the active one, the machine's.
pub(crate) fn start(planner: &Planner<'_>) -> RunPlan {
    if let Some((manager, lock)) = manager(planner) {
        let mut plan = planner.start(planner.find(manager), manager);
        plan.args(["run", "python"]);
        plan.note(format!("`{lock}` is there: run by {manager}"));
        if manager == "uv" {
            plan.set("UV_OFFLINE", "1");
            plan.writable.extend(planner.machine.cache("UV_CACHE_DIR", ".cache/uv"));
        }
        return with_settings(plan);
    }
    let own = interpreter(planner);
    // The environment may be a link, or the active one of the user.
    let environment = own.as_ref().and_then(|python| python.parent()?.parent()?.canonicalize_utf8().ok());
    let python = own.or_else(|| planner.find("python3")).or_else(|| planner.find("python"));
    let mut plan = planner.start(python, "python3");
    plan.readable.extend(environment.filter(|it| !it.starts_with(planner.repository)));
    with_settings(plan)
}

/// A tool of the project: of its own environment, else the machine's, else what the manager of its environment has.
pub(crate) fn tool(planner: &Planner<'_>, name: &str) -> RunPlan {
    let own = interpreter(planner).and_then(|python| Some(python.parent()?.join(name)));
    let own = own.filter(|program| program.is_file());
    let environment = own.as_ref().and_then(|program| program.parent()?.parent()?.canonicalize_utf8().ok());
    let found = own.or_else(|| planner.find(name));
    let managed = manager(planner).filter(|_| found.is_none());
    let mut plan = match managed {
        Some((manager, _)) => {
            let mut plan = planner.start(planner.find(manager), manager);
            plan.args(["run", name]);
            plan
        }
        None => planner.start(found, name),
    };
    plan.readable.extend(environment.filter(|it| !it.starts_with(planner.repository)));
    with_settings(plan)
}

fn with_settings(mut plan: RunPlan) -> RunPlan {
    plan.set("PYTHONUNBUFFERED", "1");
    plan.set("PYTHONDONTWRITEBYTECODE", "1");
    plan
}

/// The manager of the environment, where it keeps that outside of the project.
fn manager(planner: &Planner<'_>) -> Option<(&'static str, &'static str)> {
    if interpreter(planner).is_some() {
        return None;
    }
    [("uv", "uv.lock"), ("poetry", "poetry.lock"), ("pipenv", "Pipfile.lock")]
        .into_iter()
        .find(|(manager, lock)| planner.root.join(lock).is_file() && planner.machine.has(manager))
}

/// The interpreter of an environment that is there.
fn interpreter(planner: &Planner<'_>) -> Option<Utf8PathBuf> {
    let directories =
        planner.root.ancestors().take_while(|directory| directory.starts_with(planner.repository));
    let local = directories.flat_map(|directory| ENVIRONMENTS.map(|name| directory.join(name)));
    let active = planner.machine.variable("VIRTUAL_ENV").map(Utf8PathBuf::from);
    local.chain(active).map(|environment| environment.join("bin/python")).find(|python| python.is_file())
}

/// Whether a module is in the environment, as far as its files tell.
fn installed(planner: &Planner<'_>, module: &str) -> bool {
    let Some(python) = interpreter(planner).or_else(|| planner.find("python3")) else { return false };
    let Some(prefix) = python.parent().and_then(camino::Utf8Path::parent) else { return false };
    let Ok(versions) = prefix.join("lib").read_dir_utf8() else { return false };
    versions.flatten().any(|version| {
        ["site-packages", "dist-packages"]
            .iter()
            .any(|packages| version.path().join(packages).join(module).exists())
    })
}
