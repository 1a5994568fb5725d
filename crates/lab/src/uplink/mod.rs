//! Uplinks: nodes of a lab that join it to the network of this machine.
//!
//! ```text
//!  lab ─TAP─▶ namespace of the uplink ─up0─▶ this machine ─▶ the world       as root: veth, nftables
//!             │ masquerades to its own     └▶ pasta or slirp4netns ─▶ …      as a user
//!             ├ :53 ───── relay ──▶ the name servers of this machine
//!             ▼ host:port ◀─ relay ── forwarded ports of this machine
//! ```
//!
//! The namespace translates the addresses of the lab to one of its own, so subnets of the lab may
//! be those of networks outside. Of this machine one nftables table is ours (`machine.rs`); a user
//! changes nothing (`user.rs`). Names and forwarded ports go through sockets of this process
//! (`relay.rs`): a name server such as 127.0.0.53 is reached from there only.

mod machine;
mod names;
mod of_shell;
mod relay;
mod user;

use crate::host::Host;
use crate::host::host_namespace::HostNamespace;
use crate::kernel::namespace::Namespace;
use crate::kernel::netlink::{LinkParameters, Netlink};
use crate::programs::scope::Boundary;
use fastpath_engine::Notice;
use fastpath_spec::{Forward, ListenAt, Node, NodeKind, PortProtocol, Topology};
use ipnet::IpNet;
pub(crate) use machine::clear;
pub(crate) use names::resolv_conf;
use nix::net::if_::if_nametoindex;
pub(crate) use of_shell::join as join_shell;
use relay::{Listener, Relay, Rule, Side, Targets};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
pub(crate) use user::UserProgram;
use user::{Loopback, UserParts};

/// The interface of an uplink that leads to this machine.
const INTERFACE: &str = "up0";
/// The port of name servers.
const DNS: u16 = 53;

/// Why an uplink did not come up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UplinkError {
    /// A program is not installed.
    #[error("uplink {uplink} needs {program}: install {package}")]
    Missing {
        /// The uplink.
        uplink: String,
        /// The program, or several.
        program: &'static str,
        /// The Debian packages that have it.
        package: &'static str,
    },
    /// A port of this machine cannot be forwarded.
    #[error("uplink {uplink}: port {listen} of this machine: {source}{}", advice(.source))]
    Port {
        /// The uplink.
        uplink: String,
        /// The port.
        listen: ListenAt,
        /// The reason.
        source: io::Error,
    },
    /// A program failed.
    #[error("uplink {uplink}: {program}: {text}")]
    Program {
        /// The uplink.
        uplink: String,
        /// The program.
        program: &'static str,
        /// Its error output.
        text: String,
    },
    /// The kernel refused a step.
    #[error("uplink {uplink}: {step}: {source}")]
    Step {
        /// The uplink.
        uplink: String,
        /// The step that failed.
        step: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => "; end the program that listens there, or write another port in forward",
        io::ErrorKind::PermissionDenied => "; write a port of 1024 or more in forward",
        io::ErrorKind::AddrNotAvailable => "; write an address of this machine, or the port alone",
        _ => "",
    }
}

/// The forwarded ports of a lab, bound before anything of it exists.
pub(crate) struct ForwardedPorts {
    bound: Vec<(String, Vec<Listener>, Forward)>,
}

/// A running uplink. It ends on drop.
#[derive(Debug)]
pub(crate) struct Uplink {
    _relay: Relay,
    _outside: Outside,
}

/// What an uplink has outside its namespace.
#[derive(Debug)]
enum Outside {
    /// As root.
    Machine { _keeper: machine::UplinkKeeper },
    /// As a user.
    User { _program: UserProgram },
}

/// What an uplink is brought up with.
pub(crate) struct UplinkParts<'p> {
    pub(crate) host: &'p Arc<Host>,
    pub(crate) topology: &'p Topology,
    /// The state directory of the lab.
    pub(crate) directory: &'p Path,
    /// The scope of its programs.
    pub(crate) boundary: &'p Boundary,
    pub(crate) notice: &'p Notice,
}

impl UplinkParts<'_> {
    /// Returns the namespace of the uplink.
    fn namespace(&self) -> io::Result<&Namespace> {
        match &self.host.namespace {
            HostNamespace::Own(namespace) => Ok(namespace),
            HostNamespace::Attached(_) => Err(io::Error::other("an uplink is not attached")),
        }
    }
}

/// How far an uplink is joined: the addresses of its outer interface, with the next router of each.
struct Transfer {
    v4: Option<(IpNet, IpAddr)>,
    v6: Option<(IpNet, IpAddr)>,
    /// The next router, where a program of the user is it.
    router: Option<Ipv4Addr>,
}

impl ForwardedPorts {
    /// Binds the ports of the uplinks among these nodes.
    pub(crate) fn bind<'n>(nodes: impl Iterator<Item = &'n Node>) -> Result<ForwardedPorts, UplinkError> {
        let mut bound = Vec::new();
        for node in nodes {
            let NodeKind::Uplink { uplink, .. } = &node.kind else { continue };
            for forward in &uplink.forwards {
                let failed =
                    |source| UplinkError::Port { uplink: node.name.clone(), listen: forward.listen, source };
                bound.push((node.name.clone(), listen(&forward.listen).map_err(failed)?, forward.clone()));
            }
        }
        Ok(ForwardedPorts { bound })
    }

    /// Returns those of an uplink.
    fn take(&mut self, uplink: &str) -> Vec<(Vec<Listener>, Forward)> {
        let (its, others) =
            std::mem::take(&mut self.bound).into_iter().partition(|(name, ..)| name == uplink);
        self.bound = others;
        let its: Vec<(String, Vec<Listener>, Forward)> = its;
        its.into_iter().map(|(_, listeners, forward)| (listeners, forward)).collect()
    }
}

/// Binds a port of this machine: at its address, or at all addresses of both families.
fn listen(at: &ListenAt) -> io::Result<Vec<Listener>> {
    let bind = |address: IpAddr| -> io::Result<Listener> {
        let address = SocketAddr::new(address, at.port);
        Ok(match at.protocol {
            PortProtocol::Tcp => Listener::Tcp(TcpListener::bind(address)?),
            PortProtocol::Udp => Listener::Udp(UdpSocket::bind(address)?),
        })
    };
    match at.address {
        Some(address) => Ok(vec![bind(address)?]),
        // A socket of IPv6 takes IPv4 too, unless the machine says otherwise or has no IPv6.
        None => match bind(Ipv6Addr::UNSPECIFIED.into()) {
            Ok(both) if takes_both() => Ok(vec![both]),
            Ok(v6) => Ok(vec![v6, bind(Ipv4Addr::UNSPECIFIED.into())?]),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
            Err(_) => Ok(vec![bind(Ipv4Addr::UNSPECIFIED.into())?]),
        },
    }
}

fn takes_both() -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv6/bindv6only").is_ok_and(|text| text.trim() == "0")
}

impl Uplink {
    /// Joins the namespace of an uplink to the network of this machine.
    pub(crate) fn up(parts: &UplinkParts, ports: &mut ForwardedPorts) -> Result<Uplink, UplinkError> {
        let (name, namespace) = (&parts.host.name, &parts.host.namespace);
        let step = |step| failed(name, step);
        if !has_program("nft") {
            return Err(UplinkError::Missing { uplink: name.clone(), program: "nft", package: "nftables" });
        }
        let families = default_routes();
        if families == [false; 2] {
            parts.notice.send(&format!(
                "uplink {name}: this machine has no default route; hosts reach only its own networks"
            ));
        }
        let (outside, transfer) = match machine::may_change() {
            true => machine::join(parts, families)
                .map(|(_keeper, transfer)| (Outside::Machine { _keeper }, transfer))?,
            false => {
                let (namespace, loopback) =
                    (parts.namespace().map_err(step("its namespace"))?, Loopback::Hidden);
                let (directory, boundary) = (parts.directory, parts.boundary);
                let user = UserParts { name, namespace, directory, boundary, loopback };
                user::join(&user, families)
                    .map(|(_program, transfer)| (Outside::User { _program }, transfer))?
            }
        };
        namespace
            .within(|| configure(&transfer))
            .and_then(|done| done)
            .map_err(step("its outer interface"))?;
        let nft = namespace.within(|| nft(MASQUERADE)).map_err(step("joining its namespace"))?;
        nft.map_err(|text| UplinkError::Program { uplink: name.clone(), program: "nft", text })?;
        let node = parts.topology.node(parts.host.node());
        let rules = rules(parts, node, ports).map_err(step("its ports"))?;
        let relay = Relay::start(rules).map_err(step("starting its relay"))?;
        Ok(Uplink { _relay: relay, _outside: outside })
    }
}

/// What leaves the lab has the address of the outer interface.
const MASQUERADE: &str = "table inet fastpath {
    chain postrouting {
        type nat hook postrouting priority 100
        oifname \"up0\" masquerade
    }
}";

/// Runs nft in the namespace of the calling thread.
fn nft(rules: &str) -> Result<(), String> {
    let run = || -> io::Result<std::process::Output> {
        let mut command = Command::new("nft");
        command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(rules.as_bytes())?;
        }
        child.wait_with_output()
    };
    match run() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Gives the outer interface its addresses and the default routes, in the namespace of the calling
/// thread.
fn configure(transfer: &Transfer) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    let index = if_nametoindex(INTERFACE)?;
    netlink.bring_up(index, LinkParameters::default())?;
    for (address, via) in [transfer.v4, transfer.v6].into_iter().flatten() {
        tolerate_existing(netlink.add_address(index, address))?;
        let default = if via.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        let default: IpNet = default.parse().map_err(io::Error::other)?;
        tolerate_existing(netlink.add_route(index, default, Some(via)))?;
    }
    Ok(())
}

/// pasta and slirp4netns set addresses too.
fn tolerate_existing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Returns what the relay of an uplink does.
fn rules(parts: &UplinkParts, node: &Node, ports: &mut ForwardedPorts) -> io::Result<Vec<Rule>> {
    let inside = Side::Inside(Arc::clone(parts.host));
    let mut rules = Vec::new();
    for (listeners, forward) in ports.take(&node.name) {
        let target = parts.topology.nodes.iter().find(|node| node.name == forward.host);
        let addresses = target.into_iter().flat_map(|node| &node.interfaces).flat_map(|i| &i.addresses);
        let mut targets: Vec<SocketAddr> =
            addresses.map(|address| SocketAddr::new(address.addr(), forward.port)).collect();
        // IPv4 first, as `Host::address`.
        targets.sort_by_key(SocketAddr::is_ipv6);
        for listener in listeners {
            rules.push(Rule { listener, to: Targets::These(targets.clone()), from: inside.clone() });
        }
    }
    let own = node.interfaces.iter().flat_map(|interface| &interface.addresses);
    for address in own.map(|address| SocketAddr::new(address.addr(), DNS)) {
        let sockets = parts.host.namespace.within(|| -> io::Result<[Listener; 2]> {
            Ok([Listener::Tcp(TcpListener::bind(address)?), Listener::Udp(UdpSocket::bind(address)?)])
        })??;
        let rule = |listener| Rule { listener, to: Targets::NameServers, from: Side::Machine };
        rules.extend(sockets.map(rule));
    }
    Ok(rules)
}

/// Returns whether this machine has a default route for IPv4 and for IPv6.
fn default_routes() -> [bool; 2] {
    let text =
        |file: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    // Interface, destination, gateway, flags, …, mask.
    let v4 = text("route").lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(1) == Some(&"00000000") && fields.get(7) == Some(&"00000000")
    });
    // Destination, its length, …, flags, interface.
    let v6 = text("ipv6_route").lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_default = fields.first().is_some_and(|to| to.bytes().all(|digit| digit == b'0'));
        is_default && fields.get(1) == Some(&"00") && fields.last() != Some(&"lo")
    });
    [v4, v6]
}

fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(std::path::PathBuf::from);
    std::env::split_paths(&path).chain(system).any(|directory| directory.join(name).is_file())
}

fn failed<'n>(uplink: &'n str, step: &'static str) -> impl FnOnce(io::Error) -> UplinkError + use<'n> {
    move |source| UplinkError::Step { uplink: uplink.to_owned(), step, source }
}
