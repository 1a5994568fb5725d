//! The cgroup of this process (cgroups(7)): the memory and the share of the processors that it has.

use std::fs;
use std::path::{Path, PathBuf};

/// The default and the highest weight in version 2, and the same in version 1 (`cpu.shares`).
const WEIGHTS: [(u64, u64); 2] = [(100, 10_000), (1024, 262_144)];

/// Returns the lowest memory limit of the cgroup of this process and of those above it, in bytes;
/// `None` without a limit.
pub fn memory_limit() -> Option<u64> {
    lowest_limit(&Cgroup::own("memory")?, |file| fs::read_to_string(file).ok())
}

/// Asks for the highest share of the processors for the cgroup of this process, if only this
/// process and its children are in it. The priority of a thread holds inside its cgroup only.
/// Returns what to tell the user if other cgroups come before this one, or have as much.
pub fn raise_weight() -> Option<String> {
    let cgroup = Cgroup::own("cpu")?;
    let read = |file: &Path| fs::read_to_string(file).ok();
    let write = |file: &Path, text: &str| fs::write(file, text).is_ok();
    raise(&cgroup, &std::process::id().to_string(), read, write)
}

/// The directories of the cgroup of a process: its own, then those above it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Cgroup {
    /// 0 for version 2, 1 for version 1.
    version: usize,
    directories: Vec<PathBuf>,
}

impl Cgroup {
    /// Returns the cgroup of this process in the hierarchy of a controller.
    fn own(controller: &str) -> Option<Cgroup> {
        let cgroups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        Cgroup::of(controller, &cgroups, &mounts)
    }

    /// Finds the cgroup in these texts of /proc. A controller is in a hierarchy of version 1, or
    /// else in that of version 2.
    fn of(controller: &str, cgroups: &str, mounts: &str) -> Option<Cgroup> {
        let named = |list: &str| list.split(',').any(|name| name == controller);
        let of_version = |version: usize| {
            let own = cgroups.lines().find_map(|line| {
                let (_, rest) = line.split_once(':')?;
                let (controllers, own) = rest.split_once(':')?;
                // Version 2 has no list of controllers.
                (if version == 0 { controllers.is_empty() } else { named(controllers) }).then_some(own)
            })?;
            let (mounted, root) = mounts.lines().find_map(|line| {
                let (mount, source) = line.split_once(" - ")?;
                let mut fields = mount.split(' ').skip(3);
                let (root, mounted) = (fields.next()?, fields.next()?);
                let mut source = source.split(' ');
                let (kind, options) = (source.next()?, source.nth(1)?);
                let is_it = if version == 0 { kind == "cgroup2" } else { kind == "cgroup" && named(options) };
                is_it.then(|| (PathBuf::from(mounted), root.to_owned()))
            })?;
            // In a container the root of the mount is the cgroup of the container.
            let below = Path::new(own).strip_prefix(&root).unwrap_or(Path::new(""));
            let own = mounted.join(below);
            let up = own.ancestors().take_while(|directory| directory.starts_with(&mounted));
            Some(Cgroup { version, directories: up.map(Path::to_owned).collect() })
        };
        of_version(1).or_else(|| of_version(0))
    }
}

fn lowest_limit(cgroup: &Cgroup, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let file = ["memory.max", "memory.limit_in_bytes"][cgroup.version];
    let limit = |directory: &PathBuf| read(&directory.join(file))?.trim().parse::<u64>().ok();
    cgroup.directories.iter().filter_map(limit).min()
}

fn raise(
    cgroup: &Cgroup,
    process: &str,
    read: impl Fn(&Path) -> Option<String>,
    write: impl Fn(&Path, &str) -> bool,
) -> Option<String> {
    let file = ["cpu.weight", "cpu.shares"][cgroup.version];
    let (usual, highest) = WEIGHTS[cgroup.version];
    let own = cgroup.directories.first()?;
    let is_child = |other: &str| {
        let status = read(&Path::new("/proc").join(other).join("status"));
        let status = status.as_deref().unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("PPid:").is_some_and(|parent| parent.trim() == process))
    };
    let is_ours = |other: &str| other == process || is_child(other);
    let is_alone = read(&own.join("cgroup.procs")).is_some_and(|all| all.lines().all(is_ours));
    let is_raised = is_alone && write(&own.join(file), &highest.to_string());
    let low = cgroup.directories.iter().skip(usize::from(is_raised)).find_map(|directory| {
        let weight: u64 = read(&directory.join(file))?.trim().parse().ok()?;
        (weight < usual).then(|| (directory.join(file), weight))
    });
    if let Some((file, weight)) = low {
        return Some(format!(
            "{} is {weight} where {usual} is usual, and could not be raised: while programs of other cgroups are \
             busy, frames may be late or lost",
            file.display()
        ));
    }
    // The first cgroup of all has nothing beside it.
    let has_others = cgroup.directories.len() > 1 && !is_raised;
    let own = own.join(file);
    let weight = read(&own)?.trim().parse::<u64>().ok().filter(|weight| has_others && *weight <= usual)?;
    let why = if is_alone { "that is not allowed" } else { "other programs are in the cgroup" };
    Some(format!(
        "{} is {weight} and was not raised ({why}): while programs of other cgroups are busy, frames may be late or \
         lost; start it with systemd-run --scope -p CPUWeight={}",
        own.display(),
        WEIGHTS[0].1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    const TWO: &str = "31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const ONE: &str = "40 30 0:35 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                       41 30 0:36 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    fn reads(files: &[(&str, &str)], path: &Path) -> Option<String> {
        let found = files.iter().find(|(file, _)| Path::new(file) == path);
        found.map(|(_, text)| (*text).to_owned())
    }

    /// The lowest limit, given the files that exist.
    fn lowest(cgroups: &str, mounts: &str, files: &[(&str, &str)]) -> Option<u64> {
        lowest_limit(&Cgroup::of("memory", cgroups, mounts)?, |path| reads(files, path))
    }

    #[test]
    fn the_lowest_limit_on_the_way_up_counts_in_either_version() {
        let files = [
            ("/sys/fs/cgroup/user.slice/memory.max", "1073741824\n"),
            ("/sys/fs/cgroup/user.slice/run/memory.max", "max\n"),
        ];
        assert_eq!(lowest("0::/user.slice/run\n", TWO, &files), Some(1 << 30));
        assert_eq!(lowest("0::/other\n", TWO, &files), None);
        let files = [
            ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "500\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(lowest("5:cpu:/a\n4:memory:/a\n0::/\n", ONE, &files), Some(500));
        // In a container that sees its own cgroup as the root of the mount.
        let inside = "41 30 0:36 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(lowest("0::/docker/x\n", inside, &[("/sys/fs/cgroup/memory.max", "77\n")]), Some(77));
        assert_eq!(lowest("", "", &[]), None);
    }

    #[test]
    fn the_weight_of_a_cgroup_of_its_own_is_raised_and_a_low_one_above_is_said() {
        let raised = |cgroups: &str, mounts: &str, files: &[(&str, &str)], may_write: bool| {
            let written = RefCell::new(BTreeMap::new());
            let cgroup = Cgroup::of("cpu", cgroups, mounts).unwrap();
            let write = |file: &Path, text: &str| {
                written.borrow_mut().insert(file.display().to_string(), text.to_owned());
                may_write
            };
            let told = raise(&cgroup, "7", |path| reads(files, path), write);
            (told, written.into_inner().into_iter().collect::<Vec<_>>())
        };
        let highest = |file: &str, weight: &str| vec![(file.to_owned(), weight.to_owned())];
        let own = "/sys/fs/cgroup/a/b/cpu.weight";
        let child = ("/proc/9/status", "Name:\tsh\nPPid:\t7\n");
        let alone = [("/sys/fs/cgroup/a/b/cgroup.procs", "7\n9\n"), (own, "10\n"), child];
        assert_eq!(raised("0::/a/b\n", TWO, &alone, true), (None, highest(own, "10000")));
        let (told, _) = raised("0::/a/b\n", TWO, &alone, false);
        assert!(told.unwrap().starts_with("/sys/fs/cgroup/a/b/cpu.weight is 10 where 100 is usual"));
        // The cgroup of others is left as it is.
        let shared = [("/sys/fs/cgroup/a/b/cgroup.procs", "6\n7\n"), (own, "100\n")];
        let (told, written) = raised("0::/a/b\n", TWO, &shared, true);
        assert!(told.unwrap().contains("b/cpu.weight is 100 and was not raised (other programs"));
        assert_eq!(written, []);
        let high = [("/sys/fs/cgroup/a/b/cgroup.procs", "6\n7\n"), (own, "500\n")];
        assert_eq!(raised("0::/a/b\n", TWO, &high, true), (None, vec![]));
        let usual = [("/sys/fs/cgroup/a/b/cgroup.procs", "7\n"), (own, "100\n")];
        assert!(raised("0::/a/b\n", TWO, &usual, false).0.unwrap().contains("(that is not allowed)"));
        // The first cgroup of all.
        let root = [("/sys/fs/cgroup/cgroup.procs", "6\n7\n"), ("/sys/fs/cgroup/cpu.weight", "100\n")];
        assert_eq!(raised("0::/\n", TWO, &root, true), (None, vec![]));
        let low = [("/sys/fs/cgroup/a/b/cgroup.procs", "7\n"), ("/sys/fs/cgroup/a/cpu.weight", "1\n")];
        let (told, _) = raised("0::/a/b\n", TWO, &low, true);
        assert!(told.unwrap().starts_with("/sys/fs/cgroup/a/cpu.weight is 1 "));
        let old = "/sys/fs/cgroup/cpu/c/cpu.shares";
        let files = [("/sys/fs/cgroup/cpu/c/cgroup.procs", "7\n"), (old, "2\n")];
        assert_eq!(raised("1:cpu:/c\n0::/\n", ONE, &files, true), (None, highest(old, "262144")));
    }
}
