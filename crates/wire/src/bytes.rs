//! Reads and writes big-endian fields at an offset.

use crate::MacAddr;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns the `N` bytes at `at`, or `None` if `bytes` ends before them.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

/// Returns the big-endian 16-bit field at `at`.
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

/// Returns the big-endian 32-bit field at `at`.
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// Returns the MAC address at `at`.
pub(crate) fn mac(bytes: &[u8], at: usize) -> Option<MacAddr> {
    array(bytes, at).map(MacAddr)
}

/// Returns the IPv4 address at `at`.
pub(crate) fn v4(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    array::<4>(bytes, at).map(Ipv4Addr::from)
}

/// Returns the IPv6 address at `at`.
pub(crate) fn v6(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    array::<16>(bytes, at).map(Ipv6Addr::from)
}

/// Writes a big-endian 16-bit field at `at`. Panics if the field is outside `bytes`.
pub(crate) fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Writes a big-endian 32-bit field at `at`. Panics if the field is outside `bytes`.
pub(crate) fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
