//! What the sandbox can do on this machine.

use camino::Utf8Path;
use rehearsal_core::config::{SandboxLevel, Settings};
use rehearsal_sandbox::{Layer, LayerReport, Rung, SandboxReport, State, probe};

use super::{Check, Health};

/// Tries the usual sandbox out, and tells of each layer. With settings, a layer that they require must be there.
pub(super) fn check(
    directory: &Utf8Path,
    settings: Option<&Settings>,
    checks: &mut Vec<Check>,
) -> Option<SandboxReport> {
    match probe(directory) {
        Ok(report) => {
            checks.extend(checks_of(&report, settings.and_then(who_requires).as_deref()));
            Some(report)
        }
        Err(error) => {
            let hint = "run it where the directory can be read; tests and agents with a sandbox do not start";
            checks.push(Check::bad("sandbox", error.to_string(), hint));
            None
        }
    }
}

/// Who cannot do without, in words.
fn who_requires(settings: &Settings) -> Option<String> {
    let requires = |level: SandboxLevel| level == SandboxLevel::Required;
    let agents = settings.agents.iter().filter(|(_, profile)| requires(profile.sandbox.level));
    let agents = agents.map(|(name, _)| format!("agent {name}"));
    let tests = requires(settings.testing.sandbox.level).then(|| "testing".to_owned());
    let all: Vec<String> = tests.into_iter().chain(agents).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn checks_of(report: &SandboxReport, required_by: Option<&str>) -> Vec<Check> {
    let reached = format!("{}: {}", report.rung, in_words(report.rung));
    let missing = report.missing();
    let whole = match required_by {
        Some(who) if !missing.is_empty() => {
            let names: Vec<String> = missing.iter().map(|(layer, _)| layer.to_string()).collect();
            let hint = format!("{who} requires all of it and will not run: mend {}", names.join(", "));
            Check::bad("sandbox", reached, hint)
        }
        _ => Check::ok("sandbox", reached),
    };
    let layers = report.layers.all();
    std::iter::once(whole).chain(layers.into_iter().map(|(layer, report)| of_layer(layer, report))).collect()
}

fn of_layer(layer: Layer, report: &LayerReport) -> Check {
    let what = format!("sandbox {layer}");
    let by = report.by.join(", ");
    match (report.state, &report.why) {
        (State::Enforced, _) => Check::ok(&what, format!("held by {by}")),
        (State::Off, _) => Check::ok(&what, "not asked for"),
        (State::Partial, why) => {
            let why = why.as_deref().unwrap_or_default();
            Check::note(&what, format!("held in part by {by}: {why}"), remedy(layer, report))
        }
        (State::Unavailable, why) => {
            let why = why.as_deref().unwrap_or_default();
            Check {
                health: Health::Note,
                ..Check::bad(&what, format!("not held: {why}"), remedy(layer, report))
            }
        }
    }
}

fn in_words(rung: Rung) -> &'static str {
    match rung {
        Rung::Full => "a view of the machine of its own",
        Rung::NoProc => "a view of the machine of its own, but for its processes",
        Rung::Bwrap => "a view of the machine of its own, made by bubblewrap",
        Rung::Lsm => "no namespaces; files and system calls are restricted",
        Rung::Rlimits => "limits of each process only",
        Rung::Off => "nothing is confined",
    }
}

/// What makes a layer hold.
fn remedy(layer: Layer, report: &LayerReport) -> &'static str {
    const NAMESPACES: &str = "allow user namespaces: `sysctl user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1 \
         kernel.apparmor_restrict_unprivileged_userns=0`, as far as your kernel has them; or install bubblewrap";
    const GROUPS: &str = "have control groups delegated: start it with `systemd-run --user --scope --property=Delegate=yes`, or in \
         a container mount /sys/fs/cgroup writable";
    match layer {
        Layer::Files if report.why.as_ref().is_some_and(|why| why.starts_with("/proc ")) => {
            "in a container, start that with `--security-opt systempaths=unconfined`"
        }
        Layer::Files | Layer::Network | Layer::Kill | Layer::Privileges => NAMESPACES,
        Layer::Memory | Layer::Processes | Layer::Cpu => GROUPS,
        Layer::Syscalls => "use a kernel with seccomp (CONFIG_SECCOMP_FILTER)",
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    fn shown(checks: &[Check]) -> String {
        let line = |check: &Check| {
            let hint = check.hint.as_ref().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
            format!("{:?} {}: {}{hint}", check.health, check.what, check.found)
        };
        checks.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn report(rung: &str, changed: &serde_json::Value) -> SandboxReport {
        let mut layers = json!({});
        for (layer, by) in [
            ("files", "mount-namespace"),
            ("network", "network-namespace"),
            ("memory", "cgroup-v2"),
            ("processes", "cgroup-v2"),
            ("cpu", "cgroup-v2"),
            ("kill", "pid-namespace"),
            ("syscalls", "seccomp"),
            ("privileges", "no-new-privileges"),
        ] {
            let changed = &changed[layer];
            let held = json!({ "state": "enforced", "by": [by] });
            layers[layer] = if changed.is_null() { held } else { changed.clone() };
        }
        let report =
            json!({ "requested": "best-effort", "rung": rung, "project": "overlay", "layers": layers });
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn a_machine_that_has_it_all() {
        assert_snapshot!(shown(&checks_of(&report("full", &json!({})), Some("testing"))), @r"
        Ok sandbox: full: a view of the machine of its own
        Ok sandbox files: held by mount-namespace
        Ok sandbox network: held by network-namespace
        Ok sandbox memory: held by cgroup-v2
        Ok sandbox processes: held by cgroup-v2
        Ok sandbox cpu: held by cgroup-v2
        Ok sandbox kill: held by pid-namespace
        Ok sandbox syscalls: held by seccomp
        Ok sandbox privileges: held by no-new-privileges
        ");
    }

    #[test]
    fn what_is_missing_has_a_remedy_and_is_bad_only_where_it_is_required() {
        let changed = json!({
            "files": { "state": "partial", "by": ["mount-namespace"], "why": "/proc shows the processes of the machine (not permitted)" },
            "memory": { "state": "partial", "by": ["rlimit"], "why": "it limits each process, not all together" },
            "cpu": { "state": "unavailable", "why": "no control group can be made for it here" },
        });
        let report = report("no-proc", &changed);
        assert_snapshot!(shown(&checks_of(&report, None)), @r"
        Ok sandbox: no-proc: a view of the machine of its own, but for its processes
        Note sandbox files: held in part by mount-namespace: /proc shows the processes of the machine (not permitted)
          hint: in a container, start that with `--security-opt systempaths=unconfined`
        Ok sandbox network: held by network-namespace
        Note sandbox memory: held in part by rlimit: it limits each process, not all together
          hint: have control groups delegated: start it with `systemd-run --user --scope --property=Delegate=yes`, or in a container mount /sys/fs/cgroup writable
        Ok sandbox processes: held by cgroup-v2
        Note sandbox cpu: not held: no control group can be made for it here
          hint: have control groups delegated: start it with `systemd-run --user --scope --property=Delegate=yes`, or in a container mount /sys/fs/cgroup writable
        Ok sandbox kill: held by pid-namespace
        Ok sandbox syscalls: held by seccomp
        Ok sandbox privileges: held by no-new-privileges
        ");
        let required = checks_of(&report, Some("agent implementer"));
        assert_eq!(required[0].health, Health::Bad);
        assert_eq!(
            required[0].hint.as_deref(),
            Some("agent implementer requires all of it and will not run: mend files, memory, cpu")
        );
    }
}
