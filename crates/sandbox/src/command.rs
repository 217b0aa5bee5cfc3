//! What to run.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use camino::Utf8PathBuf;

use crate::error::{SandboxError, Stage};
use crate::sys::ExecArguments;

/// What to run. Nothing is inherited: neither variables nor open files. What is not given of the standard streams is
/// `/dev/null`.
#[derive(Debug)]
pub struct Command {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: Utf8PathBuf,
    descriptors: Vec<(RawFd, OwnedFd)>,
}

impl Command {
    /// A program, by path or by name in the `PATH` of its own environment, and where it starts.
    pub fn new(program: impl Into<OsString>, directory: impl Into<Utf8PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: directory.into(),
            descriptors: Vec::new(),
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.environment.retain(|(known, _)| *known != name);
        self.environment.push((name, value.into()));
        self
    }

    /// Gives it an open file as its descriptor `number`; 0 to 2 are the standard streams.
    pub fn descriptor(mut self, number: RawFd, file: impl Into<OwnedFd>) -> Self {
        self.descriptors.retain(|(known, _)| *known != number);
        self.descriptors.push((number, file.into()));
        self
    }

    /// Gives it standard input.
    pub fn stdin(self, file: impl Into<OwnedFd>) -> Self {
        self.descriptor(0, file)
    }

    /// Gives it standard output.
    pub fn stdout(self, file: impl Into<OwnedFd>) -> Self {
        self.descriptor(1, file)
    }

    /// Gives it standard error.
    pub fn stderr(self, file: impl Into<OwnedFd>) -> Self {
        self.descriptor(2, file)
    }

    /// The same once more, with the same open files.
    pub(crate) fn try_clone(&self) -> Result<Self, SandboxError> {
        let descriptors = self.descriptors.iter().map(|(number, file)| Ok((*number, file.try_clone()?)));
        let descriptors = descriptors
            .collect::<std::io::Result<_>>()
            .map_err(|source| SandboxError::SetUp { stage: Stage::Descriptors, source })?;
        Ok(Self {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            environment: self.environment.clone(),
            directory: self.directory.clone(),
            descriptors,
        })
    }

    pub(crate) fn program(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    /// Puts another program in front, which is told to run this one.
    pub(crate) fn through(mut self, wrapper: OsString, wrapper_arguments: Vec<OsString>) -> Self {
        let program = std::mem::replace(&mut self.program, wrapper);
        let arguments = std::mem::replace(&mut self.arguments, wrapper_arguments);
        self.arguments.push(program);
        self.arguments.extend(arguments);
        self
    }

    /// Everything that the exec needs, so that nothing is allocated after the fork.
    pub(crate) fn into_executable(mut self) -> Result<Executable, SandboxError> {
        for number in 0..3 {
            if !self.descriptors.iter().any(|(known, _)| *known == number) {
                let null = std::fs::File::options().read(true).write(true).open("/dev/null");
                let null = null.map_err(|source| SandboxError::Path { path: "/dev/null".into(), source })?;
                self.descriptors.push((number, null.into()));
            }
        }
        let candidates = self.candidates().iter().map(|path| c_string(path)).collect::<Result<_, _>>()?;
        let arguments = std::iter::once(&self.program).chain(&self.arguments);
        let arguments = arguments.map(|argument| c_string(argument)).collect::<Result<_, _>>()?;
        let variables = self.environment.iter().map(|(name, value)| {
            let mut variable = name.clone();
            variable.push("=");
            variable.push(value);
            c_string(&variable)
        });
        Ok(Executable {
            candidates,
            arguments: ExecArguments::new(arguments),
            environment: ExecArguments::new(variables.collect::<Result<_, _>>()?),
            directory: c_string(self.directory.as_ref())?,
            descriptors: self.descriptors,
        })
    }

    /// The paths to try in turn, as a shell would.
    fn candidates(&self) -> Vec<OsString> {
        if self.program.as_bytes().contains(&b'/') {
            return vec![self.program.clone()];
        }
        let path =
            self.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        std::env::split_paths(path.unwrap_or(OsStr::new("/usr/bin:/bin")))
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(&self.program).into_os_string())
            .collect()
    }
}

/// A command laid out for the exec.
pub(crate) struct Executable {
    pub(crate) candidates: Vec<CString>,
    pub(crate) arguments: ExecArguments,
    pub(crate) environment: ExecArguments,
    pub(crate) directory: CString,
    /// Each with the number that it gets.
    pub(crate) descriptors: Vec<(RawFd, OwnedFd)>,
}

pub(crate) fn c_string(text: &OsStr) -> Result<CString, SandboxError> {
    CString::new(text.as_bytes()).map_err(|_| SandboxError::Nul(text.to_string_lossy().replace('\0', "\\0")))
}
