//! Java and its kin: Maven and Gradle.

use camino::{Utf8Path, Utf8PathBuf};

use super::{Candidate, Confidence, Found};
use crate::Framework;

const SETTINGS: [&str; 2] = ["settings.gradle", "settings.gradle.kts"];
const BUILDS: [&str; 2] = ["build.gradle", "build.gradle.kts"];

pub(super) fn detect(found: &mut Found<'_>) {
    let first_own = found.candidates.len();
    maven(found);
    gradle(found);
    one_of_two(found, first_own);
    name_modules(&mut found.candidates[first_own..]);
}

/// What is run from above is a target of what runs it: its build directory is written to.
fn name_modules(own: &mut [Candidate]) {
    let is_part =
        |it: &&Candidate| it.passed_over.as_ref().is_some_and(|reason| reason.starts_with("it is a "));
    let all: Vec<(Framework, Utf8PathBuf)> =
        own.iter().filter(is_part).map(|it| (it.framework, it.root.clone())).collect();
    for candidate in own.iter_mut().filter(|it| it.passed_over.is_none()) {
        let modules = all.iter().filter(|(framework, _)| *framework == candidate.framework);
        let below = modules.filter_map(|(_, root)| root.strip_prefix(&candidate.root).ok());
        candidate.invocation.targets =
            below.filter(|path| !path.as_str().is_empty()).map(ToString::to_string).collect();
    }
}

fn maven(found: &mut Found<'_>) {
    let tree = found.tree;
    let mut modules: Vec<(Utf8PathBuf, Utf8PathBuf)> = Vec::new();
    for root in tree.having("pom.xml") {
        let text = tree.read(root, "pom.xml").unwrap_or_default();
        for module in module_names(&text) {
            let module = module.trim_start_matches("./").trim_end_matches('/').trim_end_matches("/pom.xml");
            modules.push((root.join(module), root.to_owned()));
        }
        let mut candidate =
            Candidate::new(Framework::Maven, root, Confidence::Certain).because(root.join("pom.xml"), "");
        if let Some((_, parent)) = modules.iter().find(|(module, _)| module == root) {
            candidate = candidate.passed_over(format!("it is a module of `{}`", parent.join("pom.xml")));
        } else if let Some(test) = tests_below(found, root) {
            candidate = candidate.because(test, "");
        } else {
            candidate = candidate.passed_over("nothing below it is in `src/test`");
        }
        found.candidates.push(candidate);
    }
}

/// What stands in `<module>` elements, comments aside.
fn module_names(pom: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = pom;
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        if rest.starts_with("<!--") {
            rest = rest.find("-->").map_or("", |end| &rest[end + 3..]);
        } else if let Some(inside) = rest.strip_prefix("<module>") {
            let end = inside.find('<').unwrap_or(inside.len());
            names.push(inside[..end].trim());
            rest = &inside[end..];
        } else {
            rest = &rest[1..];
        }
    }
    names
}

fn gradle(found: &mut Found<'_>) {
    let tree = found.tree;
    let has_settings = |path: &Utf8Path| tree.first_of(path, &SETTINGS).is_some();
    for (root, _) in tree.directories() {
        let Some(file) = tree.first_of(root, &SETTINGS).or_else(|| tree.first_of(root, &BUILDS)) else {
            continue;
        };
        let mut candidate =
            Candidate::new(Framework::Gradle, root, Confidence::Certain).because(root.join(file), "");
        let build = root.ancestors().skip(1).find(|above| has_settings(above));
        if root.file_name() == Some("buildSrc") {
            candidate = candidate.passed_over("it is a part of the build itself");
        } else if let Some(build) = build.filter(|_| !has_settings(root)) {
            let build = if build.as_str().is_empty() { "." } else { build.as_str() };
            candidate = candidate.passed_over(format!("it is a project of the build in `{build}`"));
        } else if let Some(test) = tests_below(found, root) {
            candidate = candidate.because(test, "");
        } else {
            candidate = candidate.passed_over("nothing below it is in `src/test`");
        }
        found.candidates.push(candidate);
    }
}

/// A source file in a directory `src/test`, or in another one of Gradle's test source sets.
fn tests_below(found: &Found<'_>, root: &Utf8Path) -> Option<Utf8PathBuf> {
    found.tree.below(root, |_| false).find_map(|(path, files)| {
        let in_tests = path
            .as_str()
            .split('/')
            .collect::<Vec<_>>()
            .windows(2)
            .any(|pair| pair[0] == "src" && (pair[1] == "test" || pair[1].ends_with("Test")));
        let source = files
            .iter()
            .find(|name| [".java", ".kt", ".groovy", ".scala"].iter().any(|end| name.ends_with(end)))?;
        in_tests.then(|| path.join(source))
    })
}

/// A directory with both is built with the one whose wrapper is there.
fn one_of_two(found: &mut Found<'_>, first_own: usize) {
    let tree = found.tree;
    let own = &mut found.candidates[first_own..];
    let running = |own: &[Candidate], framework| -> Vec<Utf8PathBuf> {
        own.iter()
            .filter(|it| it.framework == framework && it.passed_over.is_none())
            .map(|it| it.root.clone())
            .collect()
    };
    let (maven, gradle) = (running(own, Framework::Maven), running(own, Framework::Gradle));
    for root in maven.iter().filter(|root| gradle.contains(root)) {
        let by_gradle = tree.has(root, "gradlew") && !tree.has(root, "mvnw");
        let (loser, reason) = if by_gradle {
            (Framework::Maven, "the project has Gradle's wrapper, and not Maven's")
        } else {
            (Framework::Gradle, "the project has a pom.xml too, and Gradle's wrapper does not decide")
        };
        for candidate in own.iter_mut().filter(|it| it.root == *root && it.framework == loser) {
            candidate.passed_over = Some(reason.to_owned());
        }
    }
}
