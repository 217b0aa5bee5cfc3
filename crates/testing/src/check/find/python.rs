//! Python: its compiler, Ruff, mypy, Pyright, Flake8 and Pylint.

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Finder, Stage};
use crate::PlannedFile;
use crate::plan::{Planner, RunPlan, python, python_tool};

const PROJECTS: [&str; 7] =
    ["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "tox.ini", "manage.py"];

#[derive(Default, Deserialize)]
struct Pyproject {
    #[serde(default)]
    tool: Tools,
}

#[derive(Default, Deserialize)]
struct Tools {
    ruff: Option<IgnoredAny>,
    mypy: Option<Mypy>,
    pyright: Option<IgnoredAny>,
    basedpyright: Option<IgnoredAny>,
    pylint: Option<IgnoredAny>,
    flake8: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
struct Mypy {
    files: Option<IgnoredAny>,
    packages: Option<IgnoredAny>,
    modules: Option<IgnoredAny>,
}

pub(super) fn find(finder: &mut Finder<'_>) {
    let mut projects = finder.outermost(&PROJECTS);
    if projects.is_empty() {
        projects.push((Utf8PathBuf::new(), ""));
    }
    for (root, file) in projects {
        let files = finder.files_below(&root, &[".py"]);
        let Some(first) = files.first().cloned() else { continue };
        let because = if file.is_empty() { first.as_str() } else { file };
        finder.add(Stage::Build, "python", "python", (&root, because), |planner| compile(planner, &files));
        lint(finder, &root, file);
    }
}

/// Compiles in memory's stead into a directory of ours.
fn compile(planner: &Planner<'_>, files: &[String]) -> RunPlan {
    let mut plan = python(planner);
    let list = planner.scratch.join("files.txt");
    plan.args(["-m", "compileall", "-q", "-i", list.as_str()]);
    plan.set("PYTHONPYCACHEPREFIX", planner.scratch.join("compiled").as_str());
    plan.files.push(PlannedFile { path: list, content: files.join("\n") + "\n" });
    plan
}

fn lint(finder: &mut Finder<'_>, root: &Utf8Path, project: &str) {
    let text = |name: &str| finder.tree.read(root, name).unwrap_or_default();
    let tools = toml::from_str::<Pyproject>(&text("pyproject.toml")).unwrap_or_default().tool;
    let section = |file: &'static str, section: &str| {
        let headed = format!("[{section}");
        text(file).lines().any(|line| line.starts_with(&headed)).then_some(file)
    };
    let in_pyproject = |told: bool| told.then_some("pyproject.toml");
    let first_of = |names: &[&'static str]| finder.tree.first_of(root, names);

    let ruff = first_of(&["ruff.toml", ".ruff.toml"]).or_else(|| in_pyproject(tools.ruff.is_some()));
    let flake8 = first_of(&[".flake8"])
        .or_else(|| section("setup.cfg", "flake8]"))
        .or_else(|| section("tox.ini", "flake8]"))
        .or_else(|| in_pyproject(tools.flake8.is_some()));
    let pylint = first_of(&[".pylintrc", "pylintrc", ".pylintrc.toml", "pylintrc.toml"])
        .or_else(|| section("setup.cfg", "pylint"))
        .or_else(|| in_pyproject(tools.pylint.is_some()));
    let mypy = first_of(&["mypy.ini", ".mypy.ini"])
        .or_else(|| section("setup.cfg", "mypy]"))
        .or_else(|| in_pyproject(tools.mypy.is_some()));
    let pyright = first_of(&["pyrightconfig.json"])
        .or_else(|| in_pyproject(tools.pyright.is_some() || tools.basedpyright.is_some()));
    // The mildest rules of the fastest linter, where it is at hand and the project has chosen no other.
    let no_other = flake8.is_none() && pylint.is_none() && !project.is_empty();
    let ruff = ruff.or_else(|| (no_other && has_ruff(finder, root)).then_some(project));
    let has_targets = mypy.is_some_and(|file| names_targets(file, &text(file), tools.mypy.as_ref()));

    if let Some(file) = ruff {
        add(finder, "ruff", "ruff-json", (root, file), &["check", "--output-format", "json", "."]);
    }
    if let Some(file) = flake8 {
        add(finder, "flake8", "flake8", (root, file), &["--color=never"]);
    }
    if let Some(file) = pylint {
        add(finder, "pylint", "pylint", (root, file), &["--output-format=text", "--recursive=y", "."]);
    }
    if let Some(file) = mypy {
        let args = ["--no-color-output", "--no-error-summary", "--show-column-numbers", "--no-pretty", "."];
        let count = if has_targets { args.len() - 1 } else { args.len() };
        add(finder, "mypy", "mypy", (root, file), &args[..count]);
    }
    if let Some(file) = pyright {
        let based = tools.basedpyright.is_some();
        let program = if based { "basedpyright" } else { "pyright" };
        add(finder, program, "pyright-json", (root, file), &["--outputjson"]);
    }
}

fn add(finder: &mut Finder<'_>, tool: &str, output: &'static str, place: (&Utf8Path, &str), args: &[&str]) {
    finder.add(Stage::Lint, tool, output, place, |planner| {
        let mut plan = python_tool(planner, tool);
        plan.args(args.iter().copied());
        plan
    });
}

fn has_ruff(finder: &Finder<'_>, root: &Utf8Path) -> bool {
    finder.plan(root, |planner| python_tool(planner, "ruff")).missing.is_none()
}

/// Whether mypy's configuration says what it is to look at.
fn names_targets(file: &str, text: &str, in_pyproject: Option<&Mypy>) -> bool {
    if file == "pyproject.toml" {
        let named = |it: &Mypy| it.files.is_some() || it.packages.is_some() || it.modules.is_some();
        return in_pyproject.is_some_and(named);
    }
    text.lines()
        .filter_map(|line| line.split('=').next())
        .any(|key| matches!(key.trim(), "files" | "packages" | "modules"))
}
