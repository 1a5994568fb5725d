//! The frames of a flow of traffic: UDP datagrams of one size from one host to another, which
//! differ in the first bytes of their payload.

use crate::host_path::HostPath;
use fastpath_spec::Traffic;
use fastpath_wire::build::Ip;
use fastpath_wire::checksum::Sum;
use fastpath_wire::{ethertype, protocol};
use std::net::IpAddr;

const ETHERNET_LEN: usize = 14;
const UDP_LEN: usize = 8;
/// Offset of the checksum in a UDP header.
const CHECKSUM_AT: usize = 6;

/// A frame of a flow. Its payload is zero behind its header.
#[derive(Clone, Debug)]
pub struct FlowFrame {
    bytes: Vec<u8>,
    /// The sum of the frame with a header of zeros, which its UDP checksum completes.
    sum: Sum,
    /// Offset of the UDP header.
    udp_at: usize,
    destination: IpAddr,
    port: u16,
}

impl FlowFrame {
    /// Creates the frame of traffic that takes this path.
    pub fn new(path: &HostPath, traffic: &Traffic) -> FlowFrame {
        let size = traffic.model.size as usize;
        let ip = Ip { traffic_class: traffic.dscp << 2, ..Ip::between(path.from, path.to) };
        let bytes = ip.udp(traffic.port, traffic.port, &vec![0; size]);
        let udp_at = bytes.len() - size - UDP_LEN;
        let stored = u16::from_be_bytes([bytes[udp_at + CHECKSUM_AT], bytes[udp_at + CHECKSUM_AT + 1]]);
        // The checksum is the complement of the sum.
        let sum = Sum::ZERO.word(!stored);
        FlowFrame { bytes, sum, udp_at, destination: path.to.1, port: traffic.port }
    }

    /// Returns the bytes of a frame whose payload begins with `header`.
    ///
    /// # Panics
    /// If the payload is shorter than the header.
    #[inline]
    pub fn with_header(&mut self, header: &[u8]) -> &[u8] {
        let payload_at = self.udp_at + UDP_LEN;
        self.bytes[payload_at..payload_at + header.len()].copy_from_slice(header);
        let checksum = self.sum.bytes(header).udp_checksum().to_be_bytes();
        let checksum_at = self.udp_at + CHECKSUM_AT;
        self.bytes[checksum_at..checksum_at + 2].copy_from_slice(&checksum);
        &self.bytes
    }

    /// Returns the payload of a frame that may be one of the flow: a UDP datagram to its address
    /// and port, without IP options. `None` for other frames and for fragments. The checksum is not
    /// verified.
    #[inline]
    pub fn payload_of<'f>(&self, frame: &'f [u8]) -> Option<&'f [u8]> {
        let udp = frame.get(self.udp_at..self.udp_at + UDP_LEN)?;
        let ip = &frame[ETHERNET_LEN..];
        let field = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let is_ours = match self.destination {
            IpAddr::V4(address) => {
                field(12) == ethertype::IPV4
                    && ip[0] == 0x45
                    && ip[9] == protocol::UDP
                    && (u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff) == 0
                    && ip[16..20] == address.octets()
            }
            IpAddr::V6(address) => {
                field(12) == ethertype::IPV6 && ip[6] == protocol::UDP && ip[24..40] == address.octets()
            }
        };
        let len = usize::from(u16::from_be_bytes([udp[4], udp[5]]));
        (is_ours && u16::from_be_bytes([udp[2], udp[3]]) == self.port)
            .then(|| frame.get(self.udp_at + UDP_LEN..self.udp_at + len))?
    }
}
