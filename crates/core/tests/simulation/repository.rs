//! git as far as it matters: commits with trees, one branch for each task, and a base that others move too.
//!
//! A change is a bit, a tree is a set of changes. Which changes contradict each other, and which trees are red, is
//! fixed by the seed: nobody can know it without a merge or a test.

use std::collections::BTreeSet;

use crate::invariant::{Invariant::I6, Violation, ensure};
use crate::rng::mix;

/// A set of changes.
pub(crate) type Tree = u128;
/// A commit's name.
pub(crate) type Oid = usize;

/// The id that the store knows a commit by.
pub(crate) fn id_of(commit: Oid) -> rehearsal_core::Oid {
    rehearsal_core::Oid::new(&format!("{:040x}", commit + 1)).unwrap()
}

/// The id that the store knows a tree by.
pub(crate) fn id_of_tree(tree: Tree) -> rehearsal_core::Oid {
    rehearsal_core::Oid::new(&format!("1{tree:039x}")).unwrap()
}

/// The commit of an id.
pub(crate) fn number_of(id: &rehearsal_core::Oid) -> Oid {
    Oid::from_str_radix(id.as_str(), 16).unwrap() - 1
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Commit {
    pub(crate) tree: Tree,
    /// The changes that it brings.
    pub(crate) work: Tree,
    /// The commit of the base that it stands on.
    pub(crate) base: Oid,
}

pub(crate) struct Repository {
    seed: u64,
    pub(crate) commits: Vec<Commit>,
    changes: u32,
    pub(crate) base: Oid,
    /// What lies in each task's worktree.
    pub(crate) worktrees: Vec<Option<Oid>>,
    /// Where each task's branch stands on the remote.
    pub(crate) branches: Vec<Option<Oid>>,
    /// Trees that a test run found green.
    pub(crate) tested: BTreeSet<Tree>,
}

impl Repository {
    pub(crate) fn new(seed: u64, tasks: usize) -> Self {
        Self {
            seed,
            commits: vec![Commit { tree: 0, work: 0, base: 0 }],
            changes: 0,
            base: 0,
            worktrees: vec![None; tasks],
            branches: vec![None; tasks],
            tested: BTreeSet::new(),
        }
    }

    pub(crate) fn base_tree(&self) -> Tree {
        self.commits[self.base].tree
    }

    fn add(&mut self, commit: Commit) -> Oid {
        self.commits.push(commit);
        self.commits.len() - 1
    }

    /// A commit with a new change on the base; none once there are too many to tell apart.
    pub(crate) fn new_work(&mut self) -> Option<Oid> {
        if self.changes == Tree::BITS {
            return None;
        }
        let work: Tree = 1 << self.changes;
        self.changes += 1;
        let (tree, base) = (self.base_tree() | work, self.base);
        Some(self.add(Commit { tree, work, base }))
    }

    /// The same work on the tip of the base; none if both changed the same.
    pub(crate) fn onto_base(&mut self, head: Oid) -> Option<Oid> {
        let commit = self.commits[head];
        if commit.base == self.base || commit.work & !self.base_tree() == 0 {
            return Some(head);
        }
        let tree = self.merged_tree(self.base, head)?;
        Some(self.add(Commit { tree, work: commit.work, base: self.base }))
    }

    /// What a base would be with the work on it; none if they contradict each other.
    pub(crate) fn merged_tree(&self, base: Oid, head: Oid) -> Option<Tree> {
        let (base, head) = (self.commits[base].tree, self.commits[head]);
        let others = base & !self.commits[head.base].tree & !head.work;
        let collides = bits(head.work)
            .any(|ours| bits(others).any(|other| self.hash(1, ours, other).is_multiple_of(30)));
        (!collides).then_some(base | head.work)
    }

    /// Runs the tests; what is green is remembered.
    pub(crate) fn test(&mut self, tree: Tree) -> bool {
        let green = self.is_green(tree);
        if green {
            self.tested.insert(tree);
        }
        green
    }

    pub(crate) fn is_green(&self, tree: Tree) -> bool {
        let alone = bits(tree).all(|change| !self.hash(2, change, change).is_multiple_of(20));
        alone
            && bits(tree)
                .all(|a| bits(tree).filter(|b| *b > a).all(|b| !self.hash(3, a, b).is_multiple_of(50)))
    }

    /// Moves the base to the work, merged; only what was tested may land.
    pub(crate) fn land(&mut self, tree: Tree, work: Tree) -> Result<Oid, Violation> {
        ensure(self.tested.contains(&tree), I6, || {
            "a tree that nobody tested landed on the base".to_owned()
        })?;
        ensure(self.is_green(tree), I6, || "a red tree landed on the base".to_owned())?;
        self.base = self.add(Commit { tree, work, base: self.base });
        Ok(self.base)
    }

    /// Someone else's work on the base, tested by them.
    pub(crate) fn move_base(&mut self) -> bool {
        let Some(oid) = self.new_work() else { return false };
        let Commit { tree, .. } = self.commits[oid];
        let green = self.test(tree);
        if green {
            self.base = oid;
        }
        green
    }

    fn hash(&self, about: u64, a: u32, b: u32) -> u64 {
        mix(self.seed ^ mix(about << 40 | u64::from(a) << 20 | u64::from(b)))
    }
}

fn bits(mut tree: Tree) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (tree != 0).then(|| {
            let bit = tree.trailing_zeros();
            tree &= tree - 1;
            bit
        })
    })
}
