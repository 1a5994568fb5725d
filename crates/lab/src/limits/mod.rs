//! What many hosts need of the machine besides open files (`open_files.rs`): network namespaces and
//! memory of the kernel. Checked before anything is made.

pub(crate) mod open_files;

use std::fs;

/// Kernel memory of a network namespace with an interface: 0.83 MiB on Linux 6, of which IPv6 and
/// its tables in /proc/sys are the most (Slab of /proc/meminfo, 1,000 hosts).
const HOST_BYTES: u64 = 1 << 20;

/// A limit of the machine that a lab exceeds.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotEnough {
    /// The user may have fewer namespaces.
    #[error(
        "{hosts} hosts need as many network namespaces, and this user may have {limit}: raise the limit \
         (`sysctl -w user.max_net_namespaces={hosts}`)"
    )]
    Namespaces {
        /// Hosts to be made.
        hosts: u64,
        /// The limit.
        limit: u64,
    },
    /// The machine has less memory.
    #[error(
        "{hosts} hosts need about {needed_mib} MiB of memory in the kernel, and {available_mib} MiB are \
         available: write fewer hosts, or use a machine with more memory"
    )]
    Memory {
        /// Hosts to be made.
        hosts: u64,
        /// The memory that their namespaces need, MiB.
        needed_mib: u64,
        /// What programs can get without swapping.
        available_mib: u64,
    },
}

/// Checks that the machine has room for this number of additional hosts.
pub(crate) fn check(hosts: u64) -> Result<(), NotEnough> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    check_against(hosts, &read("/proc/sys/user/max_net_namespaces"), &read("/proc/meminfo"))
}

/// A limit that cannot be read does not apply.
fn check_against(hosts: u64, namespaces: &str, meminfo: &str) -> Result<(), NotEnough> {
    // With a limit of 0 namespaces are not permitted at all, which is another error.
    if let Some(limit) = namespaces.trim().parse().ok().filter(|&limit| limit > 0 && hosts > limit) {
        return Err(NotEnough::Namespaces { hosts, limit });
    }
    let available = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = available.and_then(|text| text.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    let (needed_mib, available_mib) = ((hosts * HOST_BYTES) >> 20, available.map(|kib| kib >> 10));
    match available_mib.filter(|&available| needed_mib > available) {
        Some(available_mib) => Err(NotEnough::Memory { hosts, needed_mib, available_mib }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_a_lab_exceeds_is_named() {
        let memory = "MemTotal:       24683760 kB\nMemAvailable:    2048000 kB\n";
        let why = |hosts, namespaces| check_against(hosts, namespaces, memory).map_err(|why| why.to_string());
        assert_eq!(why(2000, "96365\n"), Ok(()));
        let namespaces = why(2000, "1999\n").unwrap_err();
        assert!(namespaces.contains("may have 1999") && namespaces.contains("=2000"), "{namespaces}");
        let memory = why(2001, "96365\n").unwrap_err();
        assert!(memory.contains("2001 MiB") && memory.contains("2000 MiB are"), "{memory}");
        assert_eq!(check_against(1 << 20, "", ""), Ok(()), "an unknown limit does not apply");
        assert_eq!(why(2, "0\n"), Ok(()), "not permitted");
    }
}
