//! What a run needs of the repository.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::config::Settings;
use rehearsal_git::{Git, GitError, Repository};

use super::machine::not_writable;
use super::{Finding, Subject};
use crate::outlet::{ChosenForge, Destination, OutletError};
use crate::places;
use crate::project::{Project, ProjectError};
use crate::testing::{self, FoundTests};

/// What was found of the repository.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum RepositoryFact {
    /// The root of the repository.
    Repository(Utf8PathBuf),
    /// There is none around.
    NoRepository(ProjectError),
    /// It belongs to another user, so git refuses to work in it.
    OtherOwner(Utf8PathBuf),
    /// A place in it cannot be written.
    NotWritable { path: Utf8PathBuf, error: std::io::Error },
    /// The file with the settings; none: only the defaults hold.
    Configuration(Option<String>),
    /// It cannot be read.
    BadConfiguration(ProjectError),
    /// The command that runs the tests.
    TestCommand(String),
    /// The tests that were found.
    Tests(Vec<FoundTests>),
    /// None were found, and no command is set.
    NoTests,
    /// How many flows are in the repository.
    Flows(usize),
    /// They cannot be listed.
    NoFlows(ProjectError),
    /// One cannot be used.
    BadFlow(ProjectError),
    /// Where worktrees are.
    Worktrees(Utf8PathBuf),
    /// There is no place for them.
    NoWorktrees(ProjectError),
    /// Where work goes.
    Destination(Destination),
    /// It goes to GitHub, and `gh` is not here.
    NoGh(Destination),
    /// It can go nowhere.
    NoDestination(OutletError),
}

/// Whether git works in it, and whether it can be written.
pub(super) async fn access(root: &Utf8Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    match Git::at(root).run(&["rev-parse", "--git-dir"]).await {
        Err(GitError::Failed { stderr, .. }) if stderr.contains("dubious ownership") => {
            findings.push(Finding::bad(Subject::Repository, RepositoryFact::OtherOwner(root.to_owned())));
        }
        _ => findings.push(Finding::ok(Subject::Repository, RepositoryFact::Repository(root.to_owned()))),
    }
    let git_dir = Repository::find(root).ok().flatten().map(|repository| repository.git_dir);
    let places = [Some(root.to_owned()), git_dir];
    let refused = |path: Utf8PathBuf| Some((not_writable(&path)?, path));
    if let Some((error, path)) = places.into_iter().flatten().find_map(refused) {
        findings.push(Finding::bad(Subject::Repository, RepositoryFact::NotWritable { path, error }));
    }
    findings
}

pub(super) fn tests(settings: Option<&Settings>, root: &Utf8Path) -> Finding {
    if let Some(command) = settings.and_then(|settings| settings.testing.command.clone()) {
        return Finding::ok(Subject::Tests, RepositoryFact::TestCommand(command));
    }
    match testing::found(root) {
        tests if tests.is_empty() => Finding::note(Subject::Tests, RepositoryFact::NoTests),
        tests => Finding::ok(Subject::Tests, RepositoryFact::Tests(tests)),
    }
}

pub(super) fn flows(project: &Project) -> Finding {
    let names = match project.own_flows() {
        Ok(names) => names,
        Err(error) => return Finding::bad(Subject::Flows, RepositoryFact::NoFlows(error)),
    };
    match names.iter().find_map(|name| project.flow(name).err()) {
        Some(error) => Finding::bad(Subject::Flows, RepositoryFact::BadFlow(error)),
        None => Finding::ok(Subject::Flows, RepositoryFact::Flows(names.len())),
    }
}

pub(super) fn worktrees(settings: &Settings, project: &Project) -> Finding {
    match places::worktrees(settings, project) {
        Ok(directory) => Finding::ok(Subject::Worktrees, RepositoryFact::Worktrees(directory)),
        Err(error) => Finding::note(Subject::Worktrees, RepositoryFact::NoWorktrees(error)),
    }
}

/// Looks where work goes, and creates nothing.
pub(super) async fn destination(settings: &Settings, project: &Project) -> Finding {
    match Destination::choose(settings, project).await {
        Ok(destination) => match &destination.forge {
            ChosenForge::GitHub { program, .. } if which::which(program).is_err() => {
                Finding::note(Subject::Forge, RepositoryFact::NoGh(destination))
            }
            _ => Finding::ok(Subject::Forge, RepositoryFact::Destination(destination)),
        },
        Err(error) => Finding::note(Subject::Forge, RepositoryFact::NoDestination(error)),
    }
}
