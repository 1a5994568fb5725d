//! Frames as bytes: parses, builds and changes Ethernet, VLAN, ARP, IPv4, IPv6, TCP, UDP and ICMP
//! headers; computes checksums (SCTP included); segments super-packets; reads and writes captures.
//!
//! A frame is a byte slice from the destination MAC to the end of the payload, without FCS. This
//! crate is not a network stack: [`Headers::parse`] reads the headers of a frame, and small
//! functions change or build one. No input makes a function panic, unless the documentation of the
//! function states a precondition.
//!
//! ```
//! use fastpath_wire::build::Ip;
//! use fastpath_wire::checksum::{ChecksumStatus, check_transport};
//! use fastpath_wire::icmp::{self, IcmpError};
//! use fastpath_wire::{Headers, MacAddr};
//! use std::net::IpAddr;
//!
//! let host: (_, IpAddr) = (MacAddr::from_index(1), [10, 0, 0, 2].into());
//! let router: (_, IpAddr) = (MacAddr::from_index(2), [10, 0, 0, 1].into());
//! let ip = Ip::between(host, (router.0, [192, 0, 2, 7].into()));
//! let frame = ip.udp(4000, 53, b"query");
//!
//! let headers = Headers::parse(&frame);
//! assert_eq!(headers.transport.map(|transport| transport.dst_port), Some(53));
//! assert_eq!(check_transport(&frame, &headers), ChecksumStatus::Good);
//!
//! // A router without a route answers the sender with an ICMP error.
//! let error = icmp::error(&frame, &headers, IcmpError::NoRoute, router).expect("an ICMP error");
//! assert_eq!(Headers::parse(&error).addresses(), Some((router.1, host.1)));
//! ```
//!
//! Read first: `headers.rs`, then `checksum.rs`. The RFCs behind most functions: 791, 8200, 1071,
//! 1624, 1812, 4443.
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
pub mod translate;
pub mod udp;
pub mod vnet;

pub use headers::{Headers, Ipv4, Ipv6, Malformed, NetworkLayer, Transport, ethertype, protocol};
pub use mac::{MacAddr, ParseMacError};
