//! What counts as risky: the defaults, and what a user makes of them.

use globset::{Glob, GlobBuilder, GlobMatcher};

use super::words::{holds, words};

/// What a change is held against.
#[derive(Debug, Clone)]
pub struct Rules {
    /// So many files are seen at a glance.
    pub most_files: u32,
    /// Whether a change of a public interface is one to be reviewed.
    pub interfaces: bool,
    paths: Vec<PathRule>,
    words: Vec<(String, Vec<String>)>,
}

#[derive(Debug, Clone)]
struct PathRule {
    written: String,
    by: By,
}

#[derive(Debug, Clone)]
enum By {
    /// A word of the path: `auth` is in `src/UserAuth.java`, and not in `AUTHORS`.
    Word(Vec<String>),
    /// A pattern without `/`, for the name of the file.
    Name(GlobMatcher),
    /// A pattern for the whole path.
    Path(GlobMatcher),
}

/// Places where mistakes are dear: who may do what, what cannot be undone, what runs with rights, what everything depends on.
const RISKY_PATHS: &[&str] = &[
    "auth",
    "authentication",
    "authorization",
    "oauth",
    "login",
    "permission",
    "security",
    "crypto",
    "credential",
    "secret",
    "password",
    "payment",
    "billing",
    "migration",
    ".github/**",
    ".gitlab-ci.yml",
    ".circleci/**",
    ".buildkite/**",
    "Jenkinsfile",
    "azure-pipelines.yml",
    ".travis.yml",
    ".gitmodules",
    ".gitattributes",
    ".pre-commit-config.yaml",
    ".husky/**",
    "Dockerfile*",
    "docker-compose*",
    "compose.yaml",
    "compose.yml",
    "*.tf",
    "*.tfvars",
    "Cargo.toml",
    "Cargo.lock",
    "build.rs",
    "rust-toolchain*",
    "package.json",
    "package-lock.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock*",
    ".npmrc",
    "go.mod",
    "go.sum",
    "requirements*.txt",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "poetry.lock",
    "uv.lock",
    "Pipfile*",
    "Gemfile*",
    "*.gemspec",
    "pom.xml",
    "build.gradle*",
    "settings.gradle*",
    "composer.json",
    "composer.lock",
    "*.csproj",
    "mix.exs",
    "mix.lock",
    ".env*",
    "*.pem",
    "*.key",
    "*.ini",
    "*.conf",
    "config.*",
    "settings.*",
    "config/**",
    "**/config/**",
    ".rehearsal/**",
];

/// Words that a line has when it deals with secrets, runs what it is given, or takes away what cannot be brought back.
const RISKY_WORDS: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "credential",
    "private key",
    "api key",
    "unsafe",
    "eval",
    "exec",
    "delete",
    "drop",
    "truncate",
    "rm -rf",
    "rmtree",
    "chmod",
    "chown",
    "sudo",
    "setuid",
    "pickle",
    "innerHTML",
    "shell=True",
    "verify=False",
];

/// The places that are risky unless a user says otherwise.
pub fn risky_paths() -> Vec<String> {
    RISKY_PATHS.iter().map(|path| (*path).to_owned()).collect()
}

/// The words that are risky unless a user says otherwise.
pub fn risky_words() -> Vec<String> {
    RISKY_WORDS.iter().map(|word| (*word).to_owned()).collect()
}

impl Default for Rules {
    fn default() -> Self {
        Self::new(Self::MOST_FILES, true, &risky_paths(), &risky_words())
    }
}

impl Rules {
    /// So many files are seen at a glance.
    pub const MOST_FILES: u32 = 2;

    /// Rules as a user wrote them. A pattern that is none was refused by [`check_pattern`] where it stands, and
    /// matches nothing here.
    pub fn new(most_files: u32, interfaces: bool, paths: &[String], risky: &[String]) -> Self {
        let path = |written: &String| {
            let by = if !is_pattern(written) {
                By::Word(words(written))
            } else if written.contains('/') {
                By::Path(glob(written).ok()?.compile_matcher())
            } else {
                By::Name(glob(written).ok()?.compile_matcher())
            };
            Some(PathRule { written: written.clone(), by })
        };
        Self {
            most_files,
            interfaces,
            paths: paths.iter().filter_map(path).collect(),
            words: risky.iter().map(|word| (word.clone(), words(word))).collect(),
        }
    }

    /// The rule that a path falls under.
    pub(super) fn risky_path(&self, path: &str) -> Option<&str> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let parts = words(path);
        let falls = |rule: &&PathRule| match &rule.by {
            By::Word(word) => holds(&parts, word),
            By::Name(glob) => glob.is_match(name),
            By::Path(glob) => glob.is_match(path),
        };
        self.paths.iter().find(falls).map(|rule| rule.written.as_str())
    }

    pub(super) fn risky_words(&self, line: &str) -> impl Iterator<Item = &str> {
        let line = words(line);
        self.words.iter().filter(move |(_, rule)| holds(&line, rule)).map(|(written, _)| written.as_str())
    }
}

/// Whether a risky path can be used as it is written.
pub fn check_pattern(written: &str) -> Result<(), String> {
    if written.trim().is_empty() {
        return Err("an empty pattern matches nothing".to_owned());
    }
    if !is_pattern(written) {
        return Ok(());
    }
    glob(written).map(drop).map_err(|error| format!("`{written}` is not a pattern: {}", error.kind()))
}

/// A word is a word of the path; anything with a dot, a slash or a wildcard is a pattern.
fn is_pattern(written: &str) -> bool {
    written.contains(['*', '?', '[', '{', '/', '.'])
}

fn glob(written: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(written).literal_separator(true).case_insensitive(true).build()
}
