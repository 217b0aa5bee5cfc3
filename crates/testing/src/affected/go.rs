//! Go: the exact graph of packages, from `go list`.

use rehearsal_core::TestResult;
use serde::Deserialize;

use super::graph::{Graph, directory, upwards};
use super::{Reach, Reached, Selector};

/// A package, as far as it matters here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Package {
    #[serde(default)]
    dir: String,
    import_path: String,
    #[serde(default)]
    standard: bool,
    /// Set for copies that are built for a test: the package itself is told too.
    #[serde(default)]
    for_test: String,
    #[serde(default)]
    imports: Vec<String>,
    #[serde(default)]
    test_imports: Vec<String>,
    #[serde(rename = "XTestImports", default)]
    xtest_imports: Vec<String>,
    #[serde(default)]
    test_go_files: Vec<String>,
    #[serde(rename = "XTestGoFiles", default)]
    xtest_go_files: Vec<String>,
    #[serde(default)]
    embed_files: Vec<String>,
    #[serde(default)]
    test_embed_files: Vec<String>,
    #[serde(rename = "XTestEmbedFiles", default)]
    xtest_embed_files: Vec<String>,
}

impl Package {
    fn is_own(&self, root: &str) -> bool {
        !self.standard
            && self.for_test.is_empty()
            && !self.import_path.ends_with(".test")
            && self.within(root).is_some()
    }

    /// Its directory within the project.
    fn within(&self, root: &str) -> Option<&str> {
        let rest = self.dir.strip_prefix(root.trim_end_matches('/'))?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
    }

    fn embeds(&self, root: &str, file: &str) -> bool {
        let Some(name) = self
            .within(root)
            .and_then(|it| if it.is_empty() { Some(file) } else { file.strip_prefix(it)?.strip_prefix('/') })
        else {
            return false;
        };
        [&self.embed_files, &self.test_embed_files, &self.xtest_embed_files]
            .into_iter()
            .flatten()
            .any(|it| it == name)
    }

    fn has_tests(&self) -> bool {
        !self.test_go_files.is_empty() || !self.xtest_go_files.is_empty()
    }
}

pub(super) fn reach(files: &[&str], failed_before: &[TestResult], json: &str, root: &str) -> Reached {
    let packages: Result<Vec<Package>, _> = serde_json::Deserializer::from_str(json).into_iter().collect();
    let packages = packages.map_err(|error| format!("the answer of `go list` cannot be read: {error}"))?;
    let own: Vec<&Package> = packages.iter().filter(|package| package.is_own(root)).collect();
    let mut graph = Graph::default();
    for package in &own {
        graph.node(&package.import_path);
        for import in &package.imports {
            graph.depends(import, &package.import_path);
        }
    }
    // A change of tests reaches only the tests beside it.
    let (tests, sources): (Vec<&str>, Vec<&str>) = files.iter().partition(|file| file.ends_with("_test.go"));
    let mut changed: Vec<&str> = Vec::new();
    for file in &sources {
        let owners = owners(file, &own, root);
        if owners.is_empty() {
            return Err(format!("`{file}` changed, and any test may depend on it"));
        }
        changed.extend(owners.iter().map(|package| package.import_path.as_str()));
    }
    let unknown = |test: &&TestResult| !own.iter().any(|package| package.import_path == test.package);
    if let Some(test) = failed_before.iter().find(unknown) {
        return Err(format!("`{}` failed before, in a package that is not there", test.name));
    }
    let reached = graph.reached_from(changed);
    let mut reach = Reach::default();
    for package in own.iter().filter(|package| package.has_tests()) {
        let directory = package.within(root).unwrap_or_default();
        let of_tests = package.test_imports.iter().chain(&package.xtest_imports);
        let is_reached = graph.is_reached(&reached, &package.import_path)
            || of_tests.into_iter().any(|import| graph.is_reached(&reached, import))
            || tests.iter().any(|file| super::graph::directory(file) == directory);
        // go runs packages: one test of some and all of others cannot be asked for at once.
        let failed = failed_before.iter().filter(|test| test.package == package.import_path).count();
        reach.failed_before += if is_reached { 0 } else { failed };
        if is_reached || failed > 0 {
            let directory = if directory.is_empty() { "." } else { directory };
            reach.selectors.push(Selector::Directory(directory.to_owned()));
        } else {
            reach.skipped.push(package.import_path.clone());
        }
    }
    Ok(reach)
}

/// The packages that a file is a part of: sources belong to their directory, files to embed to who embeds them, data for
/// tests to all above it. Of another file nobody knows who reads it.
fn owners<'p>(file: &str, own: &[&'p Package], root: &str) -> Vec<&'p Package> {
    let at = |directory: &str| {
        own.iter().copied().filter(move |package| package.within(root) == Some(directory)).collect()
    };
    if [".go", ".c", ".h", ".s", ".cc", ".cpp"].iter().any(|end| file.ends_with(end)) {
        return at(directory(file));
    }
    if file.starts_with("testdata/") || file.contains("/testdata/") {
        return upwards(directory(file))
            .flat_map(|directory| -> Vec<&'p Package> { at(directory) })
            .collect();
    }
    own.iter().copied().filter(|package| package.embeds(root, file)).collect()
}
