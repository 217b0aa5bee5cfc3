//! Ruby (`RSpec`, minitest), and its neighbours with `mix` and `busted`.

use camino::{Utf8Path, Utf8PathBuf};

use super::{Candidate, Confidence, Found};
use crate::Framework;

const MARKERS: [&str; 5] = ["Gemfile", ".rspec", "Rakefile", "gems.rb", "config.ru"];

pub(super) fn detect(found: &mut Found<'_>) {
    let tree = found.tree;
    let is_project = |path: &Utf8Path| tree.first_of(path, &MARKERS).is_some();
    let mut roots: Vec<Utf8PathBuf> = tree
        .directories()
        .map(|(path, _)| path)
        .filter(|path| is_project(path))
        .map(Utf8Path::to_owned)
        .collect();
    if !roots.iter().any(|root| root.as_str().is_empty()) {
        roots.insert(0, Utf8PathBuf::new());
    }
    for root in &roots {
        let spec = tree.find_below(&root.join("spec"), is_project, |name| name.ends_with("_spec.rb"));
        if let Some(spec) = spec {
            let said = tree.has(root, ".rspec");
            let confidence = if said { Confidence::Certain } else { Confidence::Likely };
            let mut candidate = Candidate::new(Framework::Rspec, root, confidence);
            if said {
                candidate = candidate.because(root.join(".rspec"), "");
            }
            found.add(candidate.because(spec, ""));
        }
        let is_test = |name: &str| {
            name.ends_with("_test.rb")
                || (name.starts_with("test_") && name.ends_with(".rb") && name != "test_helper.rb")
        };
        if let Some(test) = tree.find_below(&root.join("test"), is_project, is_test) {
            found.add(minitest(found, root).because(test, ""));
        }
    }
    for (marker, framework, what) in
        [("mix.exs", Framework::Exunit, "test"), (".busted", Framework::Busted, "spec")]
    {
        for root in tree.having(marker) {
            if tree.has_directory(&root.join(what)) {
                found
                    .candidates
                    .push(Candidate::new(framework, root, Confidence::Likely).because(root.join(marker), ""));
            }
        }
    }
}

fn minitest(found: &Found<'_>, root: &Utf8Path) -> Candidate {
    let rakefile = found.tree.read(root, "Rakefile").unwrap_or_default();
    let mut candidate = Candidate::new(Framework::Minitest, root, Confidence::Likely);
    if found.tree.has(&root.join("bin"), "rails") {
        candidate.invocation.command = ["bin/rails", "test"].map(str::to_owned).into();
        return candidate.because(root.join("bin/rails"), "");
    }
    if rakefile.contains("TestTask") {
        candidate.invocation.command = ["rake", "test"].map(str::to_owned).into();
        return candidate.because(root.join("Rakefile"), "a `TestTask`");
    }
    candidate
}
