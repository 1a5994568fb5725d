//! Pairs of hosts to measure between, each in its own network namespace, and what lies between
//! them.
//!
//! ```text
//!   nothing   a ═veth═ b                          the control
//!   bridge    a ═veth═ bridge ═veth═ b            a peer; with tbf or htb at its port to b, two more
//!   taps      a ═TAP═ engine ═TAP═ b              ours, as in a lab
//!   kernel    a ═veth═ program ═veth═ b           ours, as in a lab of root's: a link, or a switch
//!   copies    a ═TAP═ bare loop ═TAP═ b           the cost of the copies alone
//!   veths     a ═veth═ engine ═veth═ b            ours, as in `fastpath run`: AF_XDP or packet
//!   testpmd   a ═veth═ testpmd ═veth═ b           a peer that emulates nothing
//!   rattan    a ═veth═ rattan ═veth═ b            a peer; the hosts' addresses are its choice
//! ```

mod copier;
pub(crate) mod rattan;
pub(crate) mod testpmd;

use crate::MeasurementError;
use copier::Copier;
use fastpath_audit::open_in;
use fastpath_engine::port::{Port, TapPort};
use fastpath_engine::{DataPathChoice, EdgePorts, Idle, Notice, Options, Report, Running};
use fastpath_lab::Namespace;
use fastpath_lab::netlink::{LinkParameters, Netlink};
use fastpath_lab::{Host, HostError, KnownNeighbors, Lab};
use fastpath_link::PipeSpec;
use fastpath_net::{EdgeId, Routes};
use fastpath_spec::{NodeKind, PortName, Topology};
use ipnet::IpNet;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use rattan::{Rattan, RattanLink};
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use testpmd::Testpmd;

/// The name of a host's interface.
const INTERFACE: &str = "eth0";
const LOOPBACK: &str = "lo";
const BRIDGE: &str = "bridge";
/// How long to wait until a bridge or a program forwards. If it does not, the results show it.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// RFC 863.
const DISCARD: u16 = 9;

/// What lies between the hosts of a pair.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Between {
    /// A veth pair alone.
    Nothing,
    /// The kernel's bridge.
    Bridge,
    /// The kernel's bridge, with a shaper at its port to the second host.
    Shaped(Shaper),
    /// DPDK's testpmd.
    Testpmd,
    /// Rattan, one for each pair.
    Rattan(RattanLink),
    /// Our engine, which holds the hosts' TAP interfaces.
    Taps(PipeSpec),
    /// A bare link of a lab, in the kernel.
    KernelLink,
    /// A learning switch of a lab, in the kernel.
    KernelSwitch,
    /// A loop that copies between the hosts' TAP interfaces.
    Copies,
    /// Our engine between veth pairs, with ports of this kind.
    Veths(PipeSpec, &'static str),
}

/// A queue discipline of the kernel that limits a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shaper {
    pub(crate) kind: ShaperKind,
    /// Bits per second.
    pub(crate) rate: u64,
    /// Maximum queue, full frames.
    pub(crate) queue: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ShaperKind {
    /// tc-tbf(8).
    Tbf,
    /// tc-htb(8).
    Htb,
}

impl ShaperKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ShaperKind::Tbf => "tc tbf",
            ShaperKind::Htb => "tc htb",
        }
    }
}

/// Pairs of hosts. Dropping it removes them and what lies between them.
#[derive(Debug)]
pub(crate) struct Testbed {
    /// `None` only on drop.
    engine: Option<Running>,
    testpmd: Option<Testpmd>,
    rattans: Vec<Rattan>,
    copiers: Vec<Copier>,
    hosts: Vec<Arc<Host>>,
    /// The lab that the hosts are in, if they are in one.
    lab: Option<Lab>,
    /// The namespace of the bridges, or of the engine's ends of veth pairs.
    middle: Option<Namespace>,
}

impl Drop for Testbed {
    fn drop(&mut self) {
        // The engine ends before the interfaces that it holds are removed.
        let _ = self.engine.take().map(Running::stop);
        drop(self.testpmd.take());
        self.rattans.clear();
        self.copiers.clear();
    }
}

impl Testbed {
    /// Makes a pair of hosts for each of `between`, which are all of one kind. Our engine
    /// busy-polls, for the highest accuracy.
    pub(crate) fn new(between: &[Between]) -> Result<Testbed, MeasurementError> {
        Testbed::with(between, Idle::Busy)
    }

    /// The same, with our engine's idle mode.
    pub(crate) fn with(between: &[Between], idle: Idle) -> Result<Testbed, MeasurementError> {
        let options = Options { idle: Some(idle), ..options() };
        match between {
            [Between::Taps(_) | Between::Copies, ..] => Testbed::of_taps(between, options),
            [Between::KernelLink | Between::KernelSwitch, ..] => Testbed::of_lab(between, options),
            [Between::Nothing, ..] => Testbed::direct(between.len()),
            [Between::Rattan(_), ..] => Testbed::of_rattan(between),
            _ => Testbed::of_veths(between, options),
        }
    }

    /// Returns the two hosts of a pair, and the address of the second.
    pub(crate) fn pair(&self, index: usize) -> (&Host, &Host, IpAddr) {
        let (a, b) = (&self.hosts[2 * index], &self.hosts[2 * index + 1]);
        (a, b, b.address().expect("a host of a pair has an address"))
    }

    /// Returns the number of pairs.
    pub(crate) fn pairs(&self) -> usize {
        self.hosts.len() / 2
    }

    /// Returns the report of our engine, if one is in the path.
    pub(crate) fn report(&self) -> Option<Report> {
        self.engine.as_ref().map_or_else(|| self.lab.as_ref()?.report(), Running::report)
    }

    /// Brings up a lab whose links are in the kernel.
    fn of_lab(between: &[Between], options: Options) -> Result<Testbed, MeasurementError> {
        let options = Options { data_path: DataPathChoice::Kernel, ..options };
        let lab = Lab::up(topology(between), &format!("testbed-{}", std::process::id()), options)?;
        let mut testbed = Testbed::of_hosts(Vec::new());
        testbed.hosts = lab.hosts().to_vec();
        testbed.lab = Some(lab);
        Ok(testbed)
    }

    fn of_taps(between: &[Between], options: Options) -> Result<Testbed, MeasurementError> {
        let topology = topology(between);
        let routes = Routes::compute(&topology);
        let neighbors = KnownNeighbors::in_topology(&topology);
        let (mut hosts, mut taps): (Vec<Host>, Vec<TapPort>) = (Vec::new(), Vec::new());
        for (id, node) in topology.hosts() {
            let (host, ports) = Host::new(id, node, routes.of(id), &neighbors)?;
            hosts.push(host);
            taps.extend(ports);
        }
        let mut testbed = Testbed::of_hosts(hosts);
        if let [Between::Copies, ..] = between {
            let mut taps = taps.into_iter();
            while let (Some(a), Some(b)) = (taps.next(), taps.next()) {
                let started = Copier::start([a, b]);
                testbed.copiers.push(
                    started
                        .map_err(|source| MeasurementError::Kernel { what: "starting a thread", source })?,
                );
            }
        } else {
            let numbered = taps.into_iter().enumerate();
            let ports: EdgePorts =
                numbered.map(|(n, tap)| (EdgeId(n as u32), Box::new(tap) as Box<dyn Port>)).collect();
            testbed.engine = Some(fastpath_engine::start(topology, ports, options)?);
        }
        Ok(testbed)
    }

    /// A testbed with nothing between the hosts yet.
    fn of_hosts(hosts: Vec<Host>) -> Testbed {
        let hosts = hosts.into_iter().map(Arc::new).collect();
        let (rattans, copiers) = (Vec::new(), Vec::new());
        Testbed { engine: None, testpmd: None, rattans, copiers, hosts, lab: None, middle: None }
    }

    fn of_rattan(between: &[Between]) -> Result<Testbed, MeasurementError> {
        let program = installed(rattan::PROGRAM)?;
        let mut testbed = Testbed::of_hosts(Vec::new());
        for (pair, between) in between.iter().enumerate() {
            let Between::Rattan(treatment) = *between else { continue };
            let right = Namespace::new()?;
            let (rattan, left, address) = Rattan::start(&program, treatment, &right)?;
            testbed.rattans.push(rattan);
            // Only the right host's address is needed, by the left one.
            for (end, namespace) in [left, right].into_iter().enumerate() {
                let host = Host::bare(name(pair, end), vec![address.into()], namespace);
                let work = || -> io::Result<()> { interface().map(|interface| quieten(&interface)) };
                open_in(&host, "the interface's name", work)?;
                testbed.hosts.push(Arc::new(host));
            }
        }
        testbed.wait_until_frames_pass()?;
        Ok(testbed)
    }

    fn direct(pairs: usize) -> Result<Testbed, MeasurementError> {
        let mut hosts = Vec::new();
        for pair in 0..pairs {
            let [a, b] = [bare(pair, 0)?, bare(pair, 1)?];
            connect(&a, INTERFACE, own(&b))?;
            hosts.extend([a, b]);
        }
        let testbed = Testbed::of_hosts(hosts);
        testbed.configure()?;
        Ok(testbed)
    }

    fn of_veths(between: &[Between], options: Options) -> Result<Testbed, MeasurementError> {
        let middle = Namespace::new()?;
        let mut hosts = Vec::new();
        for host in (0..between.len()).flat_map(|pair| [(pair, 0), (pair, 1)]) {
            let bare = bare(host.0, host.1)?;
            connect(&bare, &port(host.0, host.1), &middle)?;
            hosts.push(bare);
        }
        let mut testbed = Testbed::of_hosts(hosts);
        testbed.configure()?;
        if let [Between::Veths(..), ..] = between {
            let topology = topology(between);
            bring_up_ports(&middle, between.len())?;
            let ports = within(&middle, || fastpath_engine::attach(&topology, &options.notice))??;
            testbed.engine = Some(fastpath_engine::start(topology, ports, options)?);
        } else if let [Between::Testpmd, ..] = between {
            bring_up_ports(&middle, between.len())?;
            let program = installed(testpmd::PROGRAM)?;
            let ports: Vec<_> = (0..between.len()).flat_map(|pair| [port(pair, 0), port(pair, 1)]).collect();
            let started = within(&middle, || Testpmd::start(&program, &ports))?;
            testbed.testpmd = Some(
                started.map_err(|source| MeasurementError::Kernel { what: "starting testpmd", source })?,
            );
            testbed.wait_until_frames_pass()?;
        } else {
            bridges(&middle, between)?;
            testbed.wait_until_frames_pass()?;
        }
        testbed.middle = Some(middle);
        Ok(testbed)
    }

    /// Suspends or resumes testpmd.
    pub(crate) fn pause(&self, is_paused: bool) {
        self.testpmd.iter().for_each(|testpmd| testpmd.pause(is_paused));
    }

    /// Waits until frames pass, or until the program that should forward them has ended. A bridge
    /// forwards once the kernel has noticed that its ports are up, which it checks once a second
    /// (net/core/link_watch.c).
    fn wait_until_frames_pass(&mut self) -> Result<(), MeasurementError> {
        for pair in 0..self.pairs() {
            let (from, _, address) = self.pair(pair);
            let socket = open_in(from, "UDP", || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
            let (before, began) = (received(self.pair(pair).1)?, Instant::now());
            while received(self.pair(pair).1)? == before && began.elapsed() < WAIT_MAX {
                if self.testpmd.as_mut().is_some_and(|testpmd| !testpmd.is_running()) {
                    return Err(MeasurementError::Peer("the program has ended".to_owned()));
                }
                // The ARP request is enough. Without an answer sending fails, and is repeated.
                let _ = socket.send_to(&[0], (address, DISCARD));
                thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }

    /// Gives every host its address and brings its interface up.
    fn configure(&self) -> Result<(), MeasurementError> {
        for host in &self.hosts {
            let work = || -> io::Result<()> {
                let mut netlink = Netlink::open()?;
                netlink.bring_up(if_nametoindex(LOOPBACK)?, LinkParameters::default())?;
                quieten(INTERFACE);
                let index = if_nametoindex(INTERFACE)?;
                netlink.bring_up(index, LinkParameters::default())?;
                netlink.add_address(index, host.addresses()[0])
            };
            let failed = |source| HostError::Configure {
                host: host.name.clone(),
                interface: INTERFACE.to_owned(),
                what: "address and bringing it up".to_owned(),
                source,
            };
            host.namespace.within(work).and_then(|done| done).map_err(failed)?;
        }
        Ok(())
    }
}

/// Returns the options of every engine that is measured in real time.
pub(crate) fn options() -> Options {
    let network = fastpath_net::Options::default();
    // Notices are dropped: the results show what goes wrong.
    Options { idle: Some(Idle::Busy), notice: Notice::none(), ..Options::new(network) }
}

/// Returns the topology of all pairs, with our links between the hosts.
fn topology(between: &[Between]) -> Topology {
    let mut topology = Topology::default();
    for (pair, between) in between.iter().enumerate() {
        let pipe = match between {
            Between::Taps(pipe) | Between::Veths(pipe, _) => pipe.clone(),
            Between::Copies | Between::KernelLink | Between::KernelSwitch => PipeSpec::default(),
            _ => continue,
        };
        let host = |end| match between {
            Between::Veths(_, kind) => {
                NodeKind::port(PortName::new(kind, &port(pair, end)).expect("a kind and an interface"))
            }
            _ => NodeKind::host(),
        };
        let ends = [0, 1].map(|end| topology.add_node(name(pair, end), host(end)));
        if *between == Between::KernelSwitch {
            let switch = topology.add_node(format!("switch{pair}"), NodeKind::Switch);
            for (number, end) in ends.into_iter().enumerate() {
                topology.connect(format!("link{pair}-{number}"), end, switch, [pipe.clone(), pipe.clone()]);
            }
        } else {
            topology.connect(format!("link{pair}"), ends[0], ends[1], [pipe.clone(), pipe]);
        }
        for (number, node) in ends.into_iter().enumerate() {
            topology.nodes[node.0 as usize].interfaces[0].addresses.push(address(pair, number));
        }
    }
    topology
}

fn name(pair: usize, end: usize) -> String {
    format!("{}{pair}", ["a", "b"][end])
}

/// The name of the middle interface that leads to a host.
fn port(pair: usize, end: usize) -> String {
    format!("v{}", name(pair, end))
}

/// Returns the interface of the thread's namespace that is up and not the loopback.
pub(crate) fn interface() -> io::Result<String> {
    let is_it = |flags: InterfaceFlags| {
        flags.contains(InterfaceFlags::IFF_UP) && !flags.contains(InterfaceFlags::IFF_LOOPBACK)
    };
    let it = getifaddrs()?.find(|one| is_it(one.flags));
    it.map(|one| one.interface_name).ok_or_else(|| io::Error::other("no interface but the loopback is up"))
}

/// Returns the number of frames that a host's interface has received: the third column of its line
/// in /proc/net/dev.
pub(crate) fn received(host: &Host) -> Result<u64, MeasurementError> {
    let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
    Ok(packets_received(&open_in(host, "the interface's counters", read)?))
}

fn packets_received(text: &str) -> u64 {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let columns = lines.filter(|(interface, _)| interface.trim() != LOOPBACK).map(|(_, columns)| columns);
    columns.filter_map(|columns| columns.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()).sum()
}

/// An address for benchmarks (RFC 2544), from a network for each pair.
fn address(pair: usize, end: usize) -> IpNet {
    let ip = Ipv4Addr::new(198, 18, pair as u8, end as u8 + 1);
    IpNet::new(ip.into(), 24).expect("a prefix of at most 32")
}

/// Makes a host without interfaces.
fn bare(pair: usize, end: usize) -> Result<Host, MeasurementError> {
    let namespace = Namespace::new()?;
    Ok(Host::bare(name(pair, end), vec![address(pair, end)], namespace))
}

/// Connects the host's interface with `peer` in another namespace.
fn connect(host: &Host, peer: &str, there: &Namespace) -> Result<(), MeasurementError> {
    within(own(host), || Netlink::open()?.add_veth(INTERFACE, peer, there.as_fd()))?
        .map_err(|source| MeasurementError::Kernel { what: "making a veth pair", source })
}

/// The namespace of a host of this testbed.
fn own(host: &Host) -> &Namespace {
    host.namespace.own().expect("a testbed attaches to no namespace of others")
}

fn within<T: Send>(namespace: &Namespace, work: impl FnOnce() -> T + Send) -> Result<T, MeasurementError> {
    namespace.within(work).map_err(|source| MeasurementError::Kernel { what: "joining a namespace", source })
}

/// Disables IPv6 on an interface, so that only measured frames are sent.
fn quieten(interface: &str) {
    // This fails on a kernel without IPv6, where nothing has to be disabled.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"), "1");
}

fn bring_up_ports(middle: &Namespace, pairs: usize) -> Result<(), MeasurementError> {
    let work = || -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        for port in (0..pairs).flat_map(|pair| [port(pair, 0), port(pair, 1)]) {
            quieten(&port);
            netlink.bring_up(if_nametoindex(port.as_str())?, LinkParameters::default())?;
        }
        Ok(())
    };
    within(middle, work)?.map_err(|source| MeasurementError::Kernel { what: "bringing a veth up", source })
}

/// Bridges the two ports of every pair, and installs the shapers.
fn bridges(middle: &Namespace, between: &[Between]) -> Result<(), MeasurementError> {
    let work = || -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        for pair in 0..between.len() {
            let bridge = format!("{BRIDGE}{pair}");
            netlink.add_bridge(&bridge)?;
            quieten(&bridge);
            let bridge = if_nametoindex(bridge.as_str())?;
            for end in [0, 1] {
                netlink.join_bridge(if_nametoindex(port(pair, end).as_str())?, bridge)?;
            }
            netlink.bring_up(bridge, LinkParameters::default())?;
        }
        Ok(())
    };
    within(middle, work)?.map_err(|source| MeasurementError::Kernel { what: "making a bridge", source })?;
    bring_up_ports(middle, between.len())?;
    for (pair, between) in between.iter().enumerate() {
        if let Between::Shaped(shaper) = between {
            within(middle, || shaper.install(&port(pair, 1)))??;
        }
    }
    Ok(())
}

impl Shaper {
    /// Installs the shaper at the egress of an interface of the thread's namespace. Its bucket
    /// holds two frames, or 10 ms of the rate, which a kernel with 100 Hz ticks needs.
    fn install(self, interface: &str) -> Result<(), MeasurementError> {
        let Shaper { kind, rate, queue } = self;
        let limit = queue * 1514;
        let burst = (rate / 8 / 100).max(2 * 1514);
        let commands: Vec<String> = match kind {
            ShaperKind::Tbf => {
                vec![format!("qdisc add dev {interface} root tbf rate {rate}bit burst {burst} limit {limit}")]
            }
            ShaperKind::Htb => vec![
                format!("qdisc add dev {interface} root handle 1: htb default 1"),
                format!(
                    "class add dev {interface} parent 1: classid 1:1 htb rate {rate}bit burst {burst} cburst {burst}"
                ),
            ],
        };
        let tc = installed("tc")?;
        for command in commands {
            let output = Command::new(&tc).args(command.split_whitespace()).stdin(Stdio::null()).output();
            let output = output.map_err(|source| MeasurementError::Kernel { what: "starting tc", source })?;
            if !output.status.success() {
                let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                return Err(MeasurementError::Peer(format!("tc {command}: {message}")));
            }
        }
        Ok(())
    }
}

/// Returns the path of another emulator's program.
fn installed(name: &'static str) -> Result<PathBuf, MeasurementError> {
    program(name).ok_or(MeasurementError::NotInstalled(name))
}

/// Returns the path of an installed program, also in the directories for administrators.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/sbin", "/sbin"].map(Path::new).map(Path::to_owned);
    std::env::split_paths(&paths)
        .chain(sbin)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_frames_are_found_in_the_statistics() {
        let text = " face |bytes packets errs\n lo: 1 2 3\n  eth0: 640 10 0 0 0 0 0 0 90 1\n";
        assert_eq!((packets_received(text), packets_received("")), (10, 0));
    }
}
