//! An uplink as root: a veth pair to this machine, which masquerades and forwards.
//!
//! Ours on the machine are the interface, which ends with the namespace of the uplink, the nftables
//! table `fastpath_uplink_N_PROCESS`, and settings that the machine needs to forward. The table
//! says that an uplink is up. With the last table the settings return to what they were: the file
//! `/run/fastpath-uplink-NETNS` has them, with a lock that protects tables and settings.
//!
//! A keeper, as that of a scope, removes the table when this process has ended, even by `kill -9`.

use super::{INTERFACE, Transfer, UplinkError, UplinkParts, failed, nft};
use crate::kernel::netlink::{LinkParameters, Netlink};
use crate::programs::keeper::keeper;
use crate::programs::process::ProcessId;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use nix::net::if_::if_nametoindex;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The file of a lab's state with the [`MachineChanges`] of its uplinks.
const RECORD: &str = "uplinks.json";
/// The names of our tables.
const TABLE: &str = "fastpath_uplink_";
/// Subnets of 198.18.0.0/15 (RFC 2544: for tests of networks) with four addresses.
const SUBNETS: u32 = 1 << 15;

/// Removes a table; with the last one the settings return. Arguments: the table, the file of the
/// settings. It is given a closed input to begin at once.
const KEEPER: &str = r#"trap '' HUP INT QUIT TERM
read -r _
{
    for try in 1 2 3 4 5; do
        exec 9>> "$1"
        flock 9
        [ "$1" -ef /proc/self/fd/9 ] && break
    done
    nft delete table inet "$0"
    if ! nft list tables | grep -q 'inet fastpath_uplink_'; then
        while read -r name value; do echo "$value" > "/proc/sys/$name"; done < "$1"
        rm -f "$1"
    fi
} > /dev/null 2>&1"#;

/// What an uplink changed on this machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct MachineChanges {
    table: String,
    settings: PathBuf,
}

/// An uplink joined to this machine.
#[derive(Debug)]
pub(super) struct UplinkKeeper {
    keeper: Child,
}

impl Drop for UplinkKeeper {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // It ends with its input.
        let _ = self.keeper.wait();
    }
}

/// Removes what the uplinks of the lab with this state directory have left on this machine.
pub(crate) fn clear(directory: &Path) {
    let recorded = fs::read(directory.join(RECORD)).ok();
    let recorded: Option<Vec<MachineChanges>> = recorded.and_then(|text| serde_json::from_slice(&text).ok());
    for changes in recorded.into_iter().flatten() {
        let _ = keeper_of(&changes).stdin(Stdio::null()).stdout(Stdio::null()).status();
    }
}

fn keeper_of(changes: &MachineChanges) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(KEEPER).arg(&changes.table).arg(&changes.settings);
    shell
}

/// Returns whether this process may change the network of this machine.
pub(super) fn may_change() -> bool {
    tables().is_ok()
}

/// Returns the names of our tables.
fn tables() -> io::Result<Vec<String>> {
    let output = Command::new("nft").args(["list", "tables"]).stderr(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ours = text.lines().filter_map(|line| line.strip_prefix("table inet ").map(str::trim));
    Ok(ours.filter(|name| name.starts_with(TABLE)).map(str::to_owned).collect())
}

/// Joins the namespace of an uplink to this machine. `families`: whether the machine has default
/// routes.
pub(super) fn join(
    parts: &UplinkParts,
    families: [bool; 2],
) -> Result<(UplinkKeeper, Transfer), UplinkError> {
    let name = &parts.host.name;
    let step = |step| failed(name, step);
    let path = settings_path().map_err(step("naming its settings"))?;
    let mut settings = lock(&path).map_err(step("locking the settings of this machine"))?;
    let number = free_number(parts).map_err(step("choosing a subnet"))?;
    // Unique: the table of a lab that is removed must not be that of another.
    let process = ProcessId::own().map_err(step("naming its table"))?;
    let table = format!("{}{}_{}", table_prefix(number), process.pid, process.started);
    let changes = MachineChanges { table, settings: path };
    record(parts.directory, &changes).map_err(step("recording its table"))?;
    let keeper = keeper(&mut keeper_of(&changes)).map_err(step("starting its keeper"))?;
    let joined = UplinkKeeper { keeper };
    let ([near4, far4], [near6, far6]) = addresses(number);
    let rules = format!(
        "table inet {} {{
    chain postrouting {{
        type nat hook postrouting priority 100
        ip saddr {} masquerade
        ip6 saddr {} masquerade
    }}
}}",
        changes.table,
        far4.addr(),
        far6.addr()
    );
    nft(&rules).map_err(|text| UplinkError::Program { uplink: name.clone(), program: "nft", text })?;
    let interface = format!("fpup{number}");
    let made = || -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        netlink.add_veth(&interface, INTERFACE, parts.namespace()?.as_fd())?;
        let index = if_nametoindex(interface.as_str())?;
        netlink.bring_up(index, LinkParameters::default())?;
        netlink.add_address(index, IpNet::V4(near4))?;
        // A machine without IPv6 has none here either.
        let _ = netlink.add_address(index, IpNet::V6(near6));
        Ok(())
    };
    made().map_err(step("its interface on this machine"))?;
    forward(&interface, families, &mut settings).map_err(step("settings of this machine"))?;
    let v6 = families[1].then_some((IpNet::V6(far6), near6.addr().into()));
    let v4 = Some((IpNet::V4(far4), near4.addr().into()));
    Ok((joined, Transfer { v4, v6, router: None }))
}

/// The file is of one network namespace, and the same for all labs in it.
fn settings_path() -> io::Result<PathBuf> {
    let inode = fs::metadata("/proc/thread-self/ns/net")?.ino();
    Ok(PathBuf::from(format!("/run/fastpath-uplink-{inode}")))
}

/// Opens and locks the file of settings. It is unlocked on drop.
fn lock(path: &Path) -> io::Result<File> {
    loop {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        file.lock()?;
        // The keeper of another lab may have removed it between the two steps.
        let own = file.metadata()?.ino();
        if fs::metadata(path).is_ok_and(|metadata| metadata.ino() == own) {
            return Ok(file);
        }
    }
}

fn table_prefix(number: u32) -> String {
    format!("{TABLE}{number}_")
}

fn record(directory: &Path, changes: &MachineChanges) -> io::Result<()> {
    let path = directory.join(RECORD);
    let mut all: Vec<MachineChanges> =
        fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    all.push(changes.clone());
    fs::write(path, serde_json::to_vec(&all)?)
}

/// Returns a number whose table, interface and subnets are free here and in the lab.
fn free_number(parts: &UplinkParts) -> io::Result<u32> {
    let tables = tables()?;
    let interfaces: Vec<nix::ifaddrs::InterfaceAddress> = nix::ifaddrs::getifaddrs()?.collect();
    let of_machine =
        interfaces.iter().filter_map(|interface| interface.address?.as_sockaddr_in().map(|a| a.ip()));
    let of_machine: Vec<Ipv4Addr> = of_machine.collect();
    let of_lab = parts.topology.nodes.iter().flat_map(|node| &node.interfaces);
    let of_lab: Vec<IpNet> = of_lab.flat_map(|interface| interface.addresses.clone()).collect();
    let is_free = |number: &u32| {
        let ([near4, _], [near6, _]) = addresses(*number);
        let (near4, near6) = (IpNet::V4(near4), IpNet::V6(near6));
        let overlaps = |net: &IpNet| {
            [near4, near6].iter().any(|near| net.contains(&near.trunc()) || near.trunc().contains(net))
        };
        !tables.iter().any(|table| table.starts_with(&table_prefix(*number)))
            && !interfaces.iter().any(|interface| interface.interface_name == format!("fpup{number}"))
            && !of_machine.iter().any(|address| near4.contains(&std::net::IpAddr::V4(*address)))
            && !of_lab.iter().any(overlaps)
    };
    (0..SUBNETS).find(is_free).ok_or_else(|| io::Error::other("198.18.0.0/15 is in use"))
}

/// The addresses of the machine and of the uplink, with the subnet that they share.
fn addresses(number: u32) -> ([Ipv4Net; 2], [Ipv6Net; 2]) {
    let base = u32::from(Ipv4Addr::new(198, 18, 0, 0)) + 4 * number;
    let v4 = [1, 2].map(|host| Ipv4Net::new(Ipv4Addr::from(base + host), 30).expect("30 is a length"));
    let v6 = [1, 2].map(|host| {
        let address = Ipv6Addr::new(0xfd66, 0x6173, 0x7470, number as u16, 0, 0, 0, host);
        Ipv6Net::new(address, 64).expect("64 is a length")
    });
    (v4, v6)
}

/// Makes the machine forward between the uplink and its other interfaces, and writes down what the
/// settings were.
///
/// IPv4 is forwarded by interface. IPv6 is only forwarded if `all` says so, which also sets every
/// interface, and ends router advertisements unless `accept_ra` is 2.
fn forward(interface: &str, families: [bool; 2], former: &mut File) -> io::Result<()> {
    let names: Vec<String> = fs::read_dir("/proc/sys/net/ipv4/conf")?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !matches!(name.as_str(), "all" | "default" | "lo"))
        .collect();
    let mut wanted: Vec<(String, &str)> = Vec::new();
    for name in &names {
        wanted.push((format!("net/ipv4/conf/{name}/forwarding"), "1"));
    }
    if families[1] {
        for name in &names {
            let accepts = format!("net/ipv6/conf/{name}/accept_ra");
            if read(&accepts).as_deref() == Some("1") {
                wanted.push((accepts, "2"));
            }
        }
        wanted.push(("net/ipv6/conf/all/forwarding".to_owned(), "1"));
    }
    let mut text = String::new();
    let changed: Vec<&(String, &str)> =
        wanted.iter().filter(|(name, value)| read(name).is_some_and(|was| was != *value)).collect();
    // `all` comes first when the settings return: it sets the interfaces.
    for (name, _) in changed.iter().rev().filter(|(name, _)| !name.contains(&format!("/{interface}/"))) {
        writeln!(text, "{name} {}", read(name).unwrap_or_default()).map_err(io::Error::other)?;
    }
    if changed.iter().any(|(name, _)| name.contains("ipv6/conf/all")) {
        let each = names.iter().map(|name| format!("net/ipv6/conf/{name}/forwarding"));
        for name in each.filter(|name| read(name).as_deref() == Some("1")) {
            writeln!(text, "{name} 1").map_err(io::Error::other)?;
        }
    }
    // Written down before anything changes.
    former.write_all(text.as_bytes())?;
    former.flush()?;
    changed.iter().try_for_each(|(name, value)| fs::write(format!("/proc/sys/{name}"), value))
}

fn read(setting: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/sys/{setting}")).ok().map(|value| value.trim().to_owned())
}
