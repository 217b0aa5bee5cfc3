//! What keeps an agent within bounds, and what it is granted.

use std::collections::BTreeMap;

use rehearsal_agent::{Bounds, ConfinedBy, Permission};
use rehearsal_core::AgentName;

/// What keeps an agent within bounds, as a sentence without its subject.
pub(crate) fn confined(by: &ConfinedBy) -> String {
    const RULES: &str = "only the agent's own permission rules apply";
    match by {
        ConfinedBy::Sandbox => {
            "confined by the full sandbox; the agent's own permission rules are off".into()
        }
        ConfinedBy::PartialSandbox => {
            "confined as far as the system can, and by the agent's own permission rules".into()
        }
        ConfinedBy::OwnSandbox => "each of its commands is confined by the sandbox".into(),
        ConfinedBy::OwnRules { missing: None } => format!("not confined: `sandbox: off`; {RULES}"),
        ConfinedBy::OwnRules { missing: Some(missing) } => {
            format!("not confined, because the sandbox is not available here ({missing}); {RULES}")
        }
    }
}

/// What kept agents within bounds, one line each. Nothing of those that nobody wanted to confine.
pub(crate) fn confined_agents(agents: &BTreeMap<AgentName, ConfinedBy>) -> Vec<String> {
    let wanted = agents.iter().filter(|(_, by)| **by != ConfinedBy::OwnRules { missing: None });
    wanted.map(|(name, by)| format!("{name}: {}", confined(by))).collect()
}

/// What an agent is granted, one line each.
pub(crate) fn granted(bounds: &Bounds) -> Vec<String> {
    let sandbox = matches!(bounds.by, ConfinedBy::Sandbox | ConfinedBy::PartialSandbox);
    let rules = (bounds.by != ConfinedBy::Sandbox).then_some(match bounds.permission {
        Permission::Plan => "`permission: plan`: it may only look",
        Permission::AcceptEdits => "`permission: accept_edits`: it may edit files",
        Permission::Trust => "`permission: trust`: it may do everything that you can",
    });
    let list =
        |what: &str, items: &[String]| (!items.is_empty()).then(|| format!("{what}: {}", items.join(", ")));
    let network =
        bounds.network.map(|reaches| if reaches { "network: allowed" } else { "network: none" }.to_owned());
    let lines = [
        rules.map(str::to_owned),
        list(if sandbox { "can write" } else { "may write" }, &bounds.writable),
        list("except", &bounds.protected),
        list("can also read", &bounds.readable),
        list("allowed commands", &bounds.allow),
        network,
    ];
    lines.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn shown(bounds: &Bounds) -> String {
        [vec![confined(&bounds.by)], granted(bounds)].concat().join("\n")
    }

    fn bounds(by: ConfinedBy) -> Bounds {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Bounds {
            by,
            permission: Permission::AcceptEdits,
            writable: list(&["/work/api", "/work/api/.git"]),
            protected: list(&["/work/api/.git/hooks"]),
            readable: list(&["/home/ann/.cargo/bin"]),
            network: Some(true),
            allow: Vec::new(),
        }
    }

    #[test]
    fn bounds_are_said_with_what_they_grant() {
        assert_snapshot!(shown(&bounds(ConfinedBy::Sandbox)), @r"
        confined by the full sandbox; the agent's own permission rules are off
        can write: /work/api, /work/api/.git
        except: /work/api/.git/hooks
        can also read: /home/ann/.cargo/bin
        network: allowed
        ");
        let by = ConfinedBy::OwnRules { missing: Some("files (no user namespaces)".to_owned()) };
        let allow = vec!["git add".to_owned(), "npm test".to_owned()];
        let own = Bounds { allow, protected: Vec::new(), readable: Vec::new(), network: None, ..bounds(by) };
        assert_snapshot!(shown(&own), @r"
        not confined, because the sandbox is not available here (files (no user namespaces)); only the agent's own permission rules apply
        `permission: accept_edits`: it may edit files
        may write: /work/api, /work/api/.git
        allowed commands: git add, npm test
        ");
    }
}
