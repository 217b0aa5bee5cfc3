//! What every command has at hand.

use std::io::IsTerminal;
use std::ops::Deref;
use std::sync::Arc;

use camino::Utf8PathBuf;
use rehearsal_agent::environment::Variables;
use rehearsal_app::caller::Caller;
use rehearsal_app::file::read_input;
use rehearsal_app::project::Project;
use rehearsal_core::{Person, Via};
use rehearsal_engine::SystemClock;

use crate::error::CliError;
use crate::ui::Ui;

/// One call: who asks, and how they want to be answered.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) ui: Ui,
    pub(crate) caller: Caller,
}

impl Deref for Context {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl Context {
    pub(crate) fn new(ui: Ui, repo: Option<Utf8PathBuf>) -> Result<Self, CliError> {
        let here = std::env::current_dir()?;
        let here = Utf8PathBuf::from_path_buf(here).map_err(|path| {
            CliError::usage(format!("the directory `{}` has a name that is not UTF-8", path.display()))
        })?;
        let directory = repo.map_or_else(|| here.clone(), |repo| here.join(repo));
        if !directory.is_dir() {
            return Err(CliError::usage(format!("there is no directory `{directory}`")));
        }
        let caller = Caller {
            directory,
            environment: variables(),
            clock: Arc::new(SystemClock),
            person: person(),
            is_below_agent: rehearsal_process::is_below_agent(),
        };
        Ok(Self { ui, caller })
    }

    /// The repository around.
    pub(crate) fn project(&self) -> Result<Project, CliError> {
        Ok(Project::open(self)?)
    }
}

/// Who calls: the account that the kernel knows, not what the environment says.
fn person() -> Person {
    let user = rustix::process::getuid().as_raw();
    let accounts = fs_err::read_to_string("/etc/passwd").unwrap_or_default();
    let host = fs_err::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let via = if std::io::stdin().is_terminal() { Via::Terminal } else { Via::NoTerminal };
    Person {
        name: account_name(&accounts, user).unwrap_or_else(|| format!("uid {user}")),
        host: host.trim().to_owned(),
        via,
    }
}

/// The name of a user in the system's list, `name:password:uid:…`.
fn account_name(accounts: &str, user: u32) -> Option<String> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id.parse() == Ok(user)).then(|| name.to_owned())
    })
}

/// The path of this binary.
pub(crate) fn own_program() -> Result<Utf8PathBuf, CliError> {
    Utf8PathBuf::from_path_buf(std::env::current_exe()?)
        .map_err(|path| CliError::usage(format!("`{}` is not UTF-8", path.display())))
}

/// Our environment, as far as it is text; what is not cannot be handed on by name.
pub(crate) fn variables() -> Variables {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// A text from standard input.
pub(crate) fn read_stdin() -> Result<String, CliError> {
    Ok(read_input(std::io::stdin(), "standard input")?)
}

/// The text that an argument stands for: `-` is standard input.
pub(crate) fn text_of(argument: String) -> Result<String, CliError> {
    if argument == "-" { read_stdin() } else { Ok(argument) }
}
