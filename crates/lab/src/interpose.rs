//! Putting a network in the way out of an existing interface, on kernels without netem.
//!
//! ```text
//!  programs ─▶ IFACE's way out ─▶ filter: redirect ─▶ TAP ─▶ engine: the link ─▶ packet socket ─▶ the device
//!  programs ◀─────────────────────────── what arrives at IFACE, untouched ◀──────────────────────────┘
//! ```
//!
//! The filter is `clsact` with `u32` and `mirred` (tc-mirred(8)); the packet socket sends past
//! queue disciplines and filters (`PACKET_QDISC_BYPASS`), so nothing comes round twice. Addresses,
//! routes and neighbours of the interface stay as they are. The filter outlives a process that is
//! killed, so a [`guard`] in another process removes it; and `clsact`, if it was made for it and
//! nobody else has put a filter there since.

use crate::netlink::{LinkParameters, Netlink};
use fastpath_engine::port::{Injector, OpenError, Port, TapPort};
use fastpath_engine::{EdgePorts, Panicked, Report, Running, StartError};
use fastpath_net::EdgeId;
use fastpath_spec::Topology;
use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use nix::net::if_::{if_indextoname, if_nametoindex};
use std::fs;
use std::io::{self, Read};

/// Our filter among those of the interface, late among them: others may pass packets by it.
const PREFERENCE: u16 = 0xf9f9;
/// `ETH_P_ALL` in network byte order.
const ALL_PROTOCOLS: u32 = 0x0003_u16.to_be() as u32;
/// The way in and the way out of `clsact` (linux/pkt_sched.h, `TC_H_MIN_INGRESS`,
/// `TC_H_MIN_EGRESS`).
const INGRESS: TcHandle = TcHandle { major: 0xffff, minor: 0xfff2 };
const EGRESS: TcHandle = TcHandle { major: 0xffff, minor: 0xfff3 };
const CLSACT: TcHandle = TcHandle { major: 0xffff, minor: 0xfff1 };

/// Why an interface cannot be interposed on.
#[derive(Debug, thiserror::Error)]
pub enum InterposeError {
    /// It, or the TAP beside it, cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The kernel refused a step.
    #[error("{interface}: {what}: {source}{}", advice(source))]
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

fn advice(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(nix::libc::ENOENT | nix::libc::EOPNOTSUPP) => {
            " (this kernel has no clsact, u32 or mirred: nothing can be put in the way here)"
        }
        Some(nix::libc::EPERM) => " (run as root)",
        _ => "",
    }
}

/// A network in the way out of an interface, until it is dropped or stopped.
#[derive(Debug)]
pub struct Interposed {
    // First, so that nothing is redirected to a TAP that is gone.
    redirection: Redirection,
    index: u32,
    /// The engine.
    pub engine: Running,
}

impl Interposed {
    /// Puts `topology` in the way out of `interface`: frames enter at its first host and leave at
    /// its second.
    pub fn start(
        interface: &str,
        topology: Topology,
        options: fastpath_engine::Options,
    ) -> Result<Interposed, InterposeError> {
        let failed =
            |what| move |source| InterposeError::Kernel { interface: interface.to_owned(), what, source };
        let out = Injector::open(interface)?;
        let index = if_nametoindex(interface).map_err(io::Error::from).map_err(failed("its index"))?;
        let name = tap_name(index);
        let tap = TapPort::open(&name)?;
        // Nothing but what is redirected may come out of the TAP.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        let tap_index =
            if_nametoindex(name.as_str()).map_err(io::Error::from).map_err(failed("the TAP's index"))?;
        let mut netlink = Netlink::open().map_err(failed("opening netlink"))?;
        let parameters = LinkParameters { mac: None, mtu: Some(u32::from(u16::MAX) - 14) };
        netlink.bring_up(tap_index, parameters).map_err(failed("bringing the TAP up"))?;
        let ports: EdgePorts =
            vec![(EdgeId(0), Box::new(tap) as Box<dyn Port>), (EdgeId(1), Box::new(out) as Box<dyn Port>)];
        let engine = fastpath_engine::start(topology, ports, options)?;
        // From here on there is something to undo.
        let redirection = Redirection { interface: interface.to_owned(), made_room: false };
        let mut interposed = Interposed { redirection, index, engine };
        admit_own_packets(interface);
        let clsact = netlink
            .request(RouteNetlinkMessage::NewQueueDiscipline(clsact(index)), NLM_F_CREATE | NLM_F_EXCL);
        match clsact {
            Ok(()) => interposed.redirection.made_room = true,
            Err(error) if error.raw_os_error() == Some(nix::libc::EEXIST) => {}
            Err(error) => return Err(failed("making room for a filter (clsact)")(error)),
        }
        let filter = RouteNetlinkMessage::NewTrafficFilter(filter(index, Some(tap_index)));
        netlink
            .request(filter, NLM_F_CREATE | NLM_F_REPLACE)
            .map_err(failed("redirecting what leaves (u32, mirred)"))?;
        Ok(interposed)
    }
}

impl Interposed {
    /// Whether the interface had no room for filters before.
    pub fn made_room(&self) -> bool {
        self.redirection.made_room
    }

    /// Whether it is still in anybody's way: the interface is there, and the engine runs.
    pub fn is_in_place(&self) -> bool {
        // Of an interface that is not there, nix says that its name is empty.
        let is_there = if_indextoname(self.index).is_ok_and(|name| !name.is_empty());
        is_there && !self.engine.has_ended()
    }

    /// Takes the network out of the way; says how it stood.
    pub fn stop(self) -> Result<Report, Panicked> {
        let Interposed { engine, redirection, .. } = self;
        drop(redirection);
        engine.stop()
    }
}

/// The filter in the way out of an interface.
#[derive(Debug)]
struct Redirection {
    interface: String,
    made_room: bool,
}

impl Drop for Redirection {
    fn drop(&mut self) {
        // It fails only if the interface is gone, and the filter with it.
        let _ = remove(&self.interface, self.made_room);
    }
}

/// Waits until its standard input ends, which is when the process that started it does, by whatever
/// signal; then removes the filter from `interface`, if it is still there. Anything to read before
/// that says that room was made for the filter.
pub fn guard(interface: &str) -> io::Result<()> {
    let mut said = Vec::new();
    let _ = io::stdin().read_to_end(&mut said);
    match remove(interface, !said.is_empty()) {
        Err(error)
            if !matches!(
                error.raw_os_error(),
                Some(nix::libc::ENOENT | nix::libc::EINVAL | nix::libc::ENODEV)
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Removes the filter, and the room for filters if it was made for it and is empty again.
fn remove(interface: &str, made_room: bool) -> io::Result<()> {
    let index = if_nametoindex(interface)?;
    let mut netlink = Netlink::open()?;
    let removed = netlink.request(RouteNetlinkMessage::DelTrafficFilter(filter(index, None)), 0);
    let mut is_used = |parent| {
        let mut question = TcMessage::with_index(index as i32);
        question.header.parent = parent;
        netlink.has_any(RouteNetlinkMessage::GetTrafficFilter(question))
    };
    if made_room && !is_used(INGRESS)? && !is_used(EGRESS)? {
        netlink.request(RouteNetlinkMessage::DelQueueDiscipline(clsact(index)), 0)?;
    }
    removed
}

fn tap_name(index: u32) -> String {
    format!("fp-netem{index}")
}

/// Packets of this machine to itself come back without the route they were sent by, so on the
/// loopback interface the kernel has to be told that they are no forgeries. It stays told: the
/// setting has no effect on others' packets there.
fn admit_own_packets(interface: &str) {
    if interface == "lo" {
        for setting in ["route_localnet", "accept_local"] {
            let _ = fs::write(format!("/proc/sys/net/ipv4/conf/lo/{setting}"), "1");
        }
    }
}

fn clsact(index: u32) -> TcMessage {
    let mut message = TcMessage::with_index(index as i32);
    message.header.handle = TcHandle { major: 0xffff, minor: 0 };
    message.header.parent = CLSACT;
    message.attributes.push(TcAttribute::Kind("clsact".to_owned()));
    message
}

/// The filter that sends every frame to the interface `to`; without it, the filter to remove.
fn filter(index: u32, to: Option<u32>) -> TcMessage {
    let mut message = TcMessage::with_index(index as i32);
    message.header.parent = EGRESS;
    message.header.info = u32::from(PREFERENCE) << 16 | ALL_PROTOCOLS;
    message.attributes.push(TcAttribute::Kind("u32".to_owned()));
    if let Some(to) = to {
        const TCA_OPTIONS: u16 = 2;
        message.attributes.push(TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, redirect_all(to))));
    }
    message
}

/// The options of a u32 filter that matches everything and redirects it (linux/pkt_cls.h,
/// linux/tc_act/tc_mirred.h).
fn redirect_all(to: u32) -> Vec<u8> {
    const TCA_U32_SEL: u16 = 5;
    const TCA_U32_ACT: u16 = 7;
    const FIRST_ACTION: u16 = 1;
    const TCA_ACT_KIND: u16 = 1;
    const TCA_ACT_OPTIONS: u16 = 2;
    const TCA_MIRRED_PARMS: u16 = 2;
    const TC_ACT_STOLEN: u32 = 4;
    const TCA_EGRESS_REDIR: u32 = 1;
    // struct tc_u32_sel: terminal, one key; struct tc_u32_key: mask, value, offset, offset mask,
    // all 0: any packet.
    let mut selector = vec![1, 0, 1, 0];
    selector.extend([0; 12]);
    selector.extend([0; 16]);
    // struct tc_mirred: index, capabilities, action, two reference counts, what to do, whereto.
    let words = [0, 0, TC_ACT_STOLEN, 0, 0, TCA_EGRESS_REDIR, to];
    let mirred: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
    let options = attribute(TCA_MIRRED_PARMS, &mirred);
    let action = [attribute(TCA_ACT_KIND, b"mirred\0"), attribute(TCA_ACT_OPTIONS, &options)].concat();
    let actions = attribute(FIRST_ACTION, &action);
    [attribute(TCA_U32_SEL, &selector), attribute(TCA_U32_ACT, &actions)].concat()
}

/// A netlink attribute: length, kind, value, padded to four bytes (netlink(7)).
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}
