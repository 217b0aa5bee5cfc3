//! Where one trial happens: a repository, a home and a directory for temporary files of its own.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::environment::{Variables, tool_environment};
use rehearsal_eval::case::RepositoryFile;
use rehearsal_eval::run::Unmade;
use rehearsal_eval::trial::{ChangeKind, CommandEnd, FileChange, PullRequest};
use rehearsal_forge::mock_gh::{InstalledGh, MockState, PullRequestState};
use rehearsal_git::{Git, scratch};
use rehearsal_process::{Command, Keep};
use tokio_util::sync::CancellationToken;

/// A longer difference is cut: the files are told in any case.
const LONGEST_DIFF: usize = 256 << 10;
/// So much of what a command prints is kept.
const LONGEST_OUTPUT: usize = 4 << 10;

/// Where one trial happens. Gone when dropped.
pub(super) struct Scene {
    pub(super) repository: Utf8PathBuf,
    pub(super) home: Utf8PathBuf,
    pub(super) temp: Utf8PathBuf,
    /// Of the run: its prompt, its output, its report.
    pub(super) run: Utf8PathBuf,
    /// The `gh` of the trial: no call of an agent reaches a real repository.
    pub(super) gh: InstalledGh,
    pub(super) root: Utf8PathBuf,
    /// Where the agent works: the repository, or a worktree of it.
    pub(super) works_in: Utf8PathBuf,
    /// The commit that the agent is given.
    pub(super) base: String,
    _scratch: tempfile::TempDir,
}

impl Scene {
    /// Makes it. `beside` is where the eval's file is: paths in it are meant from there.
    pub(super) async fn make(
        repository: &RepositoryFile,
        setup: Option<&str>,
        beside: &Utf8Path,
        cancel: &CancellationToken,
    ) -> Result<Self, Unmade> {
        let mut scene = Self::empty().map_err(|error| failed("no place for the trial", &error))?;
        let root = scene.repository.clone();
        match &repository.path {
            Some(path) => scene.check_out(&beside.join(path), repository.at.as_deref()).await?,
            None => {
                fill(&root, &repository.files).map_err(|error| failed("the files of the case", &error))?;
                let made = async {
                    scratch::init_repository(&root).await?;
                    scratch::commit_all(&root, "Begin").await
                };
                made.await.map_err(|error| failed("the repository", &error))?;
            }
        }
        if let Some(patch) = &repository.patch {
            scene.apply(patch).await?;
        }
        if let Some(setup) = setup {
            let end = scene.shell(setup, cancel).await?;
            if end.code != Some(0) {
                return Err(Unmade::Failed(format!("the setup failed: {}", end.output.trim())));
            }
            scratch::commit_all(&root, "Set up").await.map_err(|error| failed("the setup", &error))?;
        }
        let head = scene.git(&["rev-parse", "HEAD"]).await?;
        head.trim().clone_into(&mut scene.base);
        Ok(scene)
    }

    fn empty() -> std::io::Result<Self> {
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
            gh: InstalledGh::install(&temp, &own_program()?, &MockState::default())?,
            temp,
            run: make("run")?,
            base: String::new(),
            root,
            _scratch: directory,
        })
    }

    async fn check_out(&self, from: &Utf8Path, at: Option<&str>) -> Result<(), Unmade> {
        if !from.is_dir() {
            return Err(failed("the repository", &format!("there is no directory `{from}`")));
        }
        // The directory may be one inside of a repository, as that of the evals is. A bare one has no such top.
        let top = Git::at(from).line(&["rev-parse", "--show-toplevel"]).await;
        let top = top.map_or_else(|_| from.to_owned(), Utf8PathBuf::from);
        scratch::clone_repository(&top, &self.repository)
            .await
            .map_err(|error| failed("the repository", &error))?;
        if let Some(at) = at {
            self.git(&["checkout", "--quiet", "--detach", at]).await?;
        }
        // What the agent finds there must not lead it back.
        self.git(&["remote", "remove", "origin"]).await?;
        Ok(())
    }

    /// Puts a patch on top, and commits it.
    pub(super) async fn apply(&self, patch: &str) -> Result<(), Unmade> {
        let file = self.temp.join("case.patch");
        fs_err::write(&file, patch).map_err(|error| failed("the patch", &error))?;
        self.git(&["apply", "--whitespace=nowarn", file.as_str()]).await?;
        fs_err::remove_file(&file).map_err(|error| failed("the patch", &error))?;
        scratch::commit_all(&self.repository, "The case").await.map_err(|error| failed("the patch", &error))
    }

    /// What is another now, committed or not, and the difference.
    pub(super) async fn changes(&self) -> Result<(Vec<FileChange>, String), Unmade> {
        // Files that git does not know yet are told as new, and stay unstaged as far as anyone can tell.
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
    pub(super) async fn shell(
        &self,
        command: &str,
        cancel: &CancellationToken,
    ) -> Result<CommandEnd, Unmade> {
        let shell = Command::new("sh", &self.repository)
            .args(["-c", command])
            .env_clear()
            .envs(self.variables())
            .keep(Keep::Tail(LONGEST_OUTPUT));
        let ended = cancel.run_until_cancelled(shell.run()).await.ok_or(Unmade::Cancelled)?;
        let output = ended.map_err(|error| failed("sh", &error))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&output.stderr);
        let from = text.ceil_char_boundary(text.len().saturating_sub(LONGEST_OUTPUT));
        Ok(CommandEnd { code: output.status.code(), output: text.split_off(from) })
    }

    /// What every process of the trial gets.
    pub(super) fn variables(&self) -> Variables {
        let mut variables = tool_environment(&crate::context::variables());
        variables.retain(|name, _| !name.starts_with("XDG_"));
        variables.extend(self.own());
        variables
    }

    /// The variables that are of this trial alone.
    pub(super) fn own(&self) -> BTreeMap<String, String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let own = [
            ("HOME", self.home.to_string()),
            ("TMPDIR", self.temp.to_string()),
            ("PATH", format!("{}:{path}", self.gh.directory())),
        ];
        own.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(self.gh.variables()).collect()
    }

    /// The variables of an agent with these of its own.
    pub(super) fn around(&self, agent: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all = agent.clone();
        all.extend(self.own());
        if let Some(path) = agent.get("PATH") {
            all.insert("PATH".to_owned(), format!("{}:{path}", self.gh.directory()));
        }
        all
    }

    /// Where worktrees are, for a trial of a flow.
    pub(super) fn worktrees(&self) -> Utf8PathBuf {
        self.root.join("worktrees")
    }

    /// The pull request that came of it, and the calls of `gh`.
    pub(super) fn on_forge(&self) -> Result<(Option<PullRequest>, Vec<String>), Unmade> {
        let state = self.gh.state().map_err(|error| failed("gh", &error))?;
        let calls = self.gh.calls().map_err(|error| failed("gh", &error))?;
        let last = state.pull_requests.into_iter().last();
        let told =
            last.map(|it| PullRequest { title: it.title, merged: it.state == PullRequestState::Merged });
        Ok((told, calls))
    }

    pub(super) async fn git(&self, args: &[&str]) -> Result<String, Unmade> {
        let output =
            Git::at(self.repository.clone()).run(args).await.map_err(|error| failed("git", &error))?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }
}

fn own_program() -> std::io::Result<Utf8PathBuf> {
    Utf8PathBuf::from_path_buf(std::env::current_exe()?)
        .map_err(|path| std::io::Error::other(format!("`{}` is not UTF-8", path.display())))
}

/// Nothing of a case is written outside of its repository.
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

/// What went wrong around the agent, in words.
pub(super) fn failed(what: &str, error: &dyn std::fmt::Display) -> Unmade {
    Unmade::Failed(format!("{what}: {error}"))
}
