//! What a sandbox kept from the tests, told from what is wrong with them.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::pattern::{FailurePattern, Said};

/// What the sandbox of a run kept from its tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Withheld {
    /// Everything but this machine's loopback was out of reach.
    pub network: bool,
    /// Only some directories could be written.
    pub filesystem: bool,
    /// Those that could, as absolute names.
    pub writable: Vec<Utf8PathBuf>,
    /// The limit in bytes.
    pub memory: Option<u64>,
    /// The limit of one process.
    pub open_files: Option<u64>,
    /// The limit of all together.
    pub processes: Option<u64>,
}

/// What was denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DenialKind {
    /// Reaching another machine.
    Network,
    /// Writing, or reading what is not to be seen.
    Filesystem,
    /// More memory.
    Memory,
    /// More open files.
    Fds,
    /// More processes or threads.
    Processes,
}

impl DenialKind {
    /// What the sandbox does, as a clause.
    const fn rule(self) -> &'static str {
        match self {
            Self::Network => "network access is off in the sandbox",
            Self::Filesystem => "the sandbox does not allow writing there",
            Self::Memory => "the sandbox's memory limit was reached",
            Self::Fds => "the sandbox's limit of open files was reached",
            Self::Processes => "the sandbox's limit of processes was reached",
        }
    }

    /// What to do about it.
    const fn remedy(self) -> &'static str {
        match self {
            Self::Network => {
                "put a stand-in on 127.0.0.1, or allow it with `allow_network: true` under `testing.sandbox`"
            }
            Self::Filesystem => "write to a temporary directory or below the project",
            Self::Memory => "use less memory, or raise `max_memory` under `testing.sandbox`",
            Self::Fds => "close files after use",
            Self::Processes => "start fewer at a time, or raise `max_processes` under `testing.sandbox`",
        }
    }
}

/// Something that the sandbox denied to tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Denial {
    /// What was denied.
    pub kind: DenialKind,
    /// The host or the path, where the message names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// What the test said.
    pub message: String,
    /// How many tests it happened to.
    pub frequency: u64,
    /// Which ones; not all of them if they are many.
    pub test_names: Vec<String>,
}

impl Denial {
    /// For people: what happened, and what to do about it.
    pub fn words(&self) -> String {
        format!("{}; {}", self.fact(), self.kind.remedy())
    }

    /// What happened.
    pub fn fact(&self) -> String {
        let rule = self.kind.rule();
        match (&self.what, self.kind) {
            (Some(what), DenialKind::Network) => format!("{rule}: `{what}` could not be reached"),
            (Some(what), DenialKind::Filesystem) => format!("{rule}: `{what}`"),
            _ if self.message.is_empty() => rule.to_owned(),
            _ => format!("{rule}: {}", self.message),
        }
    }
}

/// A denial that one text tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denied {
    pub kind: DenialKind,
    pub what: Option<String>,
    pub line: String,
}

/// Whether what a text says is the sandbox's doing.
pub(crate) fn denied(said: Said<'_>, withheld: &Withheld) -> Option<Denied> {
    let (kind, what) = match said.pattern {
        FailurePattern::Network if withheld.network => (DenialKind::Network, host_in(said.line)),
        FailurePattern::ReadOnly if withheld.filesystem => (DenialKind::Filesystem, path_in(said.line)),
        // Files that the project itself made unreadable are the test's own affair: a name has to be outside.
        FailurePattern::Permission if withheld.filesystem => {
            (DenialKind::Filesystem, Some(path_in(said.line)?))
        }
        FailurePattern::OutOfMemory if withheld.memory.is_some() => (DenialKind::Memory, None),
        FailurePattern::TooManyFiles if withheld.open_files.is_some() => (DenialKind::Fds, None),
        FailurePattern::ProcessLimit if withheld.processes.is_some() => (DenialKind::Processes, None),
        _ => return None,
    };
    let allowed = match (&what, kind) {
        (Some(host), DenialKind::Network) => is_loopback(host),
        (Some(path), DenialKind::Filesystem) => {
            withheld.writable.iter().any(|root| is_below(path, root.as_str()))
        }
        _ => false,
    };
    (!allowed).then(|| Denied { kind, what, line: said.line.to_owned() })
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[');
    ["localhost", "127.", "::1", "0.0.0.0"].iter().any(|own| host.starts_with(own))
}

fn is_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root.trim_end_matches('/')).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The words that stand before the host in the messages of resolvers and sockets.
const BEFORE_A_HOST: [&str; 14] = [
    "getaddrinfo EAI_AGAIN ",
    "getaddrinfo ENOTFOUND ",
    "getaddrinfo for ",
    "lookup ",
    "TCP connection to ",
    "UnknownHostException: ",
    "connect ENETUNREACH ",
    "connect EHOSTUNREACH ",
    "connect EPERM ",
    "connect EACCES ",
    "resolve host: ",
    "resolve host '",
    "host='",
    "://",
];

fn host_in(line: &str) -> Option<String> {
    let rest = BEFORE_A_HOST.iter().find_map(|before| line.split_once(before).map(|(_, rest)| rest))?;
    let end = rest
        .find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | ')' | ',' | '>'))
        .unwrap_or(rest.len());
    let host = rest[..end].trim_end_matches([':', '.']);
    (!host.is_empty() && host.len() <= 253).then(|| host.to_owned())
}

/// The first absolute name.
fn path_in(line: &str) -> Option<String> {
    let begins = |at: usize| {
        !line[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || "/.:~".contains(c))
    };
    let start = line.match_indices('/').map(|(at, _)| at).find(|at| begins(*at))?;
    let rest = &line[start..];
    let end = rest
        .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ')' | ':' | ','))
        .unwrap_or(rest.len());
    (end > 1).then(|| rest[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::pattern::said;
    use super::*;
    use rstest::rstest;

    fn everything() -> Withheld {
        Withheld {
            network: true,
            filesystem: true,
            writable: vec!["/tmp".into(), "/home/me/shop".into()],
            memory: Some(2 << 30),
            open_files: Some(1024),
            processes: Some(512),
        }
    }

    #[rstest]
    #[case(
        "Error: connect ENETUNREACH 93.184.216.34:80 - Local (0.0.0.0:0)",
        DenialKind::Network,
        Some("93.184.216.34:80")
    )]
    #[case(
        "Get \"http://example.com/\": dial tcp: lookup example.com on 10.0.0.53:53: network is unreachable",
        DenialKind::Network,
        Some("example.com")
    )]
    #[case(
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='api.example.com', port=443): NameResolutionError",
        DenialKind::Network,
        Some("api.example.com")
    )]
    #[case("<urlopen error [Errno -3] Temporary failure in name resolution>", DenialKind::Network, None)]
    #[case(
        "Error: EROFS: read-only file system, open '/usr/share/x'",
        DenialKind::Filesystem,
        Some("/usr/share/x")
    )]
    #[case("PermissionError: [Errno 13] Permission denied: '/etc/x'", DenialKind::Filesystem, Some("/etc/x"))]
    #[case("std::bad_alloc", DenialKind::Memory, None)]
    #[case("open /dev/null: too many open files", DenialKind::Fds, None)]
    #[case("sh: 0: Cannot fork", DenialKind::Processes, None)]
    fn a_denial_names_its_kind_and_what_was_denied(
        #[case] line: &str,
        #[case] kind: DenialKind,
        #[case] what: Option<&str>,
    ) {
        let denied = denied(said(line).unwrap(), &everything()).unwrap();
        assert_eq!((denied.kind, denied.what.as_deref()), (kind, what));
    }

    #[rstest]
    #[case::own_service("connect ECONNREFUSED 127.0.0.1:5432")]
    #[case::loopback("connect ENETUNREACH 127.0.0.1:80")]
    #[case::own_file("PermissionError: [Errno 13] Permission denied: '/home/me/shop/out/x'")]
    #[case::temporary("open /tmp/x: permission denied")]
    #[case::relative("open secret.txt: permission denied")]
    fn what_the_sandbox_allows_is_the_tests_own_affair(#[case] line: &str) {
        assert_eq!(denied(said(line).unwrap(), &everything()), None);
    }

    #[test]
    fn what_was_not_withheld_was_not_denied() {
        let line = said("getaddrinfo EAI_AGAIN example.com").unwrap();
        assert_eq!(denied(line, &Withheld { network: false, ..everything() }), None);
    }

    #[test]
    fn a_denial_says_what_happened_and_what_to_do() {
        let denial = Denial {
            kind: DenialKind::Network,
            what: Some("example.com".to_owned()),
            message: String::new(),
            frequency: 1,
            test_names: vec![],
        };
        insta::assert_snapshot!(denial.words(), @"network access is off in the sandbox: `example.com` could not be reached; put a stand-in on 127.0.0.1, or allow it with `allow_network: true` under `testing.sandbox`");
    }
}
