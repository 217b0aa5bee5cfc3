//! The scratch directory of one trial: a repository, a home, temporary files and a fake `gh`.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::environment::{Variables, tool_environment};
use rehearsal_core::TestStatus;
use rehearsal_engine::{Draws, Tester, Wanted};
use rehearsal_forge::mock_gh::{InstalledGh, MockState, PullRequestState};
use rehearsal_git::{Git, scratch};
use rehearsal_llm::cassette::Place;
use rehearsal_process::{Command, Keep};
use rehearsal_testing::RunWatcher;
use tokio_util::sync::CancellationToken;

use super::TrialContext;
use crate::case::RepositoryFile;
use crate::run::TrialError;
use crate::trial::{ChangeKind, CommandEnd, FileChange, PullRequest};

/// A longer diff is cut; the list of files is complete in any case.
const LONGEST_DIFF: usize = 256 << 10;
/// How much of a command's output is kept, from its end.
const LONGEST_OUTPUT: usize = 4 << 10;

/// The tests of a repository by name.
pub(crate) type TestResults = BTreeMap<String, TestStatus>;

/// Where one trial happens. Deleted when dropped.
pub(crate) struct Workspace {
    pub(crate) repository: Utf8PathBuf,
    pub(crate) home: Utf8PathBuf,
    pub(crate) temp: Utf8PathBuf,
    /// The run's files: prompt, output, report.
    pub(crate) run: Utf8PathBuf,
    /// The fake `gh`: no call of an agent reaches a real repository.
    pub(crate) gh: InstalledGh,
    pub(crate) root: Utf8PathBuf,
    /// Where the agent works: the repository, or a worktree of it.
    pub(crate) works_in: Utf8PathBuf,
    /// The commit that the agent starts from.
    pub(crate) base: String,
    /// The environment of this process.
    ours: Variables,
    _scratch: tempfile::TempDir,
}

impl Workspace {
    /// Creates the repository of a case. Its paths are relative to `directory`, where the eval's file is.
    pub(crate) async fn create(
        repository: &RepositoryFile,
        setup: Option<&str>,
        directory: &Utf8Path,
        context: &TrialContext,
        cancel: &CancellationToken,
    ) -> Result<Self, TrialError> {
        let mut workspace = Self::empty(context).map_err(|error| failed("no place for the trial", &error))?;
        match &repository.path {
            Some(path) => workspace.check_out(&directory.join(path), repository.at.as_deref()).await?,
            None => {
                fill(&workspace.repository, &repository.files)
                    .map_err(|error| failed("the files of the case", &error))?;
                workspace.git(&["init", "--quiet", "--template=", "--initial-branch=main"]).await?;
                workspace.commit_all("Begin").await?;
            }
        }
        if let Some(patch) = &repository.patch {
            workspace.apply(patch).await?;
        }
        if let Some(setup) = setup {
            let end = workspace.shell(setup, cancel).await?;
            if end.code != Some(0) {
                return Err(TrialError::Failed(format!("the setup failed: {}", end.output.trim())));
            }
            workspace.commit_all("Set up").await?;
        }
        let head = workspace.git(&["rev-parse", "HEAD"]).await?;
        head.trim().clone_into(&mut workspace.base);
        Ok(workspace)
    }

    fn empty(context: &TrialContext) -> std::io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("rehearsal-eval-").tempdir()?;
        let root = Utf8PathBuf::from_path_buf(directory.path().canonicalize()?)
            .map_err(|path| std::io::Error::other(format!("`{}` is not UTF-8", path.display())))?;
        let make = |name: &str| -> std::io::Result<Utf8PathBuf> {
            let path = root.join(name);
            fs_err::create_dir(&path)?;
            Ok(path)
        };
        let home = make("home")?;
        fs_err::write(
            home.join(".gitconfig"),
            "[user]\n\tname = Rehearsal\n\temail = rehearsal@localhost\n",
        )?;
        let (temp, repository) = (make("tmp")?, make("repository")?);
        Ok(Self {
            works_in: repository.clone(),
            repository,
            home,
            gh: InstalledGh::install(&temp, &context.program, &MockState::default())?,
            temp,
            run: make("run")?,
            base: String::new(),
            root,
            ours: context.variables.clone(),
            _scratch: directory,
        })
    }

    async fn check_out(&self, from: &Utf8Path, at: Option<&str>) -> Result<(), TrialError> {
        if !from.is_dir() {
            return Err(failed("the repository", &format!("there is no directory `{from}`")));
        }
        // It may be a directory inside a repository, as that of the evals is. A bare repository has no top level.
        let top = Git::at(from).line(&["rev-parse", "--show-toplevel"]).await;
        let top = top.map_or_else(|_| from.to_owned(), Utf8PathBuf::from);
        self.git(&["clone", "--quiet", "--no-hardlinks", "--template=", top.as_str(), "."]).await?;
        if let Some(at) = at {
            self.git(&["checkout", "--quiet", "--detach", at]).await?;
        }
        // The agent must find no way back to the original.
        self.git(&["remote", "remove", "origin"]).await?;
        Ok(())
    }

    /// Applies a patch and commits it.
    pub(crate) async fn apply(&self, patch: &str) -> Result<(), TrialError> {
        let file = self.temp.join("case.patch");
        fs_err::write(&file, patch).map_err(|error| failed("the patch", &error))?;
        self.git(&["apply", "--whitespace=nowarn", file.as_str()]).await?;
        fs_err::remove_file(&file).map_err(|error| failed("the patch", &error))?;
        self.commit_all("The case").await
    }

    /// Commits everything, even nothing.
    async fn commit_all(&self, message: &str) -> Result<(), TrialError> {
        scratch::commit_all(&self.repository, message).await.map_err(|error| failed("git", &error))
    }

    /// The files that changed, committed or not, and the diff.
    pub(crate) async fn changes(&self) -> Result<(Vec<FileChange>, String), TrialError> {
        // Lists untracked files as new without staging their content.
        self.git(&["add", "--all", "--intent-to-add"]).await?;
        let names = self.git(&["diff", "--name-status", "--no-renames", "-z", &self.base]).await?;
        let mut fields = names.split('\0');
        let mut changes = Vec::new();
        while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
            let kind = match status {
                "A" => ChangeKind::Created,
                "D" => ChangeKind::Deleted,
                _ => ChangeKind::Modified,
            };
            changes.push(FileChange { path: path.to_owned(), kind });
        }
        let mut diff = self.git(&["diff", "--no-renames", "--no-ext-diff", "--no-color", &self.base]).await?;
        if diff.len() > LONGEST_DIFF {
            diff.truncate(diff.floor_char_boundary(LONGEST_DIFF));
            diff.push_str("\n… (cut)\n");
        }
        Ok((changes, diff))
    }

    /// Runs a command in the repository, with none of our secrets.
    pub(crate) async fn shell(
        &self,
        command: &str,
        cancel: &CancellationToken,
    ) -> Result<CommandEnd, TrialError> {
        let shell = Command::new("sh", &self.repository)
            .args(["-c", command])
            .env_clear()
            .envs(self.variables())
            .keep(Keep::Tail(LONGEST_OUTPUT));
        let ended = cancel.run_until_cancelled(shell.run()).await.ok_or(TrialError::Cancelled)?;
        let output = ended.map_err(|error| failed("sh", &error))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&output.stderr);
        let from = text.ceil_char_boundary(text.len().saturating_sub(LONGEST_OUTPUT));
        Ok(CommandEnd { code: output.status.code(), output: text.split_off(from) })
    }

    /// The tests of the repository, run as the project's settings say.
    pub(crate) async fn test(
        &self,
        context: &TrialContext,
        cancel: &CancellationToken,
    ) -> Result<TestResults, TrialError> {
        let tester = Tester {
            root: self.repository.clone(),
            settings: context.settings.testing.clone(),
            base_branch: None,
            keep: self.run.join("tests"),
            variables: context.variables.clone(),
            store: Arc::clone(&context.store),
            clock: Arc::clone(&context.clock),
            draws: Draws::random(),
        };
        let tested = tester.test(&Wanted::default(), &RunWatcher::none(), cancel).await;
        let tested = tested.map_err(|error| failed("the tests", &error))?;
        let tests = tested.projects.into_iter().flat_map(|project| project.report.tests);
        Ok(tests.map(|test| (test.name, test.status)).collect())
    }

    /// The environment of a command of the trial.
    fn variables(&self) -> Variables {
        let mut variables = tool_environment(&self.ours);
        variables.retain(|name, _| !name.starts_with("XDG_"));
        variables.extend(self.own());
        variables
    }

    /// The variables that only this trial has.
    pub(crate) fn own(&self) -> Variables {
        let path = self.ours.get("PATH").map(String::as_str).unwrap_or_default();
        let own = [
            ("HOME", self.home.to_string()),
            ("TMPDIR", self.temp.to_string()),
            ("PATH", format!("{}:{path}", self.gh.directory())),
        ];
        own.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(self.gh.variables()).collect()
    }

    /// The variables of an agent whose profile sets `agent`.
    pub(crate) fn for_agent(&self, agent: &Variables) -> Variables {
        let mut all = agent.clone();
        all.extend(self.own());
        if let Some(path) = agent.get("PATH") {
            all.insert("PATH".to_owned(), format!("{}:{path}", self.gh.directory()));
        }
        all
    }

    /// Where worktrees are, for a trial of a flow.
    pub(crate) fn worktrees(&self) -> Utf8PathBuf {
        self.root.join("worktrees")
    }

    /// The last pull request, and the calls of `gh`.
    pub(crate) fn on_forge(&self) -> Result<(Option<PullRequest>, Vec<String>), TrialError> {
        let state = self.gh.state().map_err(|error| failed("gh", &error))?;
        let calls = self.gh.calls().map_err(|error| failed("gh", &error))?;
        let last = state.pull_requests.into_iter().last();
        let pull_request =
            last.map(|it| PullRequest { title: it.title, merged: it.state == PullRequestState::Merged });
        Ok((pull_request, calls))
    }

    /// The directories that differ from trial to trial.
    pub(crate) fn place(&self) -> Place {
        Place::resolved(self.works_in.as_str(), self.home.as_str(), self.temp.as_str())
    }

    pub(crate) async fn git(&self, args: &[&str]) -> Result<String, TrialError> {
        let output =
            Git::at(self.repository.clone()).run(args).await.map_err(|error| failed("git", &error))?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }
}

/// Writes the files of a case, all inside its repository.
fn fill(root: &Utf8Path, files: &BTreeMap<String, String>) -> std::io::Result<()> {
    for (path, content) in files {
        let is_inside = !path.is_empty()
            && Utf8Path::new(path).components().all(|part| matches!(part, camino::Utf8Component::Normal(_)));
        if !is_inside || path.starts_with(".git/") || path == ".git" {
            return Err(std::io::Error::other(format!("`{path}` is not a path inside of the repository")));
        }
        let file = root.join(path);
        if let Some(parent) = file.parent() {
            fs_err::create_dir_all(parent)?;
        }
        fs_err::write(file, content)?;
    }
    Ok(())
}

/// Something around the agent went wrong.
pub(crate) fn failed(what: &str, error: &dyn std::fmt::Display) -> TrialError {
    TrialError::Failed(format!("{what}: {error}"))
}
