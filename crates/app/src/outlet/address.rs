//! What a remote's address says about where it is.

use camino::Utf8PathBuf;

/// Where a remote is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    GitHub,
    /// A directory on this machine; relative to the repository, if at all.
    Directory(Utf8PathBuf),
    /// This host.
    Elsewhere(String),
}

const GITHUB: [&str; 3] = ["github.com", "www.github.com", "ssh.github.com"];

impl Address {
    pub(super) fn read(url: &str) -> Self {
        if let Some(path) = url.strip_prefix("file://") {
            return Self::Directory(path.into());
        }
        let host = match url.split_once("://") {
            Some((_, rest)) => rest.split('/').next().unwrap_or(rest),
            // `user@host:path`, unless a slash comes before the colon.
            None => match url.split_once(':') {
                Some((host, _)) if !host.contains('/') => host,
                _ => return Self::Directory(url.into()),
            },
        };
        let host = host.rsplit('@').next().unwrap_or(host);
        let host = host.split(':').next().unwrap_or(host).to_ascii_lowercase();
        if GITHUB.contains(&host.as_str()) { Self::GitHub } else { Self::Elsewhere(host) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_tells_where_it_leads() {
        for github in [
            "git@github.com:ada/greet.git",
            "https://github.com/ada/greet",
            "https://ada:secret@GitHub.com/ada/greet.git",
            "ssh://git@ssh.github.com:443/ada/greet.git",
        ] {
            assert_eq!(Address::read(github), Address::GitHub, "{github}");
        }
        for path in ["/srv/greet.git", "../greet.git", "./a:b", "greet.git"] {
            assert_eq!(Address::read(path), Address::Directory(path.into()));
        }
        assert_eq!(Address::read("file:///srv/greet.git"), Address::Directory("/srv/greet.git".into()));
        for (url, host) in [
            ("git@gitlab.com:ada/greet.git", "gitlab.com"),
            ("https://github.com.example.org/x", "github.com.example.org"),
            ("https://me:p@ss@git.example.org:8443/x", "git.example.org"),
        ] {
            assert_eq!(Address::read(url), Address::Elsewhere(host.into()));
        }
    }
}
