//! The paths of a policy, resolved and checked.

use camino::{Utf8Path, Utf8PathBuf};

use crate::error::SandboxError;
use crate::home;
use crate::policy::{Network, Policy};
use rehearsal_core::sandbox::ProjectMode;

/// The paths of a policy as they really are: absolute, without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) project: Utf8PathBuf,
    pub(crate) writable: Vec<Utf8PathBuf>,
    /// Read-only below something writable.
    pub(crate) protected: Vec<Utf8PathBuf>,
    /// Shown although it lies below something hidden.
    pub(crate) readable: Vec<Utf8PathBuf>,
    /// Directories that are replaced by empty ones.
    pub(crate) hidden: Vec<Utf8PathBuf>,
    /// Secrets that would show nevertheless, and whether each is a directory.
    pub(crate) masked: Vec<(Utf8PathBuf, bool)>,
}

impl Places {
    pub(crate) fn resolve(policy: &Policy) -> Result<Self, SandboxError> {
        let project = resolve(&policy.project)?;
        let home = policy.home.as_deref().and_then(|home| resolve(home).ok()).filter(|home| home != "/");
        let mut places = Self {
            writable: writable(policy, &project, home.as_deref())?,
            hidden: hidden(home.as_deref()),
            readable: Vec::new(),
            protected: Vec::new(),
            masked: Vec::new(),
            project,
        };
        for path in [&places.project].into_iter().chain(&places.writable) {
            if path == "/" {
                return Err(SandboxError::TooWide(path.clone()));
            }
        }
        let own = existing(&policy.own, home.as_deref());
        places.writable.extend(own.iter().cloned());
        let mut protected = existing(&policy.protected, home.as_deref());
        protected.retain(|path| places.is_below_writable(policy.mode, path));
        places.protected = protected;
        places.readable = places.shown(policy, home.as_deref())?;
        places.masked = places.secrets(home.as_deref());
        places.masked.retain(|(secret, _)| !own.iter().any(|own| secret.starts_with(own)));
        Ok(places)
    }

    fn is_below_writable(&self, mode: ProjectMode, path: &Utf8Path) -> bool {
        let project = Some(&self.project).filter(|_| mode == ProjectMode::Writable);
        self.writable.iter().chain(project).any(|around| path.starts_with(around))
    }

    /// What the policy names and a hidden directory would hide.
    fn shown(&self, policy: &Policy, home: Option<&Utf8Path>) -> Result<Vec<Utf8PathBuf>, SandboxError> {
        let mut shown: Vec<Utf8PathBuf> = Vec::new();
        let mut wanted: Vec<Utf8PathBuf> = policy.readable.clone();
        if policy.network == Network::Allowed {
            wanted.push("/etc/resolv.conf".into());
        }
        for path in wanted {
            let Some(path) = below_home(home, &path) else { continue };
            let Ok(real) = resolve(&path) else { continue };
            refuse_secret(home, &path, &real)?;
            if self.is_hidden(&real, &shown) {
                shown.push(real);
            }
        }
        Ok(shown)
    }

    /// Whether what lies closest around a path is hidden, and not shown.
    fn is_hidden(&self, path: &Utf8Path, readable: &[Utf8PathBuf]) -> bool {
        let depth = |around: &Utf8PathBuf| path.starts_with(around).then(|| around.components().count());
        let shown = std::iter::once(&self.project).chain(&self.writable).chain(readable);
        self.hidden.iter().filter_map(depth).max() > shown.filter_map(depth).max()
    }

    fn secrets(&self, home: Option<&Utf8Path>) -> Vec<(Utf8PathBuf, bool)> {
        let in_home =
            home.into_iter().flat_map(|home| home::SECRETS.iter().map(move |secret| home.join(secret)));
        let of_system = home::SYSTEM_SECRETS.iter().map(Utf8PathBuf::from);
        let is_root = rustix::process::geteuid().is_root();
        in_home
            .chain(of_system.filter(|_| is_root))
            .filter_map(|secret| resolve(&secret).ok())
            .filter(|secret| !self.is_hidden(secret, &self.readable))
            .map(|secret| {
                let is_directory = secret.is_dir();
                (secret, is_directory)
            })
            .collect()
    }
}

/// A home is private; what everybody writes into is for everybody.
pub(super) fn mode_of_private(path: &Utf8Path) -> u32 {
    if path.file_name() == Some("tmp") { 0o1777 } else { 0o755 }
}

fn hidden(home: Option<&Utf8Path>) -> Vec<Utf8PathBuf> {
    let known = home::HIDDEN.iter().map(Utf8Path::new).chain(home);
    let mut hidden: Vec<Utf8PathBuf> =
        known.filter_map(|path| resolve(path).ok()).filter(|path| path.is_dir() && path != "/").collect();
    hidden.sort();
    hidden.dedup();
    hidden
}

fn writable(
    policy: &Policy,
    project: &Utf8Path,
    home: Option<&Utf8Path>,
) -> Result<Vec<Utf8PathBuf>, SandboxError> {
    let mut writable = Vec::new();
    for path in &policy.writable {
        let real = resolve(path)?;
        refuse_secret(home, path, &real)?;
        let is_inside = path.starts_with(&policy.project) || path.starts_with(project);
        if is_inside && !real.starts_with(project) {
            return Err(SandboxError::LeadsOut { path: path.clone(), to: real });
        }
        writable.push(real);
    }
    Ok(writable)
}

fn refuse_secret(home: Option<&Utf8Path>, path: &Utf8Path, real: &Utf8Path) -> Result<(), SandboxError> {
    match home {
        Some(home) if home::is_secret(home, path) || home::is_secret(home, real) => {
            Err(SandboxError::Secret(path.to_owned()))
        }
        _ => Ok(()),
    }
}

/// The real places of what is there.
fn existing(paths: &[Utf8PathBuf], home: Option<&Utf8Path>) -> Vec<Utf8PathBuf> {
    paths.iter().filter_map(|path| resolve(&below_home(home, path)?).ok()).collect()
}

fn below_home(home: Option<&Utf8Path>, path: &Utf8Path) -> Option<Utf8PathBuf> {
    if path.is_absolute() { Some(path.to_owned()) } else { home.map(|home| home.join(path)) }
}

fn resolve(path: &Utf8Path) -> Result<Utf8PathBuf, SandboxError> {
    if !path.is_absolute() {
        return Err(SandboxError::NotAbsolute(path.to_owned()));
    }
    path.canonicalize_utf8().map_err(|source| SandboxError::Path { path: path.to_owned(), source })
}
