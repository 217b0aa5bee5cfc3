//! File names as a reader of the report wants them: relative to the project.

use camino::Utf8Path;

/// Directories in which projects keep their sources and tests: the root is above them.
const INSIDE_A_PROJECT: [&str; 18] = [
    "__tests__",
    "app",
    "cmd",
    "e2e",
    "internal",
    "lib",
    "packages",
    "pkg",
    "spec",
    "specs",
    "src",
    "t",
    "test",
    "testing",
    "tests",
    "crates",
    "unit",
    "integration",
];

/// Parts of paths that belong to dependencies or to the language, not to the project.
const FOREIGN: [&str; 16] = [
    "/node_modules/",
    "/site-packages/",
    "/dist-packages/",
    "/.cargo/registry/",
    "/rustc/",
    "/rustlib/",
    "/go/pkg/mod/",
    "/usr/lib/",
    "/usr/local/lib/",
    "/usr/local/go/",
    "/usr/share/",
    "/lib/python3",
    "/vendor/",
    "/gems/",
    "node:internal",
    "<frozen ",
];

/// Whether a file is not the project's own.
pub(crate) fn is_foreign(file: &str) -> bool {
    let at_start = ["node:", "ext:", "internal/", "node_modules/", "vendor/"];
    at_start.iter().any(|start| file.starts_with(start)) || FOREIGN.iter().any(|part| file.contains(part))
}

/// The root of the project: known when we ran the tests ourselves, else learnt from the absolute names that the
/// output holds.
#[derive(Debug, Default)]
pub(crate) struct Root {
    known: Option<String>,
    /// The directory that all absolute names seen so far share, with its last slash.
    common: Option<String>,
}

impl Root {
    pub(crate) fn new(known: Option<&Utf8Path>) -> Self {
        let known = known.map(|root| format!("{}/", root.as_str().trim_end_matches('/')));
        Self { known, common: None }
    }

    /// Learns from a name.
    pub(crate) fn note(&mut self, file: &str) {
        let file = plain(file);
        if self.known.is_some() || !file.starts_with('/') || is_foreign(file) {
            return;
        }
        let directory = &file[..=file.rfind('/').unwrap_or(0)];
        let shared = match &self.common {
            None => directory.len(),
            Some(common) if directory.starts_with(common.as_str()) => return,
            Some(common) => {
                let equal = common.bytes().zip(directory.bytes()).take_while(|(a, b)| a == b).count();
                common.as_bytes()[..equal].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1)
            }
        };
        self.common = Some(directory.get(..shared).unwrap_or("/").to_owned());
    }

    /// The name relative to the root, if it lies below it.
    pub(crate) fn relative(&self, file: &str) -> String {
        let file = plain(file);
        let root = match (&self.known, &self.common) {
            (Some(known), _) => known.as_str(),
            (None, Some(common)) => above_sources(common),
            (None, None) => return file.to_owned(),
        };
        match file.strip_prefix(root) {
            Some("") | None => file.to_owned(),
            Some(relative) => relative.to_owned(),
        }
    }
}

/// Without what only says how the name was written.
fn plain(file: &str) -> &str {
    let file = file.strip_prefix("file://").unwrap_or(file);
    file.strip_prefix("./").unwrap_or(file)
}

/// If all that was seen lies in `tests/`, the project is what holds `tests/`.
fn above_sources(common: &str) -> &str {
    let mut start = 0;
    for part in common.split_inclusive('/') {
        if start > 1 && INSIDE_A_PROJECT.contains(&part.trim_end_matches('/')) {
            return &common[..start];
        }
        start += part.len();
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(files: &[&str]) -> Root {
        let mut root = Root::default();
        for file in files {
            root.note(file);
        }
        root
    }

    #[test]
    fn a_known_root_is_taken_off() {
        let root = Root::new(Some(Utf8Path::new("/home/me/shop")));
        assert_eq!(root.relative("/home/me/shop/src/cart.js"), "src/cart.js");
        assert_eq!(root.relative("file:///home/me/shop/src/cart.js"), "src/cart.js");
        assert_eq!(root.relative("./spec/cart_spec.rb"), "spec/cart_spec.rb");
        assert_eq!(root.relative("/home/me/shopping/x.js"), "/home/me/shopping/x.js");
    }

    #[test]
    fn an_unknown_root_is_what_the_projects_own_files_share() {
        let root = learnt(&["/ci/shop/tests/a/x.py", "/ci/shop/cart.py", "/usr/lib/python3/unittest.py"]);
        assert_eq!(root.relative("/ci/shop/tests/a/x.py"), "tests/a/x.py");
        let root = learnt(&["/ci/shop/test/unit/a.js"]);
        assert_eq!(root.relative("/ci/shop/test/unit/a.js"), "test/unit/a.js");
        let root = learnt(&["/ci/shop/cart_test.ts"]);
        assert_eq!(root.relative("/ci/shop/cart_test.ts"), "cart_test.ts");
        assert_eq!(learnt(&["/a/b.c", "/d/e.c"]).relative("/a/b.c"), "a/b.c");
    }
}
