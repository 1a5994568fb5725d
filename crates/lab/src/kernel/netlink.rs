//! The rtnetlink requests that hosts and testbeds need: links, addresses, routes, veth pairs,
//! bridges. Blocking: one request and its acknowledgement at a time. The socket belongs to the
//! namespace of the thread that opened it.

use ipnet::IpNet;
use netlink_packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Multicast group of rtnetlink: changes of interfaces (rtnetlink.h).
const RTNLGRP_LINK: u32 = 1;
/// Multicast group of rtnetlink: changes of IPv6 addresses (rtnetlink.h).
const RTNLGRP_IPV6_IFADDR: u32 = 9;
/// Neighbours per call, so that the errors of all of them fit a socket's buffer.
const NEIGHBORS_PER_CALL: usize = 256;

/// `ETH_P_ALL`.
const ALL_PROTOCOLS: u16 = 3;
// Attributes of a filter of kind bpf (linux/pkt_cls.h, linux/rtnetlink.h).
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;

/// The parameters of an interface that is brought up.
#[derive(Clone, Copy, Default, Debug)]
pub struct LinkParameters {
    /// The MAC address; `None` keeps it.
    pub mac: Option<[u8; 6]>,
    /// The largest packet, bytes; `None` keeps it.
    pub mtu: Option<u32>,
}

/// A connection to the kernel's routing tables.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket in the calling thread's network namespace.
    pub fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Sets the parameters, then brings the interface up.
    pub fn bring_up(&mut self, index: u32, parameters: LinkParameters) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let LinkParameters { mac, mtu } = parameters;
        message.attributes.extend(mac.map(|mac| LinkAttribute::Address(mac.to_vec())));
        message.attributes.extend(mtu.map(LinkAttribute::Mtu));
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Makes the veth pair of `name`, here, and `peer`, in the namespace `there`. Both are down.
    pub fn add_veth(&mut self, name: &str, peer: &str, there: BorrowedFd<'_>) -> io::Result<()> {
        let mut far = LinkMessage::default();
        far.attributes.push(LinkAttribute::IfName(peer.to_owned()));
        far.attributes.push(LinkAttribute::NetNsFd(there.as_raw_fd()));
        self.add_link(
            name,
            vec![LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far)))],
        )
    }

    /// Moves an interface to the namespace `there`, under a new name. It is down afterwards.
    pub fn move_link(&mut self, index: u32, name: &str, there: BorrowedFd<'_>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        message.attributes.push(LinkAttribute::NetNsFd(there.as_raw_fd()));
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Takes an interface down, which ends its routes, neighbours and IPv6 addresses.
    pub fn take_down(&mut self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives an interface another name. Before Linux 6.2 one that is up is refused.
    pub fn rename(&mut self, index: u32, name: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Removes an interface, with its addresses and routes.
    pub fn remove_link(&mut self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.request(RouteNetlinkMessage::DelLink(message), 0)
    }

    /// Makes a bridge, down and without ports.
    pub fn add_bridge(&mut self, name: &str) -> io::Result<()> {
        self.add_link(name, vec![LinkInfo::Kind(InfoKind::Bridge)])
    }

    fn add_link(&mut self, name: &str, info: Vec<LinkInfo>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        message.attributes.push(LinkAttribute::LinkInfo(info));
        self.request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Makes the interface a port of a bridge.
    pub fn join_bridge(&mut self, index: u32, bridge: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes.push(LinkAttribute::Controller(bridge));
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Runs a BPF program on what the interface receives, in front of the network stack, until the
    /// interface is removed: `clsact` with a filter of kind bpf, whose verdict is final
    /// (tc-bpf(8)).
    /// A link on tcx (Linux 6.6) would wait for the kernel's readers, about 10 ms for each
    /// interface when it is made and when it is closed.
    pub fn attach_ingress(&mut self, index: u32, program: BorrowedFd<'_>) -> io::Result<()> {
        self.request(RouteNetlinkMessage::NewQueueDiscipline(clsact(index)), NLM_F_CREATE | NLM_F_EXCL)?;
        let mut filter = TcMessage::default();
        filter.header.index = index as i32;
        filter.header.parent = TcHandle { major: 0xffff, minor: 0xfff2 };
        // The first preference, for all protocols.
        filter.header.info = 1 << 16 | u32::from(ALL_PROTOCOLS.to_be());
        filter.attributes.push(TcAttribute::Kind("bpf".to_owned()));
        let options = [
            attribute(TCA_BPF_FD, &program.as_raw_fd().to_ne_bytes()),
            attribute(TCA_BPF_NAME, b"fastpath\0"),
            attribute(TCA_BPF_FLAGS, &TCA_BPF_FLAG_ACT_DIRECT.to_ne_bytes()),
        ];
        filter.attributes.push(TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options.concat())));
        self.request(RouteNetlinkMessage::NewTrafficFilter(filter), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds an address, usable at once: without duplicate address detection (RFC 4862 §5.4),
    /// because the topology ensures that it is unique.
    pub fn add_address(&mut self, index: u32, address: IpNet) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address.addr());
        message.header.prefix_len = address.prefix_len();
        message.header.scope = AddressScope::Universe;
        message.header.index = index;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes.push(AddressAttribute::Address(address.addr()));
        message.attributes.push(AddressAttribute::Local(address.addr()));
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        if let IpNet::V4(net) = address
            && net.prefix_len() < 31
        {
            message.attributes.push(AddressAttribute::Broadcast(net.broadcast()));
        }
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Removes an address.
    pub fn remove_address(&mut self, index: u32, address: IpNet) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address.addr());
        message.header.prefix_len = address.prefix_len();
        message.header.index = index;
        message.attributes.push(AddressAttribute::Address(address.addr()));
        message.attributes.push(AddressAttribute::Local(address.addr()));
        self.request(RouteNetlinkMessage::DelAddress(message), 0)
    }

    /// Sends packets for `to` out of the interface, to `via` if there is one.
    pub fn add_route(&mut self, index: u32, to: IpNet, via: Option<IpAddr>) -> io::Result<()> {
        self.request(RouteNetlinkMessage::NewRoute(route(index, to, via)), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// As [`Netlink::add_route`], in place of another route to `to`.
    pub fn replace_route(&mut self, index: u32, to: IpNet, via: Option<IpAddr>) -> io::Result<()> {
        self.request(RouteNetlinkMessage::NewRoute(route(index, to, via)), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Removes a route.
    pub fn remove_route(&mut self, index: u32, to: IpNet, via: Option<IpAddr>) -> io::Result<()> {
        self.request(RouteNetlinkMessage::DelRoute(route(index, to, via)), 0)
    }

    /// Forgets neighbours. Those that are not known are ignored.
    pub fn remove_neighbors(&mut self, index: u32, addresses: &[IpAddr]) {
        for &address in addresses {
            let mut message = NeighbourMessage::default();
            message.header.family = family(address);
            message.header.ifindex = index;
            message.attributes.push(NeighbourAttribute::Destination(destination(address)));
            let _ = self.request(RouteNetlinkMessage::DelNeighbour(message), 0);
        }
    }

    /// Fills the neighbour table of an interface. The entries are as the kernel learns them (stale,
    /// so used at once and confirmed later), but the kernel does not collect them as garbage.
    pub fn add_neighbors(&mut self, index: u32, neighbors: &[(IpAddr, [u8; 6])]) -> io::Result<()> {
        for some in neighbors.chunks(NEIGHBORS_PER_CALL) {
            let mut bytes = Vec::new();
            for (place, &(address, mac)) in some.iter().enumerate() {
                let mut message = NeighbourMessage::default();
                message.header.family = family(address);
                message.header.ifindex = index;
                message.header.state = NeighbourState::Stale;
                message.header.flags = NeighbourFlags::ExtLearned;
                message.attributes.push(NeighbourAttribute::Destination(destination(address)));
                message.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
                // The kernel works through a call in order and always reports errors, so the last
                // acknowledgement says that all is done.
                let last = if place + 1 == some.len() { NLM_F_ACK } else { 0 };
                let flags = NLM_F_CREATE | NLM_F_REPLACE | last;
                self.append(&mut bytes, RouteNetlinkMessage::NewNeighbour(message), flags);
            }
            self.socket.send(&bytes, 0)?;
            self.acknowledged()?;
        }
        Ok(())
    }

    /// Whether the kernel has an answer to a question for several things.
    pub(crate) fn has_any(&mut self, question: RouteNetlinkMessage) -> io::Result<bool> {
        self.send(question, NLM_F_DUMP)?;
        let mut found = false;
        loop {
            let (answers, _) = self.socket.recv_from_full()?;
            let mut rest = &answers[..];
            while !rest.is_empty() {
                let answer =
                    NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(io::Error::other)?;
                match answer.payload {
                    NetlinkPayload::Done(_) => return Ok(found),
                    NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                    _ => found = true,
                }
                // Messages begin at multiples of four bytes (netlink(7)).
                rest = &rest[(answer.header.length as usize).next_multiple_of(4).clamp(1, rest.len())..];
            }
        }
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.append(&mut bytes, message, flags);
        self.socket.send(&bytes, 0).map(drop)
    }

    fn append(&mut self, bytes: &mut Vec<u8>, message: RouteNetlinkMessage, flags: u16) {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let start = bytes.len();
        // Messages begin at multiples of four bytes (netlink(7)).
        bytes.resize(start + packet.buffer_len().next_multiple_of(4), 0);
        packet.serialize(&mut bytes[start..]);
    }

    pub(crate) fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, NLM_F_ACK | flags)?;
        self.acknowledged()
    }

    fn acknowledged(&mut self) -> io::Result<()> {
        let (answer, _) = self.socket.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).map_err(io::Error::other)?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            NetlinkPayload::Error(_) => Ok(()),
            other => Err(io::Error::other(format!("expected an acknowledgement, got {other:?}"))),
        }
    }
}

/// Returns the queue discipline `clsact`, which has the filters of an interface (linux/pkt_sched.h,
/// `TC_H_CLSACT`).
pub(crate) fn clsact(index: u32) -> TcMessage {
    let mut message = TcMessage::with_index(index as i32);
    message.header.handle = TcHandle { major: 0xffff, minor: 0 };
    message.header.parent = TcHandle { major: 0xffff, minor: 0xfff1 };
    message.attributes.push(TcAttribute::Kind("clsact".to_owned()));
    message
}

/// Returns a netlink attribute: length, kind, value, padded to four bytes (netlink(7)).
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Receives the changes of interfaces in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct LinkMonitor {
    socket: Socket,
}

impl LinkMonitor {
    /// Opens it: changes from now on are reported.
    pub(crate) fn open() -> io::Result<LinkMonitor> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.add_membership(RTNLGRP_LINK)?;
        Ok(LinkMonitor { socket })
    }

    /// Waits for at most `longest` and returns the index of an interface that changed; `Some(None)`
    /// if changes may have been lost.
    pub(crate) fn changed(&self, longest: Duration) -> io::Result<Option<Option<u32>>> {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::try_from(longest).unwrap_or(PollTimeout::MAX))? == 0 {
            return Ok(None);
        }
        let bytes = match self.socket.recv_from_full() {
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => return Ok(Some(None)),
            received => received?.0,
        };
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes).map_err(io::Error::other)?;
        Ok(Some(match message.payload {
            NetlinkPayload::InnerMessage(
                RouteNetlinkMessage::NewLink(link) | RouteNetlinkMessage::DelLink(link),
            ) => Some(link.header.index),
            _ => None,
        }))
    }
}

/// Receives the addresses that become usable in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct AddressMonitor {
    socket: Socket,
}

impl AddressMonitor {
    /// Opens it: addresses from now on are reported.
    pub(crate) fn open() -> io::Result<AddressMonitor> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.add_membership(RTNLGRP_IPV6_IFADDR)?;
        Ok(AddressMonitor { socket })
    }

    /// Waits until `count` IPv6 addresses of the interface are usable. Returns whether they are,
    /// after at most `longest`.
    pub(crate) fn wait_for(&self, index: u32, count: usize, longest: Duration) -> io::Result<bool> {
        let (start, mut usable) = (Instant::now(), BTreeSet::new());
        while usable.len() < count {
            let left = longest.saturating_sub(start.elapsed());
            let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            if left.is_zero() || poll(&mut fds, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX))? == 0
            {
                return Ok(false);
            }
            let (bytes, _) = self.socket.recv_from_full()?;
            let message =
                NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes).map_err(io::Error::other)?;
            if let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewAddress(message)) = message.payload
                && message.header.index == index
                && !message.header.flags.contains(AddressHeaderFlags::Tentative)
            {
                usable.extend(message.attributes.into_iter().find_map(|attribute| match attribute {
                    AddressAttribute::Address(address) => Some(address),
                    _ => None,
                }));
            }
        }
        Ok(true)
    }
}

/// Returns the message about a static route.
fn route(index: u32, to: IpNet, via: Option<IpAddr>) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(to.addr());
    message.header.destination_prefix_length = to.prefix_len();
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = if via.is_some() { RouteScope::Universe } else { RouteScope::Link };
    message.header.kind = RouteType::Unicast;
    message.attributes.push(RouteAttribute::Destination(RouteAddress::from(to.network())));
    message.attributes.push(RouteAttribute::Oif(index));
    message.attributes.extend(via.map(|via| RouteAttribute::Gateway(RouteAddress::from(via))));
    message
}

fn destination(address: IpAddr) -> NeighbourAddress {
    match address {
        IpAddr::V4(address) => NeighbourAddress::Inet(address),
        IpAddr::V6(address) => NeighbourAddress::Inet6(address),
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
