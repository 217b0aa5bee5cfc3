//! Homes: what is shown of them, and what never is.

use camino::Utf8Path;

/// What toolchains keep in a home: programs, libraries, downloaded packages. No place where one of them keeps a password.
pub const READABLE_IN_HOME: &[&str] = &[
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/git",
    ".cargo/registry",
    ".rustup",
    ".pyenv",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".local/share/mise",
    ".asdf",
    ".bun/bin",
    ".deno/bin",
    ".dotnet",
    ".fnm",
    ".gem",
    ".jbang",
    ".m2/repository",
    ".gradle/wrapper",
    ".nvm",
    ".npm/_cacache",
    ".nuget/packages",
    ".rbenv",
    ".rvm",
    ".sdkman",
    ".volta",
    "go",
    "sdk",
];

/// Where secrets are, below a home: never shown, whatever a policy says.
pub(crate) const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config",
    ".docker",
    ".kube",
    ".netrc",
    ".git-credentials",
    ".password-store",
    ".mozilla",
    ".pki",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet/NuGet.Config",
    ".terraform.d",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".local/share/keyrings",
    ".local/share/opencode",
];

/// Where the machine keeps homes and what belongs to running sessions: hidden, unless a policy shows it. Sockets of other services
/// lie in `/run`.
pub const HIDDEN: &[&str] = &["/home", "/root", "/run", "/tmp", "/var/tmp"];

/// Files of the system that only root can read. They matter when we are root: the files then belong to us inside as well.
pub(crate) const SYSTEM_SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/ssl/private",
    "/etc/ssh",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
];

/// Whether a policy for this home cannot show a path, because it is a known place of secrets.
pub fn holds_secrets(home: &Utf8Path, path: &Utf8Path) -> bool {
    let real = |path: &Utf8Path| path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    is_secret(home, path) || is_secret(&real(home), &real(path))
}

/// Whether a path is a place of secrets of this home, or inside of one.
pub(crate) fn is_secret(home: &Utf8Path, path: &Utf8Path) -> bool {
    SECRETS.iter().any(|secret| path.starts_with(home.join(secret)))
}
