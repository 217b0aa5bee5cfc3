//! Where this process may make groups.

use std::path::{Path, PathBuf};

use super::{Controller, Hierarchy, Version, write_existing};
use crate::owner;

/// All hierarchies that have a controller of ours, version 2 first: of what both have, it is the better.
pub(super) fn hierarchies() -> Vec<Hierarchy> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut places = places(&mounts, &groups);
    places.sort_by_key(|place| place.version == Version::V1);
    // A group with a process in it cannot be removed, and is left.
    let sweep = |found: &Hierarchy| owner::sweep(&found.directory, |group| std::fs::remove_dir(group));
    places.into_iter().filter_map(with_controllers).inspect(sweep).collect()
}

/// The group of this process in one hierarchy.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    version: Version,
    /// Of version 1: those of the mount.
    controllers: Vec<Controller>,
    root: PathBuf,
    own: PathBuf,
}

fn places(mounts: &str, groups: &str) -> Vec<Place> {
    mounts.lines().filter_map(|line| place(line, groups)).collect()
}

/// From a line of mountinfo: `ID PARENT DEV ROOT POINT OPTIONS… - TYPE SOURCE SUPER-OPTIONS`.
fn place(mount: &str, groups: &str) -> Option<Place> {
    let (before, after) = mount.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, point) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let version = match after.next()? {
        "cgroup" => Version::V1,
        "cgroup2" => Version::V2,
        _ => return None,
    };
    let options: Vec<&str> = after.nth(1)?.split(',').collect();
    let controllers = match version {
        Version::V1 => options.iter().filter_map(|option| controller(option)).collect(),
        Version::V2 => Vec::new(),
    };
    let names = |names: &str| match version {
        Version::V1 => names.split(',').any(|name| controller(name).is_some() && options.contains(&name)),
        Version::V2 => names.is_empty(),
    };
    let group = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        fields.next().filter(|field| names(field)).and(fields.next())
    })?;
    let below = Path::new(group).strip_prefix(root).unwrap_or(Path::new(group.trim_start_matches('/')));
    Some(Place { version, controllers, root: point.into(), own: Path::new(point).join(below) })
}

fn controller(name: &str) -> Option<Controller> {
    match name {
        "memory" => Some(Controller::Memory),
        "pids" => Some(Controller::Processes),
        "cpu" => Some(Controller::Cpu),
        _ => None,
    }
}

fn with_controllers(place: Place) -> Option<Hierarchy> {
    match place.version {
        Version::V1 if place.controllers.is_empty() => None,
        Version::V1 => {
            Some(Hierarchy { version: Version::V1, directory: place.own, controllers: place.controllers })
        }
        Version::V2 => delegated(&place),
    }
}

/// In version 2 a group with processes in it can seldom have limited groups below it, but its neighbours can be such: the first
/// directory upwards in which a new group has controllers and which we may write to.
fn delegated(place: &Place) -> Option<Hierarchy> {
    for directory in place.own.ancestors().take_while(|directory| directory.starts_with(&place.root)) {
        if directory == place.own {
            let control = directory.join("cgroup.subtree_control");
            let _not_ours_to_give = write_existing(&control, "+memory +pids +cpu");
        }
        let trial = directory.join(owner::new_name().ok()?);
        if std::fs::create_dir(&trial).is_err() {
            return None;
        }
        let files = [
            ("memory.max", Controller::Memory),
            ("pids.max", Controller::Processes),
            ("cpu.max", Controller::Cpu),
        ];
        let has = |file: &str| trial.join(file).exists();
        let controllers: Vec<_> = files.into_iter().filter(|(file, _)| has(file)).map(|(_, c)| c).collect();
        let _swept_later = std::fs::remove_dir(&trial);
        if !controllers.is_empty() {
            return Some(Hierarchy { version: Version::V2, directory: directory.to_owned(), controllers });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hybrid_machine_has_a_place_for_each_controller() {
        let mounts = "30 29 0:26 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
                      31 29 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      32 29 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                      33 29 0:29 / /proc rw - proc proc rw\n";
        let groups = "4:memory:/jobs/7\n1:cpu,cpuacct:/\n0::/init\n";
        let found = places(mounts, groups);
        let own: Vec<_> = found.iter().map(|place| place.own.to_str().unwrap()).collect();
        let expected =
            ["/sys/fs/cgroup/memory/jobs/7", "/sys/fs/cgroup/cpu,cpuacct/", "/sys/fs/cgroup/unified/init"];
        assert_eq!(own, expected);
        assert_eq!(found[1].controllers, [Controller::Cpu]);
    }

    #[test]
    fn in_a_container_the_path_is_seen_from_the_mounted_root() {
        let mounts = "30 29 0:26 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        let found = places(mounts, "0::/docker/ab/work\n");
        assert_eq!(found[0].own, Path::new("/sys/fs/cgroup/work"));
    }
}
