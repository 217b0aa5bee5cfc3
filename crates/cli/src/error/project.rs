//! Why a project cannot be used, and what to do about it.

use rehearsal_app::caller::{InsideRunError, ReportError};
use rehearsal_app::file::FileError;
use rehearsal_app::init::InitError;
use rehearsal_app::logs::LogError;
use rehearsal_app::project::{DIRECTORY, ProjectError};
use rehearsal_app::sessions::SessionError;
use rehearsal_app::tasks::TaskError;
use rehearsal_core::flow::SHIPPED;

use super::CliError;
use crate::exit::Exit;

impl From<FileError> for CliError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Wrong { file, error } => Self::in_file(error, &file),
            FileError::Io(error) => error.into(),
            FileError::Missing(_)
            | FileError::Directory(_)
            | FileError::NotRegular(_)
            | FileError::TooLarge { .. } => Self::usage(error.to_string()),
        }
    }
}

impl From<InsideRunError> for CliError {
    fn from(error: InsideRunError) -> Self {
        Self::usage(error.to_string())
            .hint("`rehearsal task done ID`, `rehearsal task block ID --reason …` and `rehearsal session progress TEXT` report")
    }
}

impl From<ReportError> for CliError {
    fn from(error: ReportError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<ProjectError> for CliError {
    fn from(error: ProjectError) -> Self {
        let this = Self::usage(error.to_string());
        match error {
            ProjectError::NoRepository { .. } => this
                .exiting(Exit::Git)
                .hint("run `git init`, or go to a repository, or name one with `--repo DIR`"),
            ProjectError::StoreAddress { .. } => this.hint(
                "write `postgres://USER@HOST/DATABASE`, or leave it out: tasks are then kept on this machine; `rehearsal config show` says where",
            ),
            ProjectError::LostState { key_file, .. } => this
                .hint("restore the directory from a backup")
                .hint(format!("or remove `{key_file}` to begin without tasks")),
            ProjectError::CopiedRepository { key_file, .. } => {
                this.hint(format!("remove `{key_file}`: this copy then begins without tasks"))
            }
            ProjectError::BrokenKey { file } => {
                this.hint(format!("restore it from a backup, or remove `{file}` to begin without tasks"))
            }
            ProjectError::NotMoved { from, to, .. } => this.hint(format!("move it yourself: `mv {from} {to}`")),
            ProjectError::HiddenStore { .. } => this.hint("what you report is taken all the same: `rehearsal task done ID`, `rehearsal task block ID --reason …`, `rehearsal session progress TEXT`"),
            ProjectError::UnknownAgent { near, .. } => {
                this.did_you_mean(near, || "`rehearsal agent list` shows those that there are".to_owned())
            }
            ProjectError::UnknownFlow { near, .. } => this.did_you_mean(near, || {
                let shipped = SHIPPED.map(|(name, _)| name).join(", ");
                format!("shipped: {shipped}; your own go to `{DIRECTORY}/flows/NAME.yaml`")
            }),
            ProjectError::MisnamedFlow { file, expected, name } => {
                Self::usage(format!("the flow calls itself `{name}`"))
                    .at(&file)
                    .hint(format!("write `name: {expected}`, or call the file `{name}.yaml`"))
            }
            ProjectError::LoopFlow { .. } => {
                this.hint(format!("see `{DIRECTORY}/flows/loop.yaml`; without that file the shipped one is used"))
            }
            ProjectError::NoDataDirectory => {
                this.hint("set HOME, or XDG_DATA_HOME to an absolute path")
            }
            ProjectError::FlowSetting { .. } | ProjectError::NotUtf8(_) => this,
            ProjectError::File(error) => error.into(),
            ProjectError::InsideRun(error) => error.into(),
            ProjectError::Open(error) => error.into(),
            ProjectError::Store(error) => error.into(),
            ProjectError::Find(error) => error.into(),
            ProjectError::Commit(error) => error.into(),
            ProjectError::Io(error) => error.into(),
        }
    }
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        let this = Self::usage(error.to_string());
        match error {
            SessionError::NoSession => this.hint("make one with `rehearsal session new NAME`"),
            SessionError::SeveralSessions { names } => {
                this.hint(format!("name one with `--session`: {}", names.join(", ")))
            }
            SessionError::Report(error) => error.into(),
            SessionError::Project(error) => error.into(),
        }
    }
}

impl From<TaskError> for CliError {
    fn from(error: TaskError) -> Self {
        let this = Self::usage(error.to_string());
        match error {
            TaskError::UnknownWord { near, known, .. } => {
                this.did_you_mean(near, || format!("there are {}", known.join(", ")))
            }
            TaskError::NothingToImport { .. } => this
                .hint("in Markdown a task is a line `- [ ] title`; in JSON lines an object with a `title`"),
            TaskError::NoComment | TaskError::NoAnswer | TaskError::KeyUsedTwice { .. } => this,
            TaskError::NoTask => this.exiting(Exit::Internal),
            TaskError::Session(error) => error.into(),
            TaskError::Report(error) => error.into(),
            TaskError::Project(error) => error.into(),
        }
    }
}

impl From<LogError> for CliError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::NoLog { ref run } => {
                let hint = format!("`rehearsal runs show {run}` says how it ended");
                Self::usage(error.to_string()).hint(hint)
            }
            LogError::NoRuns { ref task } => {
                let hint = format!("`rehearsal why {task}` says what it waits for");
                Self::usage(error.to_string()).hint(hint)
            }
            LogError::Project(error) => error.into(),
        }
    }
}

impl From<InitError> for CliError {
    fn from(error: InitError) -> Self {
        match error {
            InitError::Exists { .. } => Self::usage(error.to_string()).hint(
                "`rehearsal config show --origin` shows what it says; `rehearsal init --force` writes it anew",
            ),
            InitError::Project(error) => error.into(),
        }
    }
}
