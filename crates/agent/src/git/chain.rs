//! The history of a HEAD that only moved forward, read without git: the plain case of nearly every run.

use std::collections::{BTreeMap, BTreeSet};

use rehearsal_core::Commit;

use super::command::text;
use super::head::Repository;
use super::objects::{EntryKind, LooseObjects, TreeEntry};
use crate::policy::{MAX_CHAIN, MAX_CHAIN_TREES, MAX_TREE_PATH};

/// The commits between two, oldest first, and the files that each of them changed: what [`forward`](super::forward)
/// reads from git's log. None whenever there is more to it than single commits one after the other, all of whose
/// differing trees are at hand: then git must be asked.
pub(super) fn read(
    repository: &Repository,
    before: &str,
    after: &str,
) -> Option<(Vec<Commit>, BTreeSet<String>)> {
    // Both change which parents git sees.
    if ["shallow", "info/grafts"].iter().any(|name| repository.common_dir.join(name).exists()) {
        return None;
    }
    let objects = LooseObjects::new(repository.common_dir.join("objects"));
    let mut reading = Reading { objects, left: MAX_CHAIN_TREES, files: BTreeSet::new() };
    let mut commits = Vec::new();
    let mut id = after.to_owned();
    let mut tree = None;
    while commits.len() < MAX_CHAIN {
        let commit = reading.objects.commit(&id)?;
        if let Some(newer) = tree.replace(commit.tree.clone()) {
            reading.compare(Some(&commit.tree), Some(&newer), b"")?;
        }
        if id == before {
            commits.reverse();
            return Some((commits, reading.files));
        }
        let [parent] = <[String; 1]>::try_from(commit.parents).ok()?;
        commits.push(Commit { id: std::mem::replace(&mut id, parent), subject: commit.subject? });
    }
    None
}

struct Reading {
    objects: LooseObjects,
    /// How many more bytes of trees may be read.
    left: usize,
    files: BTreeSet<String>,
}

impl Reading {
    /// Adds the files in which two trees differ; a tree that is not there has none.
    fn compare(&mut self, old: Option<&str>, new: Option<&str>, prefix: &[u8]) -> Option<()> {
        if old == new {
            return Some(());
        }
        let (old, new) = (self.entries(old)?, self.entries(new)?);
        let names: BTreeSet<&Vec<u8>> = old.keys().chain(new.keys()).collect();
        for name in names {
            let (old, new) = (old.get(name), new.get(name));
            if old != new {
                self.compare_entries(old, new, &[prefix, name].concat())?;
            }
        }
        Some(())
    }

    fn compare_entries(
        &mut self,
        old: Option<&TreeEntry>,
        new: Option<&TreeEntry>,
        path: &[u8],
    ) -> Option<()> {
        let both = || old.into_iter().chain(new);
        // Whether a submodule counts is a matter of configuration.
        if both().any(|entry| entry.kind == EntryKind::Submodule) || path.len() > MAX_TREE_PATH {
            return None;
        }
        if both().any(|entry| entry.kind == EntryKind::File) {
            self.files.insert(text(path));
        }
        self.compare(tree_of(old), tree_of(new), &[path, b"/"].concat())
    }

    fn entries(&mut self, tree: Option<&str>) -> Option<BTreeMap<Vec<u8>, TreeEntry>> {
        let Some(tree) = tree else { return Some(BTreeMap::new()) };
        let (entries, size) = self.objects.tree(tree)?;
        self.left = self.left.checked_sub(size)?;
        Some(entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect())
    }
}

fn tree_of(entry: Option<&TreeEntry>) -> Option<&str> {
    entry.filter(|entry| entry.kind == EntryKind::Tree).map(|entry| entry.id.as_str())
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;
    use crate::git::command::git;
    use crate::git::forward;

    /// A repository, and the commit from which on its history is read.
    struct Scene {
        _dir: tempfile::TempDir,
        root: Utf8PathBuf,
        before: String,
    }

    impl Scene {
        async fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
            let mut scene = Self { _dir: dir, root, before: String::new() };
            scene.git(&["init", "--quiet", "--initial-branch=main"]).await;
            for path in ["top.txt", "src/lib.rs", "src/deep/er/a.rs", "src/deep/b.rs", "gone.txt", "turns"] {
                scene.write(path, path);
            }
            scene.before = scene.commit("Begin").await;
            scene
        }

        async fn git(&self, args: &[&str]) -> String {
            let identity =
                ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false"];
            text(&git(&self.root, &[&identity, args].concat()).await.unwrap()).trim().to_owned()
        }

        fn write(&self, path: &str, content: &str) {
            let path = self.root.join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, content).unwrap();
        }

        async fn commit(&self, message: &str) -> String {
            self.git(&["add", "--all"]).await;
            self.git(&["commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--message", message])
                .await;
            self.git(&["rev-parse", "HEAD"]).await
        }

        fn read(&self, after: &str) -> Option<(Vec<Commit>, BTreeSet<String>)> {
            read(&Repository::around(&self.root).unwrap().unwrap(), &self.before, after)
        }

        /// What git itself says.
        async fn log(&self, after: &str) -> Option<(Vec<Commit>, BTreeSet<String>)> {
            let log = git(&self.root, &forward::log_args(&self.before, after)).await.unwrap();
            forward::read(&log, &self.before, after)
        }
    }

    #[tokio::test]
    async fn a_plain_history_is_read_as_git_reads_it() {
        let scene = Scene::new().await;
        scene.write("src/deep/er/a.rs", "changed");
        scene.write("new/one/two.txt", "new");
        scene.write("blank and \u{fc}ml\u{e4}ut.txt", "new");
        fs_err::remove_file(scene.root.join("gone.txt")).unwrap();
        scene.commit("\n\nFirst line \n  second line\t\n\nA body.\n").await;
        fs_err::remove_file(scene.root.join("turns")).unwrap();
        scene.write("turns/into/a/tree", "x");
        scene.git(&["mv", "src/lib.rs", "src/renamed.rs"]).await;
        scene.commit("A file becomes a directory").await;
        scene.git(&["update-index", "--chmod=+x", "top.txt"]).await;
        scene.git(&["commit", "--quiet", "--message", "Only a mode"]).await;
        std::os::unix::fs::symlink("top.txt", scene.root.join("link")).unwrap();
        scene.commit("A link").await;
        let after = scene.commit("Nothing at all").await;
        let read = scene.read(&after).unwrap();
        assert_eq!(read.0.len(), 5);
        assert_eq!(read.0[0].subject, "First line   second line");
        assert!(read.1.contains("turns") && read.1.contains("turns/into/a/tree"));
        assert_eq!(Some(read), scene.log(&after).await);
    }

    #[tokio::test]
    async fn a_merge_a_rewritten_history_and_a_submodule_are_left_to_git() {
        let scene = Scene::new().await;
        scene.git(&["checkout", "--quiet", "-b", "side"]).await;
        scene.write("side.txt", "side");
        let side = scene.commit("Side").await;
        assert!(scene.read(&side).is_some());
        scene.git(&["checkout", "--quiet", "main"]).await;
        scene.git(&["merge", "--quiet", "--no-ff", "--no-edit", "side"]).await;
        assert_eq!(scene.read(&scene.git(&["rev-parse", "HEAD"]).await), None);
        scene.git(&["reset", "--quiet", "--hard", &scene.before]).await;
        scene.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{side},sub")]).await;
        scene.git(&["commit", "--quiet", "--message", "A submodule"]).await;
        assert_eq!(scene.read(&scene.git(&["rev-parse", "HEAD"]).await), None);
        scene.git(&["reset", "--quiet", "--hard", &scene.before]).await;
        scene.git(&["commit", "--quiet", "--amend", "--message", "Rewritten"]).await;
        assert_eq!(scene.read(&scene.git(&["rev-parse", "HEAD"]).await), None);
    }

    #[tokio::test]
    async fn what_is_packed_or_cut_short_is_left_to_git() {
        let scene = Scene::new().await;
        scene.write("top.txt", "changed");
        let after = scene.commit("Change").await;
        assert!(scene.read(&after).is_some());
        let shallow = scene.root.join(".git/shallow");
        fs_err::write(&shallow, format!("{}\n", scene.before)).unwrap();
        assert_eq!(scene.read(&after), None);
        fs_err::remove_file(shallow).unwrap();
        scene.git(&["repack", "-a", "-d", "--quiet"]).await;
        assert_eq!(scene.read(&after), None);
    }
}
