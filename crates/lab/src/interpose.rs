//! Inserts a network at the egress of an existing interface, on kernels without netem.
//!
//! ```text
//!  programs ─▶ IFACE's egress ─▶ filter: redirect ─▶ TAP ─▶ engine: link ─▶ packet socket ─▶ device
//!  programs ◀───────────────────────── ingress of IFACE, unchanged ◀───────────────────────────┘
//! ```
//!
//! The filter is `clsact` with `u32` and `mirred` (tc-mirred(8)). The packet socket bypasses qdiscs
//! and filters (`PACKET_QDISC_BYPASS`), so no frame is redirected twice. Addresses, routes and
//! neighbours of the interface do not change. The filter outlives a killed process, so a [`guard`]
//! in another process removes it. The guard also removes `clsact` if this module added it and no
//! other filter uses it.

use crate::kernel::netlink::{LinkParameters, Netlink, attribute, clsact};
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

/// The filter's preference: after most other filters of the interface.
const PREFERENCE: u16 = 0xf9f9;
/// `ETH_P_ALL` in network byte order.
const ALL_PROTOCOLS: u32 = 0x0003_u16.to_be() as u32;
/// Ingress and egress of `clsact` (linux/pkt_sched.h, `TC_H_MIN_INGRESS`,
/// `TC_H_MIN_EGRESS`).
const INGRESS: TcHandle = TcHandle { major: 0xffff, minor: 0xfff2 };
const EGRESS: TcHandle = TcHandle { major: 0xffff, minor: 0xfff3 };

/// Why the network cannot be inserted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterposeError {
    /// The interface or the TAP cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The kernel refused a step.
    #[error("{interface}: {what}: {source}{}", advice(source))]
    Kernel {
        /// The interface.
        interface: String,
        /// The step.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The engine did not start.
    #[error(transparent)]
    Engine(#[from] StartError),
}

fn advice(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(nix::libc::ENOENT | nix::libc::EOPNOTSUPP) => {
            " (this kernel has no clsact, u32 or mirred: its egress cannot be redirected)"
        }
        Some(nix::libc::EPERM) => " (run as root)",
        _ => "",
    }
}

/// A network at the egress of an interface, until it is dropped or stopped.
#[derive(Debug)]
pub struct Interposed {
    // Dropped first, so that no frame is redirected to a removed TAP.
    redirection: Redirection,
    index: u32,
    /// The engine.
    pub engine: Running,
}

impl Interposed {
    /// Inserts `topology` at the egress of `interface`: frames enter at its first host and leave at
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
        // Only redirected frames may leave the TAP.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        let tap_index =
            if_nametoindex(name.as_str()).map_err(io::Error::from).map_err(failed("the TAP's index"))?;
        let mut netlink = Netlink::open().map_err(failed("opening netlink"))?;
        let parameters = LinkParameters { mac: None, mtu: Some(u32::from(u16::MAX) - 14) };
        netlink.bring_up(tap_index, parameters).map_err(failed("bringing the TAP up"))?;
        let ports: EdgePorts =
            vec![(EdgeId(0), Box::new(tap) as Box<dyn Port>), (EdgeId(1), Box::new(out) as Box<dyn Port>)];
        let engine = fastpath_engine::start(topology, ports, options)?;
        // From here on, dropping `redirection` undoes the steps.
        let redirection = Redirection { interface: interface.to_owned(), added_clsact: false };
        let mut interposed = Interposed { redirection, index, engine };
        admit_own_packets(interface);
        let clsact = netlink
            .request(RouteNetlinkMessage::NewQueueDiscipline(clsact(index)), NLM_F_CREATE | NLM_F_EXCL);
        match clsact {
            Ok(()) => interposed.redirection.added_clsact = true,
            Err(error) if error.raw_os_error() == Some(nix::libc::EEXIST) => {}
            Err(error) => return Err(failed("adding clsact")(error)),
        }
        let filter = RouteNetlinkMessage::NewTrafficFilter(filter(index, Some(tap_index)));
        netlink
            .request(filter, NLM_F_CREATE | NLM_F_REPLACE)
            .map_err(failed("redirecting the egress (u32, mirred)"))?;
        Ok(interposed)
    }
}

impl Interposed {
    /// Whether `clsact` was added to the interface.
    pub fn added_clsact(&self) -> bool {
        self.redirection.added_clsact
    }

    /// Whether the interface still exists and the engine runs.
    pub fn is_in_place(&self) -> bool {
        // For a missing interface nix returns an empty name.
        let is_there = if_indextoname(self.index).is_ok_and(|name| !name.is_empty());
        is_there && !self.engine.has_ended()
    }

    /// Removes the network and returns the final report.
    pub fn stop(self) -> Result<Report, Panicked> {
        let Interposed { engine, redirection, .. } = self;
        drop(redirection);
        engine.stop()
    }
}

/// The filter at the egress of an interface.
#[derive(Debug)]
struct Redirection {
    interface: String,
    added_clsact: bool,
}

impl Drop for Redirection {
    fn drop(&mut self) {
        // This fails only if the interface, and the filter with it, no longer exists.
        let _ = remove(&self.interface, self.added_clsact);
    }
}

/// Waits until standard input ends, which happens when the parent process ends, by whatever signal.
/// Then removes the filter from `interface`, if it still exists. Any input before that means that
/// `clsact` was added and is removed too. A process that may not remove the filter could not add it
/// either, so that is not an error.
pub fn guard(interface: &str) -> io::Result<()> {
    let mut input = Vec::new();
    let _ = io::stdin().read_to_end(&mut input);
    match remove(interface, !input.is_empty()) {
        Err(error)
            if !matches!(
                error.raw_os_error(),
                Some(nix::libc::ENOENT | nix::libc::EINVAL | nix::libc::ENODEV | nix::libc::EPERM)
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Removes the filter; and `clsact`, if it was added for it and has no other filter.
fn remove(interface: &str, added_clsact: bool) -> io::Result<()> {
    let index = if_nametoindex(interface)?;
    let mut netlink = Netlink::open()?;
    let removed = netlink.request(RouteNetlinkMessage::DelTrafficFilter(filter(index, None)), 0);
    let mut is_used = |parent| {
        let mut question = TcMessage::with_index(index as i32);
        question.header.parent = parent;
        netlink.has_any(RouteNetlinkMessage::GetTrafficFilter(question))
    };
    if added_clsact && !is_used(INGRESS)? && !is_used(EGRESS)? {
        netlink.request(RouteNetlinkMessage::DelQueueDiscipline(clsact(index)), 0)?;
    }
    removed
}

fn tap_name(index: u32) -> String {
    format!("fp-netem{index}")
}

/// On the loopback interface, lets the kernel accept redirected packets, which return without the
/// route they were sent by. The settings stay: they do not affect other packets there.
fn admit_own_packets(interface: &str) {
    if interface == "lo" {
        for setting in ["route_localnet", "accept_local"] {
            let _ = fs::write(format!("/proc/sys/net/ipv4/conf/lo/{setting}"), "1");
        }
    }
}

/// Returns the filter that redirects every frame to the interface `to`; without `to`, the filter to
/// remove.
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

/// Returns the options of a u32 filter that redirects every packet (linux/pkt_cls.h,
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
    // struct tc_mirred: index, capabilities, action, two reference counts, redirection, interface.
    let words = [0, 0, TC_ACT_STOLEN, 0, 0, TCA_EGRESS_REDIR, to];
    let mirred: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
    let options = attribute(TCA_MIRRED_PARMS, &mirred);
    let action = [attribute(TCA_ACT_KIND, b"mirred\0"), attribute(TCA_ACT_OPTIONS, &options)].concat();
    let actions = attribute(FIRST_ACTION, &action);
    [attribute(TCA_U32_SEL, &selector), attribute(TCA_U32_ACT, &actions)].concat()
}
