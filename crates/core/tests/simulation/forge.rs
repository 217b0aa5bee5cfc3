//! The forge: pull requests, checks, comments, and deployments that leave no trace to look for.

use std::collections::{BTreeMap, BTreeSet};

use crate::defect::Defect;
use crate::invariant::{
    Invariant::{I3, I6},
    Violation, ensure,
};
use crate::repository::{Oid, Repository};
use crate::rng::mix;

pub(crate) struct PullRequest {
    pub(crate) task: usize,
    pub(crate) merged: Option<Oid>,
    /// The commit that was merged.
    pub(crate) merged_head: Option<Oid>,
}

pub(crate) struct Forge {
    seed: u64,
    defect: Option<Defect>,
    pub(crate) git: Repository,
    pub(crate) pull_requests: Vec<PullRequest>,
    /// When each commit came to the forge: its checks need a while to be there.
    arrived: BTreeMap<Oid, i64>,
    pub(crate) pushed_ever: BTreeSet<(usize, Oid)>,
    pub(crate) comments: BTreeSet<Key>,
    pub(crate) commands: BTreeSet<Key>,
}

/// Which pass of which task through which step: what makes an effect the same effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) task: usize,
    pub(crate) pass: u32,
    pub(crate) step: u32,
}

/// What the checks of a commit say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checks {
    None,
    Pending,
    Failed,
    Passed,
}

/// A change of something shared, with what whoever asks believes to be there.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Push { task: usize, head: Oid, expected: Option<Oid> },
    Open { task: usize },
    Comment(Key),
    Command(Key),
    Merge { task: usize, head: Oid, base: Oid },
}

impl Forge {
    pub(crate) fn new(seed: u64, tasks: usize, defect: Option<Defect>) -> Self {
        Self {
            seed,
            defect,
            git: Repository::new(seed, tasks),
            pull_requests: Vec::new(),
            arrived: BTreeMap::new(),
            pushed_ever: BTreeSet::new(),
            comments: BTreeSet::new(),
            commands: BTreeSet::new(),
        }
    }

    /// Does it, if things are as expected. What does not fit does nothing; whoever asked looks afterwards.
    pub(crate) fn act(&mut self, act: &Act, now: i64) -> Result<(), Violation> {
        match act {
            Act::Push { task, head, expected } => self.push(*task, *head, *expected, now),
            Act::Open { task } => self.open(*task),
            Act::Comment(key) => {
                self.comments.insert(*key);
                Ok(())
            }
            Act::Command(key) => {
                ensure(self.commands.insert(*key), I6, || format!("deployed twice: {key:?}"))
            }
            Act::Merge { task, head, base } => self.merge(*task, *head, *base),
        }
    }

    fn push(&mut self, task: usize, head: Oid, expected: Option<Oid>, now: i64) -> Result<(), Violation> {
        let found = self.git.branches[task];
        if found != expected && self.defect != Some(Defect::PushesByForce) {
            return Ok(());
        }
        let known = found == expected || found == Some(head);
        ensure(known, I3, || {
            format!("a push to the branch of t{task} overwrote {found:?}, which it did not know")
        })?;
        self.git.branches[task] = Some(head);
        self.pushed_ever.insert((task, head));
        self.arrived.entry(head).or_insert(now);
        Ok(())
    }

    fn open(&mut self, task: usize) -> Result<(), Violation> {
        let is_open = self.open_request(task).is_some();
        if is_open && self.defect != Some(Defect::OpensWithoutLooking) {
            return Ok(());
        }
        ensure(!is_open, I6, || format!("two pull requests are open for t{task}"))?;
        self.pull_requests.push(PullRequest { task, merged: None, merged_head: None });
        Ok(())
    }

    fn merge(&mut self, task: usize, expected: Oid, base: Oid) -> Result<(), Violation> {
        let blind = self.defect == Some(Defect::MergesAgain);
        let any = || self.pull_requests.iter().rposition(|it| it.task == task).filter(|_| blind);
        let Some(number) = self.open_request(task).or_else(any) else { return Ok(()) };
        let found = self.git.branches[task];
        let any_head = self.defect == Some(Defect::MergesAnyHead);
        let any_base = self.defect == Some(Defect::GateOfAnotherTree);
        if (found != Some(expected) && !any_head) || (self.git.base != base && !any_base) {
            return Ok(());
        }
        let head = if any_head { found.unwrap_or(expected) } else { expected };
        let Some(tree) = self.git.merged_tree(self.git.base, head) else { return Ok(()) };
        let again = self.pull_requests.iter().any(|it| it.task == task && it.merged_head == Some(head));
        ensure(!again, I6, || format!("the work of t{task} was merged twice"))?;
        let commit = self.git.land(tree, self.git.commits[head].work)?;
        let request = &mut self.pull_requests[number];
        (request.merged, request.merged_head) = (Some(commit), Some(head));
        Ok(())
    }

    pub(crate) fn open_request(&self, task: usize) -> Option<usize> {
        self.pull_requests.iter().rposition(|it| it.task == task && it.merged.is_none())
    }

    /// The pull request that brought this very commit to the base.
    pub(crate) fn merged_request(&self, task: usize, head: Oid) -> Option<usize> {
        self.pull_requests.iter().rposition(|it| it.task == task && it.merged_head == Some(head))
    }

    /// Checks turn up a while after the push, then run, then have a verdict.
    pub(crate) fn checks(&self, head: Oid, now: i64) -> Checks {
        let Some(arrived) = self.arrived.get(&head) else { return Checks::None };
        match now - arrived {
            ..20_000 => Checks::None,
            20_000..60_000 => Checks::Pending,
            _ if mix(self.seed ^ head as u64).is_multiple_of(8) => Checks::Failed,
            _ => Checks::Passed,
        }
    }

    /// Someone else pushes to a branch of ours.
    pub(crate) fn trespass(&mut self, task: usize, now: i64) {
        if self.git.branches[task].is_some()
            && let Some(oid) = self.git.new_work()
        {
            self.git.branches[task] = Some(oid);
            self.arrived.insert(oid, now);
        }
    }
}
