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
//! Addresses are of 100.64.0.0/10 (RFC 6598), as in Mahimahi. Every shell has a block of them,
//! begins it with its own link and leaves the rest to shells started inside, whose packets it
//! forwards: so they nest, five deep, fifteen beside each other. Inside, everything goes to the
//! namespace outside, whose every address is reachable; further than that it forwards only if it is
//! set up to (`net.ipv4.ip_forward` and, towards machines that know no way back, masquerading).
//! Nothing outside is changed but the new interface and its route, and both go with the process.

use crate::host::{Host, HostError};
use crate::netlink::{LinkParameters, Netlink};
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

/// Where a shell finds the block it may give to shells inside it.
const BLOCK_VARIABLE: &str = "FASTPATH_SHELL_BLOCK";
/// Where programs in a shell find the address of the namespace outside.
const OUTSIDE_VARIABLE: &str = "FASTPATH_SHELL_OUTSIDE";
/// Shells beside each other, and one place for the link itself: four bits of address.
const BITS: u8 = 4;
/// A link has four addresses, two of which are stations.
const LINK_PREFIX: u8 = 30;

/// Addresses of a shell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressBlock {
    all: Ipv4Net,
    number: u8,
}

/// Why a shell cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// No addresses are left.
    #[error("no address is free for another shell in {0}: end one, or nest less deeply")]
    Full(Ipv4Net),
    /// The environment variable makes no sense.
    #[error("{BLOCK_VARIABLE}={0} is not a block of IPv4 addresses: unset it")]
    BadBlock(String),
    /// The namespace outside may not be changed.
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
        /// Why.
        source: io::Error,
    },
    /// The engine did not start.
    #[error(transparent)]
    Engine(#[from] StartError),
}

impl AddressBlock {
    /// The first block that nobody uses in this namespace.
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

    /// The first part of `all` behind the part of its own link that holds none of `used`.
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

    /// The addresses of the two ends, outside and inside.
    pub fn ends(&self) -> [Ipv4Net; 2] {
        let first = u32::from(self.all.network());
        [1, 2].map(|n| Ipv4Net::new(Ipv4Addr::from(first + n), LINK_PREFIX).expect("a prefix of at most 32"))
    }

    fn interface(&self) -> String {
        format!("fp-shell{}", self.number)
    }
}

/// A namespace behind a link. Dropped, it is gone, with the interface outside.
#[derive(Debug)]
pub struct Shell {
    engine: Running,
    inside: Host,
    block: AddressBlock,
}

impl Shell {
    /// Makes the namespace and the link. The topology has two hosts, outside and inside, with the
    /// addresses of `block`, and a default route inside.
    pub fn start(topology: Topology, block: AddressBlock, options: Options) -> Result<Shell, ShellError> {
        let routes = Routes::compute(&topology);
        let outside = join_outside(&topology, block)?;
        let (inside, mut taps) = Host::new(NodeId(1), &topology.nodes[1], routes.of(NodeId(1)))?;
        // Shells in the shell: a new namespace is ours to configure, and only an unwritable
        // /proc/sys prevents it.
        let _ = inside.namespace.within(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"));
        let inner = taps.pop().expect("one interface for its one link");
        let ports: EdgePorts = vec![
            (EdgeId(0), Box::new(outside) as Box<dyn Port>),
            (EdgeId(1), Box::new(inner) as Box<dyn Port>),
        ];
        let engine = fastpath_engine::start(topology, ports, options)?;
        Ok(Shell { engine, inside, block })
    }

    /// Starts a program in the namespace.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        command.env(BLOCK_VARIABLE, self.block.all.to_string());
        command.env(OUTSIDE_VARIABLE, self.block.ends()[0].addr().to_string());
        self.inside.namespace.within(|| command.spawn())?
    }

    /// Where the control interface of its link listens on TCP, if it does.
    pub fn http(&self) -> Option<std::net::SocketAddr> {
        self.engine.http()
    }

    /// True once the engine has ended, which then is a failure.
    pub fn has_ended(&self) -> bool {
        self.engine.has_ended()
    }

    /// Ends the link; says how it stood.
    pub fn stop(self) -> Result<Report, Panicked> {
        self.engine.stop()
    }
}

/// The end of the link in this namespace, with the route to all that is inside.
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
    fn blocks_lie_beside_and_inside_each_other() {
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
