//! ARP for IPv4 over Ethernet (RFC 826).

use crate::bytes::{be16, mac, v4};
use crate::{Headers, MacAddr, NetworkLayer, build, ethertype};
use std::net::Ipv4Addr;

/// An ARP message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arp {
    /// Request or reply.
    pub operation: ArpOperation,
    /// MAC address of the sender.
    pub sender_mac: MacAddr,
    /// IP address of the sender; 0.0.0.0 in a probe for a free address (RFC 5227).
    pub sender_ip: Ipv4Addr,
    /// MAC address of the receiver; zero in a request.
    pub target_mac: MacAddr,
    /// The requested IP address; in a reply, the IP address of the requester.
    pub target_ip: Ipv4Addr,
}

/// The operation of an ARP message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArpOperation {
    /// Asks for the MAC address of `target_ip`.
    Request,
    /// States that `sender_ip` is at `sender_mac`.
    Reply,
}

impl Arp {
    /// Parses the ARP message of a frame. Returns `None` if the frame has no ARP message for IPv4
    /// over Ethernet.
    pub fn parse(frame: &[u8], headers: &Headers) -> Option<Arp> {
        if headers.network != NetworkLayer::Arp {
            return None;
        }
        let message = frame.get(headers.l2_len..)?;
        // Hardware Ethernet, protocol IPv4, lengths 6 and 4.
        if message.first_chunk::<6>()? != &[0, 1, 8, 0, 6, 4] {
            return None;
        }
        let operation = match be16(message, 6)? {
            1 => ArpOperation::Request,
            2 => ArpOperation::Reply,
            _ => return None,
        };
        Some(Arp {
            operation,
            sender_mac: mac(message, 8)?,
            sender_ip: v4(message, 14)?,
            target_mac: mac(message, 18)?,
            target_ip: v4(message, 24)?,
        })
    }

    /// Returns a request for the MAC address of `target_ip`.
    pub fn request(sender_mac: MacAddr, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Arp {
        Arp { operation: ArpOperation::Request, sender_mac, sender_ip, target_mac: MacAddr::ZERO, target_ip }
    }

    /// Returns the reply to this request: its target is at `mac`.
    pub fn answer(&self, mac: MacAddr) -> Arp {
        Arp {
            operation: ArpOperation::Reply,
            sender_mac: mac,
            sender_ip: self.target_ip,
            target_mac: self.sender_mac,
            target_ip: self.sender_ip,
        }
    }

    /// Returns the message as a frame of 42 bytes. A request goes to the broadcast address, a reply
    /// to its target.
    pub fn to_frame(&self) -> Vec<u8> {
        let (dst, operation) = match self.operation {
            ArpOperation::Request => (MacAddr::BROADCAST, 1),
            ArpOperation::Reply => (self.target_mac, 2),
        };
        let mut message = vec![0, 1, 8, 0, 6, 4, 0, operation];
        message.extend(self.sender_mac.0);
        message.extend(self.sender_ip.octets());
        message.extend(self.target_mac.0);
        message.extend(self.target_ip.octets());
        build::ethernet(self.sender_mac, dst, ethertype::ARP, &message)
    }
}
