//! The files of a repository, as far as a look for tests needs to know them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use camino::{Utf8Path, Utf8PathBuf};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::file::read_inside;

/// Deeper down are no projects that anyone meant.
const DEEPEST: usize = 12;
/// A repository with more is looked at in part: the upper part, and it is said so.
const MOST_ENTRIES: usize = 300_000;

/// Directories of dependencies, build output and tools: nothing in them is the repository's own.
const SKIPPED: [&str; 23] = [
    ".bundle",
    ".cache",
    ".cargo",
    ".git",
    ".gradle",
    ".hg",
    ".idea",
    ".mypy_cache",
    ".next",
    ".nox",
    ".pytest_cache",
    ".rehearsal",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
    "bower_components",
    "node_modules",
    "site-packages",
    "target",
    "vendor",
    "venv",
];

/// The directories of a repository with the names of their files; what git ignores is not there, links are not
/// followed.
#[derive(Debug)]
pub(crate) struct Tree {
    root: Utf8PathBuf,
    /// By path relative to the root; the root itself is empty.
    directories: BTreeMap<Utf8PathBuf, Vec<String>>,
    /// Whether something was left out for its depth or number.
    pub(crate) cut: bool,
}

struct Pending {
    path: Utf8PathBuf,
    depth: usize,
    ignores: Vec<std::sync::Arc<Gitignore>>,
}

impl Tree {
    pub(crate) fn walk(root: &Utf8Path) -> Self {
        let mut tree = Self { root: root.to_owned(), directories: BTreeMap::new(), cut: false };
        let mut pending =
            VecDeque::from([Pending { path: Utf8PathBuf::new(), depth: 0, ignores: Vec::new() }]);
        let mut room = MOST_ENTRIES;
        // Level by level, so that what is left out of a huge repository is what lies deep.
        while let Some(directory) = pending.pop_front() {
            tree.visit(directory, &mut pending, &mut room);
        }
        tree
    }

    /// Of which nothing needs to be known.
    pub(crate) fn none(root: &Utf8Path) -> Self {
        Self { root: root.to_owned(), directories: BTreeMap::new(), cut: false }
    }

    fn visit(&mut self, mut directory: Pending, pending: &mut VecDeque<Pending>, room: &mut usize) {
        let absolute = self.root.join(&directory.path);
        let Ok(entries) = absolute.read_dir() else { return };
        directory.ignores.extend(own_ignores(&self.root, &absolute).map(std::sync::Arc::new));
        let mut files = Vec::new();
        let mut below = Vec::new();
        for entry in entries.flatten() {
            if *room == 0 {
                self.cut = true;
                break;
            }
            *room -= 1;
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
            let path = absolute.join(&name);
            if kind.is_dir() {
                if !SKIPPED.contains(&name.as_str()) && !is_ignored(&directory.ignores, &path, true) {
                    below.push(name);
                }
            } else if (kind.is_file() || kind.is_symlink()) && !is_ignored(&directory.ignores, &path, false) {
                files.push(name);
            }
        }
        files.sort();
        below.sort();
        self.cut |= directory.depth >= DEEPEST && !below.is_empty();
        if directory.depth < DEEPEST {
            pending.extend(below.into_iter().map(|name| Pending {
                path: directory.path.join(name),
                depth: directory.depth + 1,
                ignores: directory.ignores.clone(),
            }));
        }
        self.directories.insert(directory.path, files);
    }

    /// Every directory with its files, parents before children.
    pub(crate) fn directories(&self) -> impl Iterator<Item = (&Utf8Path, &[String])> {
        self.directories.iter().map(|(path, files)| (path.as_path(), files.as_slice()))
    }

    /// The directories that have a file of this name.
    pub(crate) fn having<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Utf8Path> {
        self.directories().filter(move |(_, files)| has(files, name)).map(|(path, _)| path)
    }

    pub(crate) fn has(&self, directory: &Utf8Path, name: &str) -> bool {
        self.directories.get(directory).is_some_and(|files| has(files, name))
    }

    /// The first of these files that the directory has.
    pub(crate) fn first_of<'a>(&self, directory: &Utf8Path, names: &[&'a str]) -> Option<&'a str> {
        names.iter().copied().find(|name| self.has(directory, name))
    }

    pub(crate) fn has_directory(&self, directory: &Utf8Path) -> bool {
        self.directories.contains_key(directory)
    }

    pub(crate) fn files(&self, directory: &Utf8Path) -> &[String] {
        self.directories.get(directory).map_or(&[], Vec::as_slice)
    }

    /// The text of a file.
    pub(crate) fn read(&self, directory: &Utf8Path, name: &str) -> Option<String> {
        read_inside(&self.root, &self.root.join(directory).join(name))
    }

    /// The directory and all below it, without what `stop` says belongs to something else.
    pub(crate) fn below<'a>(
        &'a self,
        directory: &'a Utf8Path,
        stop: impl Fn(&Utf8Path) -> bool + 'a,
    ) -> impl Iterator<Item = (&'a Utf8Path, &'a [String])> {
        let mut left_out: Option<&Utf8Path> = None;
        self.directories
            .range::<Utf8Path, _>((Bound::Included(directory), Bound::Unbounded))
            .map(|(path, files)| (path.as_path(), files.as_slice()))
            .take_while(move |(path, _)| path.starts_with(directory))
            .filter(move |(path, _)| {
                if left_out.is_some_and(|outside| path.starts_with(outside)) {
                    return false;
                }
                let stops = *path != directory && stop(path);
                left_out = stops.then_some(path);
                !stops
            })
    }

    /// The first file below that fits.
    pub(crate) fn find_below(
        &self,
        directory: &Utf8Path,
        stop: impl Fn(&Utf8Path) -> bool,
        fits: impl Fn(&str) -> bool,
    ) -> Option<Utf8PathBuf> {
        self.below(directory, stop)
            .find_map(|(path, files)| files.iter().find(|name| fits(name)).map(|name| path.join(name)))
    }

    pub(crate) fn root(&self) -> &Utf8Path {
        &self.root
    }
}

fn has(files: &[String], name: &str) -> bool {
    files.binary_search_by(|file| file.as_str().cmp(name)).is_ok()
}

/// The rules of the directory's own `.gitignore`, and at the root those of the clone. They are read by us, and not
/// by the library, which would wait on a FIFO of that name.
fn own_ignores(root: &Utf8Path, directory: &Utf8Path) -> Option<Gitignore> {
    let mut lines = read_inside(root, &directory.join(".gitignore")).unwrap_or_default();
    if root == directory {
        lines.push('\n');
        lines.push_str(&read_inside(root, &directory.join(".git/info/exclude")).unwrap_or_default());
    }
    if lines.trim().is_empty() {
        return None;
    }
    let mut builder = GitignoreBuilder::new(directory);
    for line in lines.lines() {
        // A line that is no pattern is passed over, as git does.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

/// The nearest file that says something decides.
fn is_ignored(ignores: &[std::sync::Arc<Gitignore>], path: &Utf8Path, is_dir: bool) -> bool {
    let told = ignores.iter().rev().map(|rules| rules.matched(path, is_dir)).find(|told| !told.is_none());
    told.is_some_and(|told| told.is_ignore())
}
