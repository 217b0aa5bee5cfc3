//! What can go wrong before a command runs.

use camino::Utf8PathBuf;

use rehearsal_core::sandbox::Layer;

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A path of the policy is not there.
    #[error("cannot resolve `{path}`")]
    Path {
        /// The path as given.
        path: Utf8PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A path of the policy is not absolute, or its real place has no UTF-8 name.
    #[error("`{0}` is not an absolute path in UTF-8")]
    NotAbsolute(Utf8PathBuf),
    /// A writable directory inside the project is a link out of it, as a hostile test could have left it.
    #[error("`{path}` leads out of the project, to `{to}`")]
    LeadsOut {
        /// The path as given.
        path: Utf8PathBuf,
        /// Where it leads.
        to: Utf8PathBuf,
    },
    /// A path that would leave nothing to confine.
    #[error("`{0}` is too wide to be written to")]
    TooWide(Utf8PathBuf),
    /// The policy names a place where secrets are kept.
    #[error("`{0}` holds secrets and is never shown to a confined process")]
    Secret(Utf8PathBuf),
    /// A limit that cannot be meant.
    #[error("a limit of {0} is not usable")]
    Limit(String),
    /// The policy demands what the machine does not give.
    #[error("the sandbox is required, and does not hold: {}", .0.iter().map(|(layer, why)| format!("{layer} ({why})")).collect::<Vec<_>>().join(", "))]
    Required(Vec<(Layer, String)>),
    /// An argument, a variable or a path has a NUL byte.
    #[error("`{0}` has a NUL byte")]
    Nul(String),
    /// The program is not to be found, or cannot be executed, inside.
    #[error("cannot execute `{program}`")]
    Execute {
        /// As it was asked for.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A step of the set-up failed although it did not when it was tried.
    #[error("cannot set up the sandbox: {stage}")]
    SetUp {
        /// Which step.
        stage: Stage,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The steps of the set-up, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum Stage {
    Start = 1,
    Identity,
    Loopback,
    Mounts,
    Overlay,
    Proc,
    Limits,
    Privileges,
    Group,
    Directory,
    Descriptors,
    Landlock,
    Filter,
    Execute,
}

impl Stage {
    const ALL: [Self; 14] = [
        Self::Start,
        Self::Identity,
        Self::Loopback,
        Self::Mounts,
        Self::Overlay,
        Self::Proc,
        Self::Limits,
        Self::Privileges,
        Self::Group,
        Self::Directory,
        Self::Descriptors,
        Self::Landlock,
        Self::Filter,
        Self::Execute,
    ];

    pub(crate) fn from_wire(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| *stage as u8 == byte)
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Start => "starting a process in new namespaces",
            Self::Identity => "mapping the user into its namespace",
            Self::Loopback => "bringing up the private loopback",
            Self::Mounts => "laying out the file system",
            Self::Overlay => "laying an overlay over the project",
            Self::Proc => "mounting a private /proc",
            Self::Limits => "setting the limits of processes",
            Self::Privileges => "giving up privileges",
            Self::Group => "entering the control group",
            Self::Directory => "entering the working directory",
            Self::Descriptors => "arranging the file descriptors",
            Self::Landlock => "restricting files with Landlock",
            Self::Filter => "loading the filter of system calls",
            Self::Execute => "executing the program",
        })
    }
}
