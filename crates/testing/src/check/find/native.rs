//! C and C++: `CMake`, make.

use super::{Finder, Stage};
use crate::CommandLine;
use crate::detect::BUILD_DIRECTORIES;
use crate::plan::{Planner, RunPlan};

const SOURCES: [&str; 4] = [".c", ".cc", ".cpp", ".cxx"];
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

pub(super) fn find(finder: &mut Finder<'_>) {
    let cmake = finder.outermost(&["CMakeLists.txt"]);
    for (root, file) in &cmake {
        finder.add(Stage::Build, "cmake", "cmake", (root, file), plan_cmake);
    }
    for (root, file) in finder.outermost(&MAKEFILES) {
        // In projects of other languages a Makefile is a list of commands.
        let others = ["Cargo.toml", "go.mod", "package.json", "pyproject.toml", "setup.py", "configure.ac"];
        let is_other = finder.tree.first_of(&root, &others).is_some();
        let built_by_cmake = cmake.iter().any(|(other, _)| root.starts_with(other));
        if is_other || built_by_cmake || finder.files_below(&root, &SOURCES).is_empty() {
            continue;
        }
        finder.add(Stage::Build, "make", "make", (&root, file), |planner| {
            let mut plan = planner.start(planner.find("make"), "make");
            plan.arg("--keep-going");
            in_plain_words(&mut plan);
            plan
        });
    }
}

/// In the directory where it is built already, else in one of ours.
fn plan_cmake(planner: &Planner<'_>) -> RunPlan {
    let mut plan = planner.start(planner.find("cmake"), "cmake");
    let built = BUILD_DIRECTORIES
        .iter()
        .map(|name| planner.root.join(name))
        .find(|it| it.join("CMakeCache.txt").is_file());
    let build = built.unwrap_or_else(|| {
        let build = planner.scratch.join("build");
        let configure = ["-S", planner.root.as_str(), "-B", build.as_str()];
        plan.prepare.push(CommandLine::new(plan.command.program.clone(), configure));
        plan.note("there is no build directory: it is built in a temporary one");
        build
    });
    plan.args(["--build", build.as_str(), "--parallel", "2"]);
    in_plain_words(&mut plan);
    plan
}

/// Compilers translate `error`, and quote with what the terminal can show.
fn in_plain_words(plan: &mut RunPlan) {
    plan.set("LC_ALL", "C.UTF-8");
    plan.set("LANGUAGE", "C");
}
