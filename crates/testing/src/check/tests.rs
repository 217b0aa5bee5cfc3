use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::{CheckRequest, Stage};
use crate::Machine;

/// A repository with these files, and a machine with these programs.
struct Scene {
    directory: tempfile::TempDir,
}

impl Scene {
    fn new(files: &[(&str, &str)], programs: &[&str]) -> Self {
        let scene = Self { directory: tempfile::tempdir().unwrap() };
        for (name, text) in files {
            let path = scene.path("repo").join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        for name in programs {
            let path = scene.path("bin").join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(&path, "#!/bin/sh\n").unwrap();
            fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        scene
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.directory.path()).unwrap().join(name)
    }

    fn request(&self) -> CheckRequest {
        let variables = BTreeMap::from([("PATH".to_owned(), self.path("bin").into_string())]);
        CheckRequest {
            root: self.path("repo"),
            machine: Machine::new(variables),
            environment: BTreeMap::new(),
            stages: Stage::ALL.to_vec(),
            build: None,
            lint: None,
            timeout: Duration::from_secs(1),
            keep: None,
        }
    }

    /// `stage directory: command`, `!` before what is not installed.
    fn found(&self, request: &CheckRequest) -> Vec<String> {
        let (checks, _) = request.checks(Utf8Path::new("/scratch"));
        let line = |check: &super::Check| {
            let mark = if check.plan.missing.is_some() { "!" } else { "" };
            let program = check.plan.command.to_string();
            let program =
                program.replace(self.path("bin/").as_str(), "").replace(self.path("repo/").as_str(), "@");
            format!("{mark}{} {}: {program}", check.stage.name(), check.root)
        };
        checks.iter().map(line).collect()
    }
}

fn found(files: &[(&str, &str)], programs: &[&str]) -> Vec<String> {
    let scene = Scene::new(files, programs);
    scene.found(&scene.request())
}

#[test]
fn tools_are_found_by_the_files_of_projects() {
    let package = "[package]\nname = \"a\"\n";
    let workspace = "[workspace]\nmembers = [\"crates/*\"]\n";
    assert_eq!(
        found(&[("Cargo.toml", workspace), ("crates/a/Cargo.toml", package)], &["cargo", "cargo-clippy"]),
        [
            "build : cargo check --workspace --all-targets --message-format json",
            "lint : cargo clippy --workspace --all-targets --message-format json"
        ]
    );
    assert_eq!(
        found(&[("a/go.mod", ""), ("b/go.mod", ""), ("b/.golangci.yml", "")], &["go", "golangci-lint"]),
        [
            "build a: go build -o /dev/null ./...",
            "lint a: go vet ./...",
            "build b: go build -o /dev/null ./...",
            "lint b: golangci-lint run"
        ]
    );
    assert_eq!(
        found(
            &[
                ("web/tsconfig.json", "{ // why\n \"references\": [{}] }"),
                ("web/.prettierrc", ""),
                ("web/biome.json", ""),
                ("package.json", r#"{"eslintConfig":{}}"#)
            ],
            &["tsc", "eslint", "prettier"]
        ),
        [
            "build web: tsc --build . --noEmit --pretty false",
            "lint : eslint . --format json",
            "!lint web: biome check --colors=off --max-diagnostics=200",
            "lint web: prettier --check . --no-color"
        ]
    );
    assert_eq!(
        found(&[("pom.xml", ""), ("api/pom.xml", ""), ("app/build.gradle.kts", "")], &["mvn", "gradle"]),
        [
            "build : mvn --batch-mode --offline --quiet -Dstyle.color=never compile",
            "build app: gradle classes --console=plain --no-daemon --offline --continue"
        ]
    );
    assert_eq!(
        found(&[("CMakeLists.txt", ""), ("lib/Makefile", ""), ("lib/a.c", "")], &["cmake", "make"]),
        ["build : cmake --build /scratch/0/build --parallel 2"]
    );
    assert_eq!(
        found(&[("Makefile", ""), ("src/a.c", ""), ("tools/Makefile", "")], &["make"]),
        ["build : make --keep-going"]
    );
    assert_eq!(
        found(&[("App.sln", ""), ("App/App.csproj", "")], &["dotnet"]),
        ["build : dotnet build App.sln --nologo --verbosity quiet -consoleLoggerParameters:NoSummary"]
    );
}

#[test]
fn each_linter_of_python_runs_where_it_is_configured() {
    let pyproject = "[tool.mypy]\nstrict = true\n[tool.ruff]\n[tool.pyright]\n";
    let files = [("pyproject.toml", pyproject), ("a.py", ""), ("setup.cfg", "[flake8]\n")];
    assert_eq!(
        found(&files, &["python3", "ruff", "mypy", "flake8"]),
        [
            "build : python3 -m compileall -q -i /scratch/0/files.txt",
            "lint : ruff check --output-format json .",
            "lint : flake8 --color=never",
            "lint : mypy --no-color-output --no-error-summary --show-column-numbers --no-pretty .",
            "!lint : pyright --outputjson"
        ]
    );
    // Ruff is run unasked, unless the project has another linter, or is none of Python.
    let lints = |files: &[(&str, &str)]| {
        let all = found(files, &["python3", "ruff", "pylint"]);
        all.into_iter().filter(|line| line.starts_with("lint")).collect::<Vec<_>>()
    };
    assert_eq!(lints(&[("setup.py", "")]), ["lint : ruff check --output-format json ."]);
    assert_eq!(
        lints(&[("setup.py", ""), (".pylintrc", "")]),
        ["lint : pylint --output-format=text --recursive=y ."]
    );
    assert!(lints(&[("tools/gen.py", "")]).is_empty());
}

#[test]
fn the_tools_of_the_project_come_before_those_of_the_machine() {
    let scene = Scene::new(
        &[("eslint.config.js", ""), ("setup.py", ""), ("mypy.ini", ""), (".venv/bin/python", "")],
        &["eslint", "mypy", "python3"],
    );
    for name in ["node_modules/.bin/eslint", ".venv/bin/mypy"] {
        let path = scene.path("repo").join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, "").unwrap();
    }
    assert_eq!(
        scene.found(&scene.request()),
        [
            "lint : @node_modules/.bin/eslint . --format json",
            "build : @.venv/bin/python -m compileall -q -i /scratch/1/files.txt",
            "lint : @.venv/bin/mypy --no-color-output --no-error-summary --show-column-numbers --no-pretty ."
        ]
    );
}

#[test]
fn commands_that_somebody_named_come_instead_of_what_would_be_found() {
    let scene = Scene::new(&[("setup.py", ""), ("ruff.toml", "")], &["sh", "python3", "ruff"]);
    let mut request = scene.request();
    request.build = Some(vec!["make -j4 | tee log".to_owned()]);
    assert_eq!(
        scene.found(&request),
        ["build : sh -c 'make -j4 | tee log'", "lint : ruff check --output-format json ."]
    );
    (request.build, request.lint) = (Some(Vec::new()), Some(Vec::new()));
    assert!(scene.found(&request).is_empty());
    request.lint = None;
    request.stages = vec![Stage::Build];
    assert!(scene.found(&request).is_empty());
}

#[test]
fn files_that_only_tests_need_are_left_alone_and_no_name_is_an_option() {
    let files = [
        ("setup.py", ""),
        ("tests/fixtures/broken.py", "("),
        ("-x.py", ""),
        ("fixtures/Cargo.toml", "[package]"),
    ];
    let scene = Scene::new(&files, &["python3", "cargo"]);
    let (checks, _) = scene.request().checks(Utf8Path::new("/scratch"));
    assert_eq!(checks.len(), 1);
    assert_eq!(checks[0].plan.files[0].content, "./-x.py\nsetup.py\n");
    let scripts = found(&[("a.sh", ""), ("-o.sh", ""), ("b/c.sh", "")], &["shellcheck"]);
    assert_eq!(scripts, ["lint : shellcheck --format=json ./-o.sh a.sh b/c.sh"]);
    assert!(found(&[("a.sh", "")], &[]).is_empty());
}
