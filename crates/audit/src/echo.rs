//! ICMP echoes (RFC 792, RFC 4443 §4.1) of several pairs of hosts, from one thread.
//!
//! One request is sent per slot, by the pairs in turn, so that echoes of one pair do not queue
//! behind those of another. Replies carry the kernel's arrival time, so the wake-up time of this
//! thread does not matter.

use super::{AuditError, SocketError, Stop, open_in};
use fastpath_lab::Host;
use fastpath_lab::arrival;
use fastpath_wire::checksum;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, recvmsg, send, setsockopt,
    socket, sockopt::ReceiveTimestampns,
};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// ICMP header, bytes.
const HEADER: usize = 8;
/// Requests that fill ARP tables and caches. They are not recorded.
pub(crate) const WARM_UP: usize = 3;
/// How much longer than implied a reply may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// Echoes from one host to an address of another.
pub struct Echo {
    socket: OwnedFd,
    v4: bool,
    id: u16,
    /// The echo request, with its ICMP header.
    packet: Vec<u8>,
    /// When each request was sent, on the wall clock.
    sent_at: Vec<Duration>,
    /// The requests that were answered: another copy of a reply does not count.
    answered: BTreeSet<usize>,
    /// Round-trip times in milliseconds, in the order of the replies.
    pub rtts_ms: Vec<f64>,
    /// The round-trip time that the spec implies.
    implied: Duration,
}

impl Echo {
    /// Prepares echoes of `payload` bytes from `host` to `to`, with the implied round-trip time.
    /// `id` distinguishes several of one host.
    pub fn new(
        host: &Host,
        to: IpAddr,
        id: u16,
        (payload, implied): (usize, Duration),
    ) -> Result<Echo, AuditError> {
        let open = || -> std::io::Result<OwnedFd> {
            let (family, protocol) = match to {
                IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp),
                IpAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6),
            };
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let socket = socket(family, SockType::Raw, flags, protocol)?;
            setsockopt(&socket, ReceiveTimestampns, &true)?;
            nix::sys::socket::connect(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(to, 0)))?;
            Ok(socket)
        };
        let socket = open_in(host, "ICMP", open)?;
        let packet = vec![0; HEADER + payload];
        let answered = BTreeSet::new();
        let (sent_at, rtts_ms) = (Vec::new(), Vec::new());
        Ok(Echo { socket, v4: to.is_ipv4(), id, packet, sent_at, answered, rtts_ms, implied })
    }

    /// Returns when requests were sent, on the wall clock, with the warm-up.
    pub(crate) fn times(&self) -> &[Duration] {
        &self.sent_at
    }

    /// Returns the number of echoes requested, without the warm-up.
    pub fn sent(&self) -> usize {
        self.sent_at.len().saturating_sub(WARM_UP)
    }

    fn request(&mut self) -> Result<(), SocketError> {
        let sequence = self.sent_at.len() as u16;
        let packet = &mut self.packet;
        packet[0] = if self.v4 { 8 } else { 128 };
        packet[4..6].copy_from_slice(&self.id.to_be_bytes());
        packet[6..8].copy_from_slice(&sequence.to_be_bytes());
        if self.v4 {
            packet[2..4].fill(0);
            // For ICMPv6 the kernel computes the checksum (RFC 3542 §3.1).
            let sum = checksum::of(packet);
            packet[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        self.sent_at.push(wall_clock());
        match send(self.socket.as_raw_fd(), &self.packet, MsgFlags::empty()) {
            // After an ICMP unreachable the echo counts as lost.
            Ok(_) | Err(Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::ENOBUFS | Errno::EAGAIN) => Ok(()),
            Err(error) => Err(SocketError { what: "sending an echo request", source: error.into() }),
        }
    }

    /// Receives all replies that have arrived.
    fn collect(&mut self) -> Result<(), SocketError> {
        loop {
            let mut bytes = [0; 2048];
            let mut control = cmsg_space!(TimeSpec);
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let flags = MsgFlags::MSG_DONTWAIT;
            let (len, at) =
                match recvmsg::<()>(self.socket.as_raw_fd(), &mut parts, Some(&mut control), flags) {
                    Ok(message) => (message.bytes, message.cmsgs().ok().and_then(arrival)),
                    Err(Errno::EAGAIN) => return Ok(()),
                    Err(Errno::EINTR | Errno::EHOSTUNREACH | Errno::ENETUNREACH) => continue,
                    Err(error) => {
                        return Err(SocketError { what: "receiving echo replies", source: error.into() });
                    }
                };
            if let (Some(sequence), Some(at)) = (self.sequence_of(&bytes[..len]), at)
                && sequence >= WARM_UP
                && let Some(&sent) = self.sent_at.get(sequence)
                && self.answered.insert(sequence)
            {
                self.rtts_ms.push(at.saturating_sub(sent).as_secs_f64() * 1e3);
            }
        }
    }

    /// Returns the sequence number if this is a reply to one of these requests. Raw IPv4 sockets
    /// include the IP header.
    fn sequence_of(&self, packet: &[u8]) -> Option<usize> {
        let start = if self.v4 { usize::from(packet.first()? & 15) * 4 } else { 0 };
        let icmp = packet.get(start..start + HEADER)?;
        let reply = if self.v4 { 0 } else { 129 };
        let ours = icmp[0] == reply && icmp[4..6] == self.id.to_be_bytes();
        ours.then(|| usize::from(u16::from_be_bytes([icmp[6], icmp[7]])))
    }
}

/// Sends `count` recorded echoes of every pair, one every `slot`, and waits for the replies.
pub fn run(echoes: &mut [Echo], count: usize, slot: Duration, stop: &Stop) -> Result<(), AuditError> {
    let longest = echoes.iter().map(|echo| echo.implied).max().unwrap_or_default();
    // The first packets resolve the addresses at every hop, one after the other.
    for _ in 0..WARM_UP {
        round(echoes, slot, stop)?;
        wait(echoes, Instant::now() + longest + PATIENCE / 5, stop)?;
    }
    for _ in 0..count {
        round(echoes, slot, stop)?;
    }
    wait(echoes, Instant::now() + longest + PATIENCE, stop)
}

fn round(echoes: &mut [Echo], slot: Duration, stop: &Stop) -> Result<(), AuditError> {
    for index in 0..echoes.len() {
        echoes[index].request()?;
        wait(echoes, Instant::now() + slot, stop)?;
    }
    Ok(())
}

/// Collects replies until the deadline.
fn wait(echoes: &mut [Echo], until: Instant, stop: &Stop) -> Result<(), AuditError> {
    loop {
        stop.check()?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let mut polled: Vec<PollFd<'_>> =
            echoes.iter().map(|echo| PollFd::new(echo.socket.as_fd(), PollFlags::POLLIN)).collect();
        let limit = left.min(super::ATTENTION).as_millis().max(1) as u16;
        let ready = match poll(&mut polled, PollTimeout::from(limit)) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => 0,
            Err(error) => {
                return Err(SocketError { what: "waiting for replies", source: error.into() }.into());
            }
        };
        if ready > 0 {
            for echo in echoes.iter_mut() {
                echo.collect()?;
            }
        }
    }
}

/// Reads the clock of the kernel's time stamps.
pub(crate) fn wall_clock() -> Duration {
    clock_gettime(ClockId::CLOCK_REALTIME).map(Duration::from).unwrap_or_default()
}
