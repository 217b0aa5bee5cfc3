//! Which layers are to be had, and why others are not.

use std::path::PathBuf;

use crate::cgroup::{Controller, Pool, Version};
use crate::child::Failure;
use crate::error::Stage;
use crate::filter::InternetSockets;
use crate::landlock::ABI_WITH_SCOPES;
use crate::policy::{Network, Policy};
use crate::sys;
use rehearsal_core::sandbox::{Demand, ProjectMode};
use rehearsal_core::sandbox::{LayerReport, Layers, Rung, SandboxReport, State};

/// What is used, or why it is not.
type Means<T = ()> = Result<T, String>;

/// The layers that are used: at first all, then those that did not fail when they were tried.
#[derive(Debug, Clone)]
pub(crate) struct Available {
    pub(crate) namespaces: Means,
    pub(crate) fresh_proc: Means,
    pub(crate) overlay: Means,
    /// The program, where there are no namespaces of our own.
    pub(crate) bubblewrap: Means<PathBuf>,
    /// Its version.
    pub(crate) landlock: Means<u32>,
    pub(crate) filter: Means,
    pub(crate) privileges: Means,
    pub(crate) limits: Means,
    pub(crate) groups: Means,
}

impl Available {
    /// All up to a rung.
    pub(crate) fn up_to(highest: Rung) -> Self {
        let used_at = |lowest: Rung| {
            if highest <= lowest { Ok(()) } else { Err("not used on this rung".to_owned()) }
        };
        let landlock = sys::landlock_abi().map_err(|errno| format!("this kernel has no Landlock: {errno}"));
        Self {
            namespaces: used_at(Rung::NoProc),
            fresh_proc: used_at(Rung::Full),
            overlay: used_at(Rung::NoProc),
            bubblewrap: used_at(Rung::Bwrap).and_then(|()| find_bubblewrap()),
            landlock: used_at(Rung::Lsm).and(landlock),
            filter: used_at(Rung::Lsm),
            privileges: used_at(Rung::Rlimits),
            limits: used_at(Rung::Rlimits),
            groups: used_at(Rung::Lsm),
        }
    }

    /// Goes without the layer that failed; an error when it was not used, and so going without would change nothing.
    pub(crate) fn give_up(&mut self, failure: Failure) -> Result<(), Failure> {
        let why = format!("{}: {}", failure.stage, std::io::Error::from(failure.errno));
        match failure.stage {
            Stage::Start | Stage::Identity | Stage::Loopback | Stage::Mounts => {
                give_up(&mut self.namespaces, why, failure)
            }
            Stage::Overlay => give_up(&mut self.overlay, why, failure),
            Stage::Proc => give_up(&mut self.fresh_proc, why, failure),
            Stage::Limits => give_up(&mut self.limits, why, failure),
            Stage::Privileges => give_up(&mut self.privileges, why, failure),
            Stage::Group => give_up(&mut self.groups, why, failure),
            Stage::Landlock => give_up(&mut self.landlock, why, failure),
            Stage::Filter => give_up(&mut self.filter, why, failure),
            // The program `bwrap` was executed to try it.
            Stage::Directory | Stage::Descriptors | Stage::Execute => {
                give_up(&mut self.bubblewrap, why, failure)
            }
        }
    }

    /// Whether the namespaces are made by another program.
    pub(crate) fn uses_bubblewrap(&self) -> bool {
        self.namespaces.is_err() && self.bubblewrap.is_ok()
    }

    pub(crate) fn rung(&self, policy: &Policy) -> Rung {
        if policy.demand == Demand::Off || self.limits.is_err() && self.privileges.is_err() {
            Rung::Off
        } else if self.namespaces.is_ok() && self.fresh_proc.is_ok() {
            Rung::Full
        } else if self.namespaces.is_ok() {
            Rung::NoProc
        } else if self.uses_bubblewrap() {
            Rung::Bwrap
        } else if self.landlock.is_ok() || self.filter.is_ok() {
            Rung::Lsm
        } else {
            Rung::Rlimits
        }
    }

    /// What happens to writes in the project.
    pub(crate) fn project_mode(&self, wanted: ProjectMode) -> ProjectMode {
        let has_overlay = self.namespaces.is_ok() && self.overlay.is_ok();
        let confines_files = self.namespaces.is_ok() || self.uses_bubblewrap() || self.landlock.is_ok();
        match wanted {
            _ if !confines_files => ProjectMode::Writable,
            ProjectMode::Overlay if !has_overlay => ProjectMode::ReadOnly,
            wanted => wanted,
        }
    }

    /// Without a network namespace, sockets of the internet are all refused.
    pub(crate) fn internet_sockets(&self, network: Network) -> InternetSockets {
        let has_namespace = self.namespaces.is_ok() || self.uses_bubblewrap();
        if network == Network::Private && !has_namespace {
            InternetSockets::Refused
        } else {
            InternetSockets::Allowed
        }
    }

    pub(crate) fn report(&self, policy: &Policy, pool: &Pool) -> SandboxReport {
        let rung = self.rung(policy);
        let project = self.project_mode(policy.mode);
        let layers = Layers {
            files: self.files(policy, project),
            network: self.network(policy.network),
            memory: self.memory(policy, pool),
            processes: self.processes(policy, pool),
            cpu: cpu(policy, pool, &self.groups),
            kill: self.kill(),
            syscalls: self.syscalls(),
            privileges: self.report_privileges(),
        };
        let layers = if rung == Rung::Off { Layers { kill: layers.kill, ..off() } } else { layers };
        SandboxReport { requested: policy.demand, rung, project, layers }
    }

    fn files(&self, policy: &Policy, project: ProjectMode) -> LayerReport {
        let landlock = self.landlock.as_ref().ok().filter(|_| !self.uses_bubblewrap()).map(|_| "landlock");
        let layer = match (&self.namespaces, &self.bubblewrap) {
            (Ok(()), _) => LayerReport::enforced(["mount-namespace"]).also(landlock),
            (Err(_), Ok(_)) => LayerReport::enforced(["bwrap"]),
            (Err(_), Err(_)) if landlock.is_some() => LayerReport::enforced(["landlock"]),
            (Err(why), Err(_)) => return LayerReport::unavailable(why),
        };
        let mut whys = Vec::new();
        if policy.mode != project {
            let why = self.namespaces.as_ref().err().or(self.overlay.as_ref().err());
            whys.push(format!(
                "the project is read-only, without an overlay ({})",
                why.map_or("", String::as_str)
            ));
        }
        match (&self.namespaces, &self.fresh_proc) {
            (Ok(()), Ok(())) => {}
            (Ok(()), Err(why)) => whys.push(format!("/proc shows the processes of the machine ({why})")),
            (Err(_), _) => whys.push("the size of private files is not limited".to_owned()),
        }
        if self.namespaces.is_err() && self.bubblewrap.is_err() && !policy.protected.is_empty() {
            let protected: Vec<_> = policy.protected.iter().map(|path| path.as_str()).collect();
            whys.push(format!("not protected below what can be written: {}", protected.join(", ")));
        }
        if whys.is_empty() {
            layer
        } else {
            LayerReport { state: State::Partial, why: Some(whys.join("; ")), ..layer }
        }
    }

    fn network(&self, wanted: Network) -> LayerReport {
        match (wanted, &self.namespaces, &self.filter) {
            (Network::Allowed, _, _) => LayerReport::off(),
            (Network::Private, Ok(()), _) => LayerReport::enforced(["network-namespace"]),
            (Network::Private, Err(_), _) if self.bubblewrap.is_ok() => LayerReport::enforced(["bwrap"]),
            (Network::Private, Err(why), Ok(())) => LayerReport::partial(
                ["seccomp"],
                format!("loopback is refused as well, without a network namespace ({why})"),
            ),
            (Network::Private, Err(why), Err(_)) => LayerReport::unavailable(why),
        }
    }

    fn memory(&self, policy: &Policy, pool: &Pool) -> LayerReport {
        if policy.limits.memory.is_none() {
            return LayerReport::off();
        }
        match (pool.version_for(Controller::Memory), &self.limits) {
            (Some(version), _) => LayerReport::enforced([name(version)]),
            (None, Ok(())) => {
                let why =
                    format!("it limits each process, not all together ({})", why_no_group(&self.groups));
                LayerReport::partial(["rlimit"], why)
            }
            (None, Err(why)) => LayerReport::unavailable(why),
        }
    }

    fn processes(&self, policy: &Policy, pool: &Pool) -> LayerReport {
        if policy.limits.processes.is_none() {
            return LayerReport::off();
        }
        match pool.version_for(Controller::Processes) {
            Some(version) => LayerReport::enforced([name(version)]),
            None if self.counts_processes_by_user() => LayerReport::enforced(["rlimit"]),
            None => LayerReport::unavailable(format!(
                "{}, and a limit per user holds only in a user namespace, and not for root",
                why_no_group(&self.groups)
            )),
        }
    }

    /// `RLIMIT_NPROC` counts the processes of a user in a user namespace; outside it would count those of the whole desktop. It
    /// never holds for root.
    pub(crate) fn counts_processes_by_user(&self) -> bool {
        self.namespaces.is_ok() && self.limits.is_ok() && !rustix::process::getuid().is_root()
    }

    fn kill(&self) -> LayerReport {
        match &self.namespaces {
            Ok(()) => LayerReport::enforced(["pid-namespace"]),
            Err(_) if self.bubblewrap.is_ok() => LayerReport::enforced(["bwrap", "subreaper"]),
            Err(why) => {
                let why = format!("processes are found by who started them, without a pid namespace ({why})");
                LayerReport::partial(["subreaper"], why)
            }
        }
    }

    fn syscalls(&self) -> LayerReport {
        match &self.filter {
            Ok(()) => LayerReport::enforced(["seccomp"]),
            Err(why) => LayerReport::unavailable(why),
        }
    }

    fn report_privileges(&self) -> LayerReport {
        if let Err(why) = &self.privileges {
            return LayerReport::unavailable(why);
        }
        let namespace = self.namespaces.as_ref().ok().map(|()| "user-namespace");
        let has_scope =
            !self.uses_bubblewrap() && self.landlock.as_ref().is_ok_and(|abi| *abi >= ABI_WITH_SCOPES);
        let layer = LayerReport::enforced(["no-new-privileges", "no-capabilities"]);
        let layer = layer.also(namespace).also(has_scope.then_some("landlock-scope"));
        if namespace.is_some() || has_scope || self.uses_bubblewrap() {
            return layer;
        }
        let why = "other processes of the same user can be signalled".to_owned();
        LayerReport { state: State::Partial, why: Some(why), ..layer }
    }
}

/// A supervisor has no PATH of its own.
fn find_bubblewrap() -> Means<PathBuf> {
    const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";
    which::which("bwrap")
        .or_else(|_| which::which_in("bwrap", Some(USUAL), "/"))
        .map_err(|_| "bwrap is not installed".to_owned())
}

fn give_up<T>(means: &mut Means<T>, why: String, failure: Failure) -> Result<(), Failure> {
    if means.is_err() {
        return Err(failure);
    }
    *means = Err(why);
    Ok(())
}

fn cpu(policy: &Policy, pool: &Pool, groups: &Means) -> LayerReport {
    match (policy.limits.cpus, pool.version_for(Controller::Cpu)) {
        (None, _) => LayerReport::off(),
        (Some(_), Some(version)) => LayerReport::enforced([name(version)]),
        (Some(_), None) => LayerReport::unavailable(why_no_group(groups)),
    }
}

fn why_no_group(groups: &Means) -> String {
    groups.as_ref().err().cloned().unwrap_or_else(|| "no control group can be made for it here".to_owned())
}

fn name(version: Version) -> &'static str {
    match version {
        Version::V1 => "cgroup-v1",
        Version::V2 => "cgroup-v2",
    }
}

fn off() -> Layers {
    Layers {
        files: LayerReport::off(),
        network: LayerReport::off(),
        memory: LayerReport::off(),
        processes: LayerReport::off(),
        cpu: LayerReport::off(),
        kill: LayerReport::off(),
        syscalls: LayerReport::off(),
        privileges: LayerReport::off(),
    }
}
