//! A program behind an emulated link: its own network namespace, joined by one link to the
//! namespace it was started from.
//!
//! ```text
//!  this namespace                       this process              a new namespace
//!  ┌──────────────────────────┐     ┌─────────────────┐     ┌─────────────────────┐
//!  │ services  fp-shell1 (TAP)│◀───▶│ engine: the link│◀───▶│ eth0 (TAP)  program │
//!  │           100.68.0.1    │     └─────────────────┘     │ 100.68.0.2         │
//!  └──────────────────────────┘                             └─────────────────────┘
//! ```
//!
//! Addresses are taken from 100.64.0.0/10 (RFC 6598), as in Mahimahi. Every shell has a block: its
//! own link has the first part, and shells started inside have the rest. Shells nest five deep,
//! with fifteen at each level. The default route inside leads to the namespace outside, and all
//! addresses there are reachable. That namespace forwards further only if it is configured to
//! (`net.ipv4.ip_forward` and masquerading). Outside, only the new interface and its route are
//! added; both are removed with the process.
//!
//! A user without rights cannot add an interface there. Then the namespace outside is one of the
//! user's own, which `uplink/of_shell.rs` joins to the machine: addresses of the machine and of
//! other networks are reached through sockets of a program of the user.

use crate::host::first::Inside;
use crate::host::mounts::View;
use crate::host::neighbors::KnownNeighbors;
use crate::host::{Host, HostError};
use crate::kernel::namespace::{Namespace, NotPermitted, Privilege, gain_privilege};
use crate::kernel::netlink::{LinkParameters, Netlink};
use crate::programs::scope::Scope;
use crate::uplink::{self, UplinkError, UserProgram};
use fastpath_engine::port::{OpenError, Port, TapPort};
use fastpath_engine::{EdgePorts, Options, Panicked, Report, Running, StartError};
use fastpath_net::{EdgeId, Routes};
use fastpath_spec::{NodeId, Topology};
use ipnet::{IpNet, Ipv4Net};
use nix::net::if_::if_nametoindex;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::process::{Child, Command};

/// The environment variable with the block for shells inside this one.
const BLOCK_VARIABLE: &str = "FASTPATH_SHELL_BLOCK";
/// The environment variable with the address of the namespace outside.
const OUTSIDE_VARIABLE: &str = "FASTPATH_SHELL_OUTSIDE";
/// Bits of address for the shells of one level and for the link itself.
const BITS: u8 = 4;
/// The prefix length of a link: two host addresses.
const LINK_PREFIX: u8 = 30;

/// The block of addresses of a shell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressBlock {
    all: Ipv4Net,
    number: u8,
}

/// Why a shell did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShellError {
    /// No addresses are left.
    #[error("no address is free for another shell in {0}: end one, or nest less deeply")]
    Full(Ipv4Net),
    /// The environment variable is not a block.
    #[error("{BLOCK_VARIABLE}={0} is not a block of IPv4 addresses: unset it")]
    BadBlock(String),
    /// The interface outside cannot be made.
    #[error("the interface to the shell cannot be made: {0}")]
    Outside(#[from] OpenError),
    /// The namespace inside failed.
    #[error(transparent)]
    Inside(#[from] HostError),
    /// The kernel refused a step outside.
    #[error("interface {interface}: {what}: {source}")]
    Kernel {
        /// The interface.
        interface: String,
        /// The step.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The place for its programs could not be made.
    #[error("a cgroup or PID namespace for the programs: {0}")]
    Scope(io::Error),
    /// Namespaces are not permitted here.
    #[error(transparent)]
    NotPermitted(#[from] NotPermitted),
    /// A user's shell was not joined to this machine.
    #[error(transparent)]
    Uplink(#[from] UplinkError),
    /// The engine did not start.
    #[error(transparent)]
    Engine(#[from] StartError),
}

impl AddressBlock {
    /// Finds the first unused block in this namespace.
    pub fn find() -> Result<AddressBlock, ShellError> {
        let all = match std::env::var(BLOCK_VARIABLE) {
            Ok(text) => text.parse::<Ipv4Net>().map_err(|_| ShellError::BadBlock(text))?,
            Err(_) => Ipv4Net::new(Ipv4Addr::new(100, 64, 0, 0), 10).expect("a prefix of at most 32"),
        };
        let used: Vec<Ipv4Addr> = nix::ifaddrs::getifaddrs()
            .map(|all| all.filter_map(|entry| Some(entry.address?.as_sockaddr_in()?.ip())).collect())
            .unwrap_or_default();
        AddressBlock::first_free(all, &used).ok_or(ShellError::Full(all))
    }

    /// Returns the first part of `all`, after that of its own link, that contains none of `used`.
    fn first_free(all: Ipv4Net, used: &[Ipv4Addr]) -> Option<AddressBlock> {
        let prefix = all.prefix_len() + BITS;
        if prefix > LINK_PREFIX {
            return None;
        }
        let parts = all.subnets(prefix).ok()?.enumerate().skip(1);
        let free = |part: &Ipv4Net| !used.iter().any(|address| part.contains(address));
        parts
            .map(|(number, part)| AddressBlock { all: part, number: number as u8 })
            .find(|block| free(&block.all))
    }

    /// Returns the addresses of the two ends: outside and inside.
    pub fn ends(&self) -> [Ipv4Net; 2] {
        let first = u32::from(self.all.network());
        [1, 2].map(|n| Ipv4Net::new(Ipv4Addr::from(first + n), LINK_PREFIX).expect("a prefix of at most 32"))
    }

    fn interface(&self) -> String {
        format!("fp-shell{}", self.number)
    }
}

/// A namespace behind a link. Dropping it ends the programs in it, and removes it and the interface
/// outside.
#[derive(Debug)]
pub struct Shell {
    engine: Running,
    /// The namespace outside, if it is not that of the caller. It goes before its scope.
    _outside: Option<(UserProgram, Namespace)>,
    scope: Scope,
    inside: Host,
    block: AddressBlock,
}

impl Shell {
    /// Makes the namespace and the link. The topology has two hosts, outside and inside, with the
    /// addresses of `block`, and a default route inside.
    ///
    /// Without the privilege for namespaces the process first becomes root in its own user
    /// namespace, for which it must be single-threaded.
    pub fn start(topology: Topology, block: AddressBlock, options: Options) -> Result<Shell, ShellError> {
        let privilege = gain_privilege()?;
        let scope = Scope::new("shell", privilege).map_err(ShellError::Scope)?;
        let routes = Routes::compute(&topology);
        let (joined, outside) = match privilege {
            Privilege::Own => (None, join_outside(&topology, block)?),
            Privilege::UserNamespace => {
                let namespace = Namespace::new()?;
                let interface = namespace.within(|| join_outside(&topology, block));
                let interface = interface.map_err(ShellError::Scope)??;
                let program = uplink::join_shell(&namespace, scope.boundary(), block.ends()[0].addr())?;
                (Some((program, namespace)), interface)
            }
        };
        let neighbors = KnownNeighbors::in_topology(&topology);
        let (inside, mut taps) = Host::new(NodeId(1), &topology.nodes[1], routes.of(NodeId(1)), &neighbors)?;
        // For shells inside this one. This fails only if /proc/sys is not writable.
        let _ = inside.namespace.within(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"));
        let inner = taps.pop().expect("one interface for its one link");
        let ports: EdgePorts = vec![
            (EdgeId(0), Box::new(outside) as Box<dyn Port>),
            (EdgeId(1), Box::new(inner) as Box<dyn Port>),
        ];
        let engine = fastpath_engine::start(topology, ports, options)?;
        Ok(Shell { engine, _outside: joined, scope, inside, block })
    }

    /// Starts a program in the namespace.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        command.env(BLOCK_VARIABLE, self.block.all.to_string());
        command.env(OUTSIDE_VARIABLE, self.block.ends()[0].addr().to_string());
        let inside = Inside::View(View::default());
        self.scope.boundary().spawn(&self.inside.namespace, &inside, None, command)
    }

    /// Whether the engine has ended, which is a failure.
    pub fn has_ended(&self) -> bool {
        self.engine.has_ended()
    }

    /// Ends the link and returns the final report.
    pub fn stop(self) -> Result<Report, Panicked> {
        self.engine.stop()
    }
}

/// Makes the end of the link in this namespace, and the route to the block.
fn join_outside(topology: &Topology, block: AddressBlock) -> Result<TapPort, ShellError> {
    let name = block.interface();
    let failed = |what| {
        let interface = name.clone();
        move |source| ShellError::Kernel { interface, what, source }
    };
    let tap = TapPort::open(&name)?;
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    let interface = &topology.nodes[0].interfaces[0];
    let [own, inside] = block.ends();
    let index = if_nametoindex(name.as_str()).map_err(io::Error::from).map_err(failed("its index"))?;
    let mut netlink = Netlink::open().map_err(failed("opening netlink"))?;
    let parameters = LinkParameters { mac: interface.mac.map(|mac| mac.0), mtu: Some(interface.mtu) };
    netlink.bring_up(index, parameters).map_err(failed("bringing it up"))?;
    netlink.add_address(index, IpNet::V4(own)).map_err(failed("its address"))?;
    let route = netlink.add_route(index, IpNet::V4(block.all), Some(inside.addr().into()));
    route.map_err(failed("the route to the shells inside"))?;
    Ok(tap)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> Ipv4Net {
        text.parse().unwrap()
    }

    #[test]
    fn blocks_are_disjoint_or_nested() {
        let first = AddressBlock::first_free(net("100.64.0.0/10"), &[]).unwrap();
        assert_eq!((first.all, first.number), (net("100.68.0.0/14"), 1));
        assert_eq!(first.ends(), [net("100.68.0.1/30"), net("100.68.0.2/30")]);
        let second = AddressBlock::first_free(net("100.64.0.0/10"), &[first.ends()[0].addr()]).unwrap();
        assert_eq!((second.all, second.number), (net("100.72.0.0/14"), 2));
        // Inside the first, its own link's part is left out.
        let inner = AddressBlock::first_free(first.all, &[first.ends()[1].addr()]).unwrap();
        assert_eq!(inner.all, net("100.68.64.0/18"));
    }

    #[test]
    fn five_shells_nest_and_then_the_addresses_are_used_up() {
        let mut block = net("100.64.0.0/10");
        let mut depth = 0;
        while let Some(inner) = AddressBlock::first_free(block, &[]) {
            block = inner.all;
            depth += 1;
        }
        assert_eq!((depth, block.prefix_len()), (5, 30));
        let all: Vec<Ipv4Addr> = (0..64).map(|n| Ipv4Addr::new(100, 64 + n, 0, 1)).collect();
        assert_eq!(AddressBlock::first_free(net("100.64.0.0/10"), &all), None);
    }
}
