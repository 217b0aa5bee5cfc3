//! JavaScript and TypeScript: Jest, Vitest, Mocha, node:test, AVA, bun, deno, and scripts of `package.json`.

mod package;
mod workspace;

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use super::{Candidate, Confidence, Found, Invocation};
use crate::Framework;
use package::Package;

/// How a runner shows that a package uses it.
struct Runner {
    framework: Framework,
    /// Its package, and its program.
    name: &'static str,
    configs: &'static [&'static str],
}

const RUNNERS: [Runner; 4] = [
    Runner {
        framework: Framework::Vitest,
        name: "vitest",
        configs: &[
            "vitest.config.ts",
            "vitest.config.js",
            "vitest.config.mts",
            "vitest.config.mjs",
            "vitest.config.cts",
            "vitest.config.cjs",
            "vitest.workspace.ts",
            "vitest.workspace.js",
            "vitest.workspace.json",
        ],
    },
    Runner {
        framework: Framework::Jest,
        name: "jest",
        configs: &[
            "jest.config.js",
            "jest.config.ts",
            "jest.config.mjs",
            "jest.config.cjs",
            "jest.config.json",
        ],
    },
    Runner {
        framework: Framework::Mocha,
        name: "mocha",
        configs: &[
            ".mocharc.js",
            ".mocharc.cjs",
            ".mocharc.yaml",
            ".mocharc.yml",
            ".mocharc.json",
            ".mocharc.jsonc",
        ],
    },
    Runner {
        framework: Framework::Ava,
        name: "ava",
        configs: &["ava.config.js", "ava.config.cjs", "ava.config.mjs"],
    },
];

pub(super) fn detect(found: &mut Found<'_>) {
    let mut packages: BTreeMap<Utf8PathBuf, Package> = BTreeMap::new();
    for root in found.tree.having("package.json").map(Utf8Path::to_owned).collect::<Vec<_>>() {
        match Package::parse(&found.tree.read(&root, "package.json").unwrap_or_default()) {
            Ok(package) => drop(packages.insert(root, package)),
            Err(error) => found.note(format!("{} cannot be read: {error}", root.join("package.json"))),
        }
    }
    let mut all = Vec::new();
    for (root, package) in &packages {
        let mut candidates = candidates_of(found, root, package);
        the_script_decides(&mut candidates);
        all.extend(candidates);
    }
    workspace::settle(&mut all, &packages, found.tree);
    found.candidates.extend(all);
    deno(found);
}

/// Every runner that something speaks for.
fn candidates_of(found: &Found<'_>, root: &Utf8Path, package: &Package) -> Vec<Candidate> {
    let file = root.join("package.json");
    let mut candidates = Vec::new();
    for (framework, invocation, script) in package.called_by_tests() {
        let mut candidate = Candidate::new(framework, root, Confidence::Certain)
            .because(file.clone(), format!("script `{script}` calls {framework}"));
        candidate.invocation = invocation;
        candidates.push(candidate);
    }
    for runner in &RUNNERS {
        let config = found.tree.first_of(root, runner.configs).map(|name| (root.join(name), ""));
        let section = package.has_section(runner.name).then(|| (file.clone(), "its section"));
        let dependency = package.depends_on(runner.name).then(|| (file.clone(), "a dependency"));
        let evidence: Vec<_> = [config, section, dependency].into_iter().flatten().collect();
        if evidence.is_empty() {
            continue;
        }
        let known = candidates.iter().position(|it| it.framework == runner.framework);
        let at = known.unwrap_or_else(|| {
            candidates.push(Candidate::new(runner.framework, root, Confidence::Likely));
            candidates.len() - 1
        });
        let mut candidate = candidates.remove(at);
        for (file, what) in evidence {
            let what = if what.is_empty() { String::new() } else { format!("{what} `{}`", runner.name) };
            candidate = candidate.because(file, what);
        }
        candidates.insert(at, candidate);
    }
    if candidates.is_empty() {
        candidates.extend(bun(found, root));
    }
    if candidates.is_empty() {
        candidates.extend(script(found, root, package));
    }
    candidates
}

/// Of several runners those that the `test` script calls are run; without its word the first.
fn the_script_decides(candidates: &mut [Candidate]) {
    let called = |it: &Candidate| it.evidence.first().is_some_and(|first| first.what.starts_with("script "));
    let decides = candidates.iter().any(called);
    let Some(first) = candidates.first().map(|it| it.framework) else { return };
    for candidate in
        candidates.iter_mut().filter(|it| if decides { !called(it) } else { it.framework != first })
    {
        candidate.passed_over = Some(if decides {
            format!("the `test` script calls {first}")
        } else {
            format!("{first} was found too, and no `test` script says which one it is")
        });
    }
}

/// The lock file of bun, test files, and no other runner.
fn bun(found: &Found<'_>, root: &Utf8Path) -> Option<Candidate> {
    let lock = found.tree.first_of(root, &["bun.lock", "bun.lockb", "bunfig.toml"])?;
    let test = test_file(found, root)?;
    Some(
        Candidate::new(Framework::Bun, root, Confidence::Likely)
            .because(root.join(lock), "")
            .because(test, ""),
    )
}

/// A `test` script that calls something else.
fn script(found: &Found<'_>, root: &Utf8Path, package: &Package) -> Option<Candidate> {
    let script = package.test_script()?;
    let manager = workspace::package_manager(found.tree, root);
    let mut candidate = Candidate::new(Framework::Generic, root, Confidence::Likely)
        .because(root.join("package.json"), format!("script `test`: {}", excerpt(script)));
    let command = [manager, "run", "test"];
    candidate.invocation = Invocation { command: command.map(str::to_owned).into(), ..Invocation::default() };
    Some(candidate)
}

fn deno(found: &mut Found<'_>) {
    let roots: Vec<_> = found
        .tree
        .directories()
        .filter_map(|(root, _)| {
            Some((root.to_owned(), found.tree.first_of(root, &["deno.json", "deno.jsonc"])?))
        })
        .collect();
    for (root, config) in roots {
        let Some(test) = test_file(found, &root) else { continue };
        let mut candidate = Candidate::new(Framework::Deno, &root, Confidence::Likely)
            .because(root.join(config), "")
            .because(test, "");
        let above =
            found.candidates.iter().find(|it| it.framework == Framework::Deno && root.starts_with(&it.root));
        if found.is_run(&root) {
            candidate = candidate.passed_over("package.json names another runner");
        } else if let Some(above) = above {
            candidate = candidate.passed_over(format!("deno in `{}` runs its tests too", above.place()));
        }
        found.add(candidate);
    }
}

fn test_file(found: &Found<'_>, root: &Utf8Path) -> Option<Utf8PathBuf> {
    let is_source = |name: &str| {
        [".ts", ".tsx", ".js", ".jsx", ".mjs", ".mts", ".cjs", ".cts"].iter().any(|end| name.ends_with(end))
    };
    let is_test = |name: &str| {
        is_source(name) && [".test.", ".spec.", "_test.", "_spec."].iter().any(|part| name.contains(part))
    };
    found.tree.find_below(root, |path| found.tree.has(path, "package.json"), is_test)
}

fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}
