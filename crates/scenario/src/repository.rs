//! The repositories that scenarios start from: a checkout and its bare remote.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{SourceError, Timestamp};
use rehearsal_git::{Git, GitError};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::environment::{BASE, ScenarioError};

/// The checkout, in the scenario's directory.
pub(crate) const WORK: &str = "work";
/// Its remote.
pub(crate) const ORIGIN: &str = "origin.git";
/// The author of foreign commits.
pub(crate) const OUTSIDER: &str = "Someone Else";

/// The files of a repository that the scenario does not describe.
const FILES: [(&str, &str); 2] =
    [("README.md", "# A repository\n"), ("run-tests", "#!/bin/sh\necho '1..1'\necho 'ok 1 - it works'\n")];

/// A fixed author makes commits the same on every machine. No repository lives long enough to need maintenance.
const SETTINGS: &str = "[user]\n\tname = Rehearsal\n\temail = rehearsal@localhost\n\
                        [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[receive]\n\tautogc = false\n";

type Files = BTreeMap<Utf8PathBuf, String>;

/// Repositories by content: each is created once, and copied for every scenario that starts from it.
#[derive(Default)]
pub struct RepositoryCache {
    made: Mutex<BTreeMap<Files, Arc<OnceCell<TempDir>>>>,
}

impl RepositoryCache {
    fn of(&self, files: &Files) -> Arc<OnceCell<TempDir>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(made.entry(files.clone()).or_default())
    }
}

/// Sets up the repository of one scenario.
pub(crate) struct RepositorySetup<'a> {
    pub(crate) root: &'a Utf8Path,
    pub(crate) repositories: &'a RepositoryCache,
    pub(crate) now: Timestamp,
}

impl RepositorySetup<'_> {
    /// A repository with these files, or with default ones.
    pub(crate) async fn copy(&self, files: &Files) -> Result<(), ScenarioError> {
        let made = self.repositories.of(files);
        let made = made.get_or_try_init(|| make(files, self.now)).await?;
        let made = Utf8Path::from_path(made.path())
            .ok_or_else(|| std::io::Error::other("a temporary directory that is not UTF-8"))?;
        for name in [WORK, ORIGIN] {
            copy_tree(&made.join(name), &self.root.join(name))?;
        }
        let origin = format!("[remote \"origin\"]\n\turl = {}\n\tfetch = {FETCH}\n", self.root.join(ORIGIN));
        append(&self.root.join(WORK).join(".git/config"), &origin)
    }

    /// The project as committed, without its remotes: a push stays in the scenario's directory.
    pub(crate) async fn clone_project(
        &self,
        project: &Utf8Path,
        at: Option<&str>,
    ) -> Result<(), ScenarioError> {
        let commit = Git::at(project).commit(at.unwrap_or("HEAD")).await?;
        let git = Git::at(self.root);
        git.run(&["init", "--quiet", "--template=", "--bare", "--initial-branch", BASE, ORIGIN]).await?;
        let origin = Git::at(self.root.join(ORIGIN));
        let from = format!("{commit}:refs/heads/{BASE}");
        // Fetching a commit by its id must be allowed explicitly.
        origin
            .run(&[
                "-c",
                "uploadpack.allowAnySHA1InWant=true",
                "fetch",
                "--quiet",
                "--no-tags",
                project.as_str(),
                &from,
            ])
            .await?;
        git.run(&["clone", "--quiet", "--template=", ORIGIN, WORK]).await?;
        for config in [self.root.join(WORK).join(".git/config"), self.root.join(ORIGIN).join("config")] {
            append(&config, SETTINGS)?;
        }
        Ok(())
    }
}

/// The fetch refspec, as `git remote add` writes it.
const FETCH: &str = "+refs/heads/*:refs/remotes/origin/*";

async fn make(files: &Files, now: Timestamp) -> Result<TempDir, ScenarioError> {
    let made = tempfile::Builder::new().prefix("rehearsal-").tempdir()?;
    let root = Utf8PathBuf::try_from(made.path().to_owned()).map_err(std::io::Error::other)?;
    let (work, origin) = (root.join(WORK), root.join(ORIGIN));
    fs_err::create_dir(&work)?;
    let git = Git::at(work.clone()).dated(now);
    git.run(&["init", "--quiet", "--template=", "--initial-branch", BASE]).await?;
    if files.is_empty() {
        write_files(&work, FILES.iter().map(|(path, text)| (Utf8Path::new(*path), *text)))?;
    }
    write_files(&work, files.iter().map(|(path, text)| (path.as_path(), text.as_str())))?;
    commit_all(&git, "The beginning").await?;
    append(&work.join(".git/config"), SETTINGS)?;
    // A bare clone has the same objects and branch, without the files of a checkout.
    for name in ["objects", "refs"] {
        copy_tree(&work.join(".git").join(name), &origin.join(name))?;
    }
    fs_err::copy(work.join(".git/HEAD"), origin.join("HEAD"))?;
    let config = fs_err::read_to_string(work.join(".git/config"))?;
    fs_err::write(origin.join("config"), config.replace("bare = false", "bare = true"))?;
    Ok(made)
}

async fn commit_all(git: &Git, message: &str) -> Result<(), GitError> {
    git.run(&["add", "--all"]).await?;
    let (name, mail) = (format!("user.name={OUTSIDER}"), "user.email=someone@localhost");
    git.run(&["-c", &name, "-c", mail, "commit", "--quiet", "--allow-empty", "--message", message]).await?;
    Ok(())
}

fn write_files<'a>(
    root: &Utf8Path,
    files: impl Iterator<Item = (&'a Utf8Path, &'a str)>,
) -> Result<(), ScenarioError> {
    for (path, text) in files {
        check_inside(path)?;
        let path = root.join(path);
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        fs_err::write(&path, text)?;
        if is_program(text) {
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

/// A scenario writes only inside its repository.
pub(crate) fn check_inside(path: &Utf8Path) -> Result<(), SourceError> {
    if path.is_absolute() || path.components().any(|part| part.as_str() == "..") {
        return Err(SourceError::at(None, format!("`{path}` is not inside of the repository")));
    }
    Ok(())
}

pub(crate) fn is_program(text: &str) -> bool {
    text.starts_with("#!")
}

fn append(file: &Utf8Path, text: &str) -> Result<(), ScenarioError> {
    use std::io::Write as _;
    let mut file = fs_err::OpenOptions::new().append(true).open(file)?;
    Ok(file.write_all(text.as_bytes())?)
}

/// Copies a directory that contains only directories and files.
fn copy_tree(from: &Utf8Path, to: &Utf8Path) -> Result<(), ScenarioError> {
    let mut open = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = open.pop() {
        fs_err::create_dir_all(&to)?;
        for entry in from.read_dir_utf8()? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push((entry.path().to_owned(), target));
            } else {
                fs_err::copy(entry.path(), target)?;
            }
        }
    }
    Ok(())
}
