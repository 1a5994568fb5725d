//! Big-endian fields at an offset, as every network header has them.

use crate::MacAddr;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The `N` bytes at `at`, or `None` when they are not all there.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

/// The big-endian 16-bit field at `at`.
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

/// The big-endian 32-bit field at `at`.
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// The MAC address at `at`.
pub(crate) fn mac(bytes: &[u8], at: usize) -> Option<MacAddr> {
    array(bytes, at).map(MacAddr)
}

/// The IPv4 address at `at`.
pub(crate) fn v4(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    array::<4>(bytes, at).map(Ipv4Addr::from)
}

/// The IPv6 address at `at`.
pub(crate) fn v6(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    array::<16>(bytes, at).map(Ipv6Addr::from)
}

/// Writes a big-endian 16-bit field at `at`. Panics when it is outside `bytes`.
pub(crate) fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Writes a big-endian 32-bit field at `at`. Panics when it is outside `bytes`.
pub(crate) fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
