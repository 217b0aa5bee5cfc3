//! What is known of a project before anyone looks into it.

use std::io::Read;

use camino::{Utf8Path, Utf8PathBuf};
use ignore::WalkBuilder;

/// What a repository says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// How one works here: what `AGENTS.md` and `CLAUDE.md` say.
    pub conventions: String,
    /// The upper part of its tree.
    pub layout: String,
    /// What its README says.
    pub readme: String,
}

/// Files for agents. Often one is a link to the other.
const CONVENTIONS: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
const READMES: [&str; 4] = ["README.md", "README.rst", "README.txt", "README"];

/// What is read of a file; no prompt has room for more.
const LONGEST: u64 = 64 << 10;

/// Directories and what is in them.
const DEPTH: usize = 2;
const MOST_ENTRIES: usize = 120;

impl Surroundings {
    /// Looks around in a directory. What cannot be read is not there.
    pub fn of(root: &Utf8Path) -> Self {
        let Ok(root) = root.canonicalize_utf8() else { return Self::default() };
        let mut conventions: Vec<String> = Vec::new();
        for text in CONVENTIONS.iter().filter_map(|name| text_of(&root, name)) {
            if !conventions.contains(&text) {
                conventions.push(text);
            }
        }
        Self {
            conventions: conventions.join("\n\n"),
            layout: layout(&root),
            readme: READMES.iter().find_map(|name| text_of(&root, name)).unwrap_or_default(),
        }
    }
}

/// The beginning of a regular file of the project. A link may lead to another one in it, and not out of it.
fn text_of(root: &Utf8Path, name: &str) -> Option<String> {
    let path = root.join(name).canonicalize_utf8().ok().filter(|path| path.starts_with(root))?;
    // A pipe would be waited for.
    if !fs_err::metadata(&path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    fs_err::File::open(&path).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The upper part of the tree, one entry a line, in the order of names.
fn layout(root: &Utf8Path) -> String {
    let mut walk = WalkBuilder::new(root);
    walk.max_depth(Some(DEPTH)).follow_links(false).sort_by_file_name(std::cmp::Ord::cmp);
    let entries = walk.build().filter_map(Result::ok).filter(|entry| entry.depth() > 0);
    let mut lines: Vec<String> = Vec::new();
    for entry in entries {
        let Ok(path) = Utf8PathBuf::from_path_buf(entry.path().to_owned()) else { continue };
        if lines.len() == MOST_ENTRIES {
            lines.push("…".to_owned());
            break;
        }
        let name = path.strip_prefix(root).unwrap_or(&path);
        // A name may hold anything, also what looks like a line of ours.
        let name: String =
            name.as_str().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        let slash = if entry.file_type().is_some_and(|kind| kind.is_dir()) { "/" } else { "" };
        lines.push(format!("{name}{slash}"));
    }
    lines.join("\n")
}
