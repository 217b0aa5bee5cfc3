//! PHP: `PHPUnit`, and Pest, which stands on it.

use camino::Utf8Path;

use super::{Candidate, Confidence, Found};
use crate::Framework;

pub(super) fn detect(found: &mut Found<'_>) {
    let tree = found.tree;
    for (root, _) in tree.directories() {
        let config = tree.first_of(root, &["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"]);
        let composer = tree.read(root, "composer.json").unwrap_or_default();
        let dependency = ["pestphp/pest", "phpunit/phpunit"]
            .into_iter()
            .find(|name| composer.contains(&format!("\"{name}\"")));
        if config.is_none() && (dependency.is_none() || !has_tests(found, root)) {
            continue;
        }
        let confidence = if config.is_some() { Confidence::Certain } else { Confidence::Likely };
        let mut candidate = Candidate::new(Framework::Phpunit, root, confidence);
        if let Some(config) = config {
            candidate = candidate.because(root.join(config), "");
        } else if tree.has_directory(&root.join("tests")) {
            candidate.invocation.targets.push("tests".to_owned());
        }
        if let Some(dependency) = dependency {
            candidate = candidate.because(root.join("composer.json"), format!("requires {dependency}"));
            if dependency == "pestphp/pest" {
                candidate.invocation.command = vec!["vendor/bin/pest".to_owned()];
            }
        }
        found.candidates.push(candidate);
    }
}

fn has_tests(found: &Found<'_>, root: &Utf8Path) -> bool {
    found
        .tree
        .find_below(root, |path| found.tree.has(path, "composer.json"), |name| name.ends_with("Test.php"))
        .is_some()
}
