//! Where a package's files are: its import path without the path of its module.
//!
//! `go test` prints import paths and names of files without their directory; the module's path it never prints. The
//! compiler's messages have both, so one of them settles it; until then it is guessed by how modules are named.

/// Sites on which a repository has an owner: a module's path there has three parts.
const SITES_WITH_OWNERS: [&str; 9] = [
    "bitbucket.org",
    "codeberg.org",
    "git.sr.ht",
    "gitea.com",
    "gitee.com",
    "github.com",
    "gitlab.com",
    "golang.org",
    "huggingface.co",
];

#[derive(Debug, Default)]
pub(super) struct Modules {
    /// The module's path, if a message told.
    told: Option<String>,
}

impl Modules {
    /// A message about this package names a file in this directory, relative to the module.
    pub(super) fn learn(&mut self, package: &str, dir: &str) {
        let dir = dir.trim_start_matches("./").trim_end_matches('/');
        if self.told.is_some() || dir.starts_with(['/', '.']) || dir.contains(':') {
            return;
        }
        let module = match package.strip_suffix(dir) {
            Some(rest) if dir.is_empty() => Some(rest),
            Some(rest) => rest.strip_suffix('/'),
            None => None,
        };
        self.told = module.map(str::to_owned);
    }

    /// The directory of a package, relative to its module; empty for the module's own.
    pub(super) fn dir_of<'a>(&self, package: &'a str) -> &'a str {
        let module = match &self.told {
            Some(told) if is_below(package, told) => told.len(),
            _ => guessed(package),
        };
        package.get(module..).unwrap_or_default().trim_start_matches('/')
    }

    /// A file of a package, relative to the module. Go prints only its name, unless told to print more.
    pub(super) fn file(&self, package: &str, name: &str) -> String {
        match self.dir_of(package) {
            _ if name.contains(['/', '\\']) => name.to_owned(),
            "" => name.to_owned(),
            dir => format!("{dir}/{name}"),
        }
    }
}

fn is_below(package: &str, module: &str) -> bool {
    package.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// How much of a package's path is its module's.
fn guessed(package: &str) -> usize {
    let mut ends: Vec<usize> = package.match_indices('/').map(|(at, _)| at).take(5).collect();
    ends.push(package.len());
    let host = &package[..ends[0]];
    let parts = match host {
        _ if !host.contains('.') => 1,
        _ if SITES_WITH_OWNERS.contains(&host) => 3,
        _ => 2,
    };
    let end = ends.get(parts - 1).copied().unwrap_or(package.len());
    // The major version is part of the module's path, but no directory.
    let next = package[end..].trim_start_matches('/').split('/').next().unwrap_or_default();
    let is_version = next.strip_prefix('v').is_some_and(|digits| digits.parse::<u32>().is_ok());
    if is_version { end + 1 + next.len() } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_guessed_by_how_modules_are_named() {
        for (package, dir) in [
            ("example.com/shop/calc", "calc"),
            ("example.com/shop", ""),
            ("github.com/me/shop/internal/calc", "internal/calc"),
            ("github.com/me/shop/v2/calc", "calc"),
            ("shop/calc", "calc"),
            ("shop", ""),
            ("", ""),
            ("gopkg.in/yaml.v3", ""),
        ] {
            assert_eq!(Modules::default().dir_of(package), dir, "{package}");
        }
    }

    #[test]
    fn the_compiler_knows_better() {
        let mut modules = Modules::default();
        modules.learn("example.com/team/shop/calc", "calc/");
        assert_eq!(modules.file("example.com/team/shop/cart", "cart_test.go"), "cart/cart_test.go");
        assert_eq!(modules.file("other.org/x/y", "y_test.go"), "y/y_test.go");
    }
}
