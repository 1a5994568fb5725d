//! Bytes to headers and back: Ethernet, VLAN, ARP, IPv4/IPv6, TCP, UDP, SCTP's checksum, ICMP,
//! checksums, segmentation, pcap.
//!
//! A frame is a byte slice from destination MAC to end of payload, without FCS. Nothing here owns a
//! network stack: [`Headers::parse`] says what a frame is, small functions change or build one, and
//! no input, however broken, makes any of them panic unless its documentation says which offset to
//! bring.
//!
//! Read first: `headers.rs`, then `checksum.rs`. RFCs worth having at hand: 791, 8200, 1071, 1624,
//! 1812, 4443.
#![forbid(unsafe_code)]

pub mod arp;
pub mod build;
mod bytes;
pub mod checksum;
pub mod coalesce;
pub mod ecn;
mod headers;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
mod mac;
pub mod nd;
pub mod pcap;
pub mod sctp;
pub mod segment;
pub mod vnet;

pub use headers::{Headers, Ipv4, Ipv6, Malformed, Network, Transport, ethertype, protocol};
pub use mac::{MacAddr, ParseMacError};
