//! C and C++: `CTest`.

use super::{Candidate, Confidence, Found};
use crate::Framework;
use crate::detect::file::read_inside;

/// Where builds usually are; they are ignored by git, so the walk does not see them.
pub(crate) const BUILD_DIRECTORIES: [&str; 6] =
    ["build", "_build", "out", "cmake-build-debug", "cmake-build-release", "build/Debug"];

pub(super) fn detect(found: &mut Found<'_>) {
    let tree = found.tree;
    let mut own: Vec<Candidate> = Vec::new();
    for root in tree.having("CMakeLists.txt") {
        let text = tree.read(root, "CMakeLists.txt").unwrap_or_default().to_lowercase();
        let words: String = text.lines().map(|line| line.split('#').next().unwrap_or_default()).collect();
        let words = words.replace([' ', '\t'], "");
        if !words.contains("project(") || own.iter().any(|above| root.starts_with(&above.root)) {
            continue;
        }
        let sign =
            ["enable_testing(", "include(ctest)", "add_test("].into_iter().find(|sign| words.contains(sign));
        let Some(sign) = sign else { continue };
        let mut candidate = Candidate::new(Framework::Ctest, root, Confidence::Certain)
            .because(root.join("CMakeLists.txt"), sign.trim_end_matches('('));
        let built = BUILD_DIRECTORIES.into_iter().find(|directory| {
            read_inside(tree.root(), &tree.root().join(root).join(directory).join("CTestTestfile.cmake"))
                .is_some()
        });
        if let Some(directory) = built {
            candidate = candidate.because(root.join(directory).join("CTestTestfile.cmake"), "");
            candidate.invocation.targets.push(directory.to_owned());
        }
        own.push(candidate);
    }
    found.candidates.extend(own);
}
