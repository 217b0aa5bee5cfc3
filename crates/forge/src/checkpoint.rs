//! A working tree before a run, and what is put back of it after one that damaged it.
//!
//! Nothing is lost either way: what the run had done is kept under a reference before anything is put back, and what the user had not
//! committed is copied before the run.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Damage, FileList};
use rehearsal_git::{Git, GitError, Oid, Repository, split_nul};
use serde::{Deserialize, Serialize};

use crate::policy::LARGEST_COPIED;
use crate::reference;
use crate::watch::{CheckoutPrint, FilePrint};

/// Where the user's uncommitted changes from before a run are kept.
const BEFORE: &str = "refs/rehearsal/before";
/// Where work is kept that no branch has.
const LEFT: &str = "refs/rehearsal/left";
/// Where branches are.
const HEADS: &str = "refs/heads/";

/// What git leaves in its directory while an operation is under way: the file, what it is, and what ends it without a trace.
const OPERATIONS: [(&str, &str, &[&str]); 6] = [
    ("rebase-merge", "rebase", &["rebase", "--quit"]),
    ("rebase-apply", "rebase", &["rebase", "--quit"]),
    ("MERGE_HEAD", "merge", &["merge", "--quit"]),
    ("CHERRY_PICK_HEAD", "cherry-pick", &["cherry-pick", "--quit"]),
    ("REVERT_HEAD", "revert", &["revert", "--quit"]),
    ("BISECT_LOG", "bisect", &["bisect", "reset", "HEAD"]),
];

/// A working tree at the moment before a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    root: Utf8PathBuf,
    name: String,
    head: Oid,
    /// The branch that is checked out, with its full name.
    branch: Option<String>,
    /// All branches, by their full names, that are not checked out elsewhere.
    branches: BTreeMap<String, Oid>,
    /// The entries of the stash, newest first, with their messages.
    stashes: Vec<(Oid, String)>,
    operations: BTreeSet<String>,
    print: CheckoutPrint,
    copy: Option<Edits>,
    /// Files with uncommitted changes that are too large to be copied.
    not_copied: Vec<String>,
}

/// The uncommitted changes of a working tree, as commits like those of `git stash`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Edits {
    /// All files, also those that git does not know yet.
    files: Oid,
    /// What was staged.
    index: Oid,
}

/// What a run did to a working tree, beside its own work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aftermath {
    /// What no run may do.
    pub damages: Vec<Damage>,
    /// Files that it changed and did not commit, except for those that the user had changed before.
    pub left: BTreeMap<String, FilePrint>,
    /// Files with the user's own changes that went into its commits.
    pub committed: Vec<String>,
    /// Files with the user's own changes that it wrote to.
    pub changed: Vec<String>,
    /// Files with the user's own changes that are as they were committed, or gone.
    lost: Vec<String>,
}

impl Checkpoint {
    /// Looks at a checkout of the user's, and copies what is not committed. None where there is no repository, or no commit in it.
    pub async fn take(root: &Utf8Path, name: &str) -> Result<Option<Self>, GitError> {
        let Some(mut point) = Self::of_files(root, name).await? else { return Ok(None) };
        let git = Git::at(root);
        point.branches = branches(&git, root).await?;
        point.stashes = stashes(&git).await?;
        point.operations = operations(root)?.into_iter().map(|(_, name, _)| name.to_owned()).collect();
        let git_dir = Repository::around(root)?.git_dir;
        let (copied, large) =
            point.print.dirty.iter().partition::<Vec<_>, _>(|(_, print)| {
                !(print.is_untracked() && print.size() > LARGEST_COPIED)
            });
        point.not_copied = large.into_iter().map(|(file, _)| file.clone()).collect();
        let copied: Vec<&str> = copied.into_iter().map(|(file, _)| file.as_str()).collect();
        if !copied.is_empty() {
            let copy =
                copy_edits(&git, &git_dir, &point.head, &copied, "Uncommitted changes before a run").await?;
            reference::set(&git, &point.reference(), &copy.files).await?;
            point.copy = Some(copy);
        }
        Ok(Some(point))
    }

    /// Looks at the files of a working tree alone: enough where everything else is ours.
    pub async fn of_files(root: &Utf8Path, name: &str) -> Result<Option<Self>, GitError> {
        if Repository::find(root)?.is_none() {
            return Ok(None);
        }
        let git = Git::at(root);
        let Some(head) = git.find_commit("HEAD").await? else { return Ok(None) };
        Ok(Some(Self {
            root: root.to_owned(),
            name: name.to_owned(),
            head,
            branch: checked_out(&git).await?,
            branches: BTreeMap::new(),
            stashes: Vec::new(),
            operations: BTreeSet::new(),
            print: CheckoutPrint::take(root).await?,
            copy: None,
            not_copied: Vec::new(),
        }))
    }

    /// The reference that keeps the user's uncommitted changes.
    pub fn reference(&self) -> String {
        format!("{BEFORE}/{}", self.name)
    }

    /// Where it was taken.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The files with uncommitted changes.
    pub fn dirty(&self) -> Vec<String> {
        self.print.dirty.keys().cloned().collect()
    }

    /// Files with uncommitted changes that are too large to be copied.
    pub fn not_copied(&self) -> &[String] {
        &self.not_copied
    }

    /// Whether the user's uncommitted changes are kept.
    pub fn has_copy(&self) -> bool {
        self.copy.is_some()
    }

    /// The files that differ from what they were, committed or not; none if nothing does. That another commit is checked out counts.
    pub async fn changed_files(&self) -> Result<Option<Vec<String>>, GitError> {
        let git = Git::at(&self.root);
        let (now, head) = (CheckoutPrint::take(&self.root).await?, git.find_commit("HEAD").await?);
        let mut files: BTreeSet<String> = self.print.differences(&now).into_iter().collect();
        let moved = head.as_ref() != Some(&self.head);
        if let (true, Some(head)) = (moved, &head) {
            files.extend(committed(&git, &self.head, head).await?);
        }
        Ok((moved || !files.is_empty()).then(|| files.into_iter().collect()))
    }

    /// What a run did to the checkout, beside its own work. `own` are files with uncommitted changes of earlier runs of its task.
    pub async fn aftermath(&self, own: &[String]) -> Result<Aftermath, GitError> {
        let git = Git::at(&self.root);
        let mut found = Aftermath::default();
        let now = CheckoutPrint::take(&self.root).await?;
        let head = git.find_commit("HEAD").await?;
        for (_, operation, _) in self.new_operations()? {
            found.damages.push(Damage::Unfinished { operation: operation.to_owned() });
        }
        self.look_at_branches(&git, &mut found.damages).await?;
        let stashes_now: BTreeSet<Oid> = stashes(&git).await?.into_iter().map(|(id, _)| id).collect();
        let dropped = self.stashes.iter().filter(|(id, _)| !stashes_now.contains(id));
        found.damages.extend(dropped.map(|(id, _)| Damage::StashDropped { commit: id.clone() }));
        let in_commits: BTreeSet<String> = match &head {
            Some(head) if *head != self.head => {
                committed(&git, &self.head, head).await?.into_iter().collect()
            }
            _ => BTreeSet::new(),
        };
        for (file, print) in self.print.dirty.iter().filter(|(file, _)| !own.contains(file)) {
            match now.dirty.get(file) {
                _ if in_commits.contains(file) => found.committed.push(file.clone()),
                None => found.lost.push(file.clone()),
                Some(now) if !now.is_same_file(print) => found.changed.push(file.clone()),
                Some(_) => {}
            }
        }
        found.changed = self.rewritten(&git, found.changed).await?;
        if !found.lost.is_empty() {
            found.damages.push(Damage::EditsLost { files: FileList::of(&found.lost) });
        }
        let is_own = |file: &String| own.contains(file) || !self.print.dirty.contains_key(file);
        let is_new = |file: &String, print: &FilePrint| {
            own.contains(file) || self.print.dirty.get(file) != Some(print)
        };
        found.left =
            now.dirty.into_iter().filter(|(file, print)| is_own(file) && is_new(file, print)).collect();
        Ok(found)
    }

    async fn look_at_branches(&self, git: &Git, damages: &mut Vec<Damage>) -> Result<(), GitError> {
        let is_in_operation = damages.iter().any(|damage| matches!(damage, Damage::Unfinished { .. }));
        let (head, now) = (checked_out(git).await?, branches(git, &self.root).await?);
        if head != self.branch && !is_in_operation {
            damages.push(Damage::HeadMoved { from: short(self.branch.as_ref()), to: short(head.as_ref()) });
        }
        let tip = match &self.branch {
            Some(branch) => now.get(branch).cloned(),
            None => git.find_commit("HEAD").await?,
        };
        if let Some(tip) = &tip
            && !is_in_operation
            && !has_kept(git, &self.head, tip).await?
        {
            let branch = short(self.branch.as_ref());
            damages.push(Damage::CommitsDropped { branch, commit: self.head.clone() });
        }
        for (name, before) in &self.branches {
            let branch = name.trim_start_matches(HEADS).to_owned();
            let is_current = self.branch.as_ref() == Some(name);
            match now.get(name) {
                None if !exists(git, name).await? => {
                    damages.push(Damage::BranchDeleted { branch, commit: before.clone() });
                }
                Some(after) if !is_current && !has_kept(git, before, after).await? => {
                    damages.push(Damage::BranchMoved { branch, commit: before.clone() });
                }
                // One that is checked out elsewhere by now is the user's business.
                None | Some(_) => {}
            }
        }
        Ok(())
    }

    /// Of these files, those whose content is not that of the copy: `git stash` and `git stash pop` write files as they were.
    async fn rewritten(&self, git: &Git, mut files: Vec<String>) -> Result<Vec<String>, GitError> {
        let Some(copy) = &self.copy else { return Ok(files) };
        let is_plain = |file: &String| {
            let kind = fs_err::symlink_metadata(self.root.join(file));
            !file.contains('\n') && kind.is_ok_and(|kind| kind.is_file())
        };
        let plain: Vec<String> = files.iter().filter(|file| is_plain(file)).cloned().collect();
        if plain.is_empty() {
            return Ok(files);
        }
        let hashed =
            git.feed(&["hash-object", "--stdin-paths"], (plain.join("\n") + "\n").as_bytes()).await?;
        let listed = git.run(&["ls-tree", "-r", "-z", "--full-tree", copy.files.as_str()]).await?;
        let before: BTreeMap<String, String> = split_nul(&listed)
            .filter_map(|entry| {
                let (facts, path) = entry.split_once('\t')?;
                Some((path.to_owned(), facts.rsplit(' ').next()?.to_owned()))
            })
            .collect();
        let hashed = String::from_utf8_lossy(&hashed);
        let same: BTreeSet<&String> = plain
            .iter()
            .zip(hashed.lines())
            .filter(|(file, id)| before.get(*file).is_some_and(|before| before == id))
            .map(|(file, _)| file)
            .collect();
        files.retain(|file| !same.contains(file));
        Ok(files)
    }

    fn new_operations(&self) -> Result<Vec<Operation>, GitError> {
        let found = operations(&self.root)?;
        Ok(found.into_iter().filter(|(_, name, _)| !self.operations.contains(*name)).collect())
    }

    /// Puts back what was damaged; the reference under which the run's own work is kept, if any had to make room.
    pub async fn restore(&self, found: &Aftermath) -> Result<Option<String>, GitError> {
        let git = Git::at(&self.root);
        for damage in found.damages.iter().rev() {
            if let Damage::StashDropped { commit } = damage {
                let message = self.stashes.iter().find(|(id, _)| id == commit).map(|(_, message)| message);
                let message = message.map_or("restored", String::as_str);
                git.run(&["stash", "store", "--message", message, commit.as_str()]).await?;
            }
        }
        let mut kept = None;
        for damage in &found.damages {
            let (Damage::BranchDeleted { branch, commit } | Damage::BranchMoved { branch, commit }) = damage
            else {
                continue;
            };
            let name = format!("{HEADS}{branch}");
            if let Some(now) = git.find_commit(&name).await? {
                let reference = format!("{LEFT}/{}/heads/{branch}", self.name);
                reference::set(&git, &reference, &now).await?;
                kept = Some(reference);
            }
            reference::set(&git, &name, commit).await?;
        }
        let is_of_tree = |damage: &Damage| {
            let moves = matches!(damage, Damage::CommitsDropped { .. } | Damage::HeadMoved { .. });
            moves
                || matches!(damage, Damage::Unfinished { .. } | Damage::ReadOnly { .. })
                || matches!(damage, Damage::BranchDeleted { branch, .. } if short(self.branch.as_ref()).as_ref() == Some(branch))
        };
        if found.damages.iter().any(is_of_tree) && self.operations.is_empty() {
            return Ok(self.put_back(Keep::UnderReference).await?.or(kept));
        }
        if let (false, Some(copy)) = (found.lost.is_empty(), &self.copy) {
            let lost: Vec<&str> = found.lost.iter().map(String::as_str).collect();
            let source = format!("--source={}", copy.files);
            feed_names(&git, &["restore", &source, "--worktree"], &lost).await?;
        }
        Ok(kept)
    }

    /// Makes the working tree what it was: commit, branch, index and files. What was there instead is kept, if that is wanted.
    pub async fn put_back(&self, keep: Keep) -> Result<Option<String>, GitError> {
        let git = Git::at(&self.root);
        let repository = Repository::around(&self.root)?;
        let (now, head) = (CheckoutPrint::take(&self.root).await?, git.find_commit("HEAD").await?);
        let files: Vec<&str> = now
            .dirty
            .iter()
            .filter(|(_, print)| !(print.is_untracked() && print.size() > LARGEST_COPIED))
            .map(|(file, _)| file.as_str())
            .collect();
        let base = head.clone().unwrap_or_else(|| self.head.clone());
        let present = if files.is_empty() {
            base
        } else {
            let git = git.committing().await?;
            let tree = tree_of_files(&git, &repository.git_dir, &files).await?;
            commit(&git, &tree, &[&base], "What a run left uncommitted").await?
        };
        let mut kept = None;
        if keep == Keep::UnderReference {
            kept = self.keep(&git, &present).await?;
        }
        for (_, _, quit) in self.new_operations()? {
            git.run(quit).await?;
        }
        match &self.branch {
            Some(branch) => {
                git.run(&["update-ref", branch, self.head.as_str()]).await?;
                git.run(&["symbolic-ref", "HEAD", branch]).await?;
            }
            None => drop(git.run(&["update-ref", "--no-deref", "HEAD", self.head.as_str()]).await?),
        }
        let (files, index) = match &self.copy {
            Some(copy) => (&copy.files, &copy.index),
            None => (&self.head, &self.head),
        };
        // Whatever is there now is in the index, so what was not there before goes away.
        git.run(&["read-tree", present.as_str()]).await?;
        git.run(&["read-tree", "--reset", "-u", files.as_str()]).await?;
        git.run(&["read-tree", index.as_str()]).await?;
        git.ask(&["update-index", "-q", "--refresh"]).await?;
        Ok(kept)
    }

    /// Keeps what a run had done, unless it is all in what is put back.
    async fn keep(&self, git: &Git, present: &Oid) -> Result<Option<String>, GitError> {
        if let Some(branch) = &self.branch
            && let Some(tip) = git.find_commit(branch).await?
            && !git.is_ancestor(&tip, present).await?
            && !git.is_ancestor(&tip, &self.head).await?
        {
            let name = format!("{LEFT}/{}/heads/{}", self.name, branch.trim_start_matches(HEADS));
            reference::set(git, &name, &tip).await?;
        }
        let same_files = match &self.copy {
            Some(copy) => git.ask(&["diff", "--quiet", copy.files.as_str(), present.as_str()]).await?.yes,
            None => false,
        };
        if git.is_ancestor(present, &self.head).await? || same_files {
            return Ok(None);
        }
        let name = format!("{LEFT}/{}/work", self.name);
        reference::set(git, &name, present).await?;
        Ok(Some(name))
    }

    /// The copy of the user's changes is not needed.
    pub async fn forget_copy(&self) -> Result<(), GitError> {
        if self.copy.is_some() {
            reference::delete(&Git::at(&self.root), &self.reference()).await?;
        }
        Ok(())
    }
}

impl Aftermath {
    /// Whether the user's uncommitted changes are not as they were: then their copy is kept.
    pub fn touched_edits(&self) -> bool {
        !(self.committed.is_empty() && self.changed.is_empty() && self.lost.is_empty())
    }
}

/// What becomes of what has to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// It stays under a reference.
    UnderReference,
    /// It goes away.
    Nothing,
}

type Operation = (&'static str, &'static str, &'static [&'static str]);

fn operations(root: &Utf8Path) -> Result<Vec<Operation>, GitError> {
    let git_dir = Repository::around(root)?.git_dir;
    Ok(OPERATIONS.into_iter().filter(|(file, _, _)| git_dir.join(file).exists()).collect())
}

fn short(branch: Option<&String>) -> Option<String> {
    branch.map(|name| name.trim_start_matches(HEADS).to_owned())
}

async fn checked_out(git: &Git) -> Result<Option<String>, GitError> {
    let found = git.ask(&["symbolic-ref", "--quiet", "HEAD"]).await?;
    let branch = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    Ok(Some(branch).filter(|branch| found.yes && !branch.is_empty()))
}

/// Whether a branch that was moved still has its commits.
async fn has_kept(git: &Git, before: &Oid, after: &Oid) -> Result<bool, GitError> {
    Ok(before == after || git.is_ancestor(before, after).await?)
}

async fn exists(git: &Git, reference: &str) -> Result<bool, GitError> {
    Ok(git.find_commit(reference).await?.is_some())
}

/// The branches that are not checked out in another working tree.
async fn branches(git: &Git, root: &Utf8Path) -> Result<BTreeMap<String, Oid>, GitError> {
    let args = ["for-each-ref", "--format=%(objectname) %(refname) %(worktreepath)", HEADS];
    let root = root.canonicalize_utf8().unwrap_or_else(|_| root.to_owned());
    let said = git.line(&args).await?;
    let mut found = BTreeMap::new();
    for line in said.lines() {
        let mut fields = line.splitn(3, ' ');
        let (Some(id), Some(name)) = (fields.next(), fields.next()) else { continue };
        let place = fields.next().unwrap_or_default();
        if place.is_empty() || place == root {
            found.insert(name.to_owned(), rehearsal_git::parse_oid(id, &args)?);
        }
    }
    Ok(found)
}

async fn stashes(git: &Git) -> Result<Vec<(Oid, String)>, GitError> {
    let args = ["stash", "list", "-z", "--format=%H %gs"];
    split_nul(&git.run(&args).await?)
        .map(|entry| {
            let (id, message) = entry.split_once(' ').unwrap_or((&entry, ""));
            Ok((rehearsal_git::parse_oid(id, &args)?, message.to_owned()))
        })
        .collect()
}

/// The files that differ between two commits.
async fn committed(git: &Git, before: &Oid, after: &Oid) -> Result<Vec<String>, GitError> {
    let args =
        ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", before.as_str(), after.as_str(), "--"];
    Ok(split_nul(&git.run(&args).await?).collect())
}

/// Copies the uncommitted changes of these files. Neither the index nor a file is touched.
async fn copy_edits(
    git: &Git,
    git_dir: &Utf8Path,
    head: &Oid,
    files: &[&str],
    message: &str,
) -> Result<Edits, GitError> {
    let git = git.committing().await?;
    // One with conflicts has no tree.
    let staged = git.oid(&["write-tree"]).await;
    let tree = async |name: &str| git.oid(&["rev-parse", "--verify", &format!("{name}^{{tree}}")]).await;
    let staged = match staged {
        Ok(staged) => staged,
        Err(_) => tree(head.as_str()).await?,
    };
    let index = commit(&git, &staged, &[head], message).await?;
    let all = tree_of_files(&git, git_dir, files).await?;
    let files = commit(&git, &all, &[head, &index], message).await?;
    Ok(Edits { files, index })
}

async fn commit(git: &Git, tree: &Oid, parents: &[&Oid], message: &str) -> Result<Oid, GitError> {
    let mut args = vec!["commit-tree", tree.as_str(), "-m", message];
    args.extend(parents.iter().flat_map(|parent| ["-p", parent.as_str()]));
    git.oid(&args).await
}

/// The tree that would be committed if all of these files were added.
async fn tree_of_files(git: &Git, git_dir: &Utf8Path, files: &[&str]) -> Result<Oid, GitError> {
    let index = git_dir.join(format!("rehearsal-index-{}", uuid::Uuid::now_v7()));
    let tree = tree_by_index(git, git_dir, &index, files).await;
    let _ = fs_err::remove_file(&index);
    tree
}

/// The same by an index beside that of the working tree, which stays as it is.
async fn tree_by_index(
    git: &Git,
    git_dir: &Utf8Path,
    index: &Utf8Path,
    files: &[&str],
) -> Result<Oid, GitError> {
    match fs_err::copy(git_dir.join("index"), index) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(GitError::io("copy the index")(error)),
    }
    let beside = git.with_index(index.to_owned());
    feed_names(&beside, &["add", "--all", "--force"], files).await?;
    beside.oid(&["write-tree"]).await
}

/// Calls git with these files, whatever their names and number.
async fn feed_names(git: &Git, args: &[&str], files: &[&str]) -> Result<(), GitError> {
    let names: String = files.iter().flat_map(|file| [file, "\0"]).collect();
    let these = ["--pathspec-from-file=-", "--pathspec-file-nul"];
    let args = [&["--literal-pathspecs"], args, &these[..]].concat();
    git.feed(&args, names.as_bytes()).await.map(drop)
}
