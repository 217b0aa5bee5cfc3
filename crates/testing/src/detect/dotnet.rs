//! .NET: solutions, and projects that refer to the test SDK.

use camino::Utf8PathBuf;

use super::{Candidate, Confidence, Found};
use crate::Framework;

pub(super) fn detect(found: &mut Found<'_>) {
    let tree = found.tree;
    let mut solutions: Vec<Utf8PathBuf> = Vec::new();
    let mut own = Vec::new();
    let ends_with = |name: &str, ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    for (root, files) in tree.directories() {
        if let Some(solution) = files.iter().find(|name| ends_with(name, &[".sln", ".slnx"])) {
            own.push(
                Candidate::new(Framework::Dotnet, root, Confidence::Certain)
                    .because(root.join(solution), "a solution"),
            );
            solutions.push(root.to_owned());
        }
    }
    let mut tested: Vec<Utf8PathBuf> = Vec::new();
    for (root, files) in tree.directories() {
        for file in files.iter().filter(|name| ends_with(name, &[".csproj", ".fsproj", ".vbproj"])) {
            let text = tree.read(root, file).unwrap_or_default();
            let sdk = ["Microsoft.NET.Test.Sdk", "<IsTestProject>true", "MSTest.Sdk", "TUnit"];
            let Some(sign) = sdk.into_iter().find(|sign| text.contains(sign)) else { continue };
            tested.push(root.to_owned());
            let candidate =
                Candidate::new(Framework::Dotnet, root, Confidence::Certain).because(root.join(file), sign);
            let solution = solutions.iter().find(|solution| root.starts_with(solution));
            match solution {
                Some(solution) if solution == root => {}
                Some(solution) => {
                    let place = if solution.as_str().is_empty() { "." } else { solution.as_str() };
                    own.push(candidate.passed_over(format!("it is run with the solution in `{place}`")));
                }
                None => own.push(candidate),
            }
        }
    }
    for candidate in &mut own {
        if solutions.contains(&candidate.root)
            && !tested.iter().any(|project| project.starts_with(&candidate.root))
        {
            candidate.passed_over = Some("no project below it refers to a test SDK".to_owned());
        }
    }
    found.candidates.extend(own);
}
